//! What a running injection says, for tests: every event as it comes, and short words for each.

use std::sync::{Arc, Mutex};

use model::fault::FaultEvent;
use testbed::{FaultRunner, FaultSink};

/// Events of an injection, as they come.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<FaultEvent>>>);

/// An injection whose events are seen.
pub struct Running {
    pub runner: FaultRunner,
    pub seen: Seen,
}

impl Seen {
    pub fn sink(&self) -> FaultSink {
        let seen = Arc::clone(&self.0);
        Box::new(move |event| seen.lock().unwrap().push(event))
    }

    pub fn events(&self) -> Vec<FaultEvent> {
        self.0.lock().unwrap().clone()
    }
}

impl Running {
    /// Ends it and gives all that it said.
    pub fn finish(self) -> Vec<FaultEvent> {
        self.runner.finish();
        self.seen.events()
    }
}

/// `fault_start pause a-1`.
pub fn short(events: &[FaultEvent]) -> Vec<String> {
    let one = |event: &FaultEvent| format!("{} {} {}", event.phase.word(), event.kind, event.node);
    events.iter().map(one).collect()
}
