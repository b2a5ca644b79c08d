//! The suite that every adapter passes, without the engine and without a socket.
//!
//! A [`Session`] is talked to as the engine would talk to it, against a [`Peer`]: a function from the bytes of
//! requests to the bytes of answers. That can be a real node stepped in virtual time, or a canned responder.
//! What is looked for is what would make a measurement lie: a session that hides a queue, answers twice,
//! answers for a transaction it was never given, never answers, takes bytes that were not there, finds
//! something else when the same bytes come in other pieces, keeps something over a reset, panics or hangs.
//!
//! The suite never judges the system: that a node drops or repeats answers is for the audits. What a hostile server may do
//! is another matter: [`hostile_conformance`] plays an adapter's list of it to a session, which must see each.
//!
//! ```text
//! session_conformance(&Subject::new(&|| session(), &|| peer(), &|| workload())).unwrap();
//! system_conformance(&*system).unwrap();
//! ```

mod content;
mod fuzzed;
mod hostile;
pub mod hostile_websocket;
mod line;
pub mod options;
mod peers;
mod replay;
mod scenarios;
mod series;
mod system;
#[cfg(test)]
mod tests;

use std::fmt;

pub use content::{expect_damage_told, expect_in_readme};
pub use fuzzed::{same_in_pieces, seeds_and_neighbours, with_outstanding};
pub use hostile::{Behaviour, Seen, Step, hostile_conformance};
pub use peers::{expect_ready_once_subscribed, http2_peer, switched};
pub use replay::observer_conformance;
pub use series::series_conformance;
pub use system::system_conformance;

use crate::{Session, Workload};

/// The other end of one connection: takes what the session wrote (any number of requests, whole or not) and
/// gives what comes back. It must be honest: each transaction answered once. It keeps parts of requests itself.
pub type Peer = Box<dyn FnMut(&[u8]) -> Vec<u8>>;

/// The most transactions that are outstanding at once, whatever `in_flight_max` allows.
pub const IN_FLIGHT_TRIED_MAX: u32 = 256;

/// A session under the suite, and what it needs.
pub struct Subject<'a> {
    /// Makes a session for a new submitting connection. All must be alike.
    pub session: &'a dyn Fn() -> Box<dyn Session>,
    /// Makes the other end of a new connection. All must be alike.
    pub peer: &'a dyn Fn() -> Peer,
    /// Makes the source of transactions. All must be alike.
    pub workload: &'a dyn Fn() -> Box<dyn Workload>,
    /// Length of the ladder ([`crate::System::stages`]).
    pub stages: usize,
    /// The highest stage that this connection itself reports: a transaction is settled when it has reached it
    /// or has ended. Lower than the ladder's last where observers see the rest.
    pub settled_stage: u8,
    /// Whether transactions are submitted here; an observer only watches.
    pub submits: bool,
}

impl<'a> Subject<'a> {
    /// A subject whose ladder has one stage.
    #[must_use]
    pub fn new(
        session: &'a dyn Fn() -> Box<dyn Session>,
        peer: &'a dyn Fn() -> Peer,
        workload: &'a dyn Fn() -> Box<dyn Workload>,
    ) -> Self {
        Self { session, peer, workload, stages: 1, settled_stage: 0, submits: true }
    }

    /// The same with a ladder of `stages`, of which this connection reports up to `settled_stage`.
    #[must_use]
    pub const fn ladder(mut self, stages: usize, settled_stage: u8) -> Self {
        self.stages = stages;
        self.settled_stage = settled_stage;
        self
    }

    /// The same for an observer's connection: nothing is submitted. For [`hostile_conformance`].
    #[must_use]
    pub const fn watching(mut self) -> Self {
        self.submits = false;
        self
    }
}

/// Runs a session through every scenario.
///
/// # Errors
/// With one breach a scenario, each naming what was done and what the session did.
pub fn session_conformance(subject: &Subject<'_>) -> Result<(), Breaches> {
    let mut list = Vec::new();
    for (scenario, work) in scenarios::ALL {
        let Err(words) = guarded(|| work(subject)) else { continue };
        list.push(Breach { scenario, words });
        if *scenario == scenarios::ARBITRARY_BYTES {
            break;
        }
    }
    Breaches::unless_empty(list)
}

/// One rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The scenario.
    pub scenario: &'static str,
    /// The session's behaviour, in one sentence.
    pub words: String,
}

/// Every rule that was broken.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct Breaches {
    /// At least one.
    pub list: Vec<Breach>,
}

impl Breaches {
    fn unless_empty(list: Vec<Breach>) -> Result<(), Self> {
        if list.is_empty() { Ok(()) } else { Err(Self { list }) }
    }
}

impl fmt::Display for Breaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the contract is not kept:")?;
        self.list
            .iter()
            .try_for_each(|breach| write!(f, "\n  {}: {}", breach.scenario, breach.words))
    }
}

/// As displayed, so that `unwrap` in a test can be read.
impl fmt::Debug for Breaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Calls `work`; a panic in it becomes a breach.
fn guarded(work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(panic_words(payload.as_ref())))
}

/// The message of a panic.
fn panic_words(payload: &(dyn std::any::Any + Send)) -> String {
    let said = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    format!("panicked: {said}")
}
