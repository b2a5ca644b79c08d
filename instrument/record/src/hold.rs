//! How a run that goes on is told from one that ended, however it ended: its process holds a lock on the run's folder, which
//! the kernel takes back with the process. There is no file for it, nothing to clean up, and nothing that a copy of the folder
//! could carry on.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::RecordError;
use crate::folder::RunFolder;

/// The hold of this process on a run; it ends when it is dropped, or with the process.
#[derive(Debug)]
pub struct RunHold {
    _folder: File,
}

impl RunFolder {
    /// Says that this process carries out the run. To be called before plan.toml is written. On a file system without locks
    /// nothing tells of it.
    ///
    /// # Errors
    /// When another process carries it out, or the folder cannot be opened.
    pub fn hold(&self) -> Result<RunHold, RecordError> {
        let folder = self.opened()?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(RecordError::Held { path: self.path().to_owned() }),
            _ => Ok(RunHold { _folder: folder }),
        }
    }

    /// Whether a process carries out the run; `None` where the file system cannot say.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn is_held(&self) -> Result<Option<bool>, RecordError> {
        let folder = self.opened()?;
        // Others that ask do not stand in each other's way.
        Ok(match flock(&folder, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Some(false),
            Err(Errno::WOULDBLOCK) => Some(true),
            Err(_) => None,
        })
    }

    fn opened(&self) -> Result<File, RecordError> {
        File::open(self.path()).map_err(|error| RecordError::reading(self.path(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a run is held by one at a time, anybody may ask, and the hold goes with who has it.
    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunFolder::open(folder.path()).expect("it is there");
        assert_eq!(run.is_held().expect("it can be asked"), Some(false));
        let hold = run.hold().expect("nobody has it");
        for _ in 0..2 {
            assert_eq!(run.is_held().expect("it can be asked"), Some(true));
        }
        let said = run.hold().expect_err("it is held").to_string();
        assert!(said.contains("is carried out by another process; wait for its end"), "{said}");
        drop(hold);
        assert_eq!(run.is_held().expect("it can be asked"), Some(false));
        run.hold().expect("nobody has it any more");
    }
}
