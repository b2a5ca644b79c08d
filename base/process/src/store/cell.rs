//! Cells: small files that are replaced whole. The new content is written beside the old one and takes its name.

use std::io;
use std::path::Path;

use super::StoreError;
use super::direct::Blocks;
use super::files::Files;
use super::segments::sync_folder;

const MAGIC: [u8; 8] = *b"cell\x01\0\0\0";
/// Written and synced at once, so that a record's sync beside it waits for few bytes.
const PART_BYTES: usize = 4 << 20;
/// Magic, checksum, and behind them the content.
const HEADER_BYTES: usize = 12;

/// What a cell holds; nothing if it was never replaced.
pub(super) fn read(files: &dyn Files, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let mut bytes = match files.read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::system("reading", path)(error)),
    };
    let is_whole = bytes.len() >= HEADER_BYTES
        && bytes[..8] == MAGIC
        && bytes[8..12] == crc32fast::hash(&bytes[HEADER_BYTES..]).to_le_bytes();
    if !is_whole {
        return Err(StoreError::Broken { path: path.to_owned(), offset: 0, number: 0 });
    }
    bytes.drain(..HEADER_BYTES);
    Ok(Some(bytes))
}

/// Replaces what a cell holds; durable when this returns.
pub(super) fn replace(files: &dyn Files, path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    let failed = || StoreError::system("writing", &new);
    let file = files.create(&new).map_err(failed())?;
    let mut blocks = Blocks::default();
    let head = blocks.buffer(HEADER_BYTES + content.len().min(PART_BYTES));
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    let mut at = 0;
    let mut is_direct = file.set_direct(true);
    for part in content.chunks(PART_BYTES) {
        blocks.buffer(part.len()).extend_from_slice(part);
        at += loop {
            match blocks.write(&*file, at) {
                Err(error) if is_direct && error.kind() == io::ErrorKind::InvalidInput => {
                    is_direct = file.set_direct(false);
                }
                written => break written.map_err(failed())? as u64,
            }
        };
        file.sync_data().map_err(unsynced(&new))?;
    }
    if content.is_empty() {
        blocks.write(&*file, at).map_err(failed())?;
    }
    // Behind the end stand the zeros of the last block.
    file.set_len((HEADER_BYTES + content.len()) as u64).map_err(failed())?;
    file.sync_all().map_err(unsynced(&new))?;
    files.rename(&new, path).map_err(StoreError::system("renaming", &new))?;
    sync_folder(files, path.parent().unwrap_or(Path::new(".")))
}

/// Some file systems find out only at a sync that there is no room: the old content still has its name, so that
/// waiting is safe.
fn unsynced(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| {
        if source.kind() == io::ErrorKind::StorageFull {
            StoreError::system("writing", path)(source)
        } else {
            StoreError::Sync { path, source }
        }
    }
}
