//! One direction of a forwarded connection: read a piece, hold it until its link hands it over, write it on.
//!
//! It must never drop a byte of a connection that goes on: what cannot be held is not read.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::{Clock, CpuTime, Instant};
use model::Seed;
use model::seed::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::link::Link;
use super::table::{Rule, Table};

/// The most bytes of one direction of one connection that are held; more are left unread. A second at 128 Mbit/s.
const HELD_BYTES_MAX: usize = 16 << 20;
/// The most bytes of a piece, so that a writer's buffer is not one piece.
const PIECE_BYTES_MAX: usize = 16 << 10;
/// The least: a packet's.
const PIECE_BYTES_MIN: usize = 1_448;
/// How often a link that lets nothing pass is asked again.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long the far end may take to accept.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// What every pump of a network stands on.
#[derive(Debug)]
pub(super) struct Works {
    pub(super) clock: Clock,
    pub(super) table: Arc<Table>,
    pub(super) seed: Seed,
    /// Rings from the end on.
    pub(super) bell: OwnedFd,
    /// Processor time of threads, nanoseconds.
    pub(super) cpu_ns: AtomicU64,
}

/// One directed pair's link, shared by its connections.
pub(super) type SharedLink = Arc<Mutex<Link>>;

/// One direction.
pub(super) struct Pump {
    works: Arc<Works>,
    link: SharedLink,
    /// Places of the sending and the receiving end.
    way: (usize, usize),
    followed: Option<u64>,
    is_cut: bool,
    rng: Rng,
    held: VecDeque<Piece>,
    held_bytes: usize,
    /// The source has said that nothing more comes.
    is_ending: bool,
}

struct Piece {
    release: Instant,
    /// Empty: the source has ended.
    bytes: Vec<u8>,
    written: usize,
}

/// What to wait for.
struct Wants {
    to_read: bool,
    to_write: bool,
    at_most: Option<Duration>,
}

impl Pump {
    /// Carries a connection in both directions until both have ended, on this thread and another.
    pub(super) fn both(
        works: &Arc<Works>,
        near: TcpStream,
        target: SocketAddr,
        links: [SharedLink; 2],
        ways: [(usize, usize); 2],
    ) {
        let [out, back] = links;
        let mut out = Self::new(works, out, ways[0]);
        let mut back = Self::new(works, back, ways[1]);
        let Ok(far) = TcpStream::connect_timeout(&target, CONNECT_MAX) else { return };
        for stream in [&near, &far] {
            // Pieces are written when they are due; Nagle would hold them.
            let _ = stream.set_nodelay(true);
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("testbed-forward".to_owned());
            let other = thread.spawn_scoped(scope, || back.run(&far, &near));
            if other.is_ok() {
                out.run(&near, &far);
            }
        });
    }

    fn new(works: &Arc<Works>, link: SharedLink, way: (usize, usize)) -> Self {
        Self {
            works: Arc::clone(works),
            link,
            way,
            followed: None,
            is_cut: false,
            // The plan asks for no loss of a stream; only jitter draws.
            rng: works.seed.split_index("from", way.0 as u64).split_index("to", way.1 as u64).rng(),
            held: VecDeque::new(),
            held_bytes: 0,
            is_ending: false,
        }
    }

    /// Until the source has ended and all is written, one side fails, or the network ends.
    fn run(&mut self, source: &TcpStream, sink: &TcpStream) {
        let mut used = CpuTime::of_this_thread();
        let mut buffer = vec![0; PIECE_BYTES_MAX];
        let is_whole = loop {
            self.follow();
            let Some(is_blocked) = self.write_due(sink) else { break false };
            if self.is_ending && self.held.is_empty() {
                break true;
            }
            let piece_bytes = self.piece_bytes();
            let wants = Wants {
                to_read: piece_bytes > 0,
                to_write: is_blocked,
                at_most: self.wait_at_most(is_blocked, piece_bytes == 0),
            };
            self.works.note_cpu(&mut used);
            let Some(is_readable) = self.wait(source, sink, &wants) else { break false };
            // What came first after a change meets the change.
            self.follow();
            if is_readable
                && !self.is_cut
                && self.read(source, &mut buffer[..piece_bytes]).is_none()
            {
                break false;
            }
        };
        self.works.note_cpu(&mut used);
        if is_whole {
            let _ = sink.shutdown(Shutdown::Write);
        } else {
            // One side is gone: the other is told so, and so is the thread of the other direction.
            let _ = source.shutdown(Shutdown::Both);
            let _ = sink.shutdown(Shutdown::Both);
        }
    }

    /// Brings the rule up to date.
    fn follow(&mut self) {
        let generation = self.works.table.generation();
        if self.followed == Some(generation) {
            return;
        }
        self.followed = Some(generation);
        let rule = self.works.table.rule(self.way.0, self.way.1);
        self.is_cut = rule.is_cut;
        // A cut holds a stream back and takes nothing of it, so the link itself is not told of it.
        lock(&self.link).follow(Rule { is_cut: false, ..rule });
    }

    /// Writes what is due. Gives whether the sink takes no more for now; `None`: it is gone.
    fn write_due(&mut self, sink: &TcpStream) -> Option<bool> {
        if self.is_cut {
            return Some(false);
        }
        while let Some(piece) = self.held.front_mut() {
            let now = self.works.clock.now();
            if piece.release > now {
                return Some(false);
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let left = &piece.bytes[piece.written..];
            match if left.is_empty() { Ok(0) } else { send(sink, left, flags) } {
                Ok(bytes) => piece.written += bytes,
                Err(Errno::AGAIN) => return Some(true),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            if piece.written == piece.bytes.len() {
                let late = u64::try_from(now.ns_since(piece.release)).unwrap_or(0);
                self.held_bytes -= piece.bytes.len();
                self.held.pop_front();
                lock(&self.link).handed_over(true, late);
            }
        }
        Some(false)
    }

    /// How many bytes may be read now; 0: none, the link or the memory being full.
    fn piece_bytes(&self) -> usize {
        if self.is_ending || self.is_cut || self.held_bytes + PIECE_BYTES_MAX > HELD_BYTES_MAX {
            return 0;
        }
        let room = lock(&self.link).room(self.works.clock.now());
        room.map_or(0, |bytes| bytes.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX))
    }

    fn wait_at_most(&self, is_blocked: bool, is_full: bool) -> Option<Duration> {
        let due = self.held.front().filter(|_| !is_blocked && !self.is_cut);
        let due = due.map(|piece| piece.release.saturating_since(self.works.clock.now()));
        let is_held_back = self.is_cut || (is_full && !self.is_ending);
        let look = is_held_back.then_some(LOOK_EVERY);
        // A change of the rules rings no bell: whoever waits for a sender is told of it by the sender's next byte.
        [due, look].into_iter().flatten().min()
    }

    /// Gives whether the source can be read; `None`: the network has ended.
    fn wait(&self, source: &TcpStream, sink: &TcpStream, wants: &Wants) -> Option<bool> {
        let mut watched = vec![PollFd::new(&self.works.bell, PollFlags::IN)];
        // What is not waited for is left out: a socket whose both sides have ended is always ready.
        if wants.to_read {
            watched.push(PollFd::new(source, PollFlags::IN));
        }
        if wants.to_write {
            watched.push(PollFd::new(sink, PollFlags::OUT));
        }
        let at_most = wants.at_most.map(|wait| Timespec::try_from(wait).expect("at most a delay"));
        // An interruption is a look too early.
        let _ = poll(&mut watched, at_most.as_ref());
        let is_over = !watched[0].revents().is_empty();
        let is_readable = wants.to_read && !watched[1].revents().is_empty();
        (!is_over).then_some(is_readable)
    }

    /// Reads one piece. `None`: the source is gone.
    fn read(&mut self, source: &TcpStream, buffer: &mut [u8]) -> Option<()> {
        let bytes = match recv(source, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((bytes, _)) => bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Some(()),
            Err(_) => return None,
        };
        // The end of the stream is underway as long as a byte would be.
        self.is_ending = bytes == 0;
        let release = lock(&self.link).carry(self.works.clock.now(), bytes, &mut self.rng);
        self.held_bytes += bytes;
        self.held.push_back(Piece { release, bytes: buffer[..bytes].to_vec(), written: 0 });
        Some(())
    }
}

impl Works {
    /// Adds what the calling thread has used since the last note.
    pub(super) fn note_cpu(&self, used: &mut CpuTime) {
        let now = CpuTime::of_this_thread();
        let ns = u64::try_from(now.since(*used).as_nanos()).unwrap_or(0);
        self.cpu_ns.fetch_add(ns, Ordering::Relaxed);
        *used = now;
    }
}

/// A panic with the lock leaves counters that are still worth reading.
pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
