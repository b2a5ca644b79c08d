//! PostgreSQL's wire protocol, version 3.0 (PostgreSQL 15 documentation, chapter 55): messages out, messages in.
//! Values only: no socket, no time. The part that is used here has a dozen messages; the crate `postgres-protocol` has
//! them too, and brings SCRAM, MD5 and HMAC with it and a buffer type of its own that answers are copied into.
//!
//! Whatever arrives, reading it ends, takes no more memory than what arrived, and never panics.

/// The longest message of a server that is read: a row of the largest value and what stands beside it.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Type and length of a message.
const HEAD_BYTES: usize = 5;
/// Version 3.0.
const PROTOCOL: u32 = 3 << 16;

/// Object identifiers of the types that parameters have.
pub(crate) mod oid {
    pub(crate) const BYTEA: u32 = 17;
    pub(crate) const INT8: u32 = 20;
    pub(crate) const INT4: u32 = 23;
}

/// Bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strange(pub(crate) String);

/// A message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// The proof that is wanted before the session begins; 0: nothing more.
    Authentication(u32),
    /// A parameter, the key for cancelling, a notice: of no consequence here.
    Aside,
    /// All that was sent before the last Sync has been dealt with; `I` outside of a transaction.
    Ready(u8),
    /// A complaint.
    Error(Complaint<'a>),
    ParseComplete,
    BindComplete,
    /// Names and types of columns, before the rows of a simple query.
    RowDescription,
    Row(Row<'a>),
    /// A statement is done, with its tag (`INSERT 0 1`).
    Complete(&'a [u8]),
}

/// An error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Complaint<'a> {
    /// `ERROR`, `FATAL` or `PANIC`.
    pub(crate) severity: &'a str,
    /// SQLSTATE, five characters.
    pub(crate) code: &'a str,
    pub(crate) text: &'a str,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    count: u16,
    rest: &'a [u8],
}

impl<'a> Row<'a> {
    /// Its only column; `None`: it has several, or it is null.
    pub(crate) fn only(mut self) -> Option<&'a [u8]> {
        if self.count == 1 { self.next().flatten() } else { None }
    }
}

impl<'a> Iterator for Row<'a> {
    /// A column; `None`: null.
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Some(None);
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Some(value))
    }
}

/// The message at the beginning of `bytes`, and how many bytes it takes; `None`: it is not whole yet.
pub(crate) fn message(bytes: &[u8]) -> Result<Option<(Message<'_>, usize)>, Strange> {
    let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
    if !b"RSKZENA12TDC".contains(kind) {
        return Err(Strange(format!("a message of type {kind}, which was not asked for")));
    }
    let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(Strange(format!("a message of {length} bytes")));
    }
    let Some(body) = rest.get(..length - 4) else { return Ok(None) };
    Ok(Some((read(*kind, body)?, HEAD_BYTES + length - 4)))
}

fn read(kind: u8, body: &[u8]) -> Result<Message<'_>, Strange> {
    let broken = || Strange(format!("a message of type `{}` that is malformed", char::from(kind)));
    Ok(match (kind, body) {
        (b'R', body) => {
            let (code, _) = body.split_first_chunk().ok_or_else(broken)?;
            Message::Authentication(u32::from_be_bytes(*code))
        }
        (b'Z', [status @ (b'I' | b'T' | b'E')]) => Message::Ready(*status),
        (b'E', body) => Message::Error(complaint(body).ok_or_else(broken)?),
        (b'1', []) => Message::ParseComplete,
        (b'2', []) => Message::BindComplete,
        (b'T', _) => Message::RowDescription,
        (b'D', body) => Message::Row(row(body).ok_or_else(broken)?),
        (b'C', [tag @ .., 0]) => Message::Complete(tag),
        (b'S' | b'K' | b'N' | b'A', _) => Message::Aside,
        _ => return Err(broken()),
    })
}

fn row(body: &[u8]) -> Option<Row<'_>> {
    let (count, rest) = body.split_first_chunk()?;
    let count = u16::from_be_bytes(*count);
    let row = Row { count, rest };
    // Walked once, so that whoever reads it meets whole columns.
    let mut walk = row;
    let columns = walk.by_ref().count();
    (walk.rest.is_empty() && columns == usize::from(count)).then_some(row)
}

fn complaint(mut body: &[u8]) -> Option<Complaint<'_>> {
    let mut complaint = Complaint { severity: "", code: "", text: "" };
    loop {
        let (field, rest) = body.split_first()?;
        if *field == 0 {
            return rest.is_empty().then_some(complaint);
        }
        let end = rest.iter().position(|byte| *byte == 0)?;
        // An error in another encoding is one all the same.
        let value = std::str::from_utf8(&rest[..end]).unwrap_or("?");
        match field {
            b'V' => complaint.severity = value,
            b'S' if complaint.severity.is_empty() => complaint.severity = value,
            b'C' => complaint.code = value,
            b'M' => complaint.text = value,
            _ => {}
        }
        body = &rest[end + 1..];
    }
}

/// Appends what opens a session.
pub(crate) fn startup(parameters: &[(&str, &str)], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&PROTOCOL.to_be_bytes());
    for (name, value) in parameters {
        text(name, out);
        text(value, out);
    }
    out.push(0);
    set_length(start, out);
}

/// Appends a simple query.
pub(crate) fn query(sql: &str, out: &mut Vec<u8>) {
    framed(b'Q', out, |out| text(sql, out));
}

/// Appends what prepares a statement under a name, whose parameters have these types.
pub(crate) fn parse(name: &str, sql: &str, types: &[u32], out: &mut Vec<u8>) {
    framed(b'P', out, |out| {
        text(name, out);
        text(sql, out);
        count(types.len(), out);
        types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// Appends what runs a prepared statement with these parameters, all binary, as its results will be.
pub(crate) fn run(name: &str, values: &[&[u8]], out: &mut Vec<u8>) {
    framed(b'B', out, |out| {
        // The portal without a name.
        text("", out);
        text(name, out);
        out.extend_from_slice(&[0, 1, 0, 1]);
        count(values.len(), out);
        for value in values {
            let length = i32::try_from(value.len()).expect("bounded by the options");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value);
        }
        out.extend_from_slice(&[0, 1, 0, 1]);
    });
    // Of the portal without a name, all rows.
    framed(b'E', out, |out| out.extend_from_slice(&[0; 5]));
}

/// Appends what ends an implicit transaction and asks for the answer.
pub(crate) fn sync(out: &mut Vec<u8>) {
    framed(b'S', out, |_| {});
}

/// Appends what ends a session.
pub(crate) fn terminate(out: &mut Vec<u8>) {
    framed(b'X', out, |_| {});
}

fn framed(kind: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    set_length(start, out);
}

fn set_length(start: usize, out: &mut [u8]) {
    let length = u32::try_from(out.len() - start).expect("bounded by the options");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn count(count: usize, out: &mut Vec<u8>) {
    let count = u16::try_from(count).expect("statements have few parameters");
    out.extend_from_slice(&count.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod answers {
    //! The other side, for tests: what a server writes.

    use super::{count, framed, text};

    pub(crate) fn plain(kind: u8, body: &[u8], out: &mut Vec<u8>) {
        framed(kind, out, |out| out.extend_from_slice(body));
    }

    pub(crate) fn ready(out: &mut Vec<u8>) {
        plain(b'Z', b"I", out);
    }

    pub(crate) fn error(severity: &str, code: &str, words: &str, out: &mut Vec<u8>) {
        framed(b'E', out, |out| {
            for (field, value) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', words)]
            {
                out.push(field);
                text(value, out);
            }
            out.push(0);
        });
    }

    pub(crate) fn row(columns: &[Option<&[u8]>], out: &mut Vec<u8>) {
        framed(b'D', out, |out| {
            count(columns.len(), out);
            for column in columns {
                let length = column.map_or(-1, |value| i32::try_from(value.len()).unwrap());
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(column.unwrap_or_default());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is sent is what the documentation's chapter on message formats says.
    #[test]
    fn what_is_sent() {
        let mut out = Vec::new();
        startup(&[("user", "assay")], &mut out);
        assert_eq!(out, b"\0\0\0\x14\0\x03\0\0user\0assay\0\0");
        out.clear();
        parse("a", "SELECT $1", &[oid::INT4], &mut out);
        assert_eq!(out, b"P\0\0\0\x16a\0SELECT $1\0\0\x01\0\0\0\x17");
        out.clear();
        run("a", &[b"xy"], &mut out);
        sync(&mut out);
        let bind = b"B\0\0\0\x17\0a\0\0\x01\0\x01\0\x01\0\0\0\x02xy\0\x01\0\x01";
        assert_eq!(out, [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat());
    }

    /// Claim: every message that is used is read, whole only; what is none, or announces more than any has, is refused.
    #[test]
    fn what_is_read() {
        let mut bytes = Vec::new();
        answers::row(&[Some(b"ab"), None], &mut bytes);
        let (Message::Row(row), used) = message(&bytes).unwrap().unwrap() else { panic!() };
        assert_eq!((row.collect::<Vec<_>>(), used), (vec![Some(&b"ab"[..]), None], bytes.len()));
        assert_eq!(row.only(), None);
        for cut in 0..bytes.len() {
            assert_eq!(message(&bytes[..cut]), Ok(None), "{cut}");
        }
        bytes.clear();
        answers::error("ERROR", "40001", "could not serialize", &mut bytes);
        let right = Complaint { severity: "ERROR", code: "40001", text: "could not serialize" };
        assert_eq!(message(&bytes), Ok(Some((Message::Error(right), bytes.len()))));
        for bytes in [
            &b"HTTP/1.1 400"[..],
            b"Z\0\0\0\x05X",
            b"Z\0\0\0\x03",
            b"D\0\x7f\0\0",
            b"D\0\0\0\x06\0\x01",
            b"C\0\0\0\x05x",
            b"E\0\0\0\x06Cx",
            b"1\0\0\0\x05x",
        ] {
            assert!(message(bytes).is_err(), "{bytes:?}");
        }
    }
}
