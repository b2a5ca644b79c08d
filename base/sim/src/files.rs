//! Files that lose their power at any operation: of what was not synced any sectors are there, of the names of a folder
//! that was not synced the first few changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use process::store::files::{Files, OpenFile};

use crate::random::Random;

/// Bytes that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A folder tree in memory. Copies are of one tree.
#[derive(Clone, Debug)]
pub struct TornFiles(Arc<Mutex<Tree>>);

#[derive(Debug)]
struct Tree {
    random: Random,
    files: Vec<Content>,
    /// Live names, and those that a loss of power leaves.
    names: BTreeMap<PathBuf, usize>,
    durable: BTreeMap<PathBuf, usize>,
    /// Changes of names since the syncs of their folders, in order.
    renamed: Vec<Vec<(PathBuf, Option<usize>)>>,
    folders: BTreeSet<PathBuf>,
    /// Operations until the power goes.
    left: Option<u64>,
    /// Without power: every operation fails.
    is_dark: bool,
    operations: u64,
    torn_bytes: u64,
}

#[derive(Debug, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Ranges that were written since the last sync.
    written: Vec<(usize, usize)>,
}

impl TornFiles {
    /// An empty tree whose losses are drawn from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Tree {
            random: Random::new(seed),
            files: Vec::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            renamed: Vec::new(),
            folders: BTreeSet::new(),
            left: None,
            is_dark: false,
            operations: 0,
            torn_bytes: 0,
        })))
    }

    /// The power goes in the middle of the operation after so many.
    pub fn cut_after(&self, operations: u64) {
        self.tree().left = Some(operations);
    }

    /// The power goes, if it has not, and comes back: what the disk has kept of what was not synced is all there is now.
    pub fn lose_power(&self) {
        self.tree().lose();
    }

    /// The process was killed where the power would have gone: all that it did is there, and what was not synced may still be
    /// lost.
    pub fn kill(&self) {
        let mut tree = self.tree();
        (tree.left, tree.is_dark) = (None, false);
    }

    /// How many operations there were.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.tree().operations
    }

    /// Bytes that were written, not synced, and are gone.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.tree().torn_bytes
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation begins. One in whose middle the power goes may have done its work, but the caller is not told.
    fn act<T>(&self, act: impl FnOnce(&mut Tree) -> io::Result<T>) -> io::Result<T> {
        let mut tree = self.tree();
        let is_last = tree.left == Some(0);
        if tree.is_dark {
            return Err(dark());
        }
        tree.operations += 1;
        tree.left = tree.left.map(|left| left.saturating_sub(1));
        if is_last {
            tree.is_dark = true;
            if tree.random.once_in(2) {
                let _ = act(&mut tree);
            }
            return Err(dark());
        }
        act(&mut tree)
    }

    fn file(&self, id: usize) -> Box<dyn OpenFile> {
        Box::new(TornFile { files: self.clone(), id })
    }
}

fn dark() -> io::Error {
    io::Error::other("the power is gone")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl Tree {
    fn id(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// All of it is there after a loss of power, or nothing.
    fn name(&mut self, change: &[(&Path, Option<usize>)]) {
        change.iter().for_each(|(path, id)| set(&mut self.names, path, *id));
        self.renamed.push(change.iter().map(|(path, id)| ((*path).to_owned(), *id)).collect());
    }

    fn lose(&mut self) {
        let kept = self.random.place(self.renamed.len() + 1);
        for (path, id) in self.renamed.drain(..).take(kept).flatten() {
            set(&mut self.durable, &path, id);
        }
        self.names = self.durable.clone();
        for file in &mut self.files {
            self.torn_bytes += file.lose(&mut self.random);
        }
        (self.left, self.is_dark) = (None, false);
    }
}

fn set(names: &mut BTreeMap<PathBuf, usize>, path: &Path, id: Option<usize>) {
    match id {
        Some(id) => names.insert(path.to_owned(), id),
        None => names.remove(path),
    };
}

impl Content {
    fn sync(&mut self) {
        if self.live.len() != self.durable.len() {
            self.durable.resize(self.live.len(), 0);
        }
        for (start, end) in self.written.drain(..) {
            let end = end.min(self.live.len());
            if start < end {
                self.durable[start..end].copy_from_slice(&self.live[start..end]);
            }
        }
    }

    /// Any sectors that were not synced are there, or the first ones. Gives how many bytes are gone.
    fn lose(&mut self, random: &mut Random) -> u64 {
        if self.written.is_empty() && self.live.len() == self.durable.len() {
            return 0;
        }
        if random.once_in(2) {
            self.durable.resize(self.live.len(), 0);
        }
        let (is_in_order, odds) = (random.once_in(2), 1 + random.below(4));
        let mut lost = 0;
        for (start, end) in std::mem::take(&mut self.written) {
            let mut at = start;
            while at < end.min(self.durable.len()).min(self.live.len()) {
                let next =
                    ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end).min(self.durable.len());
                let next = next.min(self.live.len());
                if lost > 0 && is_in_order || random.once_in(odds) {
                    lost += u64::try_from(next - at).expect("fits");
                } else {
                    self.durable[at..next].copy_from_slice(&self.live[at..next]);
                }
                at = next;
            }
        }
        self.live.clone_from(&self.durable);
        lost
    }
}

#[derive(Debug)]
struct TornFile {
    files: TornFiles,
    id: usize,
}

impl OpenFile for TornFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.files.act(|tree| {
            let start = usize::try_from(offset).map_err(io::Error::other)?;
            let (end, file) = (start + bytes.len(), &mut tree.files[self.id]);
            if file.live.len() < end {
                file.live.resize(end, 0);
            }
            file.live[start..end].copy_from_slice(bytes);
            file.written.push((start, end));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.files.act(|tree| {
            tree.files[self.id].sync();
            Ok(())
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.files.act(|tree| {
            tree.files[self.id].live.resize(usize::try_from(bytes).map_err(io::Error::other)?, 0);
            Ok(())
        })
    }

    fn set_direct(&self, _: bool) -> bool {
        false
    }
}

impl Files for TornFiles {
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.act(|tree| {
            tree.folders.insert(folder.to_owned());
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.act(|tree| {
            for change in std::mem::take(&mut tree.renamed) {
                if folder_of(&change[0].0) == folder {
                    change.iter().for_each(|(path, id)| set(&mut tree.durable, path, *id));
                } else {
                    tree.renamed.push(change);
                }
            }
            Ok(())
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.act(|tree| {
            Ok(tree.names.keys().filter(|path| folder_of(path) == folder).cloned().collect())
        })
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let id = self.act(|tree| {
            if let Ok(id) = tree.id(path) {
                tree.files[id].live.clear();
                return Ok(id);
            }
            tree.files.push(Content::default());
            let id = tree.files.len() - 1;
            tree.name(&[(path, Some(id))]);
            Ok(id)
        })?;
        Ok(self.file(id))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(self.file(self.act(|tree| tree.id(path))?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.act(|tree| Ok(tree.files[tree.id(path)?].live.clone()))
    }

    fn read_exact_at(&self, path: &Path, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.act(|tree| {
            let live = &tree.files[tree.id(path)?].live;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let there = live.get(start..start.saturating_add(bytes.len()));
            bytes.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.act(|tree| {
            u64::try_from(tree.files[tree.id(path)?].live.len()).map_err(io::Error::other)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|tree| {
            let id = tree.id(from)?;
            tree.name(&[(to, Some(id)), (from, None)]);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.act(|tree| {
            tree.id(path)?;
            tree.name(&[(path, None)]);
            Ok(())
        })
    }

    fn draw(&self) -> io::Result<u64> {
        self.act(|tree| Ok(tree.random.any()))
    }
}
