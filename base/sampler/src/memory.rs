//! Memory that two threads share, as the ring uses it. A name of its own, so that fuzz/interleavings can give the same source
//! loom's.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};

/// Waits a small part of the time that a ring takes to be emptied.
pub(crate) fn pause() {
    std::thread::sleep(std::time::Duration::from_micros(100));
}
