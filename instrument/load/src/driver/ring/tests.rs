//! The part that only this driver has: a submission queue that the kernel may refuse to take.

use io_uring::opcode;
use rustix::io::Errno;

use super::queue::ENTRIES;
use super::{Key, Operation, Ring, Transport};
use crate::driver::{Driver as _, KernelDriver as _, Wait};

/// A ring on its way to another thread.
struct Moved(Ring);

// SAFETY: the ring is used by one thread at a time: the one that it was moved to, until that thread drops it.
unsafe impl Send for Moved {}

impl Moved {
    /// The driver's reports after more operations than its queue holds, of which the kernel takes none.
    fn overfilled(mut self) -> Result<(), Errno> {
        self.0.transports.push(Transport::default());
        let key = Key { index: 0, generation: 0 };
        for _ in 0..ENTRIES + 10 {
            self.0.push(opcode::Nop::new().build(), key, Operation::Cancel);
        }
        assert_eq!(self.0.held.len(), 10, "what had no room is held");
        self.0.wait(Wait::LOOK)
    }
}

/// Claim: a queue that is full and that the kernel refuses to take is an error of the next wait, and not a loop without
/// an end. It refuses because of the thread: only the one that made a ring may submit to it
/// (IORING_SETUP_SINGLE_ISSUER).
#[test]
fn a_queue_that_is_not_taken_is_an_error() {
    let Ok(ring) = Ring::new(4) else { return eprintln!("this kernel has no io_uring") };
    let moved = Moved(ring);
    let said = std::thread::spawn(move || moved.overfilled()).join().unwrap();
    assert_eq!(said, Err(Errno::EXIST));
}

/// Claim: more operations than the queue holds are all carried out where the kernel takes them.
#[test]
fn a_queue_that_is_taken_loses_nothing() {
    let Ok(mut ring) = Ring::new(4) else { return eprintln!("this kernel has no io_uring") };
    ring.transports.push(Transport::default());
    let key = Key { index: 0, generation: 0 };
    let before = ring.counters.completions;
    for _ in 0..3 * ENTRIES {
        ring.push(opcode::Nop::new().build(), key, Operation::Cancel);
    }
    for _ in 0..8 {
        ring.wait(Wait::LOOK).unwrap();
        while ring.next_event().is_some() {}
    }
    assert_eq!(ring.counters.completions - before, u64::from(3 * ENTRIES));
}
