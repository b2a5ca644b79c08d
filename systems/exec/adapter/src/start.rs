//! What starting a program takes.

use std::path::PathBuf;
use std::time::Duration;

use model::Seed;
use serde_json::Value;

use crate::line::Vocabulary;

/// A program to start, and how it is to be treated.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it is called in the testbed, for faults by name and in messages.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs; `None`: where this process runs.
    pub folder: Option<PathBuf>,
    /// Variables of this process's environment that it gets beside what any program gets.
    pub environment: Vec<String>,
    /// What it and the experiment speak of.
    pub words: Vocabulary,
    /// How many channels of the load it gets.
    pub channels: u32,
    /// Outstanding on a channel at most.
    pub in_flight_max: u32,
    /// How long each life may take until it has said what it is, and again until it has deployed.
    pub start_within: Duration,
    /// How long it may take to answer another question beside the load.
    pub answer_within: Duration,
    /// What it is told with `deploy`, as it is.
    pub options: Value,
    /// The trial's mark.
    pub run_mark: u64,
    /// What it is told to draw from, if it draws.
    pub seed: Seed,
}
