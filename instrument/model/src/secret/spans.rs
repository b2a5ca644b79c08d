//! Where secrets stand in a text that a user wrote: a URL, the lines of a request, a body (JSON, XML, a form), a command
//! line. They are known by the name before them, by a scheme (`Bearer …`), by their form (a JSON web token), or as the
//! password of a URL. References to the environment are none, and neither are places that a flow fills in (`{{token}}`).

use std::ops::Range;

use super::MARK;
use super::names::{is_secret_name, is_token, scheme_bytes};
use super::reference::{is_reference, variable_name};

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSpan {
    /// Its bytes.
    pub range: Range<usize>,
    /// The variable that it could come from: `X_API_KEY`.
    pub variable: String,
}

/// The shortest credentials that are known by nothing but the scheme before them.
const CREDENTIALS_MIN: usize = 8;

/// The shortest JSON web token: its head alone has more.
const TOKEN_BYTES_MIN: usize = 40;

/// The secrets in a text, in order, none within another.
#[must_use]
pub fn spans(text: &str) -> Vec<SecretSpan> {
    let mut found = Vec::new();
    passwords(text, &mut found);
    let mut at = 0;
    let mut unlisted = 0..0;
    while let Some(start) = text[at..].find(is_of_name).map(|start| at + start) {
        let end = text[start..].find(|c| !is_of_name(c)).map_or(text.len(), |end| start + end);
        let name = &text[start..end];
        at = end;
        let value = if is_token(name) {
            push(text, start..end, "TOKEN", &mut found);
            continue;
        } else if ["bearer", "basic"].iter().any(|scheme| name.eq_ignore_ascii_case(scheme)) {
            let rest = &text[end..];
            let skipped = rest.len() - rest.trim_start_matches(' ').len();
            let credentials = rest[skipped..].find(ends_word).unwrap_or(rest.len() - skipped);
            if skipped > 0 && credentials >= CREDENTIALS_MIN {
                let range = end + skipped..end + skipped + credentials;
                push(text, range, &name.to_ascii_uppercase(), &mut found);
                continue;
            }
            value_behind(text, start, end, &mut unlisted)
        } else if is_secret_name(&decoded(name.rsplit('.').next().unwrap_or(name))) {
            value_behind(text, start, end, &mut unlisted)
        } else {
            Vec::new()
        };
        for range in value {
            at = at.max(range.end);
            let range = range.start + scheme_bytes(&text[range.clone()])..range.end;
            push(text, range, &variable_name(name.rsplit('.').next().unwrap_or(name)), &mut found);
        }
    }
    found.sort_by_key(|span| span.range.start);
    found.dedup_by(|next, last| next.range.start < last.range.end);
    found
}

/// Credentials that are known by themselves, with what they are: passwords of URLs, `Bearer …`, JSON web tokens, private
/// keys. For texts in which names say nothing, because they are about names.
#[must_use]
pub fn credentials(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    passwords(text, &mut found);
    let mut found: Vec<_> =
        found.into_iter().map(|span| (span.range, "a password in a URL")).collect();
    for (at, word) in text.match_indices("earer ") {
        let start = at + word.len();
        let end = text[start..].find(ends_word).map_or(text.len(), |end| start + end);
        let value = &text[start..end];
        let is_one = value.len() >= CREDENTIALS_MIN && !value.contains("${");
        if is_one && value.contains(|c: char| c.is_ascii_digit()) {
            found.push((start..end, "credentials behind Bearer"));
        }
    }
    let mut last = 0;
    for (start, _) in text.match_indices("eyJ") {
        // A later start in the same word has fewer parts than the first, and would be read to the same end again.
        if start < last {
            continue;
        }
        let ends = |c| !is_of_name(c) || c == '%';
        let end = text[start..].find(ends).map_or(text.len(), |end| start + end);
        last = end;
        if is_token(&text[start..end]) && end - start >= TOKEN_BYTES_MIN {
            found.push((start..end, "a JSON web token"));
        }
    }
    found.extend(
        text.match_indices("PRIVATE KEY-----")
            .map(|(at, key)| (at..at + key.len(), "a private key")),
    );
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// A value that is secret by the name of its place: all of it, but for a scheme; `None` if it is a reference.
#[must_use]
pub fn value_span(name: &str, value: &str) -> Option<SecretSpan> {
    let mut found = Vec::new();
    push(value, scheme_bytes(value)..value.len(), &variable_name(name), &mut found);
    found.pop()
}

/// The text with [`MARK`] in the place of each.
#[must_use]
pub fn masked(text: &str, spans: &[SecretSpan]) -> String {
    let mut out = text.to_owned();
    for span in spans.iter().rev() {
        out.replace_range(span.range.clone(), MARK);
    }
    out
}

/// The secrets in each word of a command line: values of headers, options, settings, and of the words after `--token`
/// and `-u`, and what stands in URLs and bodies.
#[must_use]
pub fn command_spans(words: &[String]) -> Vec<Vec<SecretSpan>> {
    let mut next = Next::Anything;
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        let of_word = match std::mem::replace(&mut next, after(word)) {
            Next::Secret(name) => {
                next = Next::Anything;
                value_span(&name, word).into_iter().collect()
            }
            Next::User => {
                next = Next::Anything;
                let mut found = Vec::new();
                if let Some((user, _)) = word.split_once(':') {
                    push(word, user.len() + 1..word.len(), "PASSWORD", &mut found);
                }
                found
            }
            Next::Anything => word_spans(word),
        };
        all.push(of_word);
    }
    all
}

/// A command line without its secrets.
#[must_use]
pub fn masked_command(words: &[String]) -> Vec<String> {
    let spans = command_spans(words);
    words.iter().zip(&spans).map(|(word, spans)| masked(word, spans)).collect()
}

/// Options with a secret-looking name and no value.
const SWITCHES: [&str; 1] = ["check-secrets"];

/// The role of the word after an option.
enum Next {
    Anything,
    User,
    Secret(String),
}

fn after(word: &str) -> Next {
    match word {
        "-u" | "--user" => Next::User,
        _ if word.contains(['=', ' ', ':']) => Next::Anything,
        _ => match word.strip_prefix("--") {
            Some(name) if is_secret_name(name) && !SWITCHES.contains(&name) => {
                Next::Secret(name.to_owned())
            }
            _ => Next::Anything,
        },
    }
}

/// `--header=Name: value`, `--set a.b=value`: what counts is the name nearest to the value, which is the rest of the word.
fn word_spans(word: &str) -> Vec<SecretSpan> {
    let name_end = word.find(['=', ':', ' ', '?', '{', '"']).unwrap_or(word.len());
    if let Some(value) = word[name_end..].strip_prefix('=') {
        let name = &word[..name_end];
        let last = name.rsplit('.').next().unwrap_or(name).trim_start_matches('-');
        let inside = if is_secret_name(last) {
            value_span(last, value).into_iter().collect()
        } else {
            word_spans(value)
        };
        let shift = word.len() - value.len();
        let shifted = |span: SecretSpan| SecretSpan {
            range: span.range.start + shift..span.range.end + shift,
            variable: span.variable,
        };
        return inside.into_iter().map(shifted).collect();
    }
    spans(word)
}

/// Passwords of URLs; a user without one is a token.
fn passwords(text: &str, found: &mut Vec<SecretSpan>) {
    for (at, scheme) in text.match_indices("://") {
        let start = at + scheme.len();
        let end =
            text[start..].find(['/', '?', '#', '"', '\'', '<', '>']).unwrap_or(text.len() - start);
        let end = text[start..start + end].find(char::is_whitespace).unwrap_or(end);
        let Some(user) = text[start..start + end].rfind('@') else { continue };
        let user = &text[start..start + user];
        let from = user.find(':').map_or(0, |colon| colon + 1);
        push(text, start + from..start + user.len(), "URL_PASSWORD", found);
    }
}

/// The value, or the values of a list, after a name that ends at `end`; `unlisted` as [`list`] has it.
fn value_behind(
    text: &str,
    start: usize,
    end: usize,
    unlisted: &mut Range<usize>,
) -> Vec<Range<usize>> {
    let rest = &text[end..];
    let is_quoted = rest.starts_with(['"', '\'', '\\']);
    let closed = rest.trim_start_matches('\\').trim_start_matches(['"', '\'']);
    let spaced = closed.trim_start_matches([' ', '\t']);
    let Some(separator) = spaced.chars().next() else { return Vec::new() };
    let value = &spaced[separator.len_utf8()..];
    match separator {
        ':' if value.starts_with("//") => return Vec::new(),
        ':' | '=' => {}
        '>' if text[..start].ends_with('<') => {
            let length = value.find('<').unwrap_or(value.len());
            let from = text.len() - value.len();
            return one(from..from + length);
        }
        _ => return Vec::new(),
    }
    let value = value.trim_start_matches([' ', '\t']);
    let from = text.len() - value.len();
    let escape = value.len() - value.trim_start_matches('\\').len();
    match value[escape..].chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inside = from + escape + 1;
            one(inside..inside + quoted_end(&text[inside..], quote, escape))
        }
        Some('[') if is_quoted || separator == '=' => list(text, from + escape + 1, unlisted),
        Some('{') | None => Vec::new(),
        Some(_) => {
            let length = if separator == ':' && !is_quoted {
                value.find(['\r', '\n', '"', '\'']).unwrap_or(value.len())
            } else {
                value.find(ends_word).unwrap_or(value.len())
            };
            one(from..from + value[..length].trim_end().len())
        }
    }
}

fn one(range: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(range).collect()
}

/// The strings of a list that begins at `at`. `unlisted` is where the last list was read to its end, or the text's, and had no
/// more strings: one that begins there has none either, and is not read again.
fn list(text: &str, mut at: usize, unlisted: &mut Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if unlisted.contains(&at) {
        return found;
    }
    loop {
        let next = text[at..].find(['"', '\'', ']']);
        let place = next.map_or(text.len(), |next| at + next);
        let quote = text.as_bytes().get(place).copied().filter(|quote| *quote != b']');
        let Some(quote) = quote else {
            *unlisted = at..place;
            break;
        };
        let inside = place + 1;
        let end = inside + quoted_end(&text[inside..], char::from(quote), 0);
        found.push(inside..end);
        at = (end + 1).min(text.len());
    }
    found
}

/// The end of a quoted text: at a quote with as many backslashes before it as opened it.
fn quoted_end(text: &str, quote: char, escape: usize) -> usize {
    let mut slashes = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => slashes += 1,
            c if c == quote && (slashes == escape || (escape == 0 && slashes % 2 == 0)) => {
                return at - escape;
            }
            _ => slashes = 0,
        }
    }
    text.len()
}

/// Keeps a span that is something and no reference.
fn push(text: &str, range: Range<usize>, variable: &str, found: &mut Vec<SecretSpan>) {
    let value = &text[range.clone()];
    // Text in braces is a place that a step of a flow fills in.
    let is_place = value.starts_with("{{");
    let is_none = value.trim().is_empty()
        || is_place
        || value == MARK
        || value.contains("${")
        || is_reference(value);
    if !is_none {
        found.push(SecretSpan { range, variable: variable.to_owned() });
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.%".contains(c)
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "&;,?#\"')]}<>\\".contains(c)
}

/// Decodes `%5F` and the like, so that an encoded name is still known.
#[must_use]
pub fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: secrets are found in URLs, header lines, JSON, XML, forms and lists, without their schemes, and references and
    /// everything else stay.
    #[test]
    fn in_texts() {
        for (text, expected) in [
            ("GET http://u:p%40w@h/", "GET http://u:<redacted>@h/"),
            ("https://ghp_token@h/x", "https://<redacted>@h/x"),
            ("http://h/p@q?key=k&keys=2", "http://h/p@q?key=<redacted>&keys=2"),
            ("/a?access%5Ftoken=t#f", "/a?access%5Ftoken=<redacted>#f"),
            ("/a;jsessionid=12?b=1", "/a;jsessionid=<redacted>?b=1"),
            ("Authorization: Bearer abc\nAccept: a", "Authorization: Bearer <redacted>\nAccept: a"),
            ("Cookie: a=b; c=d", "Cookie: <redacted>"),
            ("X-Api-Key: ${KEY}", "X-Api-Key: ${KEY}"),
            ("X-Api-Key: env:KEY", "X-Api-Key: env:KEY"),
            (
                r#"{"user":"me","password":"a\"b","pin": 123456, "list":{"token":["x","y"]}}"#,
                r#"{"user":"me","password":"<redacted>","pin": <redacted>, "list":{"token":["<redacted>","<redacted>"]}}"#,
            ),
            (r#"{\"api_key\":\"abc\",\"n\":1}"#, r#"{\"api_key\":\"<redacted>\",\"n\":1}"#),
            ("user=me&password=x+y&ok=1", "user=me&password=<redacted>&ok=1"),
            ("<a><password>x y</password></a>", "<a><password><redacted></password></a>"),
            ("see Bearer abcdefgh-1 there", "see Bearer <redacted> there"),
            ("a bearer of news", "a bearer of news"),
            ("eyJhbGc.eyJzdWI.c2ln", "<redacted>"),
            ("GET http://h/ HTTP/1.1", "GET http://h/ HTTP/1.1"),
            (
                "/a?token=${LONG_NAME}&b=Bearer ${LONG_NAME}",
                "/a?token=${LONG_NAME}&b=Bearer ${LONG_NAME}",
            ),
        ] {
            assert_eq!(masked(text, &spans(text)), expected, "{text}");
        }
    }

    /// Claim: credentials are known without a name, and a mark or a reference is none.
    #[test]
    fn by_themselves() {
        let text = "x Bearer abc-12345 http://u:pw@h eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl \
                    -----BEGIN PRIVATE KEY-----";
        let words: Vec<&str> = credentials(text).into_iter().map(|(_, what)| what).collect();
        assert_eq!(
            words,
            [
                "credentials behind Bearer",
                "a password in a URL",
                "a JSON web token",
                "a private key"
            ]
        );
        assert_eq!(
            credentials("Bearer <redacted> Bearer ${TOKEN_12} the bearer of news http://h/@"),
            []
        );
    }

    /// Claim: the time to look for secrets grows with the text alone, however often the same beginning stands in it.
    #[test]
    fn one_beginning_after_another() {
        for beginning in
            ["eyJ", "eyJ.", "token=[", "token=[\\", "Bearer ", "://", "${", "\"token\":["]
        {
            let text = beginning.repeat(1 << 20);
            // Each is a word of its own or of one that is no token; a quadratic search would take hours.
            let found = credentials(&text).len() + spans(&text).len();
            assert!(found <= 2 << 20, "{beginning}: {found}");
        }
        let token = "eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl";
        let found = credentials(&format!("eyJ%22{token}%22"));
        assert_eq!(found, [(6..6 + token.len(), "a JSON web token")]);
        let text = "token=[x token=[\"a\"] token=[y] token=['b'";
        assert_eq!(
            masked(text, &spans(text)),
            "token=[x token=[\"<redacted>\"] token=[y] token=['<redacted>'"
        );
    }

    /// Claim: secrets in every form that the command line takes are gone, and everything else stays.
    #[test]
    fn in_command_lines() {
        for (command, expected) in [
            ("assay|run|x.toml", "assay|run|x.toml"),
            ("-H|Authorization: Bearer abc", "-H|Authorization: Bearer <redacted>"),
            ("-HX-Api-Key: abc", "-HX-Api-Key: <redacted>"),
            ("--header=Cookie: a=b; c=d", "--header=Cookie: <redacted>"),
            ("-H|Accept: text/html", "-H|Accept: text/html"),
            (
                "--set|http.headers.authorization=Bearer abc",
                "--set|http.headers.authorization=Bearer <redacted>",
            ),
            ("--set|load.rate=80/s", "--set|load.rate=80/s"),
            ("--set|http.url=https://u:p@h/", "--set|http.url=https://u:<redacted>@h/"),
            (
                "https://user:pw@h:1/p?a=1&access_token=t&b=2",
                "https://user:<redacted>@h:1/p?a=1&access_token=<redacted>&b=2",
            ),
            ("--token|abc|next", "--token|<redacted>|next"),
            ("--token=abc", "--token=<redacted>"),
            ("report|--check-secrets|runs/x", "report|--check-secrets|runs/x"),
            ("-u|me:pw", "-u|me:<redacted>"),
            ("-b|{\"password\":\"x\"}", "-b|{\"password\":\"<redacted>\"}"),
            (
                "GET http://a:b@h/ http://c:d@i/",
                "GET http://a:<redacted>@h/ http://c:<redacted>@i/",
            ),
            ("-H|Authorization: Bearer ${TOK}", "-H|Authorization: Bearer ${TOK}"),
            ("--duration|30s|--rate|50/s", "--duration|30s|--rate|50/s"),
        ] {
            let words: Vec<String> = command.split('|').map(str::to_owned).collect();
            assert_eq!(masked_command(&words).join("|"), expected, "{command}");
        }
    }
}
