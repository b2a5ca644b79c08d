//! Cells: small files that are replaced whole. The new content is written beside the old one and takes its name. It may come
//! in parts, so that one that is as long as all that a node holds is never in memory as a whole.

use std::io;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::direct::{BLOCK_BYTES, Blocks};
use super::files::{Files, OpenFile, sync_folder};

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

/// At most so many bytes of what a cell holds, from `offset` on. The checksum is of the whole, and is not looked at.
pub(super) fn read_part(
    files: &dyn Files,
    path: &Path,
    offset: u64,
    bytes_max: usize,
) -> Result<Vec<u8>, StoreError> {
    let failed = || StoreError::system("reading", path);
    let behind_header = offset.saturating_add(HEADER_BYTES as u64);
    let left = files.length(path).map_err(failed())?.saturating_sub(behind_header);
    let mut bytes = vec![0; bytes_max.min(usize::try_from(left).unwrap_or(usize::MAX))];
    if !bytes.is_empty() {
        files.read_exact_at(path, &mut bytes, behind_header).map_err(failed())?;
    }
    Ok(bytes)
}

/// Replaces what a cell holds; durable when this returns.
pub(super) fn replace(files: &dyn Files, path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut next = Next::begin(files, path)?;
    for part in content.chunks(PART_BYTES) {
        next.push(part);
        next.write()?;
    }
    next.finish(files)
}

/// The next content of a cell, on its way to the disk.
#[derive(Debug)]
pub(super) struct Next {
    path: PathBuf,
    /// Where it is written until it is whole.
    beside: PathBuf,
    file: Box<dyn OpenFile>,
    blocks: Blocks,
    /// Where in the file what is in `blocks` begins.
    at: u64,
    is_direct: bool,
    /// The first block: written once more at the end, with the checksum.
    head: Vec<u8>,
    checksum: crc32fast::Hasher,
    bytes: u64,
}

impl Next {
    /// Nothing yet.
    pub(super) fn begin(files: &dyn Files, path: &Path) -> Result<Self, StoreError> {
        let beside = path.with_extension("new");
        let file = files.create(&beside).map_err(StoreError::system("writing", &beside))?;
        let is_direct = file.set_direct(true);
        let mut next = Self {
            path: path.to_owned(),
            beside,
            file,
            blocks: Blocks::default(),
            at: 0,
            is_direct,
            head: Vec::new(),
            checksum: crc32fast::Hasher::new(),
            bytes: 0,
        };
        next.put(&MAGIC);
        next.put(&[0; 4]);
        Ok(next)
    }

    /// Adds a part, which is then to be written.
    pub(super) fn push(&mut self, part: &[u8]) {
        self.checksum.update(part);
        self.put(part);
    }

    fn put(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(BLOCK_BYTES - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.blocks.buffer(bytes.len()).extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Writes and syncs what was pushed. Where the disk is full the same can be tried again.
    pub(super) fn write(&mut self) -> Result<(), StoreError> {
        self.at += write_blocks(
            &mut self.blocks,
            &*self.file,
            self.at,
            &mut self.is_direct,
            &self.beside,
        )?;
        self.file.sync_data().map_err(unsynced(&self.beside))
    }

    /// Makes it what the cell holds; durable when this returns. Where the disk is full the same can be tried again.
    pub(super) fn finish(&mut self, files: &dyn Files) -> Result<(), StoreError> {
        self.write()?;
        let checksum = self.checksum.clone().finalize();
        self.head[MAGIC.len()..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let mut head = Blocks::default();
        head.buffer(self.head.len()).extend_from_slice(&self.head);
        write_blocks(&mut head, &*self.file, 0, &mut self.is_direct, &self.beside)?;
        // After the end stand the zeros of the last block.
        let failed = StoreError::system("writing", &self.beside);
        self.file.set_len(self.bytes).map_err(failed)?;
        self.file.sync_all().map_err(unsynced(&self.beside))?;
        let is_long = self.bytes > PART_BYTES as u64;
        let replaced =
            is_long.then(|| Some((files.open(&self.path).ok()?, files.length(&self.path).ok()?)));
        files
            .rename(&self.beside, &self.path)
            .map_err(StoreError::system("renaming", &self.beside))?;
        sync_folder(files, self.path.parent().unwrap_or(Path::new(".")))?;
        if let Some((file, bytes)) = replaced.flatten() {
            let_go(&*file, bytes);
        }
        Ok(())
    }

    /// Removes what was written of it.
    pub(super) fn give_up(self, files: &dyn Files) -> Result<(), StoreError> {
        drop(self.file);
        files.remove(&self.beside).map_err(StoreError::system("removing", &self.beside))
    }
}

/// Frees part by part what a file without a name takes on the disk: where a file system frees a gigabyte at once, a record's
/// sync beside it waits for that. Nothing is lost where it fails.
fn let_go(file: &dyn OpenFile, mut bytes: u64) {
    while bytes > PART_BYTES as u64 {
        bytes -= PART_BYTES as u64;
        if file.set_len(bytes).and_then(|()| file.sync_data()).is_err() {
            return;
        }
    }
}

/// Writes blocks, around the kernel's cache where the file system can. Gives how many bytes were whole blocks.
fn write_blocks(
    blocks: &mut Blocks,
    file: &dyn OpenFile,
    at: u64,
    is_direct: &mut bool,
    path: &Path,
) -> Result<u64, StoreError> {
    loop {
        match blocks.write(file, at) {
            Err(error) if *is_direct && error.kind() == io::ErrorKind::InvalidInput => {
                *is_direct = file.set_direct(false);
            }
            written => {
                return written
                    .map(|bytes| bytes as u64)
                    .map_err(StoreError::system("writing", path));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::super::files::DiskFiles;
    use super::*;

    /// Claim: what a long cell held is freed part by part once the next content has its name, and that is whole.
    #[test]
    fn what_was_replaced_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.cell");
        let mut content = vec![7; 3 * PART_BYTES];
        replace(&DiskFiles, &path, &content).unwrap();
        let before = std::fs::File::open(&path).unwrap();
        content.extend_from_slice(b"more");
        replace(&DiskFiles, &path, &content).unwrap();
        assert_eq!(read(&DiskFiles, &path).unwrap().as_ref(), Some(&content));
        assert!(before.metadata().unwrap().len() <= PART_BYTES as u64);
    }
}
