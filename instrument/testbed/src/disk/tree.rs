//! The files and folders of one disk, twice: as programs see them, and as they would be found after the power was
//! cut. No kernel, no thread and no time in here: every rule about what is durable is in this file, in `names.rs`
//! (names) and in `content.rs` (bytes), and is tested without mounting anything.
//!
//! It must never let anything become durable that was not synced, but when it has no room left: then it writes
//! everything back, as a kernel does, and counts that ([`Tree::written_back`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clock::WallTime;
use model::Seed;
use model::plan::NamesRule;
use rustix::io::Errno;

use super::Loss;
use super::content::{Content, PAGE};
use super::names::{Change, Journal, Step};

/// The folder that is mounted.
pub(super) const ROOT: u64 = 1;
/// The most files and folders: each takes some hundred bytes of the instrument's memory.
const INODES_MAX: usize = 1_000_000;
/// The longest name, as on other file systems.
const NAME_BYTES_MAX: usize = 255;
/// A disk may hold this many times its size in memory before it writes back by itself: what programs see, and as
/// much again that is durable and has been replaced.
const WEIGHT_PER_PAGE: u64 = 2;

/// What a disk keeps.
#[derive(Debug)]
pub(super) struct Tree {
    inodes: BTreeMap<u64, Inode>,
    journal: Journal,
    names: NamesRule,
    next: u64,
    pages_max: u64,
    pages: u64,
    weight: u64,
    /// How often it had no room to keep apart what is synced and what is not, and wrote everything back.
    pub(super) written_back: u64,
}

/// A file, a folder or something else that has names.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) what: What,
    pub(super) attributes: Attributes,
    /// Names that programs see.
    pub(super) links: u32,
    /// What the kernel has been told of it and has not forgotten.
    lookups: u64,
    /// Changes of names that wait in the journal and mean it.
    pub(super) held: u32,
    /// The folder above a folder.
    parent: u64,
    pub(super) safe: Safe,
}

/// What is durable of an inode, beside a file's content.
#[derive(Clone, Debug)]
pub(super) struct Safe {
    attributes: Attributes,
    pub(super) links: u32,
    pub(super) names: BTreeMap<OsString, u64>,
}

/// What kind of thing it is, and what it holds.
#[derive(Clone, Debug)]
pub(super) enum What {
    File(Content),
    Folder(BTreeMap<OsString, u64>),
    Link(OsString),
    /// A socket or a pipe: a name for something that the kernel holds.
    Other,
}

/// What stat(2) says, beside what follows from the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    /// Permissions and kind, as in `st_mode`.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) device: u32,
    pub(super) modified: WallTime,
    pub(super) changed: WallTime,
}

/// What the loss of power took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// Bytes of sectors that were written and not synced, and are gone.
    pub(super) bytes: u64,
    /// The same, and they survived.
    pub(super) kept_bytes: u64,
    /// Changes of names (created, renamed, removed) that are undone.
    pub(super) names: u64,
}

impl Tree {
    pub(super) fn new(size_max: u64, names: NamesRule, root: Attributes) -> Self {
        let folder = Inode::new(What::Folder(BTreeMap::new()), root, ROOT);
        Self {
            inodes: BTreeMap::from([(ROOT, Inode { links: 1, ..folder })]),
            journal: Journal::default(),
            names,
            next: ROOT + 1,
            pages_max: size_max / PAGE,
            pages: 0,
            weight: 0,
            written_back: 0,
        }
    }

    pub(super) fn get(&self, inode: u64) -> Result<&Inode, Errno> {
        self.inodes.get(&inode).ok_or(Errno::STALE)
    }

    /// Pages that hold something, and how many there can be.
    pub(super) const fn usage(&self) -> (u64, u64) {
        (self.pages, self.pages_max)
    }

    /// A disk that is full at this size; what it holds already stays.
    pub(super) const fn set_size(&mut self, size_max: u64) {
        self.pages_max = size_max / PAGE;
    }

    pub(super) fn lookup(&self, folder: u64, name: &OsStr) -> Result<u64, Errno> {
        self.folder(folder)?.get(name).copied().ok_or(Errno::NOENT)
    }

    /// The kernel has been told of an inode once more.
    pub(super) fn remember(&mut self, inode: u64) {
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.lookups += 1;
        }
    }

    /// The kernel has forgotten what it was told of an inode so many times.
    pub(super) fn forget(&mut self, inode: u64, lookups: u64) {
        if let Some(found) = self.inodes.get_mut(&inode) {
            found.lookups = found.lookups.saturating_sub(lookups);
            self.free_if_gone(inode);
        }
    }

    /// Names and inodes of a folder, `.` and `..` first.
    pub(super) fn list(&self, folder: u64) -> Result<Vec<(u64, OsString)>, Errno> {
        let names = self.folder(folder)?.iter().map(|(name, inode)| (*inode, name.clone()));
        let above = self.get(folder)?.parent;
        Ok([(folder, ".".into()), (above, "..".into())].into_iter().chain(names).collect())
    }

    pub(super) fn create(
        &mut self,
        folder: u64,
        name: &OsStr,
        what: What,
        attributes: Attributes,
    ) -> Result<u64, Errno> {
        self.check_new(folder, name)?;
        if self.inodes.len() >= INODES_MAX {
            self.write_back();
            if self.inodes.len() >= INODES_MAX {
                return Err(Errno::NOSPC);
            }
        }
        let inode = self.next;
        self.next += 1;
        self.inodes.insert(inode, Inode::new(what, attributes, folder));
        self.carry_out(vec![Step::add(folder, name, inode)], attributes.changed);
        Ok(inode)
    }

    pub(super) fn link(
        &mut self,
        inode: u64,
        folder: u64,
        name: &OsStr,
        now: WallTime,
    ) -> Result<(), Errno> {
        if matches!(self.get(inode)?.what, What::Folder(_)) {
            return Err(Errno::PERM);
        }
        self.check_new(folder, name)?;
        self.carry_out(vec![Step::add(folder, name, inode)], now);
        Ok(())
    }

    pub(super) fn unlink(&mut self, folder: u64, name: &OsStr, now: WallTime) -> Result<(), Errno> {
        let inode = self.lookup(folder, name)?;
        if matches!(self.get(inode)?.what, What::Folder(_)) {
            return Err(Errno::ISDIR);
        }
        self.carry_out(vec![Step::remove(folder, name)], now);
        Ok(())
    }

    pub(super) fn remove_folder(
        &mut self,
        folder: u64,
        name: &OsStr,
        now: WallTime,
    ) -> Result<(), Errno> {
        let inode = self.lookup(folder, name)?;
        if !self.folder(inode)?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.carry_out(vec![Step::remove(folder, name)], now);
        Ok(())
    }

    /// Atomic: after a loss of power either all of it has happened or nothing.
    pub(super) fn rename(
        &mut self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        how: Rename,
        now: WallTime,
    ) -> Result<(), Errno> {
        let inode = self.lookup(from.0, from.1)?;
        let there = match self.lookup(to.0, to.1) {
            Ok(there) => Some(there),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error),
        };
        check_name(to.1)?;
        let is_folder = |inode: u64| matches!(self.inodes[&inode].what, What::Folder(_));
        match (how, there) {
            (Rename::Exchange, None) => return Err(Errno::NOENT),
            (Rename::New, Some(_)) => return Err(Errno::EXIST),
            (Rename::Exchange, Some(there)) => {
                let steps = vec![Step::add(from.0, from.1, there), Step::add(to.0, to.1, inode)];
                self.carry_out(steps, now);
                return Ok(());
            }
            (_, Some(there)) if there == inode => return Ok(()),
            (_, Some(there)) => match (is_folder(inode), is_folder(there)) {
                (true, false) => return Err(Errno::NOTDIR),
                (false, true) => return Err(Errno::ISDIR),
                (true, true) if !self.folder(there)?.is_empty() => return Err(Errno::NOTEMPTY),
                _ => {}
            },
            (_, None) => {}
        }
        self.carry_out(vec![Step::remove(from.0, from.1), Step::add(to.0, to.1, inode)], now);
        Ok(())
    }

    pub(super) fn read(&self, inode: u64, offset: u64, length: u64) -> Result<Vec<u8>, Errno> {
        Ok(self.content(inode)?.read(offset, length))
    }

    pub(super) fn write(
        &mut self,
        inode: u64,
        offset: u64,
        bytes: &[u8],
        now: WallTime,
    ) -> Result<(), Errno> {
        self.make_room(inode, offset, bytes.len() as u64)?;
        self.change(inode, now, |content| content.write(offset, bytes))
    }

    /// Whether there is room for bytes that are not there yet. Nothing is set aside for them.
    pub(super) fn make_room(&mut self, inode: u64, offset: u64, length: u64) -> Result<(), Errno> {
        let needed = self.content(inode)?.needed(offset, length);
        if needed > 0 && self.pages + needed > self.pages_max {
            // What was removed and is not synced still takes its room; that is what a full disk looks at first.
            self.write_back();
        }
        // What is written over takes no more room, even on a disk that has become too small.
        if needed > 0 && self.pages + needed > self.pages_max {
            return Err(Errno::NOSPC);
        }
        Ok(())
    }

    pub(super) fn resize(&mut self, inode: u64, size: u64, now: WallTime) -> Result<(), Errno> {
        self.change(inode, now, |content| content.resize(size))
    }

    pub(super) fn zero(
        &mut self,
        inode: u64,
        offset: u64,
        length: u64,
        now: WallTime,
    ) -> Result<(), Errno> {
        self.change(inode, now, |content| content.zero(offset, length))
    }

    pub(super) fn set(
        &mut self,
        inode: u64,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<(), Errno> {
        change(&mut self.inodes.get_mut(&inode).ok_or(Errno::STALE)?.attributes);
        Ok(())
    }

    /// What fsync(2), or with `is_data_only` fdatasync(2), of a file does.
    pub(super) fn sync_file(&mut self, inode: u64, is_data_only: bool) -> Result<(), Errno> {
        let found = self.get(inode)?;
        let is_resized = matches!(&found.what, What::File(content) if content.is_resized());
        // A journal is written in order and to its end, whenever a file's own entry in it has to be: its size or its
        // attributes for fsync, its size for fdatasync.
        let takes_names = !is_data_only || is_resized || found.held > 0;
        self.sync_content(inode);
        if self.names == NamesRule::Journal && takes_names {
            self.commit_names();
        }
        Ok(())
    }

    /// What fsync(2) of a folder does.
    pub(super) fn sync_folder(&mut self, folder: u64) -> Result<(), Errno> {
        self.folder(folder)?;
        self.sync_content(folder);
        match self.names {
            NamesRule::Journal => self.commit_names(),
            NamesRule::Strict => {
                for change in self.journal.take_for(folder) {
                    self.commit(change);
                }
            }
        }
        Ok(())
    }

    /// A sync of a file failed: nothing became durable, and its content is not tried again.
    pub(super) fn fail_sync(&mut self, inode: u64) {
        self.with_content(inode, Content::forget_unsynced);
    }

    /// Everything is durable.
    pub(super) fn sync_all(&mut self) {
        let inodes: Vec<u64> = self.inodes.keys().copied().collect();
        for inode in inodes {
            self.sync_content(inode);
        }
        self.commit_names();
    }

    /// The power is cut. Nothing in the kernel knows this disk any more.
    pub(super) fn lose(&mut self, loss: Loss, seed: Seed) -> Lost {
        let waiting = self.journal.take();
        let mut lost = Lost::default();
        let surviving = match loss {
            Loss::Drop => 0,
            // In order, as journals are: some of it, and nothing behind the first that is missing.
            Loss::Tear => seed.split("names").rng().below(waiting.len() as u64 + 1),
        };
        for (place, change) in waiting.into_iter().enumerate() {
            if (place as u64) < surviving {
                self.commit(change);
            } else {
                lost.names += 1;
            }
        }
        for (number, inode) in &mut self.inodes {
            inode.attributes = inode.safe.attributes;
            inode.links = inode.safe.links;
            (inode.lookups, inode.held) = (0, 0);
            match &mut inode.what {
                What::File(content) => {
                    let fate = content.lose(loss, seed.split_index("file", *number));
                    lost.bytes += fate.lost_bytes;
                    lost.kept_bytes += fate.kept_bytes;
                }
                What::Folder(names) => names.clone_from(&inode.safe.names),
                What::Link(_) | What::Other => {}
            }
        }
        self.keep_reachable();
        lost
    }

    /// What has no name that leads to it from the root is gone, and every folder is where it is found.
    fn keep_reachable(&mut self) {
        let mut found = BTreeMap::from([(ROOT, ROOT)]);
        let mut open = vec![ROOT];
        while let Some(folder) = open.pop() {
            let Some(Inode { what: What::Folder(names), .. }) = self.inodes.get(&folder) else {
                continue;
            };
            for inode in names.values() {
                if found.insert(*inode, folder).is_none() {
                    open.push(*inode);
                }
            }
        }
        self.inodes.retain(|number, _| found.contains_key(number));
        (self.pages, self.weight) = (0, 0);
        for (number, inode) in &mut self.inodes {
            inode.parent = found[number];
            if let What::File(content) = &inode.what {
                self.pages += content.pages();
                self.weight += content.weight();
            }
        }
        self.inodes.get_mut(&ROOT).expect("the root is never removed").links = 1;
    }

    fn folder(&self, inode: u64) -> Result<&BTreeMap<OsString, u64>, Errno> {
        match &self.get(inode)?.what {
            What::Folder(names) => Ok(names),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn content(&self, inode: u64) -> Result<&Content, Errno> {
        match &self.get(inode)?.what {
            What::File(content) => Ok(content),
            What::Folder(_) => Err(Errno::ISDIR),
            What::Link(_) | What::Other => Err(Errno::INVAL),
        }
    }

    fn check_new(&self, folder: u64, name: &OsStr) -> Result<(), Errno> {
        check_name(name)?;
        match self.lookup(folder, name) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Changes names as programs see them, and keeps the change for the journal.
    fn carry_out(&mut self, steps: Vec<Step>, now: WallTime) {
        let mut touched = Vec::with_capacity(2);
        for step in &steps {
            self.hold(step, 1);
            let folder = self.inodes.get_mut(&step.folder).expect("the caller looked it up");
            (folder.attributes.modified, folder.attributes.changed) = (now, now);
            let What::Folder(names) = &mut folder.what else {
                unreachable!("the caller looked it up as a folder")
            };
            let before = match step.to {
                Some(inode) => names.insert(step.name.clone(), inode),
                None => names.remove(&step.name),
            };
            if let Some(inode) = step.to
                && let Some(inode) = self.inodes.get_mut(&inode)
            {
                inode.links += 1;
                inode.parent = step.folder;
                inode.attributes.changed = now;
            }
            if let Some(before) = before
                && let Some(inode) = self.inodes.get_mut(&before)
            {
                inode.links = inode.links.saturating_sub(1);
                inode.attributes.changed = now;
                touched.push(before);
            }
        }
        self.journal.push(Change { steps });
        for inode in touched {
            self.free_if_gone(inode);
        }
        if self.journal.is_full() {
            self.write_back();
        }
    }

    /// The inodes that a change in the journal means stay while it waits.
    fn hold(&mut self, step: &Step, by: i32) {
        for number in [Some(step.folder), step.to].into_iter().flatten() {
            if let Some(inode) = self.inodes.get_mut(&number) {
                inode.held = inode.held.saturating_add_signed(by);
            }
        }
    }

    fn commit_names(&mut self) {
        for change in self.journal.take() {
            self.commit(change);
        }
    }

    /// Makes a change of names durable.
    fn commit(&mut self, change: Change) {
        for step in change.steps {
            self.hold(&step, -1);
            let Some(folder) = self.inodes.get_mut(&step.folder) else { continue };
            let before = match step.to {
                Some(inode) => folder.safe.names.insert(step.name, inode),
                None => folder.safe.names.remove(&step.name),
            };
            if let Some(inode) = step.to.and_then(|inode| self.inodes.get_mut(&inode)) {
                inode.safe.links += 1;
            }
            if let Some(before) = before.and_then(|inode| self.inodes.get_mut(&inode)) {
                before.safe.links = before.safe.links.saturating_sub(1);
            }
            for number in [Some(step.folder), step.to, before].into_iter().flatten() {
                self.free_if_gone(number);
            }
        }
    }

    fn sync_content(&mut self, inode: u64) {
        if let Some(found) = self.inodes.get_mut(&inode) {
            found.safe.attributes = found.attributes;
        }
        self.with_content(inode, Content::sync);
    }

    fn change(
        &mut self,
        inode: u64,
        now: WallTime,
        change: impl FnOnce(&mut Content),
    ) -> Result<(), Errno> {
        self.content(inode)?;
        self.with_content(inode, change);
        self.set(inode, |attributes| (attributes.modified, attributes.changed) = (now, now))?;
        if self.weight > self.pages_max.max(self.pages) * WEIGHT_PER_PAGE {
            self.write_back();
        }
        Ok(())
    }

    fn with_content(&mut self, inode: u64, change: impl FnOnce(&mut Content)) {
        let Some(Inode { what: What::File(content), .. }) = self.inodes.get_mut(&inode) else {
            return;
        };
        let before = (content.pages(), content.weight());
        change(content);
        self.pages = self.pages + content.pages() - before.0;
        self.weight = self.weight + content.weight() - before.1;
    }

    fn write_back(&mut self) {
        self.written_back += 1;
        self.sync_all();
    }

    fn free_if_gone(&mut self, number: u64) {
        let Some(inode) = self.inodes.get(&number) else { return };
        let is_needed =
            inode.links > 0 || inode.lookups > 0 || inode.held > 0 || inode.safe.links > 0;
        if is_needed || number == ROOT {
            return;
        }
        if let Some(Inode { what: What::File(content), .. }) = self.inodes.remove(&number) {
            self.pages -= content.pages();
            self.weight -= content.weight();
        }
    }
}

impl Inode {
    fn new(what: What, attributes: Attributes, parent: u64) -> Self {
        let safe = Safe { attributes, links: 0, names: BTreeMap::new() };
        Self { what, attributes, links: 0, lookups: 0, held: 0, parent, safe }
    }
}

/// The ways of renameat2(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rename {
    /// What has the new name is replaced.
    Over,
    /// Nothing may have the new name.
    New,
    /// The two change places.
    Exchange,
}

fn check_name(name: &OsStr) -> Result<(), Errno> {
    if name.len() > NAME_BYTES_MAX { Err(Errno::NAMETOOLONG) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
