//! How long a thread was runnable and not run: the second field of `/proc/thread-self/schedstat`
//! (Documentation/scheduler/sched-stats.rst). The file stays open, so that a look is one system call and allocates nothing.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Three numbers of twenty digits, with what stands between them.
const TEXT_BYTES_MAX: usize = 64;

/// The kernel's figures of one thread; nothing where it has none.
pub(crate) struct RunQueue(Option<File>);

impl RunQueue {
    /// Of the thread that calls.
    pub(crate) fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// How long it has waited for a processor since it began, nanoseconds; 0 where unknown.
    pub(crate) fn waited_ns(&self) -> u64 {
        let mut text = [0; TEXT_BYTES_MAX];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        read.and_then(|length| waited_ns(&text[..length])).unwrap_or(0)
    }
}

fn waited_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the second number is taken, what is none is nothing, and this thread's never falls.
    #[test]
    fn waiting_adds_up() {
        assert_eq!(waited_ns(b"12 34 5\n"), Some(34));
        assert_eq!(waited_ns(b"12"), None);
        assert_eq!(waited_ns(&[0xff]), None);
        assert_eq!(RunQueue(None).waited_ns(), 0);
        let queue = RunQueue::of_this_thread();
        let before = queue.waited_ns();
        std::thread::yield_now();
        assert!(queue.waited_ns() >= before);
    }
}
