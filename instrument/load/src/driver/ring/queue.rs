//! What goes to the kernel: operations become entries of the submission queue, entries that find it full wait in order, and
//! one system call hands them over and waits.
#![expect(unsafe_code, reason = "submission queue entries carry pointers that the kernel follows")]

use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::{self, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;

use super::buffers::GROUP;
use super::{Operation, Ring, errno, pack};
use crate::driver::{Key, Wait};

/// Submission entries: a turn of the loop that queues more submits early.
pub(super) const ENTRIES: u32 = 1024;
/// Completion entries: a receive for each of 512 buffers, a send for each submission, and room.
pub(super) const COMPLETIONS: u32 = 8192;
/// `send(2)`: do not wait for room; the part that did not go is sent by a second, waiting operation.
pub(super) const MSG_DONTWAIT: i32 = 0x40;
pub(super) const MSG_WAITALL: i32 = 0x100;
const MSG_NOSIGNAL: i32 = 0x4000;

impl Ring {
    /// Hands the queue over and waits; looks into memory first where that is enough.
    pub(super) fn enter(&mut self, wait: Wait) -> Result<(), Errno> {
        self.queue_held()?;
        let sends = std::mem::take(&mut self.sends_queued);
        // Those of sends that went before are what the wait counts them for, and nothing to wake up for.
        let handed = std::mem::take(&mut self.sends_handed) as usize;
        let has_completions = self.ring.completion().len() > handed;
        let (is_empty, has_work) = {
            let queue = self.ring.submission();
            (queue.is_empty(), queue.taskrun() || queue.cq_overflow())
        };
        let is_look = wait.timeout == Some(Duration::ZERO) || has_completions;
        if is_look && is_empty && !has_work {
            return Ok(());
        }
        self.counters.enters += 1;
        let submitter = self.ring.submitter();
        let entered = if is_look {
            submitter.submit()
        } else {
            // Sends complete inside the submission and are counted by the kernel's wait like any other.
            let wanted = wait.completions_min.max(1) + sends;
            let timeout = wait.timeout.map(Timespec::from);
            let mut arguments = SubmitArgs::new();
            let gathers = self.gathers && !wait.is_whole();
            if wait.completions_min > 1 && gathers {
                let gather_us = u32::try_from(wait.gather_max.as_micros()).unwrap_or(u32::MAX);
                arguments = arguments.min_wait_usec(gather_us.max(1));
            }
            let wanted = if gathers || wait.is_whole() { wanted } else { 1 + sends };
            match &timeout {
                Some(timeout) => {
                    submitter.submit_with_args(wanted as usize, &arguments.timespec(timeout))
                }
                None => submitter.submit_with_args(wanted as usize, &arguments),
            }
        };
        match entered.map_err(|error| errno(&error)) {
            // Out of time, interrupted, or the completion queue wants emptying first: all are ordinary.
            Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn push(&mut self, entry: squeue::Entry, key: Key, operation: Operation) {
        let entry = entry.user_data(pack(key, operation));
        self.transports[key.index as usize].in_kernel |= operation as u8;
        // Those that wait keep their places before it.
        if self.held.is_empty()
            && (self.queued(&entry) || (self.make_room() && self.queued(&entry)))
        {
            return;
        }
        self.held.push_back(entry);
    }

    /// Puts an entry into the submission queue, if that has room.
    fn queued(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: the only pointers in an entry are those of a send, which `push_send` keeps valid until its
        // completion, and the buffer group with its message, which live as long as the ring.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Hands a full queue over early. Says whether that can have made room. What does not pass is reported by the next
    /// wait: an entry that the kernel never takes would else be tried for ever.
    pub(super) fn make_room(&mut self) -> bool {
        self.counters.enters += 1;
        match self.ring.submit().map_err(|error| errno(&error)) {
            Ok(_) => return true,
            // The completion queue wants emptying first, which a wait brings about.
            Err(Errno::INTR | Errno::BUSY | Errno::AGAIN) => {}
            Err(error) => self.refused = Some(error),
        }
        false
    }

    /// Queues what had no room before.
    pub(super) fn queue_held(&mut self) -> Result<(), Errno> {
        while let Some(entry) = self.held.pop_front() {
            if self.queued(&entry) || (self.make_room() && self.queued(&entry)) {
                continue;
            }
            self.held.push_front(entry);
            break;
        }
        self.refused.map_or(Ok(()), Err)
    }

    pub(super) fn push_receive(&mut self, key: Key) {
        let message = self.buffers.message();
        let is_stamped = self.transports[key.index as usize].is_stamped;
        let entry = match (is_stamped, key.index < self.files) {
            (false, true) => opcode::RecvMulti::new(types::Fixed(key.index), GROUP).build(),
            (false, false) => {
                opcode::RecvMulti::new(types::Fd(self.descriptor(key)), GROUP).build()
            }
            (true, true) => {
                opcode::RecvMsgMulti::new(types::Fixed(key.index), message, GROUP).build()
            }
            (true, false) => {
                opcode::RecvMsgMulti::new(types::Fd(self.descriptor(key)), message, GROUP).build()
            }
        };
        self.push(entry, key, Operation::Receive);
    }

    /// Sends `sending[sent_bytes..]`. The vector is not touched until the completion.
    pub(super) fn push_send(&mut self, key: Key, waiting: i32) {
        let flags = waiting | MSG_NOSIGNAL;
        let transport = &self.transports[key.index as usize];
        let rest = &transport.sending[transport.sent_bytes..];
        let (pointer, length) = (rest.as_ptr(), u32::try_from(rest.len()).unwrap_or(u32::MAX));
        let entry = if key.index < self.files {
            opcode::Send::new(types::Fixed(key.index), pointer, length).flags(flags).build()
        } else {
            let descriptor = types::Fd(self.descriptor(key));
            opcode::Send::new(descriptor, pointer, length).flags(flags).build()
        };
        self.push(entry, key, Operation::Send);
    }

    fn descriptor(&self, key: Key) -> i32 {
        let socket = self.transports[key.index as usize].socket.as_ref();
        socket.expect("a transport in use has a socket").as_raw_fd()
    }
}

/// A ring for one thread whose completions are processed when that thread asks for them: measured against
/// cooperative task running, the same cost a request or a little less (median of paired rounds 4.92 and 4.94 µs),
/// and waiting for several works as asked. Where the kernel is older than DEFER_TASKRUN (6.1), the other does.
pub(super) fn build() -> std::io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(COMPLETIONS).setup_clamp().setup_single_issuer().setup_taskrun_flag();
    let deferred = builder.clone().setup_defer_taskrun().build(ENTRIES);
    deferred.or_else(|_| builder.setup_coop_taskrun().build(ENTRIES))
}
