//! How files of the run folder reach the disk and come back: whole or not at all, never more than a bound,
//! with a checksum where a reader cannot afford to be surprised. It knows no format.
//!
//! A run folder may come from a stranger. It must never open anything in it but a regular file: no link, which would
//! lead out of the folder, and no pipe or device, which would be waited for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::RecordError;

/// The largest text file (JSON, TOML, NDJSON) that is read into memory.
pub const TEXT_BYTES_MAX: u64 = 256 << 20;

/// Whose the files and folders of a run are: their owner's alone. What a system answers is nobody else's business.
pub(crate) const OWN_FILE: u32 = 0o600;
const OWN_FOLDER: u32 = 0o700;

/// Makes a folder, which must not be there, for its owner alone.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(OWN_FOLDER).create(path)
}

/// The same with all that lead to it, where they are not there.
pub fn create_folders(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(OWN_FOLDER).recursive(true).create(path)
}

/// Length and checksum of a file that was written to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Length.
    pub bytes: u64,
    /// CRC-32 (IEEE) of all bytes.
    pub crc32: u32,
}

/// Replaces `path` with `bytes` so that a crash leaves the old content or the new, never a part of it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    // In a stranger's folder a link may wait there for what is written.
    let partial = partial(path);
    if fs::symlink_metadata(&partial).is_ok_and(|found| !found.is_file()) {
        return Err(RecordError::not_regular(&partial, "something else"));
    }
    let mut file = PartialFile::create(path)?;
    file.write_all(bytes).map_err(|error| RecordError::writing(path, error))?;
    file.finish()?;
    Ok(())
}

/// Opens a file of a run folder: a regular one, by its own name.
pub fn open(path: &Path) -> Result<File, RecordError> {
    let no_link = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).expect("two flags");
    open_with(path, no_link)
}

/// Opens a file that the user has named, whose name may be a link.
pub fn open_named(path: &Path) -> Result<File, RecordError> {
    open_with(path, i32::try_from(OFlags::NONBLOCK.bits()).expect("one flag"))
}

fn open_with(path: &Path, flags: i32) -> Result<File, RecordError> {
    // Opening a pipe waits for its other end, unless it is not to block; a regular file does not know the difference.
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let not_regular = |what: &str| Err(RecordError::not_regular(path, what));
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return not_regular("a link");
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return not_regular("a socket or a device");
        }
        opened => opened.map_err(|error| RecordError::reading(path, error))?,
    };
    let kind = file.metadata().map_err(|error| RecordError::reading(path, error))?.file_type();
    match kind {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => not_regular("a folder"),
        kind if kind.is_fifo() => not_regular("a pipe"),
        _ => not_regular("a socket or a device"),
    }
}

/// Whether there is a folder by this very name, and no link to one.
pub fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Reads a text file of bounded size.
pub fn read_text(path: &Path) -> Result<String, RecordError> {
    let file = open(path)?;
    let mut text = Vec::new();
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| RecordError::reading(path, error))?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(RecordError::damaged(
            path,
            format!("it is larger than {TEXT_BYTES_MAX} bytes"),
        ));
    }
    String::from_utf8(text).map_err(|_| RecordError::damaged(path, "it is not UTF-8 text"))
}

/// Length and checksum of a file as it lies there. Reads it once, in bounded memory.
pub fn checksum(path: &Path) -> Result<Sealed, RecordError> {
    checksum_of(path, open(path)?)
}

fn checksum_of(path: &Path, mut file: impl io::Read) -> Result<Sealed, RecordError> {
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = 0_u64;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(RecordError::reading(path, error)),
        };
        hasher.update(&buffer[..count]);
        bytes += count as u64;
    }
    Ok(Sealed { bytes, crc32: hasher.finalize() })
}

/// Whether the file is, byte for byte, what was sealed. Reads it once, in bounded memory, and not at all where its length
/// is another.
pub fn verify(path: &Path, sealed: Sealed) -> Result<(), RecordError> {
    let file = open(path)?;
    let length = file.metadata().map_err(|error| RecordError::reading(path, error))?.len();
    if length != sealed.bytes {
        let why = format!("it has {length} bytes and was sealed with {}", sealed.bytes);
        return Err(RecordError::damaged(path, why));
    }
    let found = checksum_of(path, file.take(length))?;
    if found.crc32 != sealed.crc32 {
        return Err(RecordError::damaged(path, "its checksum is not the one it was sealed with"));
    }
    Ok(())
}

/// The files that lie in a folder itself, by name, at most so many.
pub fn files_of(folder: &Path, count_max: usize) -> Result<Vec<PathBuf>, RecordError> {
    let entries = fs::read_dir(folder).map_err(|error| RecordError::reading(folder, error))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.truncate(count_max);
    Ok(found)
}

/// Makes the names in a folder durable.
pub fn sync_folder(path: &Path) -> Result<(), RecordError> {
    let folder = File::open(path).map_err(|error| RecordError::reading(path, error))?;
    folder.sync_all().map_err(|error| RecordError::writing(path, error))
}

/// Removes a file; that it was not there is fine.
pub fn remove(path: &Path) -> Result<(), RecordError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(RecordError::writing(path, error))
        }
        _ => Ok(()),
    }
}

/// The name of a file until it is complete.
fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    PathBuf::from(partial)
}

/// A file that gets its name only when it is complete and on the disk. Dropped before, it is removed, so that
/// a failure on a full disk gives its space back.
#[derive(Debug)]
pub struct PartialFile {
    file: Option<BufWriter<File>>,
    partial: PathBuf,
    path: PathBuf,
    hasher: crc32fast::Hasher,
    bytes: u64,
}

impl PartialFile {
    /// Starts a file that will be called `path`.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let partial = partial(path);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWN_FILE)
            .open(&partial)
            .map_err(|error| RecordError::writing(path, error))?;
        Ok(Self {
            file: Some(BufWriter::with_capacity(256 << 10, file)),
            partial,
            path: path.to_owned(),
            hasher: crc32fast::Hasher::new(),
            bytes: 0,
        })
    }

    /// Brings everything to the disk and gives the file its name. To be called once, at the end.
    pub fn finish(&mut self) -> Result<Sealed, RecordError> {
        let at = |error| RecordError::writing(&self.path, error);
        let file = self.file.take().expect("a file is finished once");
        let file = file.into_inner().map_err(|error| at(error.into_error()))?;
        file.sync_all().map_err(at)?;
        fs::rename(&self.partial, &self.path).map_err(at)?;
        if let Some(folder) = self.path.parent() {
            // A bare name has an empty one.
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            sync_folder(folder)?;
        }
        Ok(Sealed { bytes: self.bytes, crc32: self.hasher.clone().finalize() })
    }
}

impl Write for PartialFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.file.as_mut().expect("nothing is written after finish");
        let count = file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("nothing is written after finish").flush()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // The buffered rest is thrown away: writing it to a full disk would only fail again.
        if let Some(file) = self.file.take() {
            let _ = file.into_parts();
        }
        // After `finish` the file has its name and there is nothing here to remove.
        let _ = fs::remove_file(&self.partial);
    }
}
