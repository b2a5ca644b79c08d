//! Lists as S3 asks for and gives them (ListObjectsV2).

use std::fmt::Write as _;

/// Names in one answer at most, as S3 has it.
const COUNT_MAX: usize = 1_000;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) prefix: String,
    /// Names behind this one.
    pub(super) after: String,
    pub(super) count_max: usize,
}

/// An object in a list.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified: String,
}

impl Asked {
    /// Reads the query; `None` if it cannot be.
    pub(super) fn parse(query: &str) -> Option<Self> {
        let (mut prefix, mut after, mut token) = (String::new(), String::new(), None);
        let mut count_max = COUNT_MAX;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            match name {
                "prefix" => prefix = value,
                "start-after" => after = value,
                "continuation-token" => token = Some(value),
                "max-keys" => count_max = value.parse::<usize>().ok()?.clamp(1, COUNT_MAX),
                _ => {}
            }
        }
        // A list that is gone on with goes on behind its last name.
        Some(Self { prefix, after: token.unwrap_or(after), count_max })
    }
}

/// Text of a query.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let pair = [rest.next()?, rest.next()?];
                let pair = std::str::from_utf8(&pair).ok()?;
                u8::from_str_radix(pair, 16).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The answer. Names need no escapes: see `files::is_name`.
pub(super) fn xml(bucket: &str, listed: &[Listed], is_more: bool) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult><Name>{bucket}</Name><KeyCount>{}</KeyCount><IsTruncated>{is_more}</IsTruncated>",
        listed.len()
    );
    for Listed { name, bytes, modified } in listed {
        let _ = write!(
            text,
            "<Contents><Key>{name}</Key><LastModified>{modified}</LastModified><Size>{bytes}</Size></Contents>"
        );
    }
    if let Some(last) = listed.last().filter(|_| is_more) {
        let _ = write!(text, "<NextContinuationToken>{}</NextContinuationToken>", last.name);
    }
    text.push_str("</ListBucketResult>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what the client library asks is read, a token goes before a name, and a broken query is none.
    #[test]
    fn queries() {
        let asked =
            Asked::parse("list-type=2&prefix=sequence%2F&start-after=sequence%2F1").unwrap();
        assert_eq!((asked.prefix.as_str(), asked.after.as_str()), ("sequence/", "sequence/1"));
        let asked = Asked::parse("continuation-token=b&start-after=a&max-keys=9999").unwrap();
        assert_eq!((asked.after.as_str(), asked.count_max), ("b", COUNT_MAX));
        for broken in ["prefix=%", "prefix=%zz", "prefix=%ff", "max-keys=many"] {
            assert_eq!(Asked::parse(broken), None, "{broken}");
        }
    }
}
