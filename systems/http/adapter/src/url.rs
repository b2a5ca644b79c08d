//! URLs, as far as a load needs them: where to connect, what to ask for. Strict: what a server would see
//! differently from how a user reads it is refused with the way to write it. No name is looked up here.

use std::fmt;

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// In lower case; an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// As it stands in `Host`: with brackets for IPv6, without the scheme's own port.
    pub(crate) fn authority(&self) -> String {
        let host = self.bracketed();
        if self.port == default_port(self.is_tls) { host } else { format!("{host}:{}", self.port) }
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.bracketed(), self.port)
    }
}

/// A URL, or the path part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `None`: the base URL's.
    pub(crate) origin: Option<Origin>,
    /// Path and query, as they stand in the request line.
    pub(crate) target: String,
}

/// Reads `http://host:port/path?query`, or `/path?query`.
pub(crate) fn parse(text: &str) -> Result<Place, String> {
    parse_as(text, ["http", "https"])
}

/// The same with other schemes: the one without TLS, and the one with it.
pub(crate) fn parse_as(text: &str, schemes: [&str; 2]) -> Result<Place, String> {
    if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(format!(
            "`{}` holds {bad:?}; write it percent-encoded (a host name in its xn-- form)",
            text.escape_debug()
        ));
    }
    // A fragment is never sent.
    let text = text.split('#').next().unwrap_or("");
    if text.starts_with('/') {
        return Ok(Place { origin: None, target: text.to_owned() });
    }
    let (is_tls, rest) = scheme(text, schemes)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.contains('@') {
        return Err(format!(
            "the URL holds a user name{}; send it as a header instead, such as Authorization = \"Basic ${{BASIC}}\", where \
             BASIC is name:password in base64",
            if authority.contains(':') { " and a password" } else { "" }
        ));
    }
    let (host, port) =
        host_and_port(authority, default_port(is_tls)).map_err(|why| format!("`{text}`: {why}"))?;
    let slash = if target.starts_with('/') { "" } else { "/" };
    let origin = Origin { is_tls, host: host.to_ascii_lowercase(), port };
    Ok(Place { origin: Some(origin), target: format!("{slash}{target}") })
}

const fn default_port(is_tls: bool) -> u16 {
    if is_tls { 443 } else { 80 }
}

fn scheme<'a>(text: &'a str, [plain, tls]: [&str; 2]) -> Result<(bool, &'a str), String> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(plain) => Ok((false, rest)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(tls) => Ok((true, rest)),
        Some((scheme, _)) => {
            Err(format!("expected a URL of {plain}:// or {tls}://, got one of `{scheme}://`"))
        }
        None if text.is_empty() => Err("the URL is empty".to_owned()),
        None => Err(format!("`{text}` is not a URL; did you mean `{plain}://{text}`?")),
    }
}

fn host_and_port(authority: &str, default: u16) -> Result<(&str, u16), String> {
    let (host, rest) = if let Some(inner) = authority.strip_prefix('[') {
        let (host, rest) =
            inner.split_once(']').ok_or("the bracket of the IPv6 address is not closed")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("`[{host}]` is not an IPv6 address"));
        }
        (host, rest)
    } else {
        authority.split_at(authority.find(':').unwrap_or(authority.len()))
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if rest.matches(':').count() > 1 {
        return Err("an IPv6 address stands in brackets, such as http://[::1]:8080/".to_owned());
    }
    if let Some(bad) = host.chars().find(|c| !c.is_ascii_alphanumeric() && !"-._~:".contains(*c)) {
        return Err(format!("{bad:?} cannot stand in a host name"));
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((host, default)),
        Some("") => Ok((host, default)),
        Some(port) => match port.parse() {
            Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => {
                Ok((host, number))
            }
            _ => Err(format!("`{port}` is not a port; ports are 1 to 65535")),
        },
        None => Err(format!("`{rest}` cannot stand behind the host")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is connected to and what is asked for come out of every form of URL.
    #[test]
    fn urls() {
        for (text, origin, authority, target) in [
            ("http://a", "http://a:80", "a", "/"),
            ("HTTPS://A.example:443/x?y=1#z", "https://a.example:443", "a.example", "/x?y=1"),
            ("http://127.0.0.1:8080?q", "http://127.0.0.1:8080", "127.0.0.1:8080", "/?q"),
            ("http://[::1]:99/a", "http://[::1]:99", "[::1]:99", "/a"),
            ("https://[::1]", "https://[::1]:443", "[::1]", "/"),
            ("http://a:/b", "http://a:80", "a", "/b"),
        ] {
            let place = parse(text).unwrap();
            let found = place.origin.unwrap();
            assert_eq!(
                (found.to_string().as_str(), found.authority().as_str()),
                (origin, authority),
                "{text}"
            );
            assert_eq!(place.target, target, "{text}");
        }
        assert_eq!(parse("/a?b").unwrap(), Place { origin: None, target: "/a?b".into() });
    }

    /// Claim: what is no URL is refused with what to write instead.
    #[test]
    fn not_urls() {
        for (text, expected) in [
            ("", "the URL is empty"),
            (
                "localhost:80/x",
                "`localhost:80/x` is not a URL; did you mean `http://localhost:80/x`?",
            ),
            ("ftp://a/", "expected a URL of http:// or https://, got one of `ftp://`"),
            ("http:///x", "`http:///x`: the host is missing"),
            ("http://a:0/", "`http://a:0/`: `0` is not a port; ports are 1 to 65535"),
            ("http://a:+1/", "`http://a:+1/`: `+1` is not a port; ports are 1 to 65535"),
            ("http://::1/", "`http://::1/`: the host is missing"),
            (
                "http://fe80::1/",
                "`http://fe80::1/`: an IPv6 address stands in brackets, such as http://[::1]:8080/",
            ),
            ("http://[::1/", "`http://[::1/`: the bracket of the IPv6 address is not closed"),
            ("http://[a]/", "`http://[a]/`: `[a]` is not an IPv6 address"),
            ("http://[::1]x/", "`http://[::1]x/`: `x` cannot stand behind the host"),
            (
                "http://a b/",
                "`http://a b/` holds ' '; write it percent-encoded (a host name in its xn-- form)",
            ),
            (
                "http://a\u{f6}/",
                "`http://a\u{f6}/` holds 'ö'; write it percent-encoded (a host name in its xn-- form)",
            ),
            ("http://a_b/", "`http://a_b/` is fine"),
            (
                "http://u:p@a/",
                "the URL holds a user name and a password; send it as a header instead, such as Authorization = \"Basic ${BASIC}\", where BASIC is name:password in base64",
            ),
            ("http://a%20b/", "`http://a%20b/`: '%' cannot stand in a host name"),
        ] {
            match parse(text) {
                Err(message) => assert_eq!(message, expected, "{text}"),
                Ok(_) => assert!(expected.ends_with("is fine"), "{text}"),
            }
        }
    }
}
