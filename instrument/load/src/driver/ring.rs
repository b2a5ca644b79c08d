//! The event loop over io_uring: sends go out with one system call for all, receives are multishot into buffers
//! that the kernel picks, and one wait can gather several completions.
//!
//! What the kernel may still read or write stays alive and unmoved: a send's bytes live in `Transport::sending`
//! until its completion came, receive buffers until they are unregistered; `Drop` waits for the kernel to let
//! go, and leaks rather than frees what it did not get back.
#![expect(
    unsafe_code,
    reason = "what the kernel may still read or write is dropped when it has let go"
)]

mod buffers;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use buffers::{Buffers, GROUP};
use io_uring::types;
use io_uring::{IoUring, cqueue, opcode, squeue};
use queue::{COMPLETIONS, MSG_DONTWAIT, MSG_WAITALL, build};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::Shutdown;

use super::{Chunk, Counters, Driver, Event, KernelDriver, Key, Wait, socket, stamps};

/// `poll(2)`.
const POLLOUT: u32 = 0x4;
/// How long `Drop` waits for the kernel to give back what it holds.
const LET_GO_MAX: Duration = Duration::from_secs(2);

pub(crate) struct Ring {
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    transports: ManuallyDrop<Vec<Transport>>,
    free: Vec<u32>,
    /// Transports below this have a registered file in the slot of their index.
    files: u32,
    batch: Vec<(u64, i32, u32)>,
    batch_index: usize,
    /// Receives to arm again: the kernel ran out of buffers, or ended the multishot by itself.
    rearm: Vec<Key>,
    /// Entries that a full submission queue had no room for: they are queued first thing at the next wait. Bounded by
    /// what connections can have in the kernel, four operations each.
    held: VecDeque<squeue::Entry>,
    /// Why the kernel takes no submissions; the next wait reports it.
    refused: Option<Errno>,
    /// Sends queued since the last wait that complete within their submission.
    sends_queued: u32,
    /// Those of them that were submitted before the wait: their completions are there.
    sends_handed: u32,
    gathers: bool,
    counters: Counters,
}

#[derive(Default)]
struct Transport {
    generation: u32,
    token: u32,
    socket: Option<OwnedFd>,
    state: State,
    /// Whether the kernel stamps what it receives.
    is_stamped: bool,
    /// Operations that the kernel has not completed, by [`Operation`] bit.
    in_kernel: u8,
    /// Bytes that the kernel reads from while `SEND` is set in `in_kernel`: not touched, not dropped until then.
    sending: Vec<u8>,
    sent_bytes: usize,
    /// Operations after them.
    queued: Vec<u8>,
    /// How a send failed: it has taken the socket's error, and the receive then says an orderly end.
    send_error: Option<Errno>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Connecting,
    Open,
    /// Given up by the engine or ended by the peer; waits for the kernel to complete what it holds.
    Closing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Operation {
    Connect = 1,
    Receive = 2,
    Send = 4,
    Cancel = 8,
}

impl KernelDriver for Ring {
    fn new(connections_max: u32) -> Result<Self, Errno> {
        let ring = build().map_err(|error| errno(&error))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(Errno::NOSYS);
        }
        let buffers =
            Buffers::register(&ring.submitter(), connections_max).map_err(|error| errno(&error))?;
        // Fixed files save a reference count an operation; more than RLIMIT_NOFILE are refused, then plain
        // descriptors do.
        let has_files = ring.submitter().register_files_sparse(connections_max).is_ok();
        let gathers = ring.params().is_feature_min_timeout();
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            transports: ManuallyDrop::new(Vec::new()),
            free: Vec::new(),
            files: if has_files { connections_max } else { 0 },
            batch: Vec::with_capacity(COMPLETIONS as usize),
            batch_index: 0,
            rearm: Vec::new(),
            held: VecDeque::new(),
            refused: None,
            sends_queued: 0,
            sends_handed: 0,
            gathers,
            counters: Counters::default(),
        })
    }
}

impl Driver for Ring {
    const NAME: &'static str = "io_uring";
    const GATHERS: bool = true;

    fn connect(&mut self, token: u32, address: SocketAddr, is_stamped: bool) -> Result<Key, Errno> {
        let socket = socket::open(address)?;
        let is_stamped = is_stamped && stamps::ask(&socket);
        self.take_up(token, socket, is_stamped)
    }

    fn adopt(&mut self, token: u32, socket: OwnedFd) -> Result<Key, Errno> {
        self.take_up(token, socket, false)
    }

    fn send(&mut self, key: Key, bytes: &mut Vec<u8>) {
        if !bytes.is_empty() && self.is_current(key) {
            let transport = &mut self.transports[key.index as usize];
            if transport.in_kernel & Operation::Send as u8 != 0 {
                transport.queued.extend_from_slice(bytes);
            } else {
                std::mem::swap(&mut transport.sending, bytes);
                transport.sent_bytes = 0;
                self.push_send(key, MSG_DONTWAIT);
                self.sends_queued += 1;
            }
        }
        bytes.clear();
    }

    fn unsent(&self, key: Key) -> usize {
        let at = &self.transports[key.index as usize];
        let is_sending = self.is_current(key) && at.in_kernel & Operation::Send as u8 != 0;
        if is_sending { at.sending.len() - at.sent_bytes + at.queued.len() } else { 0 }
    }

    fn hand_over(&mut self) {
        if self.sends_handed == self.sends_queued {
            return;
        }
        // An error is the next wait's to report.
        let is_queued = self.queue_held().is_ok() && self.held.is_empty();
        if is_queued && self.make_room() && self.ring.submission().is_empty() {
            self.sends_handed = self.sends_queued;
        }
    }

    fn close(&mut self, key: Key) {
        if self.is_current(key) {
            self.let_go(key);
        }
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Errno> {
        debug_assert!(self.batch_index >= self.batch.len(), "completions were left unread");
        for index in 0..self.rearm.len() {
            let key = self.rearm[index];
            if self.is_current(key) {
                self.push_receive(key);
            }
        }
        self.rearm.clear();
        self.enter(wait)?;
        self.batch.clear();
        self.batch_index = 0;
        for entry in self.ring.completion() {
            self.batch.push((entry.user_data(), entry.result(), entry.flags()));
        }
        self.counters.completions += self.batch.len() as u64;
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        while let Some(&(user_data, result, flags)) = self.batch.get(self.batch_index) {
            self.batch_index += 1;
            let (key, operation) = unpack(user_data);
            let event = match operation {
                Operation::Receive => self.received(key, result, flags),
                Operation::Send => self.sent(key, result),
                Operation::Connect => self.connected(key, result),
                Operation::Cancel => {
                    self.completed(key, operation);
                    None
                }
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        &self.buffers.bytes(chunk.buffer, chunk.length)[usize::from(chunk.head)..]
    }

    fn release(&mut self, chunk: Chunk) {
        self.buffers.offer(chunk.buffer);
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

impl Ring {
    /// A socket that is connected, or on its way: it says so by becoming writable.
    fn take_up(&mut self, token: u32, socket: OwnedFd, is_stamped: bool) -> Result<Key, Errno> {
        // io_uring fails an operation on a non-blocking socket where it would else wait for it.
        fcntl_setfl(&socket, fcntl_getfl(&socket)? & !OFlags::NONBLOCK)?;
        let index = self.free.pop().unwrap_or_else(|| {
            self.transports.push(Transport::default());
            u32::try_from(self.transports.len() - 1).expect("connections are counted in u32")
        });
        if index < self.files
            && let Err(error) =
                self.ring.submitter().register_files_update(index, &[socket.as_raw_fd()])
        {
            self.free.push(index);
            return Err(errno(&error));
        }
        let transport = &mut self.transports[index as usize];
        transport.token = token;
        transport.state = State::Connecting;
        transport.is_stamped = is_stamped;
        let key = Key { index, generation: transport.generation };
        let poll = opcode::PollAdd::new(types::Fd(socket.as_raw_fd()), POLLOUT).build();
        transport.socket = Some(socket);
        self.push(poll, key, Operation::Connect);
        Ok(key)
    }

    fn is_current(&self, key: Key) -> bool {
        let transport = &self.transports[key.index as usize];
        transport.generation == key.generation
            && matches!(transport.state, State::Connecting | State::Open)
    }

    fn connected(&mut self, key: Key, result: i32) -> Option<Event> {
        if !self.completed(key, Operation::Connect) {
            return None;
        }
        let transport = &mut self.transports[key.index as usize];
        let token = transport.token;
        let socket = transport.socket.as_ref().expect("a connecting transport has a socket");
        let outcome = if result < 0 {
            Err(Errno::from_raw_os_error(-result))
        } else {
            socket::outcome(socket)
        };
        match outcome {
            Ok(()) => {
                transport.state = State::Open;
                self.push_receive(key);
                Some(Event::Connected { token, key })
            }
            Err(error) => {
                self.let_go(key);
                Some(Event::Ended { token, key, error: Some(error) })
            }
        }
    }

    fn received(&mut self, key: Key, result: i32, flags: u32) -> Option<Event> {
        let buffer = cqueue::buffer_select(flags);
        let is_current = if cqueue::more(flags) {
            self.is_current(key)
        } else {
            self.completed(key, Operation::Receive)
        };
        if !is_current {
            if let Some(buffer) = buffer {
                self.buffers.offer(buffer);
            }
            return None;
        }
        let transport = &self.transports[key.index as usize];
        let (token, is_stamped) = (transport.token, transport.is_stamped);
        let (mut head, mut arrived) = (0, None);
        if result > 0 && is_stamped {
            let buffer = buffer.expect("a multishot receive with bytes has a buffer");
            let length = u32::try_from(result).expect("checked to be positive");
            (head, arrived) = self.buffers.head(buffer, length);
        }
        // The end of a connection is a message of no bytes.
        if result > i32::from(head) {
            if !cqueue::more(flags) {
                self.rearm.push(key);
            }
            let buffer = buffer.expect("a multishot receive with bytes has a buffer");
            let length = u32::try_from(result).expect("checked to be positive");
            let chunk = Chunk { buffer, head, length };
            return Some(Event::Received { token, key, chunk, arrived });
        }
        if let Some(buffer) = buffer {
            self.buffers.offer(buffer);
        }
        let error = (result < 0).then(|| Errno::from_raw_os_error(-result));
        if matches!(error, Some(Errno::NOBUFS | Errno::INTR | Errno::AGAIN)) {
            self.rearm.push(key);
            return None;
        }
        let error = error.or(self.transports[key.index as usize].send_error);
        self.let_go(key);
        Some(Event::Ended { token, key, error })
    }

    fn sent(&mut self, key: Key, result: i32) -> Option<Event> {
        if !self.completed(key, Operation::Send) {
            return None;
        }
        let transport = &mut self.transports[key.index as usize];
        match usize::try_from(result) {
            Ok(count) => transport.sent_bytes += count,
            Err(_) if matches!(Errno::from_raw_os_error(-result), Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                // The reading side reports how the connection ended, after the bytes that it still holds.
                transport.queued.clear();
                transport.send_error = Some(Errno::from_raw_os_error(-result));
                let socket = transport.socket.as_ref().expect("an open transport has a socket");
                let _ = rustix::net::shutdown(socket, Shutdown::Both);
                return None;
            }
        }
        if transport.sent_bytes < transport.sending.len() {
            self.push_send(key, MSG_WAITALL);
        } else if !transport.queued.is_empty() {
            transport.sending.clear();
            std::mem::swap(&mut transport.sending, &mut transport.queued);
            transport.sent_bytes = 0;
            self.push_send(key, MSG_DONTWAIT);
            self.sends_queued += 1;
        }
        None
    }

    /// Notes that an operation has left the kernel. Says whether its transport is still in use; one that was
    /// given up is freed with its last operation.
    fn completed(&mut self, key: Key, operation: Operation) -> bool {
        let transport = &mut self.transports[key.index as usize];
        assert!(transport.generation == key.generation, "a transport outlives its operations");
        transport.in_kernel &= !(operation as u8);
        if transport.state == State::Closing && transport.in_kernel == 0 {
            self.free_now(key);
            return false;
        }
        self.is_current(key)
    }

    /// Gives a connection up: its operations end, then it is freed.
    fn let_go(&mut self, key: Key) {
        let transport = &mut self.transports[key.index as usize];
        let was_connecting = transport.state == State::Connecting;
        transport.state = State::Closing;
        transport.queued.clear();
        if transport.in_kernel == 0 {
            self.free_now(key);
            return;
        }
        let socket = transport.socket.as_ref().expect("a transport in use has a socket");
        // Ends the receive and a waiting send; an unconnected socket says ENOTCONN, its poll is cancelled.
        let _ = rustix::net::shutdown(socket, Shutdown::Both);
        if was_connecting {
            let cancel = opcode::AsyncCancel::new(pack(key, Operation::Connect)).build();
            self.push(cancel, key, Operation::Cancel);
        }
    }

    fn free_now(&mut self, key: Key) {
        if key.index < self.files {
            let _ = self.ring.submitter().register_files_update(key.index, &[-1]);
        }
        let transport = &mut self.transports[key.index as usize];
        transport.socket = None;
        transport.state = State::Free;
        transport.generation = transport.generation.wrapping_add(1);
        transport.sending.clear();
        transport.queued.clear();
        transport.send_error = None;
        self.free.push(key.index);
    }

    /// Ends everything and waits until the kernel holds nothing of ours. Says whether it let go.
    fn end_all(&mut self) -> bool {
        for index in 0..self.transports.len() {
            let transport = &self.transports[index];
            let index = u32::try_from(index).expect("connections are counted in u32");
            let key = Key { index, generation: transport.generation };
            // One that was given up has been told to end already. Cancelling all at once is no way: the kernel
            // compares each with each.
            if self.is_current(key) {
                self.let_go(key);
            }
        }
        (self.sends_queued, self.sends_handed) = (0, 0);
        let _ = self.ring.submit();
        let mut held = self.transports.iter().filter(|transport| transport.in_kernel != 0).count();
        // Each turn takes at least one completion or gives up.
        while held > 0 {
            self.sends_queued = 0;
            if self.enter(Wait::at_most(Some(LET_GO_MAX))).is_err() {
                return false;
            }
            let completions: Vec<_> = self.ring.completion().collect();
            if completions.is_empty() {
                return false;
            }
            for entry in completions {
                if !cqueue::more(entry.flags()) {
                    let (key, operation) = unpack(entry.user_data());
                    let transport = &mut self.transports[key.index as usize];
                    transport.in_kernel &= !(operation as u8);
                    held -= usize::from(transport.in_kernel == 0);
                }
            }
        }
        self.ring.submitter().unregister_buf_ring(GROUP).is_ok()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.next_event().is_some() {}
        let let_go = self.end_all();
        // SAFETY: nothing of `self` is used after this. The memory that the kernel was given goes only if it
        // has let go of it; else it is leaked, once, at the end of a trial.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if let_go {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.transports);
            }
        }
    }
}

/// `generation | operation | index`, 32 + 8 + 24 bits.
fn pack(key: Key, operation: Operation) -> u64 {
    debug_assert!(key.index < 1 << 24, "at most 16 million connections");
    u64::from(key.generation) << 32 | u64::from(operation as u8) << 24 | u64::from(key.index)
}

fn unpack(user_data: u64) -> (Key, Operation) {
    let operation = match (user_data >> 24) & 0xff {
        1 => Operation::Connect,
        2 => Operation::Receive,
        4 => Operation::Send,
        _ => Operation::Cancel,
    };
    let index = (user_data & 0xff_ffff) as u32;
    (Key { index, generation: (user_data >> 32) as u32 }, operation)
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error)
}
