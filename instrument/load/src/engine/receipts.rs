//! When bytes arrived and when they were read: what the engine itself adds to a response time behind its due time. A
//! share of the connections is stamped by the kernel; the kernel's stamps are by the wall clock, and whoever sets that is
//! noticed.
//!
//! The lag is not in a row, because most rows have none. It is counted here, with the response times of the same
//! transactions, so that the analysis can say what share of a quantile it is.

use std::ops::Range;

use clock::{Clock, Instant, WallRelation, WallTime};
use model::facts::ReceiveFacts;
use model::plan::{Arrivals, LoadPlan, Schedule};
use model::quantity::Rate;
use model::{NO_STAMP, Stamp};

use super::receive::Found;
use crate::buckets::Buckets;
use crate::connection::OBSERVER;
use crate::trial::Trial;

/// Of a load that may be as fast as the generator can, the first connection of a stream is stamped and each so-many-th
/// after it: a receipt with control data costs a quarter of a microsecond more, which is one part in fifty of what a
/// request costs, for one in so many. A prime, so that what repeats with the number of a connection, as the node that it
/// goes to, is not in step with it. (That the kernel stamps every packet of the host once anybody asks is the larger part
/// of what is paid: some 2 %.)
const STAMPED_EVERY: u32 = 13;
/// A schedule that never asks for more than this a second has all of its connections stamped: a quarter of a microsecond
/// each is then no more than one part in four hundred of a processor.
const ALL_STAMPED_PER_S_MAX: f64 = 10_000.0;
/// Looks at the two clocks before the load, of which the narrowest counts.
const LOOKS: usize = 16;
/// 128 buckets to a power of two: 0.8 % wide.
const DIGITS: u32 = 7;

/// The receipts of one worker.
pub(super) struct Receipts {
    relation: WallRelation,
    /// When the last byte of the receipt arrived whose findings are being taken; [`NO_STAMP`]: nobody knows.
    pub at: Stamp,
    counted: ReceiveFacts,
    lag: Buckets<DIGITS>,
    response: Buckets<DIGITS>,
    without: Buckets<DIGITS>,
    /// Whose response times are the result, and which of them by their due time.
    stream: u8,
    window: Range<Stamp>,
    /// Which of its connections are stamped: each so-many-th.
    every: u32,
}

impl Receipts {
    pub(super) fn new(trial: &Trial<'_>) -> Self {
        let clock = &trial.setup.deployment.clock;
        let looks = (0..LOOKS).map(|_| clock.wall_relation());
        let relation = looks.min_by_key(|relation| relation.error_ns());
        Self {
            relation: relation.expect("at least one look"),
            at: NO_STAMP,
            counted: ReceiveFacts::default(),
            lag: Buckets::default(),
            response: Buckets::default(),
            without: Buckets::default(),
            stream: u8::from(trial.setup.plan.probe.is_some()),
            window: trial.window.measure_start..trial.window.measure_end,
            every: stamped_every(&trial.setup.plan.load, trial.setup.plan.probe.is_some()),
        }
    }

    /// Whether the kernel is asked to stamp what comes on a connection: the n-th, from 0, of its stream.
    pub(super) fn wants_stamps(&self, stream: u8, nth: u32) -> bool {
        // An observer hears of many transactions at once.
        stream == OBSERVER || (stream == self.stream && nth.is_multiple_of(self.every))
    }

    /// Looks again how the kernel's clock stands to the trial's.
    pub(super) fn relate(&mut self, clock: &Clock) {
        let relation = clock.wall_relation();
        let moved_ns = relation.moved_since(self.relation);
        if moved_ns > 0 {
            self.counted.clock_moved_ns = self.counted.clock_moved_ns.max(moved_ns);
            self.relation = relation;
        } else if relation.error_ns() < self.relation.error_ns() {
            self.relation = relation;
        }
    }

    /// A receipt that was to be stamped has been read. Stamps count from `origin`.
    pub(super) fn take(&mut self, arrived: Option<WallTime>, now: Stamp, origin: Instant) {
        self.at = NO_STAMP;
        self.counted.receipts += 1;
        let Some(arrived) = arrived else { return };
        self.counted.stamped += 1;
        let error_ns = self.relation.error_ns();
        self.counted.clock_error_ns = self.counted.clock_error_ns.max(error_ns);
        let at = self.relation.instant_of(arrived).ns_since(origin);
        if at > now + error_ns {
            self.counted.impossible += 1;
        } else {
            self.at = at.min(now);
        }
    }

    /// A transaction of this worker was committed by a receipt.
    pub(super) fn committed(&mut self, stream: usize, due: Stamp, found: Found) {
        let is_measured = stream == usize::from(self.stream) && self.window.contains(&due);
        if found.arrived == NO_STAMP || !is_measured {
            return;
        }
        let (response, lag) = (found.at - due, found.at - found.arrived);
        self.lag.add(lag);
        self.response.add(response);
        self.without.add(response - lag);
    }

    /// What was counted.
    pub(super) fn facts(&self) -> ReceiveFacts {
        ReceiveFacts {
            lag: self.lag.list(),
            response: self.response.list(),
            without: self.without.list(),
            ..self.counted.clone()
        }
    }
}

/// Which connections of the measured stream are stamped. A probe is a light client.
fn stamped_every(load: &LoadPlan, is_probe: bool) -> u32 {
    let is_slow = |rate: Rate| rate.as_per_second() <= ALL_STAMPED_PER_S_MAX;
    let is_light = match &load.arrivals {
        Arrivals::Closed { .. } => false,
        Arrivals::Open { schedule } => match schedule {
            Schedule::Constant { rate }
            | Schedule::Poisson { rate }
            | Schedule::Burst { rate, .. } => is_slow(*rate),
            Schedule::Ramp { from, to } => is_slow(*from) && is_slow(*to),
            Schedule::Steps { steps } => steps.iter().all(|step| is_slow(step.rate)),
            Schedule::Trace { .. } => false,
        },
    };
    if is_probe || is_light { 1 } else { STAMPED_EVERY }
}
