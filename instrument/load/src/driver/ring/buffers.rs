//! Receive buffers that the kernel picks from by itself: a ring of provided buffers
//! (`io_uring_register_buf_ring(3)`). Raw memory shared with the kernel lives here and nowhere else.
#![expect(unsafe_code, reason = "memory shared with the kernel: the ring of provided buffers")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Buffers; a power of two. 512 × 8 KiB = 4 MiB a worker: a burst of answers on 512 connections, or 4 MiB of
/// pipelined ones, between two turns of the loop. Running out is not an error, the receive is armed again.
const COUNT: u16 = 512;
/// Bytes of each: more than a pipelined batch of 64 small answers.
const SIZE: usize = 8 * 1024;
const GROUP: u16 = 0;
const PAGE: usize = 4096;

/// The buffers and their ring. While registered, the kernel may write to any buffer that is in the ring.
pub(super) struct Buffers {
    ring: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    tail: u16,
}

impl Buffers {
    pub(super) const GROUP: u16 = GROUP;

    /// Allocates the buffers and registers them with the ring behind `submitter`.
    pub(super) fn register(submitter: &Submitter<'_>) -> io::Result<Self> {
        let mut buffers = Self {
            ring: allocate(ring_layout()).cast(),
            memory: allocate(memory_layout()),
            tail: 0,
        };
        for buffer in 0..COUNT {
            buffers.offer(buffer);
        }
        // SAFETY: `ring` is page-aligned, holds COUNT entries and is freed only by `Drop`, which the owner
        // runs after the kernel has let go of it (`Ring::drop`) or not at all.
        let registered = unsafe {
            submitter.register_buf_ring_with_flags(buffers.ring.as_ptr() as u64, COUNT, GROUP, 0)
        };
        registered.map(|()| buffers)
    }

    /// The first `length` bytes of a buffer that a completion handed over.
    pub(super) fn bytes(&self, buffer: u16, length: u32) -> &[u8] {
        assert!(buffer < COUNT && length as usize <= SIZE, "the kernel keeps to the ring");
        // SAFETY: in bounds by the assertion. The kernel wrote `length` bytes, gave the buffer to us with the
        // completion, and does not touch it until `offer` puts it back, which needs `&mut self`.
        unsafe {
            std::slice::from_raw_parts(
                self.memory.as_ptr().add(usize::from(buffer) * SIZE),
                length as usize,
            )
        }
    }

    /// Gives a buffer (back) to the kernel.
    pub(super) fn offer(&mut self, buffer: u16) {
        assert!(buffer < COUNT, "a buffer of this ring");
        let slot = usize::from(self.tail & (COUNT - 1));
        // SAFETY: `slot < COUNT` entries were allocated. The kernel reads an entry only below the published
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
            dealloc(self.ring.as_ptr().cast(), ring_layout());
            dealloc(self.memory.as_ptr(), memory_layout());
        }
    }
}

fn ring_layout() -> Layout {
    Layout::from_size_align(usize::from(COUNT) * size_of::<BufRingEntry>(), PAGE)
        .expect("constants that fit")
}

fn memory_layout() -> Layout {
    Layout::from_size_align(usize::from(COUNT) * SIZE, PAGE).expect("constants that fit")
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: neither layout is of size zero.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}
