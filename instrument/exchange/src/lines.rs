//! Lines of a stream, each within a bound. It knows no format.

use std::io::{BufRead, Read as _};

use crate::error::ExchangeError;

/// The longest line: a body of 48 MiB in base64.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 20;

/// Reads lines and counts them.
pub(crate) struct Lines<'a> {
    pub(crate) name: String,
    input: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(name: &str, input: Box<dyn BufRead + 'a>) -> Self {
        Self { name: name.to_owned(), input, line: Vec::new(), number: 0 }
    }

    /// The next line that is not blank, without its end; `None` at the end of the input.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, ExchangeError> {
        loop {
            self.line.clear();
            let mut bounded = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
            let count = bounded
                .read_until(b'\n', &mut self.line)
                .map_err(|source| ExchangeError::Read { name: self.name.clone(), source })?;
            if count == 0 {
                return Ok(None);
            }
            self.number += 1;
            if count > LINE_BYTES_MAX {
                let why = format!(
                    "the line is longer than {} MiB, the most that is read",
                    LINE_BYTES_MAX >> 20
                );
                return Err(wrong(&self.name, self.number, why));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.line.as_slice();
        // The mark that some editors put at the beginning of a file.
        let mark: &[u8] = if self.number == 1 { b"\xef\xbb\xbf" } else { b"" };
        let line = line.strip_prefix(mark).unwrap_or(line);
        Ok(Some((self.number, line.trim_ascii())))
    }
}

/// An error about a line.
pub(crate) fn wrong(name: &str, line: u64, why: impl Into<String>) -> ExchangeError {
    ExchangeError::Line { name: name.to_owned(), line, why: why.into() }
}
