//! The event loop over epoll: edge-triggered, two system calls a request (send; receive until short). Never an
//! extra read to be told "nothing more": a short read says it, and a hang-up flag says when to read on.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Chunk, Counters, Driver, Event, KernelDriver, Key, Wait, socket};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 512;
/// One read takes at most this much: larger than a pipelined batch of answers, small enough for the cache.
const BUFFER_BYTES: usize = 64 * 1024;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    transports: Vec<Transport>,
    free: Vec<u32>,
    events: Vec<epoll::Event>,
    event_index: usize,
    /// Connections to look at although the kernel said nothing: a send on them failed.
    doubtful: Vec<Key>,
    buffer: Box<[u8]>,
    counters: Counters,
}

#[derive(Default)]
struct Transport {
    generation: u32,
    token: u32,
    socket: Option<OwnedFd>,
    is_open: bool,
    send_error: Option<Errno>,
    /// What the socket would not take yet.
    unsent: Vec<u8>,
}

impl KernelDriver for Epoll {
    fn new(_connections_max: u32) -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            transports: Vec::new(),
            free: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            event_index: 0,
            doubtful: Vec::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            counters: Counters::default(),
        })
    }
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";
    const GATHERS: bool = false;

    fn connect(&mut self, token: u32, address: SocketAddr) -> Result<Key, Errno> {
        let socket = socket::open(address)?;
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
        transport.socket = Some(socket);
        Ok(key)
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
                self.doubtful.push(key);
            }
        } else {
            transport.unsent.extend_from_slice(bytes);
        }
        bytes.clear();
    }

    fn close(&mut self, key: Key) {
        if self.is_current(key) {
            self.forget(key);
        }
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Errno> {
        debug_assert!(self.event_index >= self.events.len(), "events were left unread");
        self.events.clear();
        self.event_index = 0;
        let timeout =
            if self.doubtful.is_empty() { wait.timeout } else { Some(Default::default()) };
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
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
        let flags = EventFlags::IN | EventFlags::HUP;
        for key in self.doubtful.drain(..) {
            self.events.push(epoll::Event { flags, data: EventData::new_u64(pack(key)) });
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        while let Some(event) = self.events.get(self.event_index) {
            let (key, flags) = (unpack(event.data.u64()), event.flags);
            if !self.is_current(key) {
                self.event_index += 1;
                continue;
            }
            let transport = &mut self.transports[key.index as usize];
            if !transport.is_open {
                self.event_index += 1;
                return Some(self.opened(key));
            }
            if flags.contains(EventFlags::OUT) && !transport.unsent.is_empty() {
                self.counters.enters += 1;
                transport.push_unsent();
            }
            let is_over = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            if !flags.intersects(EventFlags::IN | is_over) {
                self.event_index += 1;
                continue;
            }
            if let Some(event) = self.read(key, flags.intersects(is_over)) {
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
    fn is_current(&self, key: Key) -> bool {
        let transport = &self.transports[key.index as usize];
        transport.generation == key.generation && transport.socket.is_some()
    }

    fn forget(&mut self, key: Key) {
        let transport = &mut self.transports[key.index as usize];
        transport.socket = None;
        transport.is_open = false;
        transport.send_error = None;
        transport.unsent.clear();
        transport.generation = transport.generation.wrapping_add(1);
        self.free.push(key.index);
    }

    /// A socket whose connection was being opened has become writable.
    fn opened(&mut self, key: Key) -> Event {
        let transport = &mut self.transports[key.index as usize];
        let token = transport.token;
        let socket = transport.socket.as_ref().expect("checked to be current");
        match socket::outcome(socket) {
            Ok(()) => {
                transport.is_open = true;
                // Bytes may have arrived with the same edge; the event stays until a read says short.
                let flags = self.events[self.event_index - 1].flags;
                if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
                    self.event_index -= 1;
                }
                Event::Connected { token, key }
            }
            Err(error) => {
                self.forget(key);
                Event::Ended { token, key, error: Some(error) }
            }
        }
    }

    /// One read. The event is done with when the read was short, unless the peer has hung up: then it is read
    /// to its end.
    fn read(&mut self, key: Key, to_the_end: bool) -> Option<Event> {
        let transport = &mut self.transports[key.index as usize];
        let token = transport.token;
        let socket = transport.socket.as_ref().expect("checked to be current");
        self.counters.enters += 1;
        let error = match recv(socket, &mut *self.buffer, RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => {
                if length < self.buffer.len() && !to_the_end {
                    self.event_index += 1;
                }
                let length = u32::try_from(length).expect("the buffer is small");
                return Some(Event::Received { token, key, chunk: Chunk { buffer: 0, length } });
            }
            Err(Errno::INTR) => return None,
            Err(Errno::AGAIN) if transport.send_error.is_none() => {
                self.event_index += 1;
                return None;
            }
            // A send that failed has taken the socket's error; the read then says an orderly end.
            Err(Errno::AGAIN) | Ok(_) => transport.send_error,
            Err(error) => Some(error),
        };
        self.event_index += 1;
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

fn pack(key: Key) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.index)
}

fn unpack(data: u64) -> Key {
    Key { index: (data & 0xffff_ffff) as u32, generation: (data >> 32) as u32 }
}
