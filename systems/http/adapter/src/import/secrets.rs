//! How secrets are taken out of a recording: out of queries, paths, forms and texts. What is one is said by
//! [`model::secret`].

use model::secret::decoded;
pub(super) use model::secret::{is_secret_name as is_secret, looks_secret};

/// What stands where a secret stood.
pub(super) const REMOVED: &str = "REMOVED";

/// Whether a text of no known form names a secret, as `"pwd": …`, `name="pwd"`, `pwd=…` or `<pwd>…`, or holds one.
pub(super) fn names_secret(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut rest = text;
    while let Some(start) = rest.find(is_of_name) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is_name = after.trim_start().starts_with(['"', '\'', '=', ':', '>', '\\']);
        if looks_secret(name) || PLAIN.iter().any(|word| name.eq_ignore_ascii_case(word)) {
            return true;
        }
        if is_name && is_secret(name) {
            return true;
        }
        rest = after;
    }
    false
}

/// Words that name a secret wherever they stand.
const PLAIN: [&str; 7] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "authorization"];

/// A query or a form without the values of its secrets, and how many there were.
pub(super) fn masked_pairs(pairs: &str) -> (String, usize) {
    let mut count = 0;
    let masked: Vec<String> = pairs
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, value))
                if !value.is_empty()
                    && !is_carried(value)
                    && (is_secret(&decoded(name)) || looks_secret(&decoded(value))) =>
            {
                count += 1;
                format!("{name}={REMOVED}")
            }
            _ => pair.to_owned(),
        })
        .collect();
    (masked.join("&"), count)
}

/// Whether a value is one that a flow takes from an answer.
pub(super) fn is_carried(value: &str) -> bool {
    value.starts_with("{{") && value.ends_with("}}")
}

/// A URL without the name and password of its user.
pub(super) fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// A URL, or the path of one, without the secrets of its query and its path's parameters (`;jsessionid=…`).
pub(super) fn masked_url(url: &str) -> (String, usize) {
    let (path, query) =
        url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
    let (path, in_path) = masked_path(path);
    let Some(query) = query else { return (path, in_path) };
    let (query, fragment) =
        query.split_once('#').map_or((query, ""), |(query, rest)| (query, rest));
    let (query, count) = masked_pairs(query);
    let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
    (format!("{path}?{query}{fragment}"), in_path + count)
}

fn masked_path(path: &str) -> (String, usize) {
    let mut count = 0;
    let masked: Vec<String> = path
        .split_inclusive([';', '/'])
        .map(|part| {
            let (inner, end) = part
                .strip_suffix([';', '/'])
                .map_or((part, ""), |inner| (inner, &part[inner.len()..]));
            match inner.split_once('=') {
                Some((name, value)) if !value.is_empty() && is_secret(&decoded(name)) => {
                    count += 1;
                    format!("{name}={REMOVED}{end}")
                }
                _ => part.to_owned(),
            }
        })
        .collect();
    (masked.concat(), count)
}
