//! A row as a few bytes: differences to the row before, as variable-length numbers. One row costs about
//! eleven bytes for a load of 50,000 requests a second, because most of it is as it was in the row before.
//!
//! Every row survives the way there and back, also one whose stamps make no sense: all arithmetic wraps.
//! Decoding takes any bytes, reads only what is there, and never panics.
//!
//! ```text
//! flags       1 byte   bit 0 ready = due · bit 1 was sent · bit 2 end = last stamp · bit 3 details follow
//!                      bits 4–7 which stages were reached
//! details     1 byte   if bit 3: bit 0 outcome, code, error · 1 kind · 2 worker · 3 stream · 4 bytes_out · 5 bytes_in
//!                      6 client · 7 attempts other than 1 if sent, 0 if not
//! tx, due     zigzag   − those of the row before
//! ready       zigzag   − due, unless bit 0
//! sent        zigzag   − ready, if bit 1
//! marks       zigzag   each reached one − the stamp before it in this row (sent, or due if never sent)
//! end         zigzag   − the last of these, unless bit 2
//! connection  varint
//! receive lag zigzag   + 1, so that 0 is "no stamp"; since version 4 of the row log
//! then the details that changed: outcome 1 byte, code, error, kind varint, worker, stream 1 byte, bytes, client varint,
//! attempts 1 byte
//! ```
//! Numbers are LEB128, low seven bits first; zigzag maps signed to unsigned as in Protocol Buffers.

use model::{NO_STAMP, Outcome, Row};

/// The fewest bytes that a row takes: flags, tx, due, connection; the receive lag, too, but in version 2.
pub const ROW_BYTES_MIN: usize = 4;
/// The most bytes: 2 of flags, 10 numbers of 64 bits (10 each), 5 of 32 bits (5), 2 of 16 bits (3), 4 single.
pub const ROW_BYTES_MAX: usize = 2 + 10 * 10 + 5 * 5 + 2 * 3 + 4;

const READY_IS_DUE: u8 = 1;
const WAS_SENT: u8 = 2;
const END_IS_LAST: u8 = 4;
const HAS_DETAILS: u8 = 8;
const FIRST_MARK: u8 = 16;

const ENDED_OTHERWISE: u8 = 1;
const KIND: u8 = 2;
const WORKER: u8 = 4;
const STREAM: u8 = 8;
const BYTES_OUT: u8 = 16;
const BYTES_IN: u8 = 32;
const CLIENT: u8 = 64;
const ATTEMPTS: u8 = 128;

/// The base of the first row of a frame.
pub const BEFORE_FIRST: Row = Row { due: 0, ready: 0, end: 0, ..Row::EMPTY };

/// Appends `row` to `out`, given the row before it in the frame.
pub fn encode(row: &Row, before: &Row, out: &mut Vec<u8>) {
    let mut bytes = Bytes { buffer: [0; ROW_BYTES_MAX], length: 1 };
    let details = changed(row, before);
    let mut flags = 0;
    if details != 0 {
        flags |= HAS_DETAILS;
        bytes.byte(details);
    }
    bytes.signed(row.tx.wrapping_sub(before.tx).cast_signed());
    bytes.signed(row.due.wrapping_sub(before.due));
    if row.ready == row.due {
        flags |= READY_IS_DUE;
    } else {
        bytes.signed(row.ready.wrapping_sub(row.due));
    }
    let mut last = row.due;
    if row.sent != NO_STAMP {
        flags |= WAS_SENT;
        bytes.signed(row.sent.wrapping_sub(row.ready));
        last = row.sent;
    }
    for (stage, &mark) in row.marks.iter().enumerate() {
        if mark != NO_STAMP {
            flags |= FIRST_MARK << stage;
            bytes.signed(mark.wrapping_sub(last));
            last = mark;
        }
    }
    if row.end == last {
        flags |= END_IS_LAST;
    } else {
        bytes.signed(row.end.wrapping_sub(last));
    }
    bytes.unsigned(u64::from(row.connection));
    bytes.unsigned(zigzag(row.receive_lag).wrapping_add(1));
    if details != 0 {
        bytes.details(row, details);
    }
    bytes.buffer[0] = flags;
    out.extend_from_slice(&bytes.buffer[..bytes.length]);
}

/// Reads the row that begins at `bytes[*at]` and moves `at` after it; `None` if there is none. `has_lag`: rows of this
/// version have a receive lag.
#[must_use]
pub fn decode(bytes: &[u8], at: &mut usize, before: &Row, has_lag: bool) -> Option<Row> {
    let mut cursor = Cursor { bytes, at: *at };
    let flags = cursor.byte()?;
    let details = if flags & HAS_DETAILS != 0 { cursor.byte()? } else { 0 };
    let mut row = *before;
    row.tx = before.tx.wrapping_add(cursor.signed()?.cast_unsigned());
    row.due = before.due.wrapping_add(cursor.signed()?);
    row.ready = row.due;
    if flags & READY_IS_DUE == 0 {
        row.ready = row.due.wrapping_add(cursor.signed()?);
    }
    let mut last = row.due;
    row.sent = NO_STAMP;
    if flags & WAS_SENT != 0 {
        row.sent = row.ready.wrapping_add(cursor.signed()?);
        last = row.sent;
    }
    for (stage, mark) in row.marks.iter_mut().enumerate() {
        *mark = NO_STAMP;
        if flags & (FIRST_MARK << stage) != 0 {
            *mark = last.wrapping_add(cursor.signed()?);
            last = *mark;
        }
    }
    row.end = last;
    if flags & END_IS_LAST == 0 {
        row.end = last.wrapping_add(cursor.signed()?);
    }
    row.connection = cursor.unsigned_32()?;
    row.receive_lag = NO_STAMP;
    if has_lag {
        row.receive_lag = unzigzag(cursor.unsigned()?.wrapping_sub(1));
    }
    row.attempts = usual_attempts(&row);
    cursor.details(&mut row, details)?;
    *at = cursor.at;
    Some(row)
}

/// Which details differ from the row before.
fn changed(row: &Row, before: &Row) -> u8 {
    let bit = |differs: bool, bit: u8| if differs { bit } else { 0 };
    let ended_otherwise =
        row.outcome != before.outcome || row.code != before.code || row.error != before.error;
    bit(ended_otherwise, ENDED_OTHERWISE)
        | bit(row.kind != before.kind, KIND)
        | bit(row.worker != before.worker, WORKER)
        | bit(row.stream != before.stream, STREAM)
        | bit(row.bytes_out != before.bytes_out, BYTES_OUT)
        | bit(row.bytes_in != before.bytes_in, BYTES_IN)
        | bit(row.client != before.client, CLIENT)
        | bit(row.attempts != usual_attempts(row), ATTEMPTS)
}

/// What is sent is sent once.
const fn usual_attempts(row: &Row) -> u8 {
    if row.sent == NO_STAMP { 0 } else { 1 }
}

/// [`NO_STAMP`] becomes the largest number.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// One row's bytes on the stack: a `Vec` would check its capacity for each of them.
struct Bytes {
    buffer: [u8; ROW_BYTES_MAX],
    length: usize,
}

impl Bytes {
    fn byte(&mut self, byte: u8) {
        self.buffer[self.length] = byte;
        self.length += 1;
    }

    fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.unsigned(zigzag(value));
    }

    fn details(&mut self, row: &Row, details: u8) {
        if details & ENDED_OTHERWISE != 0 {
            self.byte(row.outcome.code());
            self.unsigned(u64::from(row.code));
            self.unsigned(u64::from(row.error));
        }
        if details & KIND != 0 {
            self.unsigned(u64::from(row.kind));
        }
        if details & WORKER != 0 {
            self.byte(row.worker);
        }
        if details & STREAM != 0 {
            self.byte(row.stream);
        }
        if details & BYTES_OUT != 0 {
            self.unsigned(u64::from(row.bytes_out));
        }
        if details & BYTES_IN != 0 {
            self.unsigned(u64::from(row.bytes_in));
        }
        if details & CLIENT != 0 {
            self.unsigned(u64::from(row.client));
        }
        if details & ATTEMPTS != 0 {
            self.byte(row.attempts);
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        self.unsigned().map(unzigzag)
    }

    fn unsigned_32(&mut self) -> Option<u32> {
        u32::try_from(self.unsigned()?).ok()
    }

    fn unsigned_16(&mut self) -> Option<u16> {
        u16::try_from(self.unsigned()?).ok()
    }

    fn details(&mut self, row: &mut Row, details: u8) -> Option<()> {
        if details & ENDED_OTHERWISE != 0 {
            row.outcome = Outcome::from_code(self.byte()?)?;
            row.code = self.unsigned_16()?;
            row.error = self.unsigned_16()?;
        }
        if details & KIND != 0 {
            row.kind = self.unsigned_32()?;
        }
        if details & WORKER != 0 {
            row.worker = self.byte()?;
        }
        if details & STREAM != 0 {
            row.stream = self.byte()?;
        }
        if details & BYTES_OUT != 0 {
            row.bytes_out = self.unsigned_32()?;
        }
        if details & BYTES_IN != 0 {
            row.bytes_in = self.unsigned_32()?;
        }
        if details & CLIENT != 0 {
            row.client = self.unsigned_32()?;
        }
        if details & ATTEMPTS != 0 {
            row.attempts = self.byte()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the row that needs the most bytes fits the bound, comes back whole, and no part of it is a row.
    #[test]
    fn the_largest_row_fits() {
        let row = Row {
            tx: u64::MAX / 2,
            due: i64::MAX / 2 + 1,
            ready: -1,
            sent: i64::MAX / 2,
            marks: [-1, i64::MAX / 2, -1, i64::MAX / 2],
            end: -1,
            receive_lag: i64::MAX,
            outcome: Outcome::Unknown,
            code: u16::MAX,
            error: u16::MAX,
            kind: u32::MAX,
            connection: u32::MAX,
            worker: 255,
            stream: 255,
            attempts: 255,
            client: u32::MAX,
            bytes_out: u32::MAX,
            bytes_in: u32::MAX,
        };
        let mut bytes = Vec::new();
        encode(&row, &BEFORE_FIRST, &mut bytes);
        assert!(bytes.len() > 110 && bytes.len() <= ROW_BYTES_MAX, "{}", bytes.len());
        let mut at = 0;
        assert_eq!(decode(&bytes, &mut at, &BEFORE_FIRST, true), Some(row));
        assert_eq!(at, bytes.len());
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], &mut 0, &BEFORE_FIRST, true), None);
        }
    }

    /// Claim: a row like the one before it takes the fewest bytes.
    #[test]
    fn the_smallest_row() {
        let mut bytes = Vec::new();
        let row = Row { sent: NO_STAMP, ..BEFORE_FIRST };
        encode(&row, &BEFORE_FIRST, &mut bytes);
        assert_eq!(bytes.len(), ROW_BYTES_MIN + 1);
    }

    /// Claim: a row of version 2, which has no receive lag, is read as one without a stamp.
    #[test]
    fn a_row_without_a_lag() {
        let mut bytes = Vec::new();
        let row = Row { connection: 7, sent: 5, end: 5, attempts: 1, ..BEFORE_FIRST };
        encode(&row, &BEFORE_FIRST, &mut bytes);
        assert_eq!(bytes.pop(), Some(0), "no stamp is the last byte of a row without details");
        assert_eq!(decode(&bytes, &mut 0, &BEFORE_FIRST, false), Some(row));
    }
}
