//! Errors of a run folder, in words for people: what was attempted, on which file, what to do next.
//! It decides nothing; the one judgement here is that a full disk is told apart from other failures to write.

use std::io;
use std::path::{Path, PathBuf};

use model::visible;

/// Why a run folder could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A folder could not be made.
    #[error("creating {path}: {source}; name a folder in which you may write")]
    Create {
        /// The folder.
        path: PathBuf,
        /// The operating system's message.
        source: io::Error,
    },
    /// A file could not be read.
    #[error(
        "reading {path}: {source}; check that the run folder is whole and that you may read it"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        source: io::Error,
    },
    /// A file could not be written.
    #[error(
        "writing {path}: {source}; check that the folder still exists and that you may write there"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        source: io::Error,
    },
    /// The disk is full.
    #[error(
        "writing {path}: the disk is full; everything recorded before this is kept: free some space, then `assay report` on the run folder goes on from there"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// A file is there and does not hold what it should.
    #[error("{path} cannot be used: {why}; {next}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        why: String,
        /// The remedy.
        next: &'static str,
    },
    /// There is something in the place of a file that is none.
    #[error(
        "expected a regular file at {path}, got {what}; a run folder holds nothing else: copy the file itself there"
    )]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// The thing that is there.
        what: String,
    },
    /// Another version of Assay wrote the file, and what it says cannot be held against what this one asks.
    #[error(
        "{path} was written by another version of Assay ({}; this one reads `{known}`); report the run with the version \
         that wrote it (its commit stands in the run's environment.json), or run the experiment again",
        written_as(found)
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The schema that it names; empty if it names none.
        found: String,
        /// The schema that this version reads.
        known: &'static str,
    },
    /// A file that is needed is not there.
    #[error("{path} is missing; {next}")]
    Missing {
        /// The file.
        path: PathBuf,
        /// The remedy.
        next: &'static str,
    },
    /// Another process carries out the run.
    #[error(
        "{path} is carried out by another process; wait for its end (assay watch {path} shows it), or stop it with Ctrl-C"
    )]
    Held {
        /// The run.
        path: PathBuf,
    },
    /// A name that cannot be a file's.
    #[error("`{name}` cannot name a file of a run folder; use letters, digits, `.`, `-` and `_`")]
    Name {
        /// The name.
        name: String,
    },
}

/// The remedy for a file that does not hold what it should.
pub(crate) const RESTORE: &str =
    "restore it from a copy of the run folder, or leave this trial out by moving its folder away";

fn written_as(schema: &str) -> String {
    if schema.is_empty() {
        "it names no schema".to_owned()
    } else {
        format!("it is `{}`", visible(schema))
    }
}

impl RecordError {
    /// A failure to read, with a missing file told apart.
    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            return Self::Missing {
                path: path.to_owned(),
                next: "check that the path is a run folder and that it was copied whole",
            };
        }
        Self::Read { path: path.to_owned(), source }
    }

    /// A failure to write, with a full disk told apart.
    pub(crate) fn writing(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { path: path.to_owned() }
            }
            _ => Self::Write { path: path.to_owned(), source },
        }
    }

    /// A file that does not hold what it should.
    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        // A parser quotes what it does not know, as a stranger may have written it.
        Self::Damaged { path: path.to_owned(), why: visible(&why.into()), next: RESTORE }
    }

    /// Something that is no regular file.
    pub(crate) fn not_regular(path: &Path, what: &str) -> Self {
        Self::NotRegular { path: path.to_owned(), what: what.to_owned() }
    }
}
