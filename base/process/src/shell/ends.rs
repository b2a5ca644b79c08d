//! What ends a shell: a signal, or the end of a pipe that a parent keeps open. Neither needs anybody to be
//! alive to clean up.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::ShellError;

/// Something to serve until.
#[derive(Debug)]
pub enum Until {
    /// A descriptor that becomes readable at SIGTERM or SIGINT.
    Signal(OwnedFd),
    /// A descriptor at whose end of file the node ends; what comes before is ignored.
    EndOfFile(OwnedFd),
}

impl Until {
    /// SIGTERM or SIGINT to this process.
    ///
    /// # Errors
    /// When they cannot be caught.
    pub fn signals() -> Result<Self, ShellError> {
        let (ours, theirs) = UnixStream::pair().map_err(ShellError::Signals)?;
        ours.set_nonblocking(true).map_err(ShellError::Signals)?;
        for signal in [SIGTERM, SIGINT] {
            let pipe = theirs.try_clone().map_err(ShellError::Signals)?;
            signal_hook::low_level::pipe::register(signal, pipe).map_err(ShellError::Signals)?;
        }
        Ok(Self::Signal(ours.into()))
    }

    /// The end of standard input: the parent keeps the other end of a pipe, and its death closes it, however
    /// it dies.
    ///
    /// # Errors
    /// When standard input cannot be had.
    pub fn parent_pipe() -> Result<Self, ShellError> {
        let copy = std::io::stdin().as_fd().try_clone_to_owned();
        Ok(Self::EndOfFile(copy.map_err(ShellError::ParentPipe)?))
    }

    /// What a program serves until: a signal, and where it was asked for the end of the parent's pipe.
    ///
    /// # Errors
    /// As [`Until::signals`] and [`Until::parent_pipe`].
    pub fn told(has_parent_pipe: bool) -> Result<Vec<Self>, ShellError> {
        let mut until = vec![Self::signals()?];
        if has_parent_pipe {
            until.push(Self::parent_pipe()?);
        }
        Ok(until)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Signal(fd) | Self::EndOfFile(fd) => fd.as_fd(),
        }
    }

    /// Looks, when there is something to read. Gives why it is time to end, if it is.
    pub(super) fn look(&self) -> Option<&'static str> {
        let mut bytes = [0_u8; 256];
        match (rustix::io::read(self.descriptor(), &mut bytes), self) {
            (Err(Errno::AGAIN | Errno::INTR), _) => None,
            (Ok(0) | Err(_), Self::EndOfFile(_)) => Some("the end of the parent's pipe"),
            (Ok(_), Self::EndOfFile(_)) => None,
            (_, Self::Signal(_)) => Some("a signal"),
        }
    }
}
