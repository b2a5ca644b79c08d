//! The kernel's questions, put to a disk: what a program does with a file in its folder arrives here.
//!
//! The kernel keeps a cache above it: reads that it can answer are never seen here, every write and sync is (its
//! write-back cache is not asked for). It must never decide what is durable: that is `tree.rs`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clock::WallTime;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use rustix::io::Errno as Refused;

use super::content::{Content, PAGE};
use super::device::{Begun, Device, Operation, State, Watch};
use super::tree::{Attributes, Inode, Rename, What};

/// Nobody but the kernel above changes anything, so what it was told holds.
const FOREVER: Duration = Duration::from_secs(86_400);
/// The longest write of one request: what the kernel takes at most by default.
const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Kinds of things in `st_mode`.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o40_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// Of fallocate(2).
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;

/// Answers the kernel for one disk, on one thread, until it is unmounted.
#[derive(Debug)]
pub(super) struct Service {
    device: Arc<Device>,
    own: Mutex<Own>,
}

/// What only the thread that answers uses.
#[derive(Debug, Default)]
struct Own {
    watch: Option<Watch>,
    /// Folders that are being listed, as they were when that began.
    listed: HashMap<u64, Vec<(u64, FileType, OsString)>>,
    next_handle: u64,
}

impl Service {
    pub(super) fn new(device: Arc<Device>) -> Self {
        Self { device, own: Mutex::default() }
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Begun {
        let clock = self.device.clock;
        self.own().watch.get_or_insert_with(|| Watch::of_this_thread(clock)).begin()
    }

    fn end(&self, begun: Begun, operation: Operation, work: impl FnOnce() + Send + 'static) {
        self.device.end(begun, operation, work);
        if let Some(watch) = &mut self.own().watch {
            self.device.note_cpu(watch.end(begun));
        }
    }

    /// Something about names and attributes: done at once, and counted.
    fn at_once<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut State) -> T,
        answer: impl FnOnce(T) + Send + 'static,
    ) {
        let begun = self.begin();
        let done = act(&mut self.device.state());
        self.end(begun, Operation::Name, move || answer(done));
    }

    /// The same, of something that the kernel is told of.
    fn told(&self, reply: ReplyEntry, act: impl FnOnce(&mut State) -> Result<u64, Refused>) {
        self.at_once(
            |state| {
                has_power(state)?;
                let inode = act(state)?;
                state.tree.remember(inode);
                attributes(state, inode)
            },
            |told| match told {
                Ok(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
                Err(refused) => reply.error(errno(refused)),
            },
        );
    }

    fn done(&self, reply: ReplyEmpty, act: impl FnOnce(&mut State) -> Result<(), Refused>) {
        let act = |state: &mut State| has_power(state).and_then(|()| act(state));
        self.at_once(act, |done| match done {
            Ok(()) => reply.ok(),
            Err(refused) => reply.error(errno(refused)),
        });
    }

    fn make(
        &self,
        (request, folder, name): (&Request, INodeNo, &OsStr),
        mode: u32,
        device: u32,
        what: What,
        reply: ReplyEntry,
    ) {
        let attributes = new_attributes(request, mode, device);
        self.told(reply, |state| state.tree.create(folder.0, name, what, attributes));
    }

    fn sync(
        &self,
        inode: INodeNo,
        reply: ReplyEmpty,
        sync: fn(&mut State, u64, bool) -> Result<(), Refused>,
        is_data_only: bool,
    ) {
        let begun = self.begin();
        let fails = self.device.fails(Operation::Sync);
        let device = Arc::clone(&self.device);
        // Durable when the answer is given and not before: who does not wait for it has no promise.
        self.end(begun, Operation::Sync, move || {
            if fails {
                device.state().tree.fail_sync(inode.0);
                reply.error(Errno::EIO);
                return;
            }
            let mut state = device.state();
            // The power may have gone while it waited: then it has not happened.
            let done = has_power(&state).and_then(|()| sync(&mut state, inode.0, is_data_only));
            drop(state);
            match done {
                Ok(()) => reply.ok(),
                Err(refused) => reply.error(errno(refused)),
            }
        });
    }
}

/// Whether the disk does anything.
fn has_power(state: &State) -> Result<(), Refused> {
    if state.is_dark { Err(Refused::IO) } else { Ok(()) }
}

impl Filesystem for Service {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // It gives back the bound when that is lower, which then holds.
        if let Err(most) = config.set_max_write(WRITE_BYTES_MAX) {
            let _ = config.set_max_write(most);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.told(reply, |state| state.tree.lookup(folder.0, name));
    }

    fn forget(&self, _: &Request, inode: INodeNo, lookups: u64) {
        self.device.state().tree.forget(inode.0, lookups);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.at_once(|state| attributes(state, inode.0), |found| answer_attributes(found, reply));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let now = WallTime::now();
        let change = |state: &mut State| {
            has_power(state)?;
            if let Some(size) = size {
                state.tree.resize(inode.0, size, now)?;
            }
            state.tree.set(inode.0, |attributes| {
                if let Some(mode) = mode {
                    attributes.mode = attributes.mode & KIND | mode & !KIND;
                }
                attributes.uid = uid.unwrap_or(attributes.uid);
                attributes.gid = gid.unwrap_or(attributes.gid);
                match modified {
                    Some(TimeOrNow::SpecificTime(time)) => attributes.modified = wall(time),
                    Some(TimeOrNow::Now) => attributes.modified = now,
                    None => {}
                }
                attributes.changed = now;
            })?;
            self::attributes(state, inode.0)
        };
        self.at_once(change, |found| answer_attributes(found, reply));
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        let target = |state: &mut State| match &state.tree.get(inode.0)?.what {
            What::Link(target) => Ok(target.clone()),
            _ => Err(Refused::INVAL),
        };
        self.at_once(target, |found| match found {
            Ok(target) => reply.data(target.as_encoded_bytes()),
            Err(refused) => reply.error(errno(refused)),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let what = if mode & KIND == FILE { What::File(Content::default()) } else { What::Other };
        self.make((request, folder, name), mode, device, what, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let what = What::Folder(std::collections::BTreeMap::new());
        self.make((request, folder, name), mode & !KIND | FOLDER, 0, what, reply);
    }

    fn symlink(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let what = What::Link(target.as_os_str().to_owned());
        self.make((request, folder, name), LINK | 0o777, 0, what, reply);
    }

    fn link(&self, _: &Request, inode: INodeNo, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let now = WallTime::now();
        self.told(reply, |state| state.tree.link(inode.0, folder.0, name, now).map(|()| inode.0));
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |state| state.tree.unlink(folder.0, name, WallTime::now()));
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |state| state.tree.remove_folder(folder.0, name, WallTime::now()));
    }

    fn rename(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        to_folder: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let how = match flags {
            RenameFlags::RENAME_NOREPLACE => Rename::New,
            RenameFlags::RENAME_EXCHANGE => Rename::Exchange,
            _ if flags.is_empty() => Rename::Over,
            _ => return reply.error(Errno::EINVAL),
        };
        let (from, to) = ((folder.0, name), (to_folder.0, to_name));
        self.done(reply, |state| state.tree.rename(from, to, how, WallTime::now()));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.at_once(|_| (), |()| reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE));
    }

    fn create(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let new = new_attributes(request, mode & !KIND | FILE, 0);
        let what = What::File(Content::default());
        let create = |state: &mut State| {
            let inode = state.tree.create(folder.0, name, what, new)?;
            state.tree.remember(inode);
            attributes(state, inode)
        };
        self.at_once(create, |made| match made {
            Ok(attributes) => {
                let (handle, keep) = (FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
                reply.created(&FOREVER, &attributes, Generation(0), handle, keep);
            }
            Err(refused) => reply.error(errno(refused)),
        });
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let begun = self.begin();
        let read = if self.device.fails(Operation::Read) {
            Err(Refused::IO)
        } else {
            self.device.state().tree.read(inode.0, offset, u64::from(size))
        };
        self.end(begun, Operation::Read, move || match read {
            Ok(bytes) => reply.data(&bytes),
            Err(refused) => reply.error(errno(refused)),
        });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let begun = self.begin();
        let written = if self.device.fails(Operation::Write) {
            Err(Refused::IO)
        } else {
            self.device.state().tree.write(inode.0, offset, bytes, WallTime::now())
        };
        match written {
            Ok(()) => self.device.note_written(bytes.len() as u64),
            Err(Refused::NOSPC) => self.device.note_full(),
            Err(_) => {}
        }
        let length = u32::try_from(bytes.len()).expect("the kernel asks for a megabyte at most");
        self.end(begun, Operation::Write, move || match written {
            Ok(()) => reply.written(length),
            Err(refused) => reply.error(errno(refused)),
        });
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let now = WallTime::now();
        self.done(reply, |state| match mode {
            0 | KEEP_SIZE => {
                state.tree.make_room(inode.0, offset, length)?;
                let end = offset.checked_add(length).ok_or(Refused::FBIG)?;
                let is_behind = mode == 0 && size(state.tree.get(inode.0)?) < end;
                if is_behind { state.tree.resize(inode.0, end, now) } else { Ok(()) }
            }
            _ if mode == KEEP_SIZE | PUNCH_HOLE => state.tree.zero(inode.0, offset, length, now),
            _ => Err(Refused::OPNOTSUPP),
        });
    }

    fn fsync(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(
            inode,
            reply,
            |state, inode, data| state.tree.sync_file(inode, data),
            is_data_only,
        );
    }

    fn fsyncdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(inode, reply, |state, inode, _| state.tree.sync_folder(inode), is_data_only);
    }

    fn opendir(&self, _: &Request, folder: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let begun = self.begin();
        let listed = list(&self.device.state(), folder.0);
        let handle = listed.map(|names| {
            let mut own = self.own();
            own.next_handle += 1;
            let handle = own.next_handle;
            own.listed.insert(handle, names);
            handle
        });
        self.end(begun, Operation::Name, move || match handle {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(refused) => reply.error(errno(refused)),
        });
    }

    fn readdir(
        &self,
        _: &Request,
        folder: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut own = self.own();
        if offset == 0
            && let Ok(names) = list(&self.device.state(), folder.0)
        {
            // From the beginning (again): as it is now.
            own.listed.insert(handle.0, names);
        }
        let names = own.listed.get(&handle.0).map(Vec::as_slice).unwrap_or_default();
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        for (place, (inode, kind, name)) in names.iter().enumerate().skip(skipped) {
            if reply.add(INodeNo(*inode), place as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.own().listed.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let usage = |state: &mut State| state.tree.usage();
        self.at_once(usage, |(used, all)| {
            let free = all.saturating_sub(used);
            let page = u32::try_from(PAGE).expect("a small number");
            reply.statfs(all, free, free, 1 << 20, 1 << 20, page, 255, page);
        });
    }
}

fn list(state: &State, folder: u64) -> Result<Vec<(u64, FileType, OsString)>, Refused> {
    let names = state.tree.list(folder)?.into_iter();
    Ok(names
        .map(|(inode, name)| {
            let kind = state.tree.get(inode).map_or(FileType::RegularFile, kind);
            (inode, kind, name)
        })
        .collect())
}

fn answer_attributes(found: Result<FileAttr, Refused>, reply: ReplyAttr) {
    match found {
        Ok(attributes) => reply.attr(&FOREVER, &attributes),
        Err(refused) => reply.error(errno(refused)),
    }
}

fn errno(refused: Refused) -> Errno {
    Errno::from_i32(refused.raw_os_error())
}

fn new_attributes(request: &Request, mode: u32, device: u32) -> Attributes {
    let now = WallTime::now();
    let (uid, gid) = (request.uid(), request.gid());
    Attributes { mode, uid, gid, device, modified: now, changed: now }
}

fn attributes(state: &State, number: u64) -> Result<FileAttr, Refused> {
    let inode = state.tree.get(number)?;
    let Attributes { mode, uid, gid, device, modified, changed } = inode.attributes;
    let blocks = match &inode.what {
        What::File(content) => content.pages() * (PAGE / 512),
        _ => 0,
    };
    Ok(FileAttr {
        ino: INodeNo(number),
        size: size(inode),
        blocks,
        atime: system(modified),
        mtime: system(modified),
        ctime: system(changed),
        crtime: UNIX_EPOCH,
        kind: kind(inode),
        perm: u16::try_from(mode & 0o7_777).expect("twelve bits"),
        nlink: inode.links,
        uid,
        gid,
        rdev: device,
        blksize: u32::try_from(PAGE).expect("a small number"),
        flags: 0,
    })
}

fn size(inode: &Inode) -> u64 {
    match &inode.what {
        What::File(content) => content.size(),
        What::Link(target) => target.len() as u64,
        What::Folder(_) | What::Other => 0,
    }
}

fn kind(inode: &Inode) -> FileType {
    match inode.attributes.mode & KIND {
        FOLDER => FileType::Directory,
        LINK => FileType::Symlink,
        0o10_000 => FileType::NamedPipe,
        0o20_000 => FileType::CharDevice,
        0o60_000 => FileType::BlockDevice,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

fn system(time: WallTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(u64::try_from(time.unix_ns()).unwrap_or(0))
}

fn wall(time: SystemTime) -> WallTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_unix_ns(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
