//! Takes secrets out of a command line before it is stored.
//!
//! It errs on the side of taking out too much: a stored command line is for people who want to repeat a run,
//! and they have secrets of their own. It must never be relied on for anything but the forms in its tests.

const REDACTED: &str = "<redacted>";

/// Parts of names whose values are secret, wherever they stand in the name.
const SECRET_PARTS: &[&str] = &[
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "api-key",
    "api_key",
    "apikey",
    "access-key",
    "access_key",
    "accesskey",
    "account-key",
    "private",
    "credential",
    "signature",
];
/// Names whose values are secret, whole.
const SECRET_NAMES: &[&str] = &["auth", "key", "sig", "pass", "pwd", "x-auth"];

/// The command line with the values of secret headers, options, settings, URL users and query parameters
/// replaced by `<redacted>`.
#[must_use]
pub fn redact_command(command: &[String]) -> Vec<String> {
    let mut next_is = Next::Anything;
    let mut redacted = Vec::with_capacity(command.len());
    for word in command {
        let (text, next) = match next_is {
            Next::User => (redact_user(word), Next::Anything),
            Next::Secret => (REDACTED.to_owned(), Next::Anything),
            Next::Anything => (redact_word(word), after(word)),
        };
        redacted.push(text);
        next_is = next;
    }
    redacted
}

/// What the word behind an option is.
#[derive(Clone, Copy)]
enum Next {
    Anything,
    User,
    Secret,
}

fn after(word: &str) -> Next {
    match word {
        "-u" | "--user" => Next::User,
        _ if word.contains(['=', ' ', ':']) => Next::Anything,
        _ => match word.strip_prefix("--") {
            Some(name) if is_secret(name) => Next::Secret,
            _ => Next::Anything,
        },
    }
}

fn redact_word(word: &str) -> String {
    let name_end = word.find(['=', ':', ' ']).unwrap_or(word.len());
    let (name, rest) = word.split_at(name_end);
    if rest.starts_with("://") {
        return redact_urls(word);
    }
    // `--header=Name: value`, `-HName: value`, `--set a.b=value`: what counts is the name nearest to the value.
    if let Some(value) = rest.strip_prefix('=') {
        let last = name.rsplit('.').next().unwrap_or(name).trim_start_matches('-');
        return if is_secret(last) {
            format!("{name}={REDACTED}")
        } else {
            format!("{name}={}", redact_word(value))
        };
    }
    if rest.starts_with(':') {
        let header = name.strip_prefix("-H").unwrap_or(name);
        if is_secret(header.trim_matches(['-', '"', '\''])) {
            return format!("{name}: {REDACTED}");
        }
    }
    for scheme in ["Bearer", "bearer", "Basic", "basic"] {
        if name == scheme && !rest.is_empty() {
            return format!("{scheme} {REDACTED}");
        }
    }
    redact_urls(word)
}

/// Users and secret query parameters of every URL in the text.
fn redact_urls(text: &str) -> String {
    let Some(start) = text.find("://").map(|at| at + 3) else { return text.to_owned() };
    let (scheme, rest) = text.split_at(start);
    let url_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (url, behind) = rest.split_at(url_end);
    let authority_end = url.find(['/', '?', '#']).unwrap_or(url.len());
    let (authority, path) = url.split_at(authority_end);
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{REDACTED}@{host}"),
        None => authority.to_owned(),
    };
    let path = match path.split_once('?') {
        Some((path, query)) => {
            let pairs: Vec<String> = query.split('&').map(redact_pair).collect();
            format!("{path}?{}", pairs.join("&"))
        }
        None => path.to_owned(),
    };
    format!("{scheme}{authority}{path}{}", redact_urls(behind))
}

fn redact_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    }
}

fn redact_user(word: &str) -> String {
    match word.split_once(':') {
        Some((user, _)) => format!("{user}:{REDACTED}"),
        None => word.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str()) || SECRET_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: secrets in every form that the command line takes are gone, and everything else stays.
    #[test]
    fn secrets_are_taken_out() {
        for (command, expected) in [
            ("assay|run|x.toml", "assay|run|x.toml"),
            ("-H|Authorization: Bearer abc", "-H|Authorization: <redacted>"),
            ("-HX-Api-Key: abc", "-HX-Api-Key: <redacted>"),
            ("--header=Cookie: a=b; c=d", "--header=Cookie: <redacted>"),
            ("-H|Accept: text/html", "-H|Accept: text/html"),
            (
                "--set|http.headers.authorization=Bearer abc",
                "--set|http.headers.authorization=<redacted>",
            ),
            ("--set|load.rate=80/s", "--set|load.rate=80/s"),
            ("--set|http.url=https://u:p@h/", "--set|http.url=https://<redacted>@h/"),
            (
                "https://user:pw@h:1/p?a=1&access_token=t#f",
                "https://<redacted>@h:1/p?a=1&access_token=<redacted>",
            ),
            ("http://h/p@q?key=k&keys=2", "http://h/p@q?key=<redacted>&keys=2"),
            ("--token|abc|next", "--token|<redacted>|next"),
            ("--token=abc", "--token=<redacted>"),
            ("-u|me:pw", "-u|me:<redacted>"),
            ("GET http://a:b@h/ http://c:d@i/", "GET http://<redacted>@h/ http://<redacted>@i/"),
            ("Bearer abc", "Bearer <redacted>"),
            ("--duration|30s|--rate|50/s", "--duration|30s|--rate|50/s"),
        ] {
            let words: Vec<String> = command.split('|').map(str::to_owned).collect();
            assert_eq!(redact_command(&words).join("|"), expected, "{command}");
        }
    }
}
