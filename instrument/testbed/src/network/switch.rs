//! The switch: one thread that carries packets between the devices of a network.
//!
//! It sleeps until a device has a packet or a packet is due, to the nanosecond as far as the kernel can (`ppoll` on
//! the `epoll` descriptor: `epoll_wait` itself counts milliseconds), and it runs before the nodes. It must never decide
//! what a link does: that is `link.rs`.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use clock::{Clock, Instant};
use model::Seed;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};

use super::NODES_MAX;
use super::fabric::{self, Fabric, Wake};
use super::kernel;
use super::table::Table;

/// What the bell is called among the devices, whose places are small numbers.
const BELL: u64 = u64::MAX;
/// Devices told of at once: all that there can be and the bell, because one that is not told of counts as empty.
const READY_MAX: usize = NODES_MAX + 2;

/// The running switch. Dropping it ends it and closes the devices.
#[derive(Debug)]
pub(super) struct Switch {
    fabric: Arc<Mutex<Fabric>>,
    watched: Arc<OwnedFd>,
    bell: OwnedFd,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread asks for where real-time priority is refused: before most, and beside the instrument's own engine.
const NICE: i32 = -10;

/// Asks the kernel to run this thread before others. Each packet that it hands over late is a link that is longer than
/// was asked for, and nodes that share the processors would make it so: by turns, however good its own, it waits for as
/// many milliseconds as there are busy nodes. It takes no more than its packets do, and the kernel leaves
/// others a twentieth of each second whatever a real-time thread does. Where the kernel refuses, the lateness says what
/// that costs.
pub(crate) fn take_precedence() {
    if kernel::run_first().is_err() {
        // On Linux a thread's number is a process id to setpriority(2), and the priority is the thread's own.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}

impl Switch {
    pub(super) fn start(clock: Clock, table: Arc<Table>, seed: Seed) -> io::Result<Self> {
        let fabric = Arc::new(Mutex::new(Fabric::new(clock, table, seed)));
        let watched = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&*watched, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        let turns = Turns { clock, fabric: Arc::clone(&fabric), watched: Arc::clone(&watched) };
        let thread =
            std::thread::Builder::new().name("testbed-switch".to_owned()).spawn(move || {
                take_precedence();
                turns.run();
            })?;
        Ok(Self { fabric, watched, bell, thread: Mutex::new(Some(thread)) })
    }

    /// One more device. Gives its place.
    pub(super) fn add(&self, tun: OwnedFd) -> io::Result<usize> {
        let mut fabric = self.fabric();
        let place = fabric.add(tun);
        let data = epoll::EventData::new_u64(place as u64);
        epoll::add(&*self.watched, fabric.tun(place), data, epoll::EventFlags::IN)?;
        Ok(place)
    }

    pub(super) fn fabric(&self) -> MutexGuard<'_, Fabric> {
        lock(&self.fabric)
    }

    /// Whether the thread has ended, which it does when it is told to or by a panic.
    pub(super) fn has_ended(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the thread and closes the devices. What waits is lost.
    pub(super) fn stop(&self) {
        // It fails only after 2^64 rings without a listener, and then the bell is ringing.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there has been printed by the panic hook.
            let _ = thread.join();
        }
        self.fabric().clear();
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A panic of the switch's thread leaves counters that are still worth reading; that it ended is reported.
fn lock(fabric: &Mutex<Fabric>) -> MutexGuard<'_, Fabric> {
    fabric.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's own.
struct Turns {
    clock: Clock,
    fabric: Arc<Mutex<Fabric>>,
    watched: Arc<OwnedFd>,
}

impl Turns {
    fn run(&self) {
        // The kernel may add 50 µs to a sleep to save energy; refused, it only makes packets that much later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let scheduling = File::open("/proc/thread-self/schedstat").ok();
        lock(&self.fabric).thread = Some(rustix::thread::gettid());
        let mut buffer = fabric::buffer();
        let mut ready = Vec::with_capacity(READY_MAX);
        let mut kept_waiting = kept_waiting_ns(scheduling.as_ref());
        let (mut next, mut looked) = (None, self.clock.now());
        loop {
            let before = looked;
            let slept_from = self.await_work(next, &mut ready);
            looked = self.clock.now();
            let mut wake = Wake {
                looked: slept_from.unwrap_or(before),
                has_slept: slept_from.is_some(),
                kept_waiting_ns: 0,
            };
            if wake.has_slept {
                let now = kept_waiting_ns(scheduling.as_ref());
                wake.kept_waiting_ns = now.saturating_sub(kept_waiting);
                kept_waiting = now;
            }
            let mut fabric = lock(&self.fabric);
            fabric.follow();
            fabric.release();
            for event in ready.drain(..) {
                match event.data.u64() {
                    BELL => return,
                    place => self.turn(&mut fabric, place, wake, &mut buffer),
                }
            }
            next = fabric.next();
        }
    }

    fn turn(&self, fabric: &mut Fabric, place: u64, wake: Wake, buffer: &mut [u8]) {
        let place = usize::try_from(place).expect("it was a place before");
        if !fabric.read(place, wake, buffer) {
            // Watched any longer it would be ready for ever.
            let _ = epoll::delete(&*self.watched, fabric.tun(place));
        }
        fabric.release();
    }

    /// Fills `ready` with what can be read, waiting until `next` at most. Gives when it began to sleep, if it did.
    fn await_work(&self, next: Option<Instant>, ready: &mut Vec<epoll::Event>) -> Option<Instant> {
        self.look(ready);
        let now = self.clock.now();
        if !ready.is_empty() || next.is_some_and(|next| next <= now) {
            return None;
        }
        let at_most = next.map(|next| {
            let wait = next.saturating_since(now);
            Timespec::try_from(wait).expect("a packet is due within the age of the machine")
        });
        // An interruption is a look too early.
        let _ = poll(&mut [PollFd::new(&*self.watched, PollFlags::IN)], at_most.as_ref());
        self.look(ready);
        Some(now)
    }

    fn look(&self, ready: &mut Vec<epoll::Event>) {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        ready.clear();
        let room = rustix::buffer::spare_capacity(ready);
        let _ = epoll::wait(&*self.watched, room, Some(&at_once));
    }
}

/// For how long a thread could have run and was not let since it began, nanoseconds; 0 if the kernel does not say.
fn kept_waiting_ns(scheduling: Option<&File>) -> u64 {
    let mut text = [0; 64];
    let read = scheduling.and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
    let text = std::str::from_utf8(&text[..read]).unwrap_or("");
    text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
