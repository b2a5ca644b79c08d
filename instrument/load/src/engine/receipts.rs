//! When bytes arrived and when they were read. The kernel stamps what it receives by the wall clock; here that becomes a
//! stamp of the trial, so that a mark is of when its answer arrived, and how late the engine read it is kept beside it. A
//! stamp that cannot be is not used and not corrected: it is counted, and the mark is of when it was read.

use std::time::Duration;

use clock::{Clock, Instant, WallRelation, WallTime};
use model::facts::ReceiveFacts;
use model::plan::{Arrivals, LoadPlan};
use model::{NO_STAMP, Stamp};

use super::receive::Found;
use crate::connection::OBSERVER;
use crate::schedule::is_saturating;
use crate::trial::Trial;

/// Of a load that is as fast as the generator can, each so-many-th connection of a thread is stamped, its first one among
/// them: a receipt with control data costs a quarter of a microsecond more, which is one part in twenty of what a request
/// costs there. A prime, so that what repeats with the number of a connection, as the node that it goes to, is not in step
/// with it. (That the kernel stamps every packet of the host once somebody asks costs some 2 %, whatever the share.)
const STAMPED_EVERY: u32 = 13;
/// Where such a load has no more connections than these, a request costs eight microseconds and more, of which a quarter is
/// no more than three parts in a hundred: all are stamped.
const ALL_STAMPED_MAX: u32 = 32;
/// A relation of the two clocks that is known no better than this is of a moment at which this thread was not run: a stamp
/// is then worth less than the reading, and the next look knows more.
const ERROR_NS_MAX: i64 = 10_000;
/// Looks at the two clocks before the load, of which the narrowest counts.
const LOOKS: usize = 16;

/// The receipts of one worker.
pub(super) struct Receipts {
    clock: Clock,
    relation: WallRelation,
    /// Whether the clocks were looked at in this turn, and whether the wall clock was found to have been set.
    is_related: bool,
    is_moved: bool,
    /// When the last byte of the receipt arrived whose findings are being taken; [`NO_STAMP`]: unknown.
    pub at: Stamp,
    counted: ReceiveFacts,
    /// Receipts on connections that are not stamped.
    others: u64,
    /// Which connections of the main load are stamped: each so-many-th.
    every: u32,
}

/// Of a hundred receipts so many have a stamp where all have one: the kernel begins some moments after it was asked.
const STAMPED_IN_100: u64 = 99;

impl Receipts {
    pub(super) fn new(trial: &Trial<'_>) -> Self {
        let clock = trial.setup.deployment.clock;
        let looks = (0..LOOKS).map(|_| clock.wall_relation());
        let relation = looks.min_by_key(|relation| relation.error_ns());
        Self {
            clock,
            relation: relation.expect("at least one look"),
            is_related: false,
            is_moved: false,
            at: NO_STAMP,
            counted: ReceiveFacts::default(),
            others: 0,
            every: stamped_every(&trial.setup.plan.load),
        }
    }

    /// Whether the kernel is asked to stamp what comes on a connection: the n-th, from 0, of its stream.
    pub(super) const fn wants_stamps(&self, stream: u8, nth: u32) -> bool {
        // An observer hears of many transactions at once, and a probe is light: its latency is the result.
        stream == OBSERVER || stream > 0 || nth.is_multiple_of(self.every)
    }

    /// A turn begins, with what has arrived since the last one.
    pub(super) const fn begin_turn(&mut self) {
        self.is_related = false;
        self.is_moved = false;
    }

    /// A receipt that was to be stamped has been read. Stamps count from `origin`.
    pub(super) fn take(&mut self, arrived: Option<WallTime>, now: Stamp, origin: Instant) {
        self.at = NO_STAMP;
        self.counted.receipts += 1;
        let Some(arrived) = arrived else { return };
        self.counted.stamped += 1;
        if !self.is_related {
            self.relate();
        }
        let error_ns = self.relation.error_ns();
        if error_ns > ERROR_NS_MAX {
            return;
        }
        self.counted.clock_error_ns = self.counted.clock_error_ns.max(error_ns);
        let at = self.relation.instant_of(arrived).ns_since(origin);
        if self.is_moved || at > now + error_ns {
            self.counted.impossible += 1;
        } else {
            // It was there when it was read: what is later by no more than the error is that moment.
            self.at = at.min(now);
        }
    }

    /// A receipt that was not to be stamped has been read.
    pub(super) const fn pass(&mut self) {
        self.at = NO_STAMP;
        self.others += 1;
    }

    /// Whether every answer has a stamp, so that when it is read is in no response time.
    pub(super) const fn stamps_all(&self) -> bool {
        let ReceiveFacts { receipts, stamped, impossible, .. } = self.counted;
        let usable = stamped.saturating_sub(impossible);
        stamped > 0 && usable * 100 >= (receipts + self.others) * STAMPED_IN_100
    }

    /// Looks how the kernel's clock stands to the trial's, once in a turn that has a stamp. Where it was set, what this turn
    /// reads may have been stamped before or after that.
    fn relate(&mut self) {
        self.is_related = true;
        let relation = self.clock.wall_relation();
        let moved_ns = relation.moved_since(self.relation);
        if moved_ns > 0 {
            self.is_moved = true;
            self.counted.clock_moved_ns = self.counted.clock_moved_ns.max(moved_ns);
            self.relation = relation;
        } else if relation.error_ns() < self.relation.error_ns() {
            self.relation = relation;
        }
    }

    /// When an answer to what was sent at `sent` arrived, and by how much later it was read; without a stamp that can be,
    /// when it was read, and [`NO_STAMP`].
    pub(super) const fn arrival(&mut self, found: &Found, sent: Stamp) -> (Stamp, i64) {
        if found.arrived == NO_STAMP {
            return (found.read, NO_STAMP);
        }
        if found.arrived < sent {
            self.counted.early += 1;
            return (found.read, NO_STAMP);
        }
        (found.arrived, found.read - found.arrived)
    }

    /// The counts.
    pub(super) fn facts(&self) -> ReceiveFacts {
        self.counted.clone()
    }
}

/// Which connections of the main load are stamped.
fn stamped_every(load: &LoadPlan) -> u32 {
    let follows_answers = match &load.arrivals {
        Arrivals::Closed { think, .. } => *think == Duration::ZERO,
        Arrivals::Open { schedule } => is_saturating(schedule),
    };
    let connections = load.connections.max(load.connections_max);
    if follows_answers && connections > ALL_STAMPED_MAX { STAMPED_EVERY } else { 1 }
}
