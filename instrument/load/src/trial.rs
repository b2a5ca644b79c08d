//! State that the workers of one trial share: the plan, the clock, the texts of errors, and a few flags that are
//! looked at between transactions. Nothing here is locked on the path of a transaction.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clock::{Instant, WallTime};
use model::{NO_STAMP, Stamp};

use crate::Setup;
use crate::links::Links;
use crate::texts::Texts;

/// Events of a trial that are kept; all are counted.
const EVENTS_MAX: u64 = 10_000;
/// Engine threads: a row has eight bits for one.
pub(crate) const WORKERS_MAX: u32 = 255;

pub(crate) struct Trial<'a> {
    pub setup: Setup<'a>,
    /// Workers with an event loop, of all parts of the plan; there is one at least in the arithmetic of ids, also where
    /// everything is called.
    pub workers: u32,
    /// Those of this process.
    pub here: Range<u32>,
    /// The most connections of the main load: the plan's bound, or what the limit of open files leaves of it.
    pub connections_max: u32,
    /// Which streams go through a client library.
    pub links: Links,
    pub window: Timing,
    /// The trial's start (`Some(None)`: called off), fixed once all connections are open.
    start: Mutex<Option<Option<Instant>>>,
    started: Condvar,
    /// The record cannot take rows: everything ends at once.
    aborted: AtomicBool,
    /// Workers that may still be waiting for a mark.
    busy: AtomicU32,
    /// The texts of errors.
    pub texts: Texts,
    events: AtomicU64,
    /// The result of the first encrypted connection's negotiation.
    pub transport: OnceLock<String>,
    /// The last due stamp, if something cut the load short.
    cut_at: AtomicI64,
}

/// The plan's times as stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub measure_start: Stamp,
    pub measure_end: Stamp,
    pub drain_max_ns: i64,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(setup: Setup<'a>, links: Links, workers: u32, connections_max: u32) -> Self {
        let part = setup.part.map_or(0, |part| part.index);
        let here = part * workers..(part + 1) * workers;
        let workers = setup.part.map_or(1, |part| part.of) * workers;
        let load = &setup.plan.load;
        let window = Timing {
            measure_start: whole_ns(load.warmup),
            measure_end: whole_ns(load.warmup.saturating_add(load.duration)),
            drain_max_ns: whole_ns(load.drain_max),
        };
        Self {
            setup,
            workers,
            here: here.clone(),
            connections_max,
            links,
            window,
            start: Mutex::new(None),
            started: Condvar::new(),
            aborted: AtomicBool::new(false),
            busy: AtomicU32::new(here.end - here.start),
            texts: Texts::default(),
            events: AtomicU64::new(0),
            transport: OnceLock::new(),
            cut_at: AtomicI64::new(NO_STAMP),
        }
    }

    /// The threads of the load that report: workers with an event loop, and one that dispatches calls.
    pub(crate) fn seats(&self) -> u32 {
        let wired = if self.links.has_wires() { self.here.end - self.here.start } else { 0 };
        wired + u32::from(self.links.has_calls())
    }

    /// Fixes the trial's start, or (`None`) calls it off.
    pub(crate) fn begin(&self, start: Option<Instant>) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.started.notify_all();
    }

    /// Waits until the trial's start is fixed; `None`: it was called off.
    pub(crate) fn await_start(&self) -> Option<Instant> {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let start = self.started.wait_while(start, |start| start.is_none());
        start.unwrap_or_else(PoisonError::into_inner).flatten()
    }

    /// The wall time of a stamp; stamps count from `origin`.
    pub(crate) fn wall_at(&self, origin: Instant, stamp: Stamp) -> WallTime {
        let at = Instant::from_ns(origin.as_ns() + stamp);
        self.setup.deployment.clock.wall_at(at)
    }

    /// The connection of a client, by its worker's own index, where clients stay on theirs: `homes` says on how many.
    /// Clients of one worker are `workers` apart.
    pub(crate) fn home(&self, client: u32, homes: Option<u32>) -> Option<u32> {
        homes.map(|homes| client / self.workers % homes)
    }

    pub(crate) fn abort(&self) {
        self.aborted.store(true, Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Relaxed)
    }

    /// A worker has nothing outstanding and nothing to come.
    pub(crate) fn worker_is_through(&self) {
        self.busy.fetch_sub(1, Relaxed);
    }

    /// Whether every worker is through.
    pub(crate) fn all_are_through(&self) -> bool {
        self.busy.load(Relaxed) == 0
    }

    /// The load ended before its time, with this as its last due stamp on one worker.
    pub(crate) fn note_cut(&self, last_due: Stamp) {
        self.cut_at.fetch_max(last_due, Relaxed);
    }

    /// Where the load was cut short, if it was.
    pub(crate) fn cut_at(&self) -> Option<Stamp> {
        Some(self.cut_at.load(Relaxed)).filter(|at| *at != NO_STAMP)
    }

    /// Whether one more event may be kept.
    pub(crate) fn admits_event(&self) -> bool {
        self.events.load(Relaxed) < EVENTS_MAX && self.events.fetch_add(1, Relaxed) < EVENTS_MAX
    }
}

/// A duration as a signed number of nanoseconds; longer than 292 years is for ever.
pub(crate) fn whole_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
