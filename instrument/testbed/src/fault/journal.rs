//! What was really done, and when: written by every thread of an injection, handed on as it happens, so that a crash
//! keeps what was done before it.
//!
//! The stamp is taken here, under the lock, so that the order of events is that of time, but for what took a while to be done.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clock::{Clock, Instant};
use model::fault::{FaultDetail, FaultEvent, FaultPhase};
use model::plan::FaultPlan;

use super::FaultSink;

/// The most events. A rotation of many nodes that comes round every second for a week would make millions; the
/// last event then says that it is the last.
const EVENTS_MAX: usize = 100_000;

/// One fault of the plan: whose events they are.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// Its place in the plan.
    pub index: u32,
    pub plan: FaultPlan,
}

/// Copies write to the same list.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    clock: Clock,
    /// When the trial began: stamps count from it. Until it is known, nothing can have been done to anybody.
    trial_start: Arc<OnceLock<Instant>>,
    written: Arc<Mutex<Written>>,
}

struct Written {
    sink: FaultSink,
    count: usize,
}

impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Written").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Journal {
    pub fn new(clock: Clock, sink: FaultSink) -> Self {
        let written = Arc::new(Mutex::new(Written { sink, count: 0 }));
        Self { clock, trial_start: Arc::default(), written }
    }

    /// Says when the trial began.
    pub fn begins(&self, at: Instant) {
        // It begins once; a second word on it is the same.
        let _ = self.trial_start.set(at);
    }

    pub fn note(&self, phase: FaultPhase, of: &Fault, of_whom: (&str, u32), detail: FaultDetail) {
        self.note_when(None, phase, of, of_whom, detail);
    }

    /// The same of what began before, and took until now.
    pub fn note_at(
        &self,
        at: Instant,
        phase: FaultPhase,
        of: &Fault,
        of_whom: (&str, u32),
        detail: FaultDetail,
    ) {
        self.note_when(Some(at), phase, of, of_whom, detail);
    }

    fn note_when(
        &self,
        at: Option<Instant>,
        phase: FaultPhase,
        of: &Fault,
        (node, cycle): (&str, u32),
        detail: FaultDetail,
    ) {
        let mut written = self.written();
        let at = at.unwrap_or_else(|| self.clock.now());
        let detail = match written.count {
            ..EVENTS_MAX => detail,
            EVENTS_MAX => FaultDetail::TooMuch,
            _ => return,
        };
        written.count += 1;
        // What never began did nothing, at no time of the trial's.
        let at_ns = self.trial_start.get().map_or(0, |start| at.ns_since(*start));
        (written.sink)(FaultEvent {
            fault: of.index,
            cycle,
            phase,
            kind: of.plan.kind.clone(),
            node: node.to_owned(),
            planned_ns: i64::try_from(of.plan.at.as_nanos()).unwrap_or(i64::MAX),
            at_ns,
            detail,
        });
    }

    /// A thread that panicked with the lock has handed its event on or not; either way the next is whole.
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
