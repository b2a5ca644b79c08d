//! Header compression (RFC 7541): blocks of answers read with their dynamic table, blocks of requests written without one, so
//! that a request's block is the same each time and can be made before the load.

use std::collections::VecDeque;

use super::Http2Error;
use super::huffman;

/// The dynamic table that the other side may use: what it is unless said otherwise (RFC 9113 §6.5.2).
const TABLE_BYTES_MAX: usize = 4096;
/// Bytes that a field takes in the table beside its name and value (§4.1).
const FIELD_BYTES: usize = 32;
/// The longest name or value.
const TEXT_BYTES_MAX: usize = 64 << 10;

#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
    ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
    ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""),
    ("retry-after", ""), ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""),
    ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// A name and its value.
type Field = (Box<[u8]>, Box<[u8]>);

/// The reader of a connection's header blocks.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    /// Newest first.
    fields: VecDeque<Field>,
    bytes: usize,
    bytes_max: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let (fields, name, value) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { fields, bytes: 0, bytes_max: TABLE_BYTES_MAX, name, value }
    }
}

impl Decoder {
    /// Reads a whole block; `field` is told each name and value.
    pub(super) fn read(
        &mut self,
        mut block: &[u8],
        mut field: impl FnMut(&[u8], &[u8]) -> Result<(), Http2Error>,
    ) -> Result<(), Http2Error> {
        let mut is_first = true;
        while let Some(first) = block.first().copied() {
            if first & 0x80 != 0 {
                let index = integer(&mut block, 7)?;
                self.look_up(index)?;
                field(&self.name, &self.value)?;
            } else if first & 0xe0 == 0x20 {
                // A change of the table's size stands at the beginning (§4.2).
                let bytes_max = integer(&mut block, 5)?;
                if !is_first || bytes_max > TABLE_BYTES_MAX {
                    return Err(Http2Error::Compression);
                }
                self.bytes_max = bytes_max;
                self.evict(0);
                continue;
            } else {
                let is_kept = first & 0x40 != 0;
                let index = integer(&mut block, if is_kept { 6 } else { 4 })?;
                if index == 0 {
                    text(&mut block, &mut self.name)?;
                } else {
                    self.look_up(index)?;
                }
                text(&mut block, &mut self.value)?;
                field(&self.name, &self.value)?;
                if is_kept {
                    self.keep();
                }
            }
            is_first = false;
        }
        Ok(())
    }

    fn look_up(&mut self, index: usize) -> Result<(), Http2Error> {
        let at = index.checked_sub(1).ok_or(Http2Error::Compression)?;
        let (name, value) = match STATIC.get(at) {
            Some((name, value)) => (name.as_bytes(), value.as_bytes()),
            None => {
                let kept = self.fields.get(at - STATIC.len()).ok_or(Http2Error::Compression)?;
                (&*kept.0, &*kept.1)
            }
        };
        self.name.clear();
        self.name.extend_from_slice(name);
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(())
    }

    fn keep(&mut self) {
        let bytes = self.name.len() + self.value.len() + FIELD_BYTES;
        self.evict(bytes);
        if bytes <= self.bytes_max {
            self.fields.push_front((self.name.as_slice().into(), self.value.as_slice().into()));
            self.bytes += bytes;
        }
    }

    /// Makes room for so many bytes more.
    fn evict(&mut self, more: usize) {
        while self.bytes + more > self.bytes_max {
            let Some((name, value)) = self.fields.pop_back() else { return };
            self.bytes -= name.len() + value.len() + FIELD_BYTES;
        }
    }
}

/// An integer whose first bits stand in the first byte (§5.1).
fn integer(block: &mut &[u8], prefix_bits: u32) -> Result<usize, Http2Error> {
    let (first, mut rest) = block.split_first().ok_or(Http2Error::Compression)?;
    let mask = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(*first) & mask;
    if value == mask {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(Http2Error::Compression)?;
            rest = after;
            // Beyond 2^28 nothing is meant.
            if shift > 21 {
                return Err(Http2Error::Compression);
            }
            value += (usize::from(*byte) & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Ok(value)
}

fn text(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Http2Error> {
    let is_huffman = block.first().ok_or(Http2Error::Compression)? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(Http2Error::Compression)?;
    *block = rest;
    out.clear();
    if is_huffman {
        return huffman::decode(bytes, TEXT_BYTES_MAX, out).ok_or(Http2Error::Compression);
    }
    if length > TEXT_BYTES_MAX {
        return Err(Http2Error::Compression);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a field: by its number where the static table has it, else in full and kept in no table (§6.2.2).
pub(super) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let same = STATIC.iter().position(|(n, v)| *n == name && v.as_bytes() == value);
    if let Some(at) = same {
        return write_integer(out, at + 1, 7, 0x80);
    }
    write_name(out, name);
    write_text(out, value);
}

/// Appends the beginning of a field that is kept in no table: its name, after which its value follows.
pub(super) fn write_name(out: &mut Vec<u8>, name: &str) {
    match STATIC.iter().position(|(n, _)| *n == name) {
        Some(at) => write_integer(out, at + 1, 4, 0),
        None => {
            out.push(0);
            write_text(out, name.as_bytes());
        }
    }
}

/// Appends a name or a value as it is, with its length before it.
pub(super) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    write_integer(out, text.len(), 7, 0);
    out.extend_from_slice(text);
}

fn write_integer(out: &mut Vec<u8>, value: usize, prefix_bits: u32, flags: u8) {
    let mask = (1_usize << prefix_bits) - 1;
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 & 0x7f | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Http2Error> {
        let mut fields = Vec::new();
        decoder.read(block, |name, value| {
            fields.push(format!(
                "{}: {}",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value)
            ));
            Ok(())
        })?;
        Ok(fields)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// Claim: the RFC's three answers on one connection come out, with a table of 256 bytes that forgets (appendix C.6).
    #[test]
    fn answers_of_the_rfc() {
        let mut decoder = Decoder { bytes_max: 256, ..Decoder::default() };
        let date = "date: Mon, 21 Oct 2013 20:13:2";
        let first = bytes(
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b \
             97c8 e9ae 82ae 43d3",
        );
        let expected = [
            ":status: 302".to_owned(),
            "cache-control: private".to_owned(),
            format!("{date}1 GMT"),
            "location: https://www.example.com".to_owned(),
        ];
        assert_eq!(read(&mut decoder, &first).unwrap(), expected);
        let second = read(&mut decoder, &bytes("4883 640e ffc1 c0bf")).unwrap();
        assert_eq!(second[0], ":status: 307");
        assert_eq!(second[1..], expected[1..]);
        let third = bytes(
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf \
             cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        );
        let third = read(&mut decoder, &third).unwrap();
        assert_eq!(third[2], format!("{date}2 GMT"));
        assert_eq!(
            third[5],
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
        );
        assert!(decoder.bytes <= 256);
    }

    /// Claim: what is written comes back, by number or in full, however long.
    #[test]
    fn fields_come_back() {
        let long = "x".repeat(5_000);
        let mut block = Vec::new();
        let fields = [
            (":method", "GET"),
            (":path", "/a?b"),
            ("accept", "*/*"),
            ("x-own", long.as_str()),
            ("x", ""),
        ];
        fields.iter().for_each(|(name, value)| write_field(&mut block, name, value.as_bytes()));
        let expected = fields.map(|(name, value)| format!("{name}: {value}"));
        assert_eq!(read(&mut Decoder::default(), &block).unwrap(), expected);
        assert_eq!(block[0], 0x82);
    }

    /// Claim: no bytes make it panic or grow: what is no block is refused.
    #[test]
    fn not_blocks() {
        for block in [
            &[0x80][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xc0],
            &[0x40],
            &[0x40, 0x01],
            &[0x00, 0x05, b'a'],
            &[0x82, 0x20],
            &[0x3f, 0xe2, 0x1f],
            &[0x00, 0x81, 0x00, 0x01, b'a'],
        ] {
            assert!(read(&mut Decoder::default(), block).is_err(), "{block:?}");
        }
        let mut decoder = Decoder::default();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            let block: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            let _ = read(&mut decoder, &block);
            assert!(decoder.bytes <= TABLE_BYTES_MAX);
        }
    }
}
