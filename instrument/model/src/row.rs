//! One row a transaction: the record that everything after the load is computed from.

use crate::outcome::Outcome;

/// A transaction's number in its trial: dense from 0, in the order of the due times of its worker. In a closed loop a
/// client's next one is numbered while its last one is outstanding, so that numbers are in nearly that order, and of
/// the last ones up to one a client is missing.
pub type TxId = u64;

/// The number of the probe's first transaction: those of the main load are below it.
pub const PROBE_BASE: TxId = 1 << 40;

/// Nanoseconds after the trial's start (the first moment of the warm-up), or [`NO_STAMP`].
pub type Stamp = i64;

/// The stamp of something that did not happen.
pub const NO_STAMP: Stamp = i64::MIN;

/// The most stages that a system's ladder can have.
pub const STAGES_MAX: usize = 4;

/// The record of one transaction. Stamps are nanoseconds after the trial's start.
///
/// `due ≤ ready ≤ sent ≤ marks ≤ end` holds for every row whose stamps exist; the stage-order audit checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The transaction.
    pub tx: TxId,
    /// When it should have been sent.
    pub due: Stamp,
    /// When it could first have been sent: the later of `due` and the moment a connection was free.
    /// `sent − ready` is the instrument's own lateness; `ready − due` is time spent waiting for the system.
    pub ready: Stamp,
    /// When its bytes were handed to the socket, or [`NO_STAMP`] if it was shed.
    pub sent: Stamp,
    /// When it reached each stage of the system's ladder; [`NO_STAMP`] where it did not. A mark is when this host's
    /// kernel received the last byte of what says so, by its stamp; where there is no stamp, when that was read.
    pub marks: [Stamp; STAGES_MAX],
    /// When its outcome was known: the final answer, the timeout, the loss of its connection, or the shedding. An
    /// answer counts from when it arrived, as a mark does.
    pub end: Stamp,
    /// How long what ended it, its final mark or its refusal, lay in the kernel before it was read, in nanoseconds: the
    /// thread's read less the kernel's stamp. It is no part of marks and end. [`NO_STAMP`]: no stamp was had (a channel,
    /// a client library, a connection that is not sampled), or no answer ended it.
    pub receive_lag: i64,
    /// Its outcome.
    pub outcome: Outcome,
    /// The system's own code for the answer (an HTTP status, a CheckTx code); 0 = no answer.
    pub code: u16,
    /// Index into the trial's table of error texts; 0 = none.
    pub error: u16,
    /// Index into the trial's table of kinds (targets, operation names).
    pub kind: u32,
    /// The connection that carried it.
    pub connection: u32,
    /// The engine thread.
    pub worker: u8,
    /// The load stream: 0 the main (or background) load, 1 the probe.
    pub stream: u8,
    /// How many times it was sent; 0 = never. More than 1 only where the load resends what is unknown.
    pub attempts: u8,
    /// Whose it is: the client of a closed loop, or what the workload calls one (an account, a session); 0 where
    /// there are none.
    pub client: u32,
    /// Payload bytes out (bodies only, as vegeta counts).
    pub bytes_out: u32,
    /// Payload bytes in (bodies only).
    pub bytes_in: u32,
}

/// No stamp of a trial lies this far from its start, before or after: thirty-six years, in nanoseconds. Differences of those that
/// are nearer cannot overflow.
pub const STAMP_MAX_NS: u64 = 1 << 60;

impl Row {
    /// True where every stamp is one that a trial can have. A record of others is damaged, and never computed with.
    #[inline]
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        let within = |stamp: i64| stamp.unsigned_abs() < STAMP_MAX_NS;
        let absent_or_within = |stamp: i64| stamp == NO_STAMP || within(stamp);
        within(self.due)
            && within(self.end)
            && absent_or_within(self.sent)
            && (within(self.ready) || (self.ready == NO_STAMP && self.sent == NO_STAMP))
            && self.marks.into_iter().all(absent_or_within)
            && absent_or_within(self.receive_lag)
    }

    /// A row that says nothing: what is made by hand, or read column by column, begins with it.
    pub const EMPTY: Self = Self {
        tx: 0,
        due: NO_STAMP,
        ready: NO_STAMP,
        sent: NO_STAMP,
        marks: [NO_STAMP; STAGES_MAX],
        end: NO_STAMP,
        receive_lag: NO_STAMP,
        outcome: Outcome::Committed,
        code: 0,
        error: 0,
        kind: 0,
        connection: 0,
        worker: 0,
        stream: 0,
        attempts: 0,
        client: 0,
        bytes_out: 0,
        bytes_in: 0,
    };

    /// Response time to `stage` in nanoseconds, from the due time: what a user waits.
    #[must_use]
    #[inline]
    pub fn response_ns(&self, stage: usize) -> Option<i64> {
        let mark = self.marks[stage];
        (mark != NO_STAMP).then(|| mark - self.due)
    }

    /// Service time to `stage` in nanoseconds, from the moment it was sent.
    #[must_use]
    #[inline]
    pub fn service_ns(&self, stage: usize) -> Option<i64> {
        let mark = self.marks[stage];
        (mark != NO_STAMP && self.sent != NO_STAMP).then(|| mark - self.sent)
    }

    /// Send lag in nanoseconds: `sent − due`.
    #[must_use]
    #[inline]
    pub fn send_lag_ns(&self) -> Option<i64> {
        (self.sent != NO_STAMP).then(|| self.sent - self.due)
    }

    /// What of the response time is known to be the instrument's own, in nanoseconds, never negative: its part of the send
    /// lag. The receive lag is in no mark that the kernel stamped, and of others it is not known.
    #[must_use]
    #[inline]
    pub fn instrument_lag_ns(&self) -> i64 {
        self.own_lag_ns().unwrap_or(0).max(0)
    }

    /// The part of the send lag that is the instrument's own: `sent − ready`.
    #[must_use]
    #[inline]
    pub fn own_lag_ns(&self) -> Option<i64> {
        (self.sent != NO_STAMP).then(|| self.sent - self.ready)
    }

    /// How late what ended it was read, in nanoseconds; `None` where there was no stamp.
    #[must_use]
    #[inline]
    pub fn receive_lag_ns(&self) -> Option<i64> {
        (self.receive_lag != NO_STAMP).then_some(self.receive_lag)
    }
}
