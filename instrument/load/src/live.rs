//! A progress display's view of a running trial: a few counters, refreshed four times a second or more.
//! It is for eyes only; no result is ever computed from it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clock::Instant;

/// Where a trial is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being opened.
    #[default]
    Opening,
    /// Load that is sent and not counted.
    Warmup,
    /// The measured window.
    Measure,
    /// Waiting for what is outstanding.
    Drain,
    /// Over.
    Done,
}

/// The live counters of a trial.
#[derive(Debug, Default)]
pub struct Live {
    pub(crate) phase: AtomicU8,
    started: OnceLock<Instant>,
    pub(crate) elapsed_ns: AtomicI64,
    pub(crate) offered: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) outstanding: AtomicU64,
    pub(crate) backlog: AtomicU64,
    pub(crate) own_lag_p99_ns: AtomicI64,
    pub(crate) latency_p50_ns: AtomicI64,
    pub(crate) latency_p99_ns: AtomicI64,
}

/// One reading of [`Live`]. The counters are read one by one and may be a moment apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSnapshot {
    /// Where the trial is.
    pub phase: Phase,
    /// Since the trial's start (stamp 0).
    pub elapsed: Duration,
    /// Transactions that have fallen due.
    pub offered: u64,
    /// Sent.
    pub sent: u64,
    /// Reached the final stage.
    pub committed: u64,
    /// Ended otherwise.
    pub failed: u64,
    /// Sent and not ended.
    pub outstanding: u64,
    /// Due and not sent.
    pub backlog: u64,
    /// Of those that ended in the last second: `sent − ready`, p99; `None` if none did.
    pub own_lag_p99_ns: Option<i64>,
    /// Of those that committed in the last second: response time p50.
    pub latency_p50_ns: Option<i64>,
    /// p99.
    pub latency_p99_ns: Option<i64>,
}

impl Live {
    /// Reads the counters.
    #[must_use]
    pub fn snapshot(&self) -> LiveSnapshot {
        let quantile = |from: &AtomicI64| Some(from.load(Relaxed)).filter(|ns| *ns > 0);
        let elapsed_ns = u64::try_from(self.elapsed_ns.load(Relaxed)).unwrap_or(0);
        LiveSnapshot {
            phase: match self.phase.load(Relaxed) {
                0 => Phase::Opening,
                1 => Phase::Warmup,
                2 => Phase::Measure,
                3 => Phase::Drain,
                _ => Phase::Done,
            },
            elapsed: Duration::from_nanos(elapsed_ns),
            offered: self.offered.load(Relaxed),
            sent: self.sent.load(Relaxed),
            committed: self.committed.load(Relaxed),
            failed: self.failed.load(Relaxed),
            outstanding: self.outstanding.load(Relaxed),
            backlog: self.backlog.load(Relaxed),
            own_lag_p99_ns: quantile(&self.own_lag_p99_ns),
            latency_p50_ns: quantile(&self.latency_p50_ns),
            latency_p99_ns: quantile(&self.latency_p99_ns),
        }
    }

    /// When the trial's line began (stamp 0), on the clock that it was given; `None` while connections are opened.
    #[must_use]
    pub fn started(&self) -> Option<Instant> {
        self.started.get().copied()
    }

    /// Shows a reading of other processes in place of this one's.
    pub fn show(&self, of: &LiveSnapshot) {
        let ns = |ns: Option<i64>| ns.unwrap_or(0);
        self.set_phase(of.phase);
        self.elapsed_ns.store(i64::try_from(of.elapsed.as_nanos()).unwrap_or(i64::MAX), Relaxed);
        self.offered.store(of.offered, Relaxed);
        self.sent.store(of.sent, Relaxed);
        self.committed.store(of.committed, Relaxed);
        self.failed.store(of.failed, Relaxed);
        self.outstanding.store(of.outstanding, Relaxed);
        self.backlog.store(of.backlog, Relaxed);
        self.own_lag_p99_ns.store(ns(of.own_lag_p99_ns), Relaxed);
        self.latency_p50_ns.store(ns(of.latency_p50_ns), Relaxed);
        self.latency_p99_ns.store(ns(of.latency_p99_ns), Relaxed);
    }

    /// Says when the trial's line began; once.
    pub fn set_started(&self, at: Instant) {
        // A trial starts once; a second call would be a second trial on the same counters.
        let _ = self.started.set(at);
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }
}
