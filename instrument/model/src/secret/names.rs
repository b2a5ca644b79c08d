//! What is a secret by its name, or by how it looks: the one list. A name too many costs a value that a user sets again;
//! a name too few would put a password into a file.

/// Parts of names, wherever they stand in one.
const PARTS: [&str; 26] = [
    "authorization",
    "authentication",
    "cookie",
    "api-key",
    "apikey",
    "access-key",
    "accesskey",
    "account-key",
    "private-key",
    "privatekey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "signature",
    "credential",
    "session",
    "csrf",
    "xsrf",
    "jwt",
    "assertion",
    "dpop",
    "saml",
    "mnemonic",
    "connection-string",
];
/// Whole words of names.
const WORDS: [&str; 10] =
    ["key", "auth", "sig", "pwd", "sid", "otp", "bearer", "pass", "private", "pin"];

/// Schemes of an Authorization header.
pub(super) const SCHEMES: [&str; 4] = ["bearer ", "basic ", "digest ", "token "];

/// Whether a value is a secret by its name: the credentials of RFC 9110 and RFC 6265, and names that say key, token,
/// secret, password or signature. `accessToken`, `access_token` and `Access-Token` are one name.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let mut plain = String::with_capacity(name.len() + 4);
    let bytes = name.as_bytes();
    for (index, c) in name.char_indices() {
        if c.is_ascii_uppercase() && index > 0 && bytes[index - 1].is_ascii_lowercase() {
            plain.push('-');
        }
        plain.push(if c == '_' || c == '.' { '-' } else { c.to_ascii_lowercase() });
    }
    PARTS.iter().any(|part| plain.contains(part))
        || plain.split('-').any(|word| WORDS.contains(&word))
}

/// Whether a value is a secret by itself: credentials of an Authorization header, or a JSON web token.
#[must_use]
pub fn looks_secret(value: &str) -> bool {
    let value = value.trim_start();
    scheme_bytes(value) > 0 || is_token(value)
}

/// How many bytes of a header's value are its scheme (`Bearer `), which is no secret.
pub(super) fn scheme_bytes(value: &str) -> usize {
    let is_it = |scheme: &&&str| {
        value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    SCHEMES.iter().find(is_it).map_or(0, |scheme| scheme.len())
}

/// `eyJ` is what a JSON object in base64 begins with; three parts (five, encrypted) make a token.
pub(super) fn is_token(text: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.starts_with("eyJ") && text.matches('.').count() >= 2 && text.bytes().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: names in each spelling are known, and words that only begin alike are not.
    #[test]
    fn names() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Set-Cookie",
            "X-Api-Key",
            "api_key",
            "apiKey",
            "accessToken",
            "access_token",
            "client_secret",
            "DB_PASSWORD",
            "X-Amz-Signature",
            "sig",
            "otp",
            "AccountKey",
            "sessionId",
            "JSESSIONID",
            "private_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["Accept", "keys", "monkey", "passenger", "author", "signal", "rate", "id"] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(looks_secret("bearer abc") && looks_secret("eyJhbGc.eyJzdWI.c2ln"));
        assert!(!looks_secret("a bearer") && !looks_secret("eyJ no token"));
    }
}
