//! Reading an archive from its folder, while the archiver runs or after its end: what is durable is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use process::store::format;

use crate::protocol::block::{Block, Head, read_block};

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
    #[error(
        "{path}: instead of the block of height {height} there is something else, or a block of the time before blocks had hashes"
    )]
    NotNext {
        /// The file.
        path: PathBuf,
        /// The height.
        height: u64,
    },
}

/// A block of an archive, and whether it can be believed.
#[derive(Clone, Copy, Debug)]
pub struct Archived<'a> {
    /// The block.
    pub block: Block<'a>,
    /// Whether it follows the one before, is what its hash says, and is of the same ledger.
    pub follows: bool,
}

/// Tells each block to `each`, from height 1 on, in order. Gives how many there are.
///
/// # Errors
/// When one cannot be read, or one is missing.
pub fn read_archive(folder: &Path, mut each: impl FnMut(Archived<'_>)) -> Result<u64, ReadError> {
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
    let (mut height, mut last) = (0, None::<Head>);
    for path in files {
        let bytes = fs::read(&path).map_err(system(&path))?;
        // One that was only made has no header.
        let Some(header) = format::read_header(&bytes) else { continue };
        let scan = format::scan(&bytes, &header)
            .map_err(|it| ReadError::Damaged { path: path.clone(), offset: it.offset })?;
        for record in scan.records {
            height += 1;
            match read_block(&bytes[record]) {
                Ok(block) if block.head.height == height => {
                    let follows = block.head.follows(last.as_ref()) && block.is_as_hashed();
                    last = Some(block.head);
                    each(Archived { block, follows });
                }
                _ => return Err(ReadError::NotNext { path, height }),
            }
        }
    }
    Ok(height)
}

/// Writes an archive of these blocks, without their frames and whatever they hold, in one file. For tests.
///
/// # Errors
/// When it cannot be written.
#[doc(hidden)]
pub fn write_archive(folder: &Path, blocks: &[Vec<u8>]) -> io::Result<()> {
    let header = format::Header { sequence: 0, first: 0, stamp: 1, next_stamp: 2 };
    let mut bytes = Vec::new();
    format::write_header(&header, &mut bytes);
    for (number, block) in (0..).zip(blocks) {
        format::write_record(header.stamp, number, number, block, &mut bytes);
    }
    fs::create_dir_all(folder.join(LOG))?;
    fs::write(folder.join(LOG).join("0.segment"), bytes)
}
