//! The load engine: due times → bytes sent → marks stamped → one row a transaction.
//!
//! One thread per engine worker, each with its own event loop, connections, prepared transactions and row
//! buffer; workers share nothing on the path of a transaction and allocate nothing for one, whether it succeeds or fails.
//! The path, file by file: [`schedule`] says when, `source` prepares, `worker` decides, `driver` moves bytes,
//! `pending` knows what is outstanding, `recorder` hands rows to the [`RowSink`].
//!
//! This crate never interprets a protocol (that is a [`sut::Session`]'s), never writes a file (that is the
//! sink's), never retries a transaction, and never lets one that was due go without a row.

mod buckets;
mod calibrate;
mod call;
mod connection;
mod control;
mod demand;
mod drain;
mod driver;
mod engine;
mod error;
mod links;
mod live;
mod numbers;
mod pending;
mod place;
mod recorder;
mod run_queue;
pub mod schedule;
pub mod scripted;
mod source;
mod texts;
mod threads;
mod tls;
mod trial;
mod unread;

use std::sync::Arc;

use clock::{Clock, Instant};
pub use control::Control;
pub use drain::STOPPED_DRAIN_MAX;
pub use error::LoadError;
pub use live::{Live, LiveSnapshot, Phase};
use model::facts::{Calibration, Event, LoadFacts};
use model::plan::SettingPlan;
use model::{FinalStages, Observations, Row, Seed};
use sut::{Deployment, System};

/// One trial, as the engine needs it.
pub struct Setup<'a> {
    /// The remedy.
    pub plan: &'a SettingPlan,
    /// The ladder.
    pub stages: Vec<String>,
    /// Which of its stages counts as committed, by stream.
    pub final_stages: FinalStages,
    /// The system under test.
    pub system: &'a dyn System,
    /// Where it is, and the trial's clock, which stamps: its reading at the trial's start becomes stamp 0.
    pub deployment: &'a Deployment,
    /// The trial's seed.
    pub seed: Seed,
    /// How the trial is stopped from outside.
    pub control: Arc<Control>,
    /// The state for the display while it runs.
    pub live: Arc<Live>,
    /// The part of the plan that this process carries out; absent: all of it.
    pub part: Option<Part<'a>>,
}

/// One of several equal parts of a plan, which as many processes carry out together. Workers are numbered over all of them,
/// so that due times, numbers of transactions, clients and connections are split among the parts as they are among the
/// workers of one process: each belongs to exactly one.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Which one, from 0. The first one has the probe.
    pub index: u32,
    /// How many there are.
    pub of: u32,
    /// Asked when all connections are open: the trial's start on the clock of the setup, or nothing if it is called off.
    pub start: &'a (dyn Fn() -> Option<Instant> + Sync),
}

impl Part<'_> {
    /// How many workers each of `of` parts has, of a plan with so many threads a process and connections in all.
    #[must_use]
    pub fn workers(threads: u32, connections: u32, of: u32) -> u32 {
        threads.min(connections / of.max(1)).min(trial::WORKERS_MAX / of.max(1)).max(1)
    }
}

/// Where rows go. Called on the thread that called [`run`], at least every 100 ms while there are rows.
pub trait RowSink: Send {
    /// Takes rows, in the order in which their transactions ended on each worker.
    ///
    /// # Errors
    /// When they cannot be kept (disk full), in words. The load is stopped.
    fn rows(&mut self, rows: &[Row]) -> Result<(), String>;

    /// Takes what transactions were seen to return. Workers share the order, and a transaction's observations may come
    /// before its row or after it.
    ///
    /// # Errors
    /// As [`RowSink::rows`].
    fn observations(&mut self, observations: &Observations) -> Result<(), String>;

    /// Takes an event.
    fn event(&mut self, event: Event);
}

/// The results of a load beside its rows.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The engine's own facts.
    pub facts: LoadFacts,
    /// The trial's start, stamp 0, on the clock of the setup.
    pub start: Instant,
}

/// Carries out one trial, and returns when its last transaction has ended.
///
/// # Errors
/// When the load could not begin: no connection, no threads, a plan that cannot be carried out.
pub fn run(setup: Setup<'_>, sink: &mut dyn RowSink) -> Result<Loaded, LoadError> {
    threads::run(setup, sink)
}

/// Measures this machine and this engine against a target in this process that does nothing, in under a second.
///
/// # Errors
/// When the loopback interface cannot be used.
pub fn calibrate(clock: Clock) -> Result<Calibration, LoadError> {
    calibrate::calibrate(clock)
}

#[cfg(test)]
mod tests;
