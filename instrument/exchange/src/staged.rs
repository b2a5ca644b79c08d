//! Parquet and interval logs, by the way that a run takes: rows into a row log in a folder beside the output,
//! names into trial.json once they are all known, then sealed. So `record` stays the only owner of its formats,
//! memory stays bounded, and what is written is what a run writes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use model::WallTime;
use record::RunFolder;

use crate::error::ExchangeError;
use crate::format::Format;
use crate::rows_in::{Notes, RowsInput};

/// Writes rows as Parquet or as an interval log. `folder` is where the staging folder is made, on a disk with
/// room for the rows (eleven bytes each, and the file itself); it is removed again.
///
/// # Errors
/// When the input cannot be read, or the staging folder or the output cannot be written.
pub fn stage_rows(
    input: RowsInput<'_>,
    format: Format,
    folder: &Path,
    out: &mut dyn Write,
) -> Result<Notes, ExchangeError> {
    let file = match format {
        Format::Parquet => "transactions.parquet",
        Format::Hlog => "latency.hlog",
        other => {
            return Err(ExchangeError::Refused(format!(
                "rows are not staged for {}",
                other.word()
            )));
        }
    };
    let run = RunFolder::create(folder, "assay-convert.partial", WallTime::from_unix_ns(0))?;
    let staging = Staging(run.path().to_owned());
    let trial = run.trial("default", 0)?;
    let mut log = trial.row_log()?;
    let mut outside = 0;
    let (names, mut notes) = input.for_each(&mut |names, rows| {
        outside += names.outside(rows);
        log.append(rows).map_err(ExchangeError::from)
    })?;
    notes.say_window(&names, outside);
    log.close()?;
    trial.write_facts(&names.facts())?;
    trial.seal()?;
    let path = trial.path().join(file);
    let mut sealed = File::open(&path)
        .map_err(|source| ExchangeError::Read { name: path.display().to_string(), source })?;
    std::io::copy(&mut sealed, out).map_err(ExchangeError::writing)?;
    out.flush().map_err(ExchangeError::writing)?;
    drop(staging);
    Ok(notes)
}

/// A folder that goes when it is no longer needed.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        // Nothing depends on it any more; what cannot be removed says by its name that it is left over.
        let _ = fs::remove_dir_all(&self.0);
    }
}
