//! Receive buffers that the kernel picks from by itself: a ring of provided buffers
//! (`io_uring_register_buf_ring(3)`). Raw memory shared with the kernel lives here and nowhere else.
#![expect(unsafe_code, reason = "memory shared with the kernel: the ring of provided buffers")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use clock::WallTime;
use io_uring::Submitter;
use io_uring::types::{BufRingEntry, RecvMsgOut};

use crate::driver::stamps;

/// Buffers, a power of two: one for each connection of a worker, within these. At the most 512 × 8 KiB = 4 MiB: a
/// burst of answers on 512 connections, or 4 MiB of pipelined ones, between two turns of the loop. Running out is
/// not an error, the receive is armed again. At least twice what a quantum of `pace.rs` gathers.
const COUNT_MIN: u32 = 256;
const COUNT_MAX: u32 = 512;
/// Bytes of each: more than a pipelined batch of 64 small answers.
const SIZE: usize = 8 * 1024;
pub(super) const GROUP: u16 = 0;
const PAGE: usize = 4096;
const ALIGN: usize = 16;

/// The buffers and their ring. While registered, the kernel may write to any buffer that is in the ring.
pub(super) struct Buffers {
    ring: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    /// What a receive asks for beside bytes, where it asks; the kernel reads it, and no code writes it.
    message: Box<libc::msghdr>,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Allocates the buffers for so many connections and registers them with the ring behind `submitter`.
    pub(super) fn register(submitter: &Submitter<'_>, connections: u32) -> io::Result<Self> {
        let buffers = Self::for_connections(connections);
        // SAFETY: `ring` is page-aligned, holds `count` entries and is freed only by `Drop`, which the owner
        // runs after the kernel has let go of it (`Ring::drop`) or not at all.
        let registered = unsafe {
            let ring = buffers.ring.as_ptr() as u64;
            submitter.register_buf_ring_with_flags(ring, buffers.count, GROUP, 0)
        };
        registered.map(|()| buffers)
    }

    /// All of them offered, and known to no kernel.
    fn for_connections(connections: u32) -> Self {
        let count = connections.clamp(COUNT_MIN, COUNT_MAX).next_power_of_two();
        let count = u16::try_from(count).expect("the most fits");
        let mut buffers = Self {
            ring: allocate(ring_layout(count)).cast(),
            memory: allocate(memory_layout(count)),
            message: Box::new(stamps::request()),
            count,
            tail: 0,
        };
        for buffer in 0..count {
            buffers.offer(buffer);
        }
        buffers
    }

    /// The first `length` bytes of a buffer that a completion handed over.
    pub(super) fn bytes(&self, buffer: u16, length: u32) -> &[u8] {
        assert!(buffer < self.count && length as usize <= SIZE, "the kernel keeps to the ring");
        // SAFETY: in bounds by the assertion. The kernel wrote `length` bytes, gave the buffer to us with the
        // completion, and does not touch it until `offer` puts it back, which needs `&mut self`.
        unsafe {
            std::slice::from_raw_parts(
                self.memory.as_ptr().add(usize::from(buffer) * SIZE),
                length as usize,
            )
        }
    }

    /// What a receive that is to be stamped asks for; it lives as long as the buffers.
    pub(super) fn message(&self) -> *const libc::msghdr {
        &raw const *self.message
    }

    /// How long what stands before the bytes is in a buffer that such a receive handed over, and the stamp in it.
    pub(super) fn head(&self, buffer: u16, length: u32) -> (u16, Option<WallTime>) {
        let whole = self.bytes(buffer, length);
        let message = RecvMsgOut::parse(whole, &self.message);
        let message = message.expect("the kernel leaves room for what it was asked for");
        let head = u16::try_from(whole.len() - message.payload_data().len());
        (head.expect("a head and one stamp"), stamps::stamp(message.control_data()))
    }

    /// Gives a buffer (back) to the kernel.
    pub(super) fn offer(&mut self, buffer: u16) {
        assert!(buffer < self.count, "a buffer of this ring");
        let slot = usize::from(self.tail & (self.count - 1));
        // SAFETY: `slot < count` entries were allocated. The kernel reads an entry only below the published
        // tail, and this one is published by the store that follows. Entry 0's `resv` field is the tail; the
        // setters leave it alone. The tail is two aligned bytes that only this side writes.
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(slot);
            entry.set_addr(self.memory.as_ptr().add(usize::from(buffer) * SIZE) as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.ring.as_ptr()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layouts in `register`, freed once.
        unsafe {
            dealloc(self.ring.as_ptr().cast(), ring_layout(self.count));
            dealloc(self.memory.as_ptr(), memory_layout(self.count));
        }
    }
}

fn ring_layout(count: u16) -> Layout {
    Layout::from_size_align(usize::from(count) * size_of::<BufRingEntry>(), PAGE)
        .expect("constants that fit")
}

/// Aligned as any allocation is: the allocator then takes zeroed pages as they come, and those that no answer reaches
/// are never touched.
fn memory_layout(count: u16) -> Layout {
    Layout::from_size_align(usize::from(count) * SIZE, ALIGN).expect("constants that fit")
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: neither layout is of size zero.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// The other side of the ring: it takes what is below the tail, in order, and writes where the entry says.
    struct Kernel {
        head: u16,
    }

    impl Kernel {
        /// Fills the next buffer: its first and last of so many bytes are marked. The buffer's number.
        fn fill(&mut self, buffers: &Buffers, length: usize, mark: u8) -> u16 {
            // SAFETY: the ring and its entries live as long as `buffers`; the address is that of a buffer that was
            // offered and not handed over since, so nothing else looks at it.
            unsafe {
                let tail = BufRingEntry::tail(buffers.ring.as_ptr()).cast::<AtomicU16>();
                assert_ne!((*tail).load(Ordering::Acquire), self.head, "there is a buffer");
                let slot = usize::from(self.head & (buffers.count - 1));
                let entry = &*buffers.ring.as_ptr().add(slot);
                assert_eq!(entry.len() as usize, SIZE);
                let at = usize::try_from(entry.addr()).expect("an address");
                let at = std::ptr::with_exposed_provenance_mut::<u8>(at);
                at.write(mark);
                at.add(length - 1).write(mark);
                self.head = self.head.wrapping_add(1);
                entry.bid()
            }
        }
    }

    /// Claim: each buffer is with one side at a time, and holds what was written to it, however often the ring goes round
    /// and past the largest tail. Under Miri it goes round fewer times.
    #[test]
    fn each_buffer_is_with_one_side() {
        let mut buffers = Buffers::for_connections(1);
        let mut kernel = Kernel { head: 0 };
        let mut held: VecDeque<(u16, usize, u8)> = VecDeque::new();
        let rounds = if cfg!(miri) { 3_000 } else { 70_000_usize };
        for round in 0..rounds {
            let (length, mark) = (1 + round % SIZE, round.to_le_bytes()[0]);
            let buffer = kernel.fill(&buffers, length, mark);
            assert!(held.iter().all(|(other, ..)| *other != buffer), "{buffer} is held");
            held.push_back((buffer, length, mark));
            if held.len() == 7 {
                let (buffer, length, mark) = held.pop_front().expect("seven");
                let bytes = buffers.bytes(buffer, u32::try_from(length).expect("small"));
                assert_eq!((bytes[0], bytes[length - 1], bytes.len()), (mark, mark, length));
                buffers.offer(buffer);
            }
        }
    }

    /// Claim: a completion that names no buffer of the ring, or more bytes than one has, reads nothing.
    #[test]
    fn a_kernel_that_errs_is_not_followed() {
        let buffers = Buffers::for_connections(1);
        for (buffer, length) in [(COUNT_MIN, 1), (0, SIZE + 1)] {
            let buffer = u16::try_from(buffer).expect("small");
            let length = u32::try_from(length).expect("small");
            let read = std::panic::catch_unwind(|| buffers.bytes(buffer, length).len());
            assert!(read.is_err(), "{buffer}, {length}");
        }
    }
}
