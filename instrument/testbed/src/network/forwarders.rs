//! Links without root: for each directed pair of ends a forwarder on loopback, which the sending end dials instead of
//! its peer. What a TCP stream carries is read in pieces, held until its time, and written on.
//!
//! One thread listens for all forwarders; each connection has two, one a direction. A stream loses and reorders
//! nothing: what a link of limited bandwidth cannot take is not read, so that the sender feels it, and a cut holds back
//! what it does not let pass. The handshake of a connection is the host's own: who connects is told so at once, and
//! only the first byte meets the link.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use clock::{Clock, CpuTime};
use model::Seed;
use rustix::event::{EventfdFlags, epoll, eventfd};

use super::link::Link;
use super::pump::{Pump, SharedLink, Works, lock};
use super::table::Table;
use crate::processes::LOOK_EVERY;

/// The most listeners: every ordered pair of a hundred nodes.
const LISTENERS_MAX: usize = 10_000;
/// The most connections carried at once; more are closed when they come, and counted as dropped by the emulator.
const CONNECTIONS_MAX: usize = 4_096;
/// What the bell is called among the listeners, whose numbers are small.
const BELL: u64 = u64::MAX;

/// All forwarders of a network. Dropping it closes every connection.
#[derive(Debug)]
pub(super) struct Forwarders {
    shared: Arc<Shared>,
    watched: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What its threads share.
#[derive(Debug)]
struct Shared {
    works: Arc<Works>,
    listeners: Mutex<Vec<Listener>>,
    links: Mutex<BTreeMap<(usize, usize), SharedLink>>,
    pumps: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Listener {
    listener: TcpListener,
    from: usize,
    to: usize,
    target: SocketAddr,
}

impl Forwarders {
    pub(super) fn start(clock: Clock, table: Arc<Table>, seed: Seed) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let watched = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        epoll::add(&*watched, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        let works = Works { clock, table, seed, bell, cpu_ns: AtomicU64::new(0) };
        let shared = Arc::new(Shared {
            works: Arc::new(works),
            listeners: Mutex::default(),
            links: Mutex::default(),
            pumps: Mutex::default(),
        });
        let (of_thread, looked) = (Arc::clone(&shared), Arc::clone(&watched));
        let thread = std::thread::Builder::new()
            .name("testbed-forward".to_owned())
            .spawn(move || accept_all(&of_thread, &looked))?;
        Ok(Self { shared, watched, thread: Mutex::new(Some(thread)) })
    }

    /// The address that the end `from` is to dial for `target`, which the end `to` listens on. The same question gets
    /// the same answer.
    pub(super) fn forward(
        &self,
        from: usize,
        to: usize,
        target: SocketAddr,
    ) -> io::Result<SocketAddr> {
        let mut listeners = lock(&self.shared.listeners);
        let is_same = |l: &&Listener| (l.from, l.to, l.target) == (from, to, target);
        if let Some(known) = listeners.iter().find(is_same) {
            return known.listener.local_addr();
        }
        if listeners.len() >= LISTENERS_MAX {
            return Err(io::Error::other(format!("there are {LISTENERS_MAX} forwarders already")));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let number = epoll::EventData::new_u64(listeners.len() as u64);
        epoll::add(&*self.watched, &listener, number, epoll::EventFlags::IN)?;
        listeners.push(Listener { listener, from, to, target });
        Ok(address)
    }

    /// Looks at every link that carried something.
    pub(super) fn links<T>(
        &self,
        look: impl FnOnce(&[(usize, usize, MutexGuard<'_, Link>)]) -> T,
    ) -> T {
        let links = lock(&self.shared.links);
        let held: Vec<_> =
            links.iter().map(|((from, to), link)| (*from, *to, lock(link))).collect();
        look(&held)
    }

    pub(super) fn cpu_ns(&self) -> u64 {
        self.shared.works.cpu_ns.load(Ordering::Relaxed)
    }

    /// Whether the thread that listens has ended, which it does when it is told to or by a panic.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.thread).as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends all threads and closes all connections. What is underway is lost.
    pub(super) fn stop(&self) {
        // It fails only after 2^64 rings without a listener, and then the bell is ringing.
        let _ = rustix::io::write(&self.shared.works.bell, &1_u64.to_ne_bytes());
        // A panic of a thread has been printed by the panic hook.
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        let pumps = std::mem::take(&mut *lock(&self.shared.pumps));
        for pump in pumps {
            let _ = pump.join();
        }
        lock(&self.shared.listeners).clear();
    }
}

impl Drop for Forwarders {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// The link of a pair, made when it is asked for.
    fn link(&self, from: usize, to: usize) -> SharedLink {
        let mut links = lock(&self.links);
        let make = || Arc::new(Mutex::new(Link::new(self.works.table.rule(from, to))));
        Arc::clone(links.entry((from, to)).or_insert_with(make))
    }

    /// Starts the two directions of a connection, or closes it.
    fn carry(&self, near: TcpStream, way: (usize, usize), target: SocketAddr) {
        let (from, to) = way;
        let links = [self.link(from, to), self.link(to, from)];
        let mut pumps = lock(&self.pumps);
        pumps.retain(|pump| !pump.is_finished());
        // Two threads a connection; the second is started by the first, and ends with it.
        if pumps.len() >= CONNECTIONS_MAX {
            lock(&links[0]).traffic.emulator_dropped += 1;
            return;
        }
        let (works, ends) = (Arc::clone(&self.works), [(from, to), (to, from)]);
        let started = std::thread::Builder::new()
            .name("testbed-forward".to_owned())
            .spawn(move || Pump::both(&works, near, target, links, ends));
        match started {
            Ok(pump) => pumps.push(pump),
            Err(_) => lock(&self.link(from, to)).traffic.emulator_dropped += 1,
        }
    }
}

fn accept_all(shared: &Arc<Shared>, watched: &OwnedFd) {
    let mut used = CpuTime::of_this_thread();
    let mut ready = Vec::with_capacity(64);
    loop {
        ready.clear();
        // An interruption is a look too early.
        let _ = epoll::wait(watched, rustix::buffer::spare_capacity(&mut ready), None);
        for event in ready.drain(..) {
            let number = event.data.u64();
            if number == BELL {
                return;
            }
            let number = usize::try_from(number).expect("it was an index before");
            let (come, way, target) = {
                let listeners = lock(&shared.listeners);
                let Listener { listener, from, to, target } = &listeners[number];
                (listener.accept(), (*from, *to), *target)
            };
            match come {
                Ok((near, _)) => shared.carry(near, way, target),
                Err(error) if is_nothing(&error) => {}
                // Out of descriptors or memory: it stays in the queue, and the kernel says again at once that it is there.
                Err(_) => {
                    lock(&shared.link(way.0, way.1)).traffic.emulator_dropped += 1;
                    let clock = shared.works.clock;
                    clock.sleep_until(clock.now().plus(LOOK_EVERY));
                }
            }
        }
        shared.works.note_cpu(&mut used);
    }
}

/// Says whether no connection is there to be accepted, or not any more.
fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}
