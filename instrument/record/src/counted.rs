//! A file of what one of several readers has counted of a run's rows, until all are merged: a line of JSON that says of which
//! rows, and then the counts of each trial, which are the analysis' own.
//!
//! It is trusted as the run folder is: a checksum finds what was damaged, and the line what is of another run, version or
//! number of readers.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::disk::{self, Sealed};
use crate::error::RecordError;

const SCHEMA: &str = "assay.rows-counted/1";
/// The longest first line.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// The most that is read of a trial.
const COUNTS_BYTES_MAX: u64 = 8 << 30;
/// The remedy for a file that is not what it should be.
const AGAIN: &str = "make it again with assay report --part";

/// The share of one of several readers in the rows of each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// From 1.
    number: u32,
    of: u32,
}

impl Share {
    /// How many readers there are.
    #[must_use]
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Its share of `count` things that stand in a row.
    pub(crate) fn range(self, count: usize) -> Range<usize> {
        let end = |number: u32| {
            let product = count as u128 * u128::from(number) / u128::from(self.of);
            usize::try_from(product).expect("at most the count")
        };
        end(self.number - 1)..end(self.number)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.split_once('/').and_then(|(number, of)| {
            let share = Self { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=share.of).contains(&share.number).then_some(share)
        });
        share.ok_or_else(|| format!("expected a part and how many there are, as 1/4, got `{text}`"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// The counts of one reader of a run.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Its share.
    pub share: Share,
    /// The trials whose rows it has read.
    pub trials: Vec<CountedTrial>,
}

/// The counts of one reader of a trial.
#[derive(Clone, Debug)]
pub struct CountedTrial {
    /// The trial's folder in the run's.
    pub path: String,
    /// The file of rows.
    pub rows: RowsMark,
    /// The counts.
    pub counts: Vec<u8>,
}

/// A file of rows, as it was sealed: that of another run, or of the same after a change, has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsMark(pub(crate) Sealed);

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    version: String,
    share: Share,
    trials: Vec<HeadTrial>,
    crc32: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeadTrial {
    path: String,
    rows: RowsMark,
    counts_bytes: u64,
}

impl Counted {
    /// Writes the file; `version` is that of the program, since counts are of one only.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path, version: &str) -> Result<(), RecordError> {
        let mut crc = crc32fast::Hasher::new();
        self.trials.iter().for_each(|trial| crc.update(&trial.counts));
        let trial = |trial: &CountedTrial| HeadTrial {
            path: trial.path.clone(),
            rows: trial.rows,
            counts_bytes: trial.counts.len() as u64,
        };
        let head = Head {
            schema: SCHEMA.to_owned(),
            version: version.to_owned(),
            share: self.share,
            trials: self.trials.iter().map(trial).collect(),
            crc32: crc.finalize(),
        };
        let mut bytes = serde_json::to_vec(&head).expect("it has only texts and numbers");
        bytes.push(b'\n');
        self.trials.iter().for_each(|trial| bytes.extend_from_slice(&trial.counts));
        disk::write_whole(path, &bytes)
    }

    /// Reads the file back.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or was made by another version of the program.
    pub fn read(path: &Path, version: &str) -> Result<Self, RecordError> {
        let damaged = |why: &str| RecordError::Damaged {
            path: path.to_owned(),
            why: why.to_owned(),
            next: AGAIN,
        };
        let reading = |error| RecordError::reading(path, error);
        let mut file = BufReader::new(disk::open_named(path)?);
        let mut line = Vec::new();
        (&mut file).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(reading)?;
        let head: Head =
            serde_json::from_slice(&line).map_err(|_| damaged("it is no file of --part"))?;
        if head.schema != SCHEMA || head.version != version {
            return Err(damaged("another version of assay made it"));
        }
        if !(1..=head.share.of).contains(&head.share.number) {
            return Err(damaged("it is no file of --part"));
        }
        let mut crc = crc32fast::Hasher::new();
        let mut trials = Vec::new();
        for HeadTrial { path, rows, counts_bytes } in head.trials {
            let mut counts = Vec::new();
            (&mut file)
                .take(counts_bytes.min(COUNTS_BYTES_MAX))
                .read_to_end(&mut counts)
                .map_err(reading)?;
            if counts.len() as u64 != counts_bytes {
                return Err(damaged("it is cut off"));
            }
            crc.update(&counts);
            trials.push(CountedTrial { path, rows, counts });
        }
        if crc.finalize() != head.crc32 || file.read(&mut [0]).map_err(reading)? != 0 {
            return Err(damaged("its bytes have changed"));
        }
        Ok(Self { share: head.share, trials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> Counted {
        let rows = RowsMark(Sealed { bytes: 5, crc32: 7 });
        let trial = |path: &str, counts: &[u8]| CountedTrial {
            path: path.to_owned(),
            rows,
            counts: counts.to_vec(),
        };
        let trials =
            vec![trial("settings/a/trial-0", &[1, 2, 3]), trial("settings/b/trial-0", &[])];
        Counted { share: "2/4".parse().unwrap(), trials }
    }

    /// Claim: shares are those that people write, and together everything once.
    #[test]
    fn shares_are_everything_once() {
        for wrong in ["", "1", "0/4", "5/4", "1/0", "a/b", "-1/4", "1/4/2"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
        for (count, of) in [(0, 3), (2, 4), (7, 3), (1_000_003, 7), (5, 1)] {
            let share = |number: u32| format!("{number}/{of}").parse::<Share>().unwrap();
            let all: Vec<usize> = (1..=of).flat_map(|number| share(number).range(count)).collect();
            assert!(all.into_iter().eq(0..count), "{count} {of}");
        }
    }

    /// Claim: the file comes back; one of which any byte is another, or that is cut off or longer, or of another version, is
    /// an error that says what to do.
    #[test]
    fn only_the_whole_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        counted().write(&path, "1 (abc)").unwrap();
        let read = |bytes: &[u8], version: &str| {
            std::fs::write(&path, bytes).unwrap();
            Counted::read(&path, version).map(|read| format!("{read:?}"))
        };
        let bytes = std::fs::read(&path).unwrap();
        let whole = format!("{:?}", counted());
        assert_eq!(read(&bytes, "1 (abc)").unwrap(), whole);
        let mut refused =
            vec![read(&bytes, "1 (abd)"), read(&[&bytes[..], b"x"].concat(), "1 (abc)")];
        refused.extend((0..bytes.len()).map(|length| read(&bytes[..length], "1 (abc)")));
        for why in refused {
            let why = why.unwrap_err().to_string();
            assert!(why.contains("assay report --part"), "{why}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            // Its path is held against the run's when it is used.
            let read = read(&changed, "1 (abc)");
            assert!(read.is_err() || read.unwrap() != whole, "byte {at}");
        }
    }
}
