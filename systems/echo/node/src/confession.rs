//! Where the node writes down what it lied about, for tests that must know: one line a lie, `WORD TX`. Off
//! unless asked for. Nothing that an instrument could see says any of it.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The list of lies.
#[derive(Debug)]
pub struct Confession(To);

#[derive(Debug)]
enum To {
    Nobody,
    Memory(Vec<(&'static str, u64)>),
    File(BufWriter<File>),
}

impl Confession {
    /// Nothing is written down.
    #[must_use]
    pub const fn none() -> Self {
        Self(To::Nobody)
    }

    /// A list in memory.
    #[must_use]
    pub const fn in_memory() -> Self {
        Self(To::Memory(Vec::new()))
    }

    /// A list in a new file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(To::File(BufWriter::new(File::create_new(path)?))))
    }

    /// A list in a file that a node before this one wrote, or a new one.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn go_on(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self(To::File(BufWriter::new(file))))
    }

    /// What has been confessed in memory.
    #[must_use]
    pub fn list(&self) -> &[(&'static str, u64)] {
        match &self.0 {
            To::Memory(list) => list,
            To::Nobody | To::File(_) => &[],
        }
    }

    pub(crate) fn add(&mut self, word: &'static str, tx: u64) {
        match &mut self.0 {
            To::Nobody => {}
            To::Memory(list) => list.push((word, tx)),
            To::File(file) => {
                if let Err(error) = writeln!(file, "{word} {tx}") {
                    panic!("writing the confession: {error}");
                }
            }
        }
    }

    pub(crate) fn flush(&mut self) {
        if let To::File(file) = &mut self.0
            && let Err(error) = file.flush()
        {
            panic!("writing the confession: {error}");
        }
    }
}
