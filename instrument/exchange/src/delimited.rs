//! Comma-separated records (RFC 4180, as Go's and Python's writers make them): read with `csv-core` into
//! buffers of a bounded size, and the one function that quotes a field. It knows no column.

use std::io::BufRead;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::error::ExchangeError;
use crate::lines::{LINE_BYTES_MAX, wrong};

/// The most fields of a record.
const FIELDS_MAX: usize = 64;

/// Reads records.
pub(crate) struct Records<'a> {
    pub(crate) name: String,
    input: Box<dyn BufRead + 'a>,
    reader: Reader,
    text: Vec<u8>,
    ends: [usize; FIELDS_MAX],
    has_begun: bool,
}

/// One record: its line and its fields.
pub(crate) struct Record<'a> {
    pub(crate) line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Record<'a> {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The field at an index; empty if there is none or it is not UTF-8 text.
    pub(crate) fn field(&self, index: usize) -> Option<&'a str> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        std::str::from_utf8(self.text.get(start..end)?).ok()
    }
}

impl<'a> Records<'a> {
    pub(crate) fn new(name: &str, input: Box<dyn BufRead + 'a>) -> Self {
        Self {
            name: name.to_owned(),
            input,
            reader: ReaderBuilder::new().build(),
            text: vec![0; 4096],
            ends: [0; FIELDS_MAX],
            has_begun: false,
        }
    }

    /// The next record; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, ExchangeError> {
        let (mut text_used, mut ends_used) = (0, 0);
        let line = self.reader.line();
        loop {
            let mut input = self
                .input
                .fill_buf()
                .map_err(|source| ExchangeError::Read { name: self.name.clone(), source })?;
            let mut skipped = 0;
            if !self.has_begun {
                self.has_begun = true;
                if input.starts_with(b"\xef\xbb\xbf") {
                    (input, skipped) = (&input[3..], 3);
                }
            }
            let (result, read, written, ends) = self.reader.read_record(
                input,
                &mut self.text[text_used..],
                &mut self.ends[ends_used..],
            );
            self.input.consume(read + skipped);
            text_used += written;
            ends_used += ends;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    if self.text.len() >= LINE_BYTES_MAX {
                        let why = format!(
                            "the record is longer than {} MiB; is a quotation mark left open?",
                            LINE_BYTES_MAX >> 20
                        );
                        return Err(wrong(&self.name, line, why));
                    }
                    let longer = (self.text.len() * 2).min(LINE_BYTES_MAX);
                    self.text.resize(longer, 0);
                }
                ReadRecordResult::OutputEndsFull => {
                    let why = format!("the record has more than {FIELDS_MAX} fields");
                    return Err(wrong(&self.name, line, why));
                }
                ReadRecordResult::Record => {
                    let (text, ends) = (&self.text[..text_used], &self.ends[..ends_used]);
                    return Ok(Some(Record { line, text, ends }));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }
}

/// Appends a field, in quotes where it needs them.
pub(crate) fn put_field(out: &mut Vec<u8>, field: &str) {
    let needs_quotes = field.contains([',', '"', '\n', '\r']) || field.starts_with([' ', '\t']);
    if !needs_quotes {
        out.extend_from_slice(field.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in field.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: fields with commas, quotes and line breaks come back as they were written.
    #[test]
    fn fields_come_back() {
        let fields = ["", "a", "a,b", "say \"no\"", "two\nlines", " x", "ü"];
        let mut out = b"\xef\xbb\xbf".to_vec();
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            put_field(&mut out, field);
        }
        out.extend_from_slice(b"\nlast,one");
        let mut records = Records::new("x", Box::new(out.as_slice()));
        let record = records.next().unwrap().unwrap();
        assert_eq!(record.len(), fields.len());
        for (index, field) in fields.iter().enumerate() {
            assert_eq!(record.field(index), Some(*field));
        }
        assert_eq!(records.next().unwrap().unwrap().field(1), Some("one"));
        assert!(records.next().unwrap().is_none());
    }
}
