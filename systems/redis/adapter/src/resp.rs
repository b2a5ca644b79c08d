//! RESP 2, the protocol of Redis: commands out, replies in. Values only: no socket, no time.
//!
//! Whatever arrives, reading it ends, takes no more memory than what arrived, and never panics.

/// A line of a reply: an error text of the server is far shorter.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// A value of a reply, as the server bounds its own (`proto-max-bulk-len`).
const BULK_BYTES_MAX: usize = 512 << 20;
/// Replies inside one reply, at any depth.
const ITEMS_MAX: usize = 1 << 20;
/// A reply of the commands that are used here has two levels.
const DEPTH_MAX: usize = 4;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `+OK`.
    Simple(String),
    /// `-ERR why`.
    Error(String),
    /// `:1`.
    Number(i64),
    /// `$3`, or `$-1`: there is no such thing.
    Bulk(Option<Vec<u8>>),
    /// `*2`.
    Array(Vec<Reply>),
}

/// Bytes that are no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strange(pub(crate) String);

/// Appends a command.
pub(crate) fn write_command(parts: &[&[u8]], out: &mut Vec<u8>) {
    write_head(b'*', parts.len(), out);
    for part in parts {
        write_head(b'$', part.len(), out);
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_head(sign: u8, count: usize, out: &mut Vec<u8>) {
    out.push(sign);
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), count);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

/// The line at the beginning of `bytes`, without its end, and how many bytes it takes; `None`: it is not whole yet.
pub(crate) fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Strange> {
    let looked = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    match looked.windows(2).position(|pair| pair == b"\r\n") {
        Some(length) => Ok(Some((&bytes[..length], length + 2))),
        None if bytes.len() >= LINE_BYTES_MAX => {
            Err(Strange(format!("a line of more than {LINE_BYTES_MAX} bytes")))
        }
        None => Ok(None),
    }
}

/// The place up to which replies have been looked through for the end of the first, so that no byte of a long one is looked at often.
#[derive(Debug)]
pub(crate) struct Ending {
    at: usize,
    /// Replies that begin there, before the end.
    left: usize,
}

impl Ending {
    /// The end of a reply of which nothing has come.
    pub(crate) const fn new() -> Self {
        Self { at: 0, left: 1 }
    }

    /// Says whether the reply at the beginning of `bytes` is whole, which are those of the last call and what came after them.
    pub(crate) fn has_come(&mut self, bytes: &[u8]) -> Result<bool, Strange> {
        while self.left > 0 {
            let Some(rest) = bytes.get(self.at..) else { return Ok(false) };
            let Some((line, used)) = line(rest)? else { return Ok(false) };
            let Some((sign, text)) = line.split_first() else {
                return Err(Strange("an empty line".to_owned()));
            };
            self.at += used;
            self.left -= 1;
            match sign {
                b'+' | b'-' | b':' => {}
                b'$' => self.at += count(number(text)?, BULK_BYTES_MAX)?.map_or(0, |it| it + 2),
                b'*' => self.left += count(number(text)?, ITEMS_MAX)?.unwrap_or(0),
                _ => return Err(Strange(format!("a reply that begins with byte {sign}"))),
            }
            if self.left > ITEMS_MAX {
                return Err(Strange("a list of too many".to_owned()));
            }
        }
        Ok(self.at <= bytes.len())
    }
}

/// The reply at the beginning of `bytes`, and how many bytes it takes; `None`: it is not whole yet.
pub(crate) fn reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Strange> {
    let mut items = 0;
    reply_within(bytes, 0, &mut items)
}

fn reply_within(
    bytes: &[u8],
    depth: usize,
    items: &mut usize,
) -> Result<Option<(Reply, usize)>, Strange> {
    let Some((line, used)) = line(bytes)? else { return Ok(None) };
    let Some((sign, text)) = line.split_first() else {
        return Err(Strange("an empty line".to_owned()));
    };
    let text_of = || String::from_utf8_lossy(text).into_owned();
    match sign {
        b'+' => Ok(Some((Reply::Simple(text_of()), used))),
        b'-' => Ok(Some((Reply::Error(text_of()), used))),
        b':' => Ok(Some((Reply::Number(number(text)?), used))),
        b'$' => {
            let Some(length) = count(number(text)?, BULK_BYTES_MAX)? else {
                return Ok(Some((Reply::Bulk(None), used)));
            };
            let Some(rest) = bytes.get(used..used + length + 2) else { return Ok(None) };
            let (value, end) = rest.split_at(length);
            if end != b"\r\n" {
                return Err(Strange("a value that does not end where it said".to_owned()));
            }
            Ok(Some((Reply::Bulk(Some(value.to_owned())), used + length + 2)))
        }
        b'*' => {
            let Some(length) = count(number(text)?, ITEMS_MAX)? else {
                return Ok(Some((Reply::Array(Vec::new()), used)));
            };
            *items += length;
            if depth >= DEPTH_MAX || *items > ITEMS_MAX {
                return Err(Strange("a list of too many or too deep".to_owned()));
            }
            let (mut list, mut used) = (Vec::new(), used);
            for _ in 0..length {
                let Some((item, more)) = reply_within(&bytes[used..], depth + 1, items)? else {
                    return Ok(None);
                };
                list.push(item);
                used += more;
            }
            Ok(Some((Reply::Array(list), used)))
        }
        _ => Err(Strange(format!("a reply that begins with byte {sign}"))),
    }
}

fn number(text: &[u8]) -> Result<i64, Strange> {
    let text = String::from_utf8_lossy(text);
    text.parse().map_err(|_| Strange(format!("`{text}` is no number")))
}

/// A length; `None` is the server's way to say that there is nothing.
fn count(number: i64, max: usize) -> Result<Option<usize>, Strange> {
    match usize::try_from(number) {
        Ok(count) if count <= max => Ok(Some(count)),
        Err(_) if number == -1 => Ok(None),
        _ => Err(Strange(format!("a length of {number}"))),
    }
}

#[cfg(test)]
mod tests {
    use model::Seed;

    use super::*;

    /// Claim: a command is what the server's protocol says it is.
    #[test]
    fn commands() {
        let mut out = Vec::new();
        write_command(&[b"SET", b"key", b"", b"12345678901"], &mut out);
        assert_eq!(out, b"*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n$11\r\n12345678901\r\n");
    }

    /// Claim: every form of a reply is read, whole replies only, and what is none is refused.
    #[test]
    fn replies() {
        let bulk = |text: &str| Reply::Bulk(Some(text.as_bytes().to_vec()));
        for (bytes, right) in [
            ("+OK\r\n", Reply::Simple("OK".into())),
            ("-ERR no\r\n", Reply::Error("ERR no".into())),
            (":-7\r\n", Reply::Number(-7)),
            ("$-1\r\n", Reply::Bulk(None)),
            ("$5\r\na\r\nbc\r\n", bulk("a\r\nbc")),
            ("*-1\r\n", Reply::Array(Vec::new())),
            (
                "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nk\r\n$0\r\n\r\n",
                Reply::Array(vec![bulk("0"), Reply::Array(vec![bulk("k"), bulk("")])]),
            ),
        ] {
            let bytes = bytes.as_bytes();
            assert_eq!(reply(bytes), Ok(Some((right, bytes.len()))));
            let mut ending = Ending::new();
            for cut in 0..bytes.len() {
                assert_eq!(reply(&bytes[..cut]), Ok(None), "{cut} of {bytes:?}");
                assert_eq!(ending.has_come(&bytes[..cut]), Ok(false), "{cut} of {bytes:?}");
            }
            assert_eq!(ending.has_come(bytes), Ok(true), "{bytes:?}");
        }
        for bytes in [
            "\r\n",
            "!1\r\n",
            ":x\r\n",
            "$-2\r\n",
            "$1\r\nabc\r\n",
            "*2000000\r\n",
            "$999999999999\r\n",
        ] {
            assert!(reply(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        assert!(reply("*1\r\n".repeat(10).as_bytes()).is_err());
        assert!(line(&vec![b'x'; LINE_BYTES_MAX]).is_err());
    }

    /// Claim: random bytes of the protocol's alphabet are read or refused, and never more than there are; the end of a reply
    /// has come when it can be read, and not before.
    #[test]
    fn anything() {
        let mut rng = Seed(5).rng();
        for _ in 0..200_000 {
            let alphabet = b"+-:$*\r\n019a\xff";
            let length = rng.below(24) as usize;
            let bytes: Vec<u8> =
                (0..length).map(|_| alphabet[rng.below(alphabet.len() as u64) as usize]).collect();
            let ended = Ending::new().has_come(&bytes);
            match reply(&bytes) {
                Ok(Some((_, used))) => assert!(used <= bytes.len() && ended == Ok(true)),
                Ok(None) => assert_eq!(ended, Ok(false), "{bytes:?}"),
                Err(_) => {}
            }
        }
    }
}
