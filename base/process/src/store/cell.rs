//! Cells: small files that are replaced whole. The new content is written beside the old one and takes its name.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::StoreError;
use super::segments::sync_folder;

const MAGIC: [u8; 8] = *b"cell\x01\0\0\0";
/// Magic, checksum, and behind them the content.
const HEADER_BYTES: usize = 12;

/// What a cell holds; nothing if it was never replaced.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let mut bytes = match fs::read(path) {
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
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(&MAGIC)?;
        file.write_all(&crc32fast::hash(content).to_le_bytes())?;
        file.write_all(content)?;
        Ok(file)
    };
    let file = write().map_err(StoreError::system("writing", &new))?;
    file.sync_all().map_err(|source| {
        // Some file systems find out only now that there is no room; the old content still has its name.
        if source.kind() == io::ErrorKind::StorageFull {
            StoreError::system("writing", &new)(source)
        } else {
            StoreError::Sync { path: new.clone(), source }
        }
    })?;
    fs::rename(&new, path).map_err(StoreError::system("renaming", &new))?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}
