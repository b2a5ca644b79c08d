//! The event loop over epoll: edge-triggered, two system calls a request (send; receive until short). Never an
//! extra read to be told "nothing more": a short read says it, and a hang-up flag says when to read on.
//!
//! What is ready is read round robin, one read a connection, and a turn has a budget of events and of bytes: one that
//! floods costs the others its share and no more, and the engine looks after its clock and its control in between.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Chunk, Counters, Driver, Event, KernelDriver, Key, Wait, socket, stamps};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 512;
/// One read takes at most this much: larger than a pipelined batch of answers, small enough for the cache.
const BUFFER_BYTES: usize = 64 * 1024;
/// The most that one turn reports: each is a system call of a microsecond or a few, so that what falls due meanwhile
/// waits for a fraction of a millisecond at the most.
const TURN_EVENTS_MAX: usize = 128;
/// The most bytes that one turn takes in, but for the last read: four full ones, some 100 µs of copying and parsing.
const TURN_BYTES_MAX: usize = 4 * BUFFER_BYTES;
/// `epoll_wait(2)` knows whole milliseconds. A shorter wait than this is made by `ppoll(2)`, which knows nanoseconds, at
/// the price of one more system call; a longer one ends early by less than a millisecond, and is then a short one. What
/// follows answers and waits for nothing else waits for longer than this, and does not pay.
const EXACT_BELOW: Duration = Duration::from_millis(50);
/// The peer has closed its side or the connection is broken: what is there is read to its end.
const IS_OVER: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

pub(crate) struct Epoll {
    epoll: OwnedFd,
    transports: Vec<Transport>,
    free: Vec<u32>,
    events: Vec<epoll::Event>,
    /// Connections to look at, in turn. Those that have more than one read takes go to its end again.
    ready: VecDeque<Key>,
    /// The rest of this turn's budget.
    events_left: usize,
    bytes_left: usize,
    buffer: Box<[u8]>,
    counters: Counters,
}

#[derive(Default)]
struct Transport {
    generation: u32,
    token: u32,
    socket: Option<OwnedFd>,
    is_open: bool,
    /// Whether the kernel stamps what it receives.
    is_stamped: bool,
    /// Events of the kernel, or a failed send, that are not dealt with yet. The kernel reports each once.
    noted: EventFlags,
    /// Whether it is in the list of those that are ready.
    is_listed: bool,
    send_error: Option<Errno>,
    /// Bytes that the socket would not take yet.
    unsent: Vec<u8>,
}

impl KernelDriver for Epoll {
    fn new(_connections_max: u32) -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            transports: Vec::new(),
            free: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            ready: VecDeque::new(),
            events_left: 0,
            bytes_left: 0,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            counters: Counters::default(),
        })
    }
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";
    const GATHERS: bool = false;

    fn connect(&mut self, token: u32, address: SocketAddr, is_stamped: bool) -> Result<Key, Errno> {
        let socket = socket::open(address)?;
        let is_stamped = is_stamped && stamps::ask(&socket);
        self.take_up(token, socket, is_stamped)
    }

    fn adopt(&mut self, token: u32, socket: OwnedFd) -> Result<Key, Errno> {
        fcntl_setfl(&socket, fcntl_getfl(&socket)? | OFlags::NONBLOCK)?;
        self.take_up(token, socket, false)
    }

    fn send(&mut self, key: Key, bytes: &mut Vec<u8>) {
        if bytes.is_empty() || !self.is_current(key) {
            bytes.clear();
            return;
        }
        let transport = &mut self.transports[key.index as usize];
        if transport.unsent.is_empty() {
            self.counters.enters += 1;
            let sent = transport.push(bytes);
            transport.unsent.extend_from_slice(&bytes[sent..]);
            if transport.send_error.is_some() {
                // The kernel need not say anything more: the next turn reads how the connection ended.
                self.note(key, EventFlags::IN | EventFlags::HUP);
            }
        } else {
            transport.unsent.extend_from_slice(bytes);
        }
        bytes.clear();
    }

    fn unsent(&self, key: Key) -> usize {
        if self.is_current(key) { self.transports[key.index as usize].unsent.len() } else { 0 }
    }

    fn close(&mut self, key: Key) {
        if self.is_current(key) {
            self.forget(key);
        }
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Errno> {
        self.events.clear();
        let mut timeout = if self.ready.is_empty() { wait.timeout } else { Some(Duration::ZERO) };
        if let Some(exact) = timeout.filter(|it| !it.is_zero() && *it < EXACT_BELOW) {
            if wait.is_whole() {
                self.counters.enters += 1;
                let _ = rustix::thread::nanosleep(&timespec(exact));
            } else {
                self.await_any(exact)?;
            }
            timeout = Some(Duration::ZERO);
        }
        let whole_ms =
            |it: Duration| it - Duration::from_nanos(u64::from(it.subsec_nanos() % 1_000_000));
        let timeout = timeout.map(|timeout| timespec(whole_ms(timeout)));
        self.counters.enters += 1;
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        self.counters.completions += self.events.len() as u64;
        for index in 0..self.events.len() {
            let event = self.events[index];
            self.note(unpack(event.data.u64()), event.flags);
        }
        (self.events_left, self.bytes_left) = (TURN_EVENTS_MAX, TURN_BYTES_MAX);
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        while self.events_left > 0 && self.bytes_left > 0 {
            let key = self.ready.pop_front()?;
            if !self.is_current(key) {
                continue;
            }
            self.transports[key.index as usize].is_listed = false;
            if let Some(event) = self.look(key) {
                self.events_left -= 1;
                return Some(event);
            }
        }
        None
    }

    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        &self.buffer[..chunk.length as usize]
    }

    fn release(&mut self, _chunk: Chunk) {}

    fn counters(&self) -> Counters {
        self.counters
    }
}

impl Epoll {
    /// A socket that is connected, or on its way: it says so by becoming writable.
    fn take_up(&mut self, token: u32, socket: OwnedFd, is_stamped: bool) -> Result<Key, Errno> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.transports.push(Transport::default());
            u32::try_from(self.transports.len() - 1).expect("connections are counted in u32")
        });
        let transport = &mut self.transports[index as usize];
        let key = Key { index, generation: transport.generation };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if let Err(error) = epoll::add(&self.epoll, &socket, EventData::new_u64(pack(key)), flags) {
            self.free.push(index);
            return Err(error);
        }
        transport.token = token;
        transport.is_stamped = is_stamped;
        transport.socket = Some(socket);
        Ok(key)
    }

    fn is_current(&self, key: Key) -> bool {
        let transport = &self.transports[key.index as usize];
        transport.generation == key.generation && transport.socket.is_some()
    }

    /// Blocks until something is there to be taken, or until exactly this time is up.
    fn await_any(&mut self, timeout: Duration) -> Result<(), Errno> {
        self.counters.enters += 1;
        let mut any = [PollFd::new(&self.epoll, PollFlags::IN)];
        match poll(&mut any, Some(&timespec(timeout))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Has a connection looked at, at the end of the list.
    fn note(&mut self, key: Key, flags: EventFlags) {
        if !self.is_current(key) {
            return;
        }
        let transport = &mut self.transports[key.index as usize];
        transport.noted |= flags;
        if !transport.is_listed {
            transport.is_listed = true;
            self.ready.push_back(key);
        }
    }

    fn forget(&mut self, key: Key) {
        let transport = &mut self.transports[key.index as usize];
        transport.socket = None;
        transport.is_open = false;
        transport.noted = EventFlags::empty();
        // Its old key may still be listed, and is passed over there.
        transport.is_listed = false;
        transport.send_error = None;
        transport.unsent.clear();
        transport.generation = transport.generation.wrapping_add(1);
        self.free.push(key.index);
    }

    /// Deals with what was noted of a connection: at most one event of it at a time.
    fn look(&mut self, key: Key) -> Option<Event> {
        let transport = &mut self.transports[key.index as usize];
        if !transport.is_open {
            return Some(self.opened(key));
        }
        if transport.noted.contains(EventFlags::OUT) {
            transport.noted.remove(EventFlags::OUT);
            if !transport.unsent.is_empty() {
                self.counters.enters += 1;
                transport.push_unsent();
            }
            if transport.send_error.is_some() {
                transport.noted |= EventFlags::IN | EventFlags::HUP;
            }
        }
        if !transport.noted.intersects(EventFlags::IN | IS_OVER) {
            return None;
        }
        self.read(key)
    }

    /// A socket whose connection was being opened has become writable.
    fn opened(&mut self, key: Key) -> Event {
        let transport = &mut self.transports[key.index as usize];
        let token = transport.token;
        let socket = transport.socket.as_ref().expect("checked to be current");
        match socket::outcome(socket) {
            Ok(()) => {
                transport.is_open = true;
                transport.noted.remove(EventFlags::OUT);
                // Bytes may have arrived with the same edge.
                if transport.noted.intersects(EventFlags::IN | IS_OVER) {
                    self.note(key, EventFlags::empty());
                }
                Event::Connected { token, key }
            }
            Err(error) => {
                self.forget(key);
                Event::Ended { token, key, error: Some(error) }
            }
        }
    }

    /// One read. The connection is done with when the read was short, unless the peer has hung up: then it is read
    /// to its end. What is left comes after the others that are ready.
    fn read(&mut self, key: Key) -> Option<Event> {
        let transport = &mut self.transports[key.index as usize];
        let token = transport.token;
        let socket = transport.socket.as_ref().expect("checked to be current");
        self.counters.enters += 1;
        let received = match transport.is_stamped {
            true => stamps::receive(socket, &mut self.buffer),
            false => recv(socket, &mut *self.buffer, RecvFlags::empty())
                .map(|(length, _)| (length, None)),
        };
        let error = match received {
            Ok((length, arrived)) if length > 0 => {
                self.bytes_left = self.bytes_left.saturating_sub(length);
                if length == self.buffer.len() || transport.noted.intersects(IS_OVER) {
                    self.note(key, EventFlags::empty());
                } else {
                    transport.noted.remove(EventFlags::IN);
                }
                let length = u32::try_from(length).expect("the buffer is small");
                let chunk = Chunk { buffer: 0, head: 0, length };
                return Some(Event::Received { token, key, chunk, arrived });
            }
            Err(Errno::INTR) => {
                self.note(key, EventFlags::empty());
                return None;
            }
            Err(Errno::AGAIN) if transport.send_error.is_none() => {
                transport.noted = EventFlags::empty();
                return None;
            }
            // A send that failed has taken the socket's error; the read then says an orderly end.
            Err(Errno::AGAIN) | Ok(_) => transport.send_error,
            Err(error) => Some(error),
        };
        self.forget(key);
        Some(Event::Ended { token, key, error })
    }
}

impl Transport {
    /// Sends what the socket takes; gives how much that was. An error is kept for the reading side to report.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let socket = self.socket.as_ref().expect("checked to be current");
        loop {
            match send(socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => return count,
                Err(Errno::AGAIN) => return 0,
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.send_error = Some(error);
                    return bytes.len();
                }
            }
        }
    }

    fn push_unsent(&mut self) {
        let unsent = std::mem::take(&mut self.unsent);
        let sent = self.push(&unsent);
        self.unsent = unsent;
        self.unsent.drain(..sent);
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn pack(key: Key) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.index)
}

fn unpack(data: u64) -> Key {
    Key { index: (data & 0xffff_ffff) as u32, generation: (data >> 32) as u32 }
}
