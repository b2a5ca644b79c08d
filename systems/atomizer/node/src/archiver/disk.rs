//! Reading an archive from its folder, while the archiver runs or after its end: what is durable is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use process::store::format;

use crate::protocol::block::{Block, read_block};

/// The name of the archiver's log in its folder.
pub const LOG: &str = "blocks";

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system says no.
    #[error("reading {path}: {source}; is this the folder of an archiver?")]
    System {
        /// What was to be read.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Something that was durable is damaged.
    #[error(
        "{path}: what was durable is damaged at byte {offset}; the archive cannot be trusted from there on"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: usize,
    },
    /// A record is not the block that is next.
    #[error("{path}: instead of the block of height {height} there is something else")]
    NotNext {
        /// The file.
        path: PathBuf,
        /// The height.
        height: u64,
    },
}

/// Tells each block to `each`, from height 1 on, in order. Gives how many there are.
///
/// # Errors
/// When one cannot be read, or one is missing.
pub fn read_archive(folder: &Path, mut each: impl FnMut(Block<'_>)) -> Result<u64, ReadError> {
    let system = |path: &Path| {
        let path = path.to_owned();
        move |source| ReadError::System { path, source }
    };
    let log = folder.join(LOG);
    let mut files = Vec::new();
    for entry in fs::read_dir(&log).map_err(system(&log))? {
        let path = entry.map_err(system(&log))?.path();
        if path.extension().is_some_and(|it| it == "segment") {
            files.push(path);
        }
    }
    // Their names are their numbers, all of one length.
    files.sort();
    let mut height = 0;
    for path in files {
        let bytes = fs::read(&path).map_err(system(&path))?;
        // One that was only made has no header.
        let Some(header) = format::read_header(&bytes) else { continue };
        let scan = format::scan(&bytes, &header)
            .map_err(|it| ReadError::Damaged { path: path.clone(), offset: it.offset })?;
        for record in scan.records {
            height += 1;
            match read_block(&bytes[record]) {
                Ok(block) if block.height == height => each(block),
                _ => return Err(ReadError::NotNext { path, height }),
            }
        }
    }
    Ok(height)
}
