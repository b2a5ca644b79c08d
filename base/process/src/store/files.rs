//! The files below a store: those of the disk, or others that a simulation tears. Whole batches cross this boundary, never
//! single bytes.
//!
//! It promises no more than a disk does: what was written is durable after a sync of its file, a name after a sync of its
//! folder, and before that each of them may be there after a loss of power, in part, or not.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::StoreError;

/// An open file.
pub trait OpenFile: Debug + Send {
    /// Writes all of the bytes.
    ///
    /// # Errors
    /// The system's; the same can be tried again.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes what was written durable, and what is needed to find it.
    ///
    /// # Errors
    /// The system's; which bytes are durable is then unknown.
    fn sync_data(&self) -> io::Result<()>;

    /// As [`OpenFile::sync_data`], with everything else that is known of the file.
    ///
    /// # Errors
    /// As of that.
    fn sync_all(&self) -> io::Result<()>;

    /// Cuts the file to this length, or lengthens it with zeros.
    ///
    /// # Errors
    /// The system's.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Asks for writes around a cache, in whole blocks, or through it again. Gives whether they go around it:
    /// not every file system can.
    fn set_direct(&self, is_direct: bool) -> bool;
}

impl OpenFile for File {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        Self::sync_all(self)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        Self::set_len(self, bytes)
    }

    fn set_direct(&self, is_direct: bool) -> bool {
        let flags = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
        rustix::fs::fcntl_setfl(self, flags).is_ok() && is_direct
    }
}

/// Folders, and files by their names. Errors are those of the system; a file that is not there is
/// [`io::ErrorKind::NotFound`].
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
pub trait Files: Debug + Send + Sync {
    /// Makes a folder and those above it, unless they are there.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// The files of a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// A new and empty file; one of that name is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// A file that is there.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// The bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Fills `bytes` with what a file has at `offset`; [`io::ErrorKind::UnexpectedEof`] where it is shorter.
    fn read_exact_at(&self, path: &Path, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// The length of a file in bytes.
    fn length(&self, path: &Path) -> io::Result<u64>;
    /// Gives a file another name, in place of what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// A number that was never drawn before, as good as certainly.
    fn draw(&self) -> io::Result<u64>;
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(files: &dyn Files, folder: &Path) -> Result<(), StoreError> {
    files.sync_folder(folder).map_err(|source| StoreError::Sync { path: folder.to_owned(), source })
}

/// The disk's.
#[derive(Clone, Copy, Debug)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(how.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn read_exact_at(&self, path: &Path, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        File::open(path)?.read_exact_at(bytes, offset)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        fs::metadata(path).map(|known| known.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn draw(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}
