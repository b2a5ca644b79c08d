//! Why records cannot be kept, for people.

use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused something.
    #[error("{action} {}: {source}", path.display())]
    System {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the folder.
    #[error("{} is kept by another process; end it first, or choose another folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A record that was durable is not to be read any more.
    #[error(
        "{} is damaged at byte {offset}: record {number} was durable and cannot be read; restore it; of a replica whose group goes on without it the folder may be emptied instead, and it joins anew without a vote",
        path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where the record, or the header, begins.
        offset: usize,
        /// The record.
        number: u64,
    },
    /// A file that must be there is not.
    #[error(
        "{} is missing; restore it; of a replica whose group goes on without it the folder may be emptied instead, and it joins anew without a vote",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Nobody knows what a failed sync has kept, so nothing goes on after one.
    #[error(
        "syncing {}: {source}; what it holds is not known any more, so the process ends: look at the disk, then start it again",
        path.display()
    )]
    Sync {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    /// For `map_err`.
    pub(super) fn system(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::System { action, path, source }
    }

    /// Whether there is only no room: waiting may help.
    pub(super) fn is_full(&self) -> bool {
        let Self::System { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}
