//! The trial's own mounts: a namespace that has no name, held by a descriptor and by the processes in it. What is
//! mounted there is nowhere in the host's list of mounts, and the kernel removes it when the last of those is gone,
//! whichever way that happens: there is nothing that a guard would have to unmount.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::kernel;
use crate::TestbedError;

/// Where a process asks the kernel to be a file system.
const DEVICE: &str = "/dev/fuse";
/// The mounts of the calling thread.
const OWN: &str = "/proc/thread-self/ns/mnt";
/// What stands before the path in the list of mounts, for who looks from inside.
const SOURCE: &str = "assay-disk";

/// A namespace of mounts, a copy of the host's when it is made. What the host mounts or unmounts later shows in it;
/// what is mounted in it does not show at the host.
#[derive(Debug)]
pub(super) struct Mounts {
    held: OwnedFd,
}

impl Mounts {
    /// Makes one, on a thread that ends at once.
    pub(super) fn make() -> Result<Self, TestbedError> {
        let made = on_a_thread(|| {
            kernel::leave_mounts()?;
            let one_way = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
            mount_change("/", one_way)?;
            Ok(File::open(OWN)?.into())
        });
        let held = made.map_err(|source| {
            refused(&format!("mounts of the trial's own could not be made ({source})"))
        })?;
        Ok(Self { held })
    }

    /// Mounts a file system at a folder. Gives the descriptor on which the kernel asks for its content.
    pub(super) fn mount(&self, folder: &Path) -> Result<OwnedFd, TestbedError> {
        let device = File::options().read(true).write(true).open(DEVICE);
        let device: OwnedFd = device.map_err(|source| no_device(&source))?.into();
        self.inside(|| {
            use std::os::fd::AsRawFd as _;
            let options = format!(
                "fd={},rootmode=40000,user_id={},group_id={},allow_other,default_permissions",
                device.as_raw_fd(),
                rustix::process::getuid().as_raw(),
                rustix::process::getgid().as_raw(),
            );
            let options = std::ffi::CString::new(options).expect("digits and words");
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
            Ok(mount(SOURCE, folder, "fuse.assay", flags, &*options)?)
        })
        .map_err(|source| {
            refused(&format!("a disk could not be mounted at {} ({source})", folder.display()))
        })?;
        Ok(device)
    }

    /// Takes it away, whoever has files of it open: they can do nothing with them any more.
    pub(super) fn unmount(&self, folder: &Path) -> io::Result<()> {
        self.inside(|| Ok(unmount(folder, UnmountFlags::FORCE | UnmountFlags::DETACH)?))
    }

    /// Does `work` on a thread that has these mounts and ends with it.
    pub(super) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        on_a_thread(|| {
            kernel::leave_folder()?;
            move_into_link_name_space(self.held.as_fd(), Some(LinkNameSpaceType::Mount))?;
            work()
        })
    }

    /// Takes the calling thread, and those that it starts afterwards, to these mounts.
    pub(super) fn enter(&self) -> io::Result<EnteredDisks> {
        let before: OwnedFd = File::open(OWN)?.into();
        let folder = std::env::current_dir()?;
        kernel::leave_folder()?;
        move_into_link_name_space(self.held.as_fd(), Some(LinkNameSpaceType::Mount))?;
        // The kernel takes who goes to other mounts to their root.
        rustix::process::chdir(&folder)?;
        Ok(EnteredDisks { before: Some(before), stays: PhantomData })
    }
}

/// While this is held the calling thread, and every thread that it starts, sees what is on the disks of the nodes.
/// Dropping it takes the thread back (the threads that it has started stay). It cannot leave its thread.
#[derive(Debug)]
#[must_use = "the thread leaves the disks when this is dropped"]
pub struct EnteredDisks {
    /// Absent: there was nothing to enter.
    before: Option<OwnedFd>,
    /// What it undoes belongs to one thread.
    stays: PhantomData<*const ()>,
}

impl EnteredDisks {
    pub(crate) const fn nothing() -> Self {
        Self { before: None, stays: PhantomData }
    }
}

impl Drop for EnteredDisks {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        let folder = std::env::current_dir();
        // The threads that it has started share its current folder, and stay.
        let back = kernel::leave_folder().and_then(|()| {
            Ok(move_into_link_name_space(before.as_fd(), Some(LinkNameSpaceType::Mount))?)
        });
        // A thread that stayed would find files of this trial in the next. It entered by the same call.
        assert!(back.is_ok() || std::thread::panicking(), "leaving the trial's disks: {back:?}");
        if let Ok(folder) = folder {
            // A folder on a disk that is gone is none to be in.
            let _ = rustix::process::chdir(&folder);
        }
    }
}

/// Whether a process of this machine may be a file system, and if not what to do.
pub(super) fn no_device(source: &io::Error) -> TestbedError {
    let what = match source.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "there is no {DEVICE}: load the kernel's module (modprobe fuse), or give the container the device \
                     (--device {DEVICE})"
            )
        }
        _ => format!(
            "{DEVICE} could not be opened ({source}): let everybody use it (chmod 666 {DEVICE}), or run as root"
        ),
    };
    TestbedError::Disk { what }
}

fn refused(what: &str) -> TestbedError {
    let what = format!(
        "{what}: disks take the right to mount, which an ordinary user has in a user namespace; in a container give it \
         --cap-add SYS_ADMIN --device {DEVICE}"
    );
    TestbedError::Disk { what }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("testbed-mounts".to_owned());
        let thread = thread.spawn_scoped(scope, work)?;
        thread
            .join()
            .map_err(|_| io::Error::other("the thread among the disk's mounts panicked"))?
    })
}
