//! What kind of server it is. Values only; `command_line` reads them.

use std::time::Duration;

use crate::faults::{Faults, LATE_BY, REORDER_BY};
use crate::queue::Distribution;

/// How a client learns that a transaction is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitWay {
    /// By an answer on the connection that submitted it.
    #[default]
    Answer,
    /// On connections that have subscribed.
    Observer,
    /// By asking.
    Poll,
}

impl CommitWay {
    /// The word in options.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Observer => "observer",
            Self::Poll => "poll",
        }
    }
}

/// The server.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Servers of the queue.
    pub servers: u32,
    /// Mean service time; zero: answered at once.
    pub service: Duration,
    /// How it is distributed.
    pub distribution: Distribution,
    /// The most that wait, beside those being served; `None`: no bound.
    pub queue_max: Option<u32>,
    /// What service times and lies are drawn from.
    pub seed: u64,
    /// How commits are told.
    pub commit: CommitWay,
    /// The kind that reads a register instead of writing to the ledger.
    pub reads: Option<u16>,
    /// 1: committed. 2: accepted, then committed. 3: accepted, started, committed.
    pub stages: u8,
    /// Whether what is acknowledged is on the disk first (fdatasync, once for all of a turn).
    pub syncs: bool,
    /// Whether batches are taken.
    pub batches: bool,
    /// Whether a client's transactions must come in their order, on one connection as long as that is open.
    pub ordered: bool,
    /// What each frame with transactions costs a server, whatever is in it.
    pub per_frame: Duration,
    /// The most batches outstanding on a connection, more are answered as overloaded; 0: no bound.
    pub frames_max: u32,
    /// What is wrong with it.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            servers: 1,
            service: Duration::ZERO,
            distribution: Distribution::Constant,
            queue_max: None,
            seed: 1,
            commit: CommitWay::Answer,
            reads: None,
            stages: 1,
            syncs: false,
            batches: false,
            ordered: false,
            per_frame: Duration::ZERO,
            frames_max: 0,
            faults: Faults { late_by: LATE_BY, reorder_by: REORDER_BY, ..Faults::default() },
        }
    }
}
