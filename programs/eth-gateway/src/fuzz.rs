//! Bytes of clients and nodes, for the coverage-guided fuzz target: paths, quantities, JSON, replies of a node.

use bytes::Bytes;
use serde_json::Value;

use crate::quantity::Quantity;
use crate::routes::{OPERATIONS, Operation, find};
use crate::{json, rpc};

/// Reads `bytes` after the first one as all that there is: that one chooses a reply's status and how many calls it is for.
///
/// # Panics
/// When a text would get into a call of the node that is not plain, when a number is not the one that was written, or when
/// JSON is taken apart in another way than `serde_json` does it.
pub fn fuzz_gateway(bytes: &[u8]) {
    let Some((&head, bytes)) = bytes.split_first() else { return };
    if let Ok(text) = std::str::from_utf8(bytes) {
        path(text);
        quantity(text);
    }
    parts(bytes);
    replies(head, bytes);
}

/// What is put into a call between quotes must not need any escape.
fn path(text: &str) {
    let Ok(operation) = find(text) else { return };
    let texts: Vec<&String> = match &operation {
        Operation::Transaction(text) | Operation::Receipt(text) | Operation::Fate(text) => {
            vec![text]
        }
        Operation::Balance { address, .. }
        | Operation::Nonce { address, .. }
        | Operation::Code { address, .. }
        | Operation::Storage { address, .. } => vec![address],
        Operation::Search(search) => {
            search.address.iter().chain(search.topics.iter().flatten()).collect()
        }
        Operation::Estimate { from, to, data, .. } => vec![from, to, data],
        Operation::BlockByHash { hash, .. } => vec![hash],
        Operation::Logs { topic, from, to } => {
            assert!(from <= to);
            vec![topic]
        }
        Operation::Call { from, to, data, .. } => vec![from, to, data],
        _ => Vec::new(),
    };
    for text in texts {
        let digits = text.strip_prefix("0x").expect("hexadecimal");
        assert!(digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{text}");
    }
    assert!(operation.route() < OPERATIONS);
}

fn quantity(text: &str) {
    let Some(read) = Quantity::from_hex(text) else { return };
    let hex = read.to_hex();
    assert_eq!(Quantity::from_hex(&hex), Some(read));
    let wanted = text[2..].trim_start_matches('0').to_ascii_lowercase();
    assert_eq!(hex[2..].trim_start_matches('0'), wanted);
    // Digit by digit, as it is taught.
    let mut decimal = vec![0_u8];
    for digit in hex[2..].chars() {
        let mut carried = digit.to_digit(16).expect("hexadecimal");
        for place in &mut decimal {
            let value = u32::from(*place) * 16 + carried;
            *place = u8::try_from(value % 10).expect("a digit");
            carried = value / 10;
        }
        while carried > 0 {
            decimal.push(u8::try_from(carried % 10).expect("a digit"));
            carried /= 10;
        }
    }
    let decimal: String = decimal.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
    assert_eq!(read.to_decimal(), decimal);
}

fn parts(bytes: &[u8]) {
    let members: Vec<(&[u8], &[u8])> = json::members(bytes).collect();
    let elements: Vec<&[u8]> = json::elements(bytes).collect();
    let held: usize = members.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(held + elements.iter().map(|element| element.len()).sum::<usize>() <= bytes.len());
    if !json::is_valid(bytes) {
        return;
    }
    // Numbers that no float holds are JSON, and no value of theirs.
    let Ok(whole) = serde_json::from_slice::<Value>(bytes) else { return };
    let value = |part: &[u8]| serde_json::from_slice::<Value>(part).expect("a part is a value");
    match whole {
        Value::Array(wanted) => {
            assert_eq!(elements.into_iter().map(value).collect::<Vec<_>>(), wanted);
        }
        Value::Object(wanted) => {
            // Of a name that stands twice the last one counts there.
            for (name, part) in &members {
                let name = value(&[b"\"", *name, b"\""].concat());
                let name = name.as_str().expect("between quotes");
                assert!(wanted.contains_key(name));
                let is_last = members.iter().rev().find(|(other, _)| {
                    value(&[b"\"", *other, b"\""].concat()).as_str() == Some(name)
                });
                if is_last.is_some_and(|(_, last)| std::ptr::eq(*last, *part)) {
                    assert_eq!(value(part), wanted[name]);
                }
            }
            assert!(members.len() >= wanted.len());
        }
        other => {
            assert!(members.is_empty() && elements.is_empty(), "{other}");
            if let (Some(text), Value::String(wanted)) = (json::plain_string(bytes), other) {
                assert_eq!(text, wanted);
            }
        }
    }
}

fn replies(head: u8, bytes: &[u8]) {
    let status = [200, 429, 500][usize::from(head % 3)];
    let count = usize::from(head / 3 % 4);
    let replies = rpc::read(status, None, &Bytes::copy_from_slice(bytes), count);
    assert_eq!(replies.len(), count);
    for reply in replies {
        match reply {
            rpc::Reply::Answer(Ok(result)) => assert!(json::is_valid(&result), "{result:?}"),
            rpc::Reply::Answer(Err(failure)) => assert!(!failure.word().is_empty()),
            rpc::Reply::Limited(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/gateway_texts");
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).expect("there are seeds").flatten() {
            let seed = std::fs::read(entry.path()).expect("a seed");
            for head in 0..12 {
                let mut near = seed.clone();
                near[0] = head;
                fuzz_gateway(&near);
            }
            for at in 1..seed.len() {
                for other in *b"\"{}[],:0xfF/\\e \xff" {
                    let mut near = seed.clone();
                    near[at] = other;
                    fuzz_gateway(&near);
                }
            }
            seeds += 1;
        }
        assert!(seeds >= 8, "{seeds}");
    }
}
