//! References to the environment: `${NAME}` anywhere in a text, `env:NAME` as the whole of a value or after a header's
//! scheme. The reference is stored and the value is not.

use std::sync::atomic::{AtomicBool, Ordering};

use super::known::taint;
use super::names::scheme_bytes;

/// References are refused; set once, before a stranger's file is read.
static IS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Refuses from here on each reference to the environment, for the whole process: however it was encoded, it is read here.
pub fn forbid_environment() {
    IS_FORBIDDEN.store(true, Ordering::Relaxed);
}

/// The value of a variable of the environment, if it is set.
pub type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A text with the values of the variables that it names, each tainted. `$${NAME}` stands for `${NAME}` itself, and what
/// is no name of a variable (`${a.b}`, `${{ x }}`) stays as it is.
///
/// # Errors
/// The first variable that is not set, in words, with what to do.
pub fn expand(text: &str, lookup: &Lookup<'_>) -> Result<String, String> {
    let bytes = expand_bytes(text.as_bytes(), lookup)?;
    Ok(String::from_utf8(bytes).expect("text with texts put into it at character boundaries"))
}

/// The same of bytes, which need not be text: a body read from a file.
///
/// # Errors
/// As [`expand`].
pub fn expand_bytes(bytes: &[u8], lookup: &Lookup<'_>) -> Result<Vec<u8>, String> {
    if let Some(name) = whole(bytes) {
        return Ok(value_of(name, lookup)?.into_bytes());
    }
    let behind_scheme = std::str::from_utf8(bytes).ok().and_then(|text| {
        let (scheme, rest) = text.split_at(scheme_bytes(text));
        whole(rest.as_bytes()).filter(|_| !scheme.is_empty()).map(|name| (scheme, name))
    });
    if let Some((scheme, name)) = behind_scheme {
        return Ok(format!("{scheme}{}", value_of(name, lookup)?).into_bytes());
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"${") {
        let name = variable(&rest[at + 2..]);
        if at > 0 && rest[at - 1] == b'$' && name.is_some() {
            // The first of the two dollars goes.
            out.extend_from_slice(&rest[..at - 1]);
            out.extend_from_slice(b"${");
            rest = &rest[at + 2..];
            continue;
        }
        out.extend_from_slice(&rest[..at]);
        match name {
            Some(name) => {
                out.extend_from_slice(value_of(name, lookup)?.as_bytes());
                rest = &rest[at + 3 + name.len()..];
            }
            None => {
                out.extend_from_slice(b"${");
                rest = &rest[at + 2..];
            }
        }
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// The inverse of [`expand_bytes`]: for recorded bytes, and names no variable of this host.
#[must_use]
pub fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        if bytes[at..].starts_with(b"${") && variable(&bytes[at + 2..]).is_some() {
            out.push(b'$');
        }
        out.push(*byte);
    }
    out
}

/// Whether a value is a reference, or holds one: it is stored as it is.
#[must_use]
pub fn is_reference(value: &str) -> bool {
    !references(value).is_empty()
}

/// The variables that a text names as `${NAME}`, or as `env:NAME` in the place of a value. Sorted, each once.
#[must_use]
pub fn references(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("${") {
        let is_escaped = at > 0 && text.as_bytes()[at - 1] == b'$';
        if let Some(name) = variable(&text.as_bytes()[at + 2..]).filter(|_| !is_escaped) {
            found.push(name.to_owned());
        }
    }
    for (at, mark) in text.match_indices("env:") {
        let is_value = at == 0 || matches!(text.as_bytes()[at - 1], b' ' | b'"' | b'\'');
        let rest = &text[at + mark.len()..];
        let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        if is_value && is_name(&rest[..end]) {
            found.push(rest[..end].to_owned());
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a URL takes its host from the environment: looking the name up would tell the variable's value to whoever
/// answers for it. A URL that is one variable as a whole, or before its path, is no such host: its value has to be a URL.
#[must_use]
pub fn has_host_of_environment(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        let end = url.find('/').unwrap_or(url.len());
        let base = &url[..end];
        let is_one = base.strip_prefix("${").is_some_and(|it| it.find('}') == Some(it.len() - 1));
        return !is_one && !references(base).is_empty() && !base.starts_with("env:");
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // A port is a number, and says nothing to a name server.
    let host = host.rsplit_once(":${").map_or(host, |(host, _)| host);
    !references(host).is_empty()
}

/// The variable that a value with the given name is asked for by: `X-Api-Key` as `X_API_KEY`.
#[must_use]
pub fn variable_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let made: String =
        name.trim_matches(|c: char| !c.is_ascii_alphanumeric()).chars().map(plain).collect();
    if made.starts_with(|c: char| c.is_ascii_digit()) || made.is_empty() {
        format!("SECRET_{made}")
    } else {
        made
    }
}

/// `env:NAME` and nothing else.
fn whole(bytes: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(bytes.strip_prefix(b"env:")?).ok()?;
    is_name(name).then_some(name)
}

/// `NAME}`. No further than the name goes is looked for its end: a body may have a million openings and no end.
fn variable(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| !is_of_name(char::from(*byte)))?;
    let name = std::str::from_utf8(&bytes[..end]).ok()?;
    (bytes[end] == b'}' && is_name(name)).then_some(name)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_of_name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn value_of(name: &str, lookup: &Lookup<'_>) -> Result<String, String> {
    if IS_FORBIDDEN.load(Ordering::Relaxed) {
        return Err(format!("--sandbox reads no environment, and this asks for `{name}`"));
    }
    let value = lookup(name).ok_or_else(|| {
        format!(
            "the environment variable `{name}` is not set; set it (export {name}=…), or write $${{{name}}} where \
             ${{{name}}} itself is meant"
        )
    })?;
    taint(&value);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let lookup = |name: &str| match name {
            "TOK" => Some("reference-value-1".to_owned()),
            "_b2" => Some("reference-value-2".to_owned()),
            _ => None,
        };
        expand(text, &lookup)
    }

    /// Claim: both forms of a reference take the variable's value, wherever they may stand, and nothing else changes.
    #[test]
    fn values_are_taken() {
        for (text, expected) in [
            ("Bearer ${TOK}", "Bearer reference-value-1"),
            ("env:TOK", "reference-value-1"),
            ("Bearer env:TOK", "Bearer reference-value-1"),
            ("/a?t=${TOK}&u=${_b2}", "/a?t=reference-value-1&u=reference-value-2"),
            ("no env:TOK here", "no env:TOK here"),
            ("$${TOK} ${a.b} ${{ x }} ${", "${TOK} ${a.b} ${{ x }} ${"),
            ("$5 {TOK}", "$5 {TOK}"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(
            expanded(&String::from_utf8(escaped(b"a ${TOK} $x")).unwrap()).unwrap(),
            "a ${TOK} $x"
        );
        let missing = expanded("${TOK} ${NOT_SET}").unwrap_err();
        assert!(
            missing.contains("`NOT_SET` is not set") && !missing.contains("value-1"),
            "{missing}"
        );
    }

    /// Claim: the time to look for references grows with the text alone, however many begin in it and never end.
    #[test]
    fn openings_without_an_end() {
        for opening in ["${", "${A", "$"] {
            let text = opening.repeat(1 << 20);
            assert_eq!(references(&text), [""; 0], "{opening}");
            assert_eq!(expand(&text, &|_| None).as_deref(), Ok(text.as_str()), "{opening}");
        }
    }

    /// Claim: a variable that would be looked up as a name, or as a part of one, is told from one that holds a whole URL, a
    /// port, a password or a part of the path.
    #[test]
    fn hosts() {
        for url in [
            "http://${A}.example/",
            "http://${A}",
            "https://me:${P}@${A}.example:80/x",
            "http://x.${A}.example:${PORT}/",
            "${A}.example/",
            "${A}${B}/x",
            "http://env:A/",
        ] {
            assert!(has_host_of_environment(url), "{url}");
        }
        for url in [
            "http://h/${A}?b=${C}",
            "http://h:${PORT}/",
            "http://me:${A}@h/",
            "${URL}",
            "${URL}/x/${A}",
            "env:URL",
            "http://h/",
            "/${A}",
        ] {
            assert!(!has_host_of_environment(url), "{url}");
        }
    }

    /// Claim: what a text refers to is found, and the variable for a name can be set in a shell.
    #[test]
    fn references_are_found() {
        let text = "a = \"Bearer ${B}\"\nb = \"env:A\" # $${C} ${d.e} myenv:F\n";
        assert_eq!(references(text), ["A", "B"]);
        assert!(is_reference("x-${A}") && !is_reference("x-$A"));
        assert_eq!(variable_name("X-Api-Key"), "X_API_KEY");
        assert_eq!(variable_name("--token"), "TOKEN");
        assert_eq!(variable_name("2fa"), "SECRET_2FA");
    }
}
