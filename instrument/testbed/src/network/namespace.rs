//! Network namespaces that have no name: each is held by a descriptor and by the processes in it, so the kernel
//! removes it with its devices when the last of them is gone, whichever way that happens. Nothing is ever written
//! under /run/netns, and no process is started to hold one.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::kernel;

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace, empty but for `lo` when it is made.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    held: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes one, on a thread that ends at once, so that no thread of ours is left in it.
    pub(crate) fn make() -> io::Result<Self> {
        let made = on_a_thread(|| {
            kernel::leave_network()?;
            Ok(File::open(OWN)?.into())
        });
        Ok(Self { held: Arc::new(made?) })
    }

    /// Holds it for a child that is started inside.
    pub(crate) fn held(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.held)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }

    /// Does `work` inside, on a thread that ends with it: the caller stays where it is.
    pub(crate) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        on_a_thread(|| {
            move_into_link_name_space(self.descriptor(), Some(LinkNameSpaceType::Network))?;
            work()
        })
    }
}

/// While this is held the calling thread, and every thread that it starts, is in the instrument's own namespace.
/// Dropping it takes the thread back (the threads that it has started stay). It cannot leave its thread.
#[derive(Debug)]
#[must_use = "the thread leaves the network when this is dropped"]
pub struct Entered {
    /// Absent: there was nothing to enter.
    before: Option<OwnedFd>,
    /// What it undoes belongs to one thread.
    stays: PhantomData<*const ()>,
}

impl Entered {
    pub(crate) const fn nothing() -> Self {
        Self { before: None, stays: PhantomData }
    }

    pub(crate) fn enter(namespace: &Namespace) -> io::Result<Self> {
        let before = File::open(OWN)?.into();
        move_into_link_name_space(namespace.descriptor(), Some(LinkNameSpaceType::Network))?;
        Ok(Self { before: Some(before), stays: PhantomData })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        let back = move_into_link_name_space(before.as_fd(), Some(LinkNameSpaceType::Network));
        // A thread that stayed inside would measure the next trial through this one's network. It entered by the
        // same call, so only a loss of rights in between can refuse this.
        assert!(back.is_ok() || std::thread::panicking(), "leaving the trial's network: {back:?}");
    }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("testbed-namespace".to_owned());
        let thread = thread.spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the thread inside the namespace panicked"))?
    })
}
