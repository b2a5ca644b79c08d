//! A transactions.parquet by itself, copied out of its folder: rows, and the names that its
//! metadata holds. Without the folder there is no checksum; what the `parquet` crate makes of damaged pages is
//! caught. It never writes.

use std::path::{Path, PathBuf};

use model::Row;

use crate::columns::Source;
use crate::disk;
use crate::error::RecordError;
use crate::transactions::TransactionsReader;

/// A transactions.parquet, its names read.
#[derive(Clone, Debug)]
pub struct TransactionsFile {
    path: PathBuf,
    stages: Vec<String>,
    kinds: Vec<String>,
    errors: Vec<String>,
    started_unix_ns: i64,
}

impl TransactionsFile {
    /// Opens the file and reads its metadata.
    ///
    /// # Errors
    /// When it cannot be read or was not written by this program.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let reader = TransactionsReader::open(path, source(path)?)?;
        let list = |key: &str| -> Result<Vec<String>, RecordError> {
            let Some(text) = reader.note(key) else { return Ok(Vec::new()) };
            serde_json::from_str(&text)
                .map_err(|_| RecordError::damaged(path, format!("its `{key}` is not a list")))
        };
        let started_unix_ns =
            reader.note("assay.started_unix_ns").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut stages = list("assay.stages")?;
        stages.truncate(reader.stage_count());
        for index in stages.len()..reader.stage_count() {
            stages.push(format!("stage{index}"));
        }
        let (kinds, errors) = (list("assay.kinds")?, list("assay.errors")?);
        Ok(Self { path: path.to_owned(), stages, kinds, errors, started_unix_ns })
    }

    /// Names of the stages.
    #[must_use]
    pub fn stages(&self) -> &[String] {
        &self.stages
    }

    /// Names of the kinds; `Row::kind` is an index into it.
    #[must_use]
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Error texts; `Row::error` is an index into it.
    #[must_use]
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Wall time of stamp 0, nanoseconds after the Unix epoch; 0 = the file does not say.
    #[must_use]
    pub const fn started_unix_ns(&self) -> i64 {
        self.started_unix_ns
    }

    /// Passes every row once, in the order of the file. Says how many there were.
    ///
    /// # Errors
    /// When the file is damaged. Rows may have been passed before damage was found.
    pub fn for_each_batch(&self, mut f: impl FnMut(&[Row])) -> Result<u64, RecordError> {
        let mut reader = TransactionsReader::open(&self.path, source(&self.path)?)?;
        let mut count = 0;
        while let Some(rows) = reader.next_batch()? {
            count += rows.len() as u64;
            f(rows);
        }
        Ok(count)
    }
}

fn source(path: &Path) -> Result<Source, RecordError> {
    let file = disk::open_named(path)?;
    Ok(Source::File(file))
}
