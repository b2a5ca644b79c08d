//! How long a worker may wait: until the next thing that has a time, by the plan's fidelity. Sleeping to each
//! due time costs a timer and a wake-up each; spinning costs a core; coalescing costs lag. The plan chooses. `balanced`
//! sleeps until a wake-up before the due time, as long as that takes on this host ([`super::wake`]).

use std::time::Duration;

use model::Stamp;
use model::plan::Pacing;

use super::{Engine, Stream};
use crate::driver::{Driver, Wait};

/// The quantum of `coalesced`, for sends and for answers.
const QUANTUM_NS: i64 = 1_000_000;
const QUANTUM: Duration = Duration::from_nanos(QUANTUM_NS.unsigned_abs());
/// More completions than come in a quantum that is worth ending early; less than the driver has buffers.
const QUANTUM_COUNT: u32 = 128;
/// A turn that brought more than this is in the middle of a long answer, whose rest the peer holds back until there
/// is room for it: not the time to wait.
const QUANTUM_BYTES_MAX: usize = 32 * 1024;
/// Control, live counters and rows are looked after at least this often: as often as people can tell. A wake-up
/// costs some 30 µs in a virtual machine, so that fifty a second were a third of what 200 transactions a second cost.
const LOOK_AROUND_NS: i64 = 100_000_000;
/// The same where somebody waits for the trial to end.
const STOPPED_NS: i64 = 10_000_000;
/// A worker that can be sent marks by another looks for them this often.
const ROUTED_NS: i64 = 1_000_000;
/// Where the kernel stamps every answer, when one is read is in no response time: it is read with the next send, if that is
/// due so soon. That saves one of two wake-ups a transaction, each of which costs some 15 µs in a virtual machine.
const READ_WITH_SEND_NS: i64 = QUANTUM_NS;
/// A load that only follows answers waits for this many at once, at most this long: each wake-up then serves
/// several, and every gathered mark is that late. With nginx a request costs 6.1 µs instead of 7.1, with 8 at once 6.6.
const GATHER_COUNT: u32 = 16;
const GATHER_MAX: Duration = Duration::from_micros(60);
/// Not all that are outstanding: the server would have nothing to do meanwhile.
const GATHER_PART: u32 = 2;
/// Where answers come further apart than this in the middle, waiting for several is mostly waiting, and its timer is what a
/// wake-up costs: with a Redis that syncs, 28 µs apart, an operation cost 10.7 µs instead of 7.6.
const GATHER_APART_NS_MAX: i64 = 10_000;

impl Engine<'_> {
    /// How to wait, now that everything that could be done has been.
    pub(super) fn pace<D: Driver>(&mut self) -> Wait {
        self.wake_ups.waits(None, false);
        let pacing = self.trial.setup.plan.load.pacing;
        let spins = pacing == Pacing::Exact && D::WAKES_LATE;
        if self.is_loading && spins && !self.is_starting {
            return Wait::LOOK;
        }
        let mut until = self.now + LOOK_AROUND_NS;
        if self.trial.setup.control.is_stopped() {
            until = until.min(self.now + STOPPED_NS);
        }
        if self.is_routed() {
            until = until.min(self.now + ROUTED_NS);
        }
        let is_pressed = |stream: &Stream| {
            stream.batching.as_ref().is_some_and(|it| it.is_pressing())
                || stream.wanted_connections() > 0
        };
        if !self.routes.is_idle() || self.streams.iter().any(is_pressed) {
            return Wait::LOOK;
        }
        let mut wakes_at = None;
        if let Some(due) = self.next_due() {
            let lead_ns = if D::WAKES_LATE { self.wake_ups.lead_ns(self.now) } else { 0 };
            if pacing == Pacing::Coalesced {
                until = until.min(due.max(self.now + QUANTUM_NS));
            } else if due - self.now <= lead_ns {
                return Wait::LOOK;
            } else {
                wakes_at = Some(due - lead_ns);
                until = until.min(due - lead_ns);
            }
        }
        until = self.next_alarm().map_or(until, |alarm| until.min(alarm));
        let wakes_at = wakes_at.filter(|at| *at == until);
        let reads_with_send = D::WAKES_LATE && wakes_at.is_some() && self.may_read_with_send();
        self.wake_ups.waits(wakes_at, reads_with_send);
        let time = u64::try_from((until - self.now).max(0)).expect("not negative");
        let time = Duration::from_nanos(time);
        let timeout = Some(time);
        if reads_with_send {
            return Wait { timeout, completions_min: QUANTUM_COUNT, gather_max: time };
        }
        if pacing == Pacing::Coalesced && self.may_be_late() {
            return Wait { timeout, completions_min: QUANTUM_COUNT, gather_max: QUANTUM };
        }
        Wait { timeout, completions_min: self.gather_count(), gather_max: GATHER_MAX }
    }

    /// Whether nothing gets later when answers are read with the next send.
    fn may_read_with_send(&self) -> bool {
        let is_soon = self.next_due().is_some_and(|due| due - self.now <= READ_WITH_SEND_NS);
        is_soon && self.answers_are_alone && self.receipts.stamps_all() && self.may_be_late()
    }

    fn next_due(&self) -> Option<Stamp> {
        let following = self.streams.iter().filter_map(|stream| stream.follow_ups.next_due()).min();
        if !self.is_loading {
            return following;
        }
        let scheduled = self.streams.iter().filter_map(|stream| stream.demand.next_due());
        scheduled.chain(following).min()
    }

    /// The next timer, timeout or end of a wait in the backlog.
    fn next_alarm(&self) -> Option<Stamp> {
        let timer = self.timers.peek().map(|timer| timer.at);
        let in_streams = self.streams.iter().flat_map(|stream| {
            let over = |from: Stamp| from.saturating_add(stream.timeout_ns);
            let outstanding = match &stream.resends {
                Some(resends) => resends.next_look(),
                None => stream.pending.oldest_due().map(over),
            };
            [outstanding, stream.backlog.oldest_due().map(over)].into_iter().flatten()
        });
        timer.into_iter().chain(in_streams).min()
    }

    /// Whether nothing but marks gets later when answers are read a quantum after the last ones: there is no probe,
    /// no load follows them, nothing waits for room on a connection or for a batch to come back, and no long answer is under way. The first
    /// answer after a quantum without any is read at once.
    fn may_be_late(&self) -> bool {
        let [stream] = self.streams.as_slice() else { return false };
        let is_awaited = stream.demand.follows_answers()
            || stream.demand.is_clients()
            || stream.follow_ups.has_any()
            || stream.batching.is_some()
            || !stream.backlog.is_empty()
            || !stream.resends_nothing();
        !is_awaited && !self.is_starting && self.received_bytes <= QUANTUM_BYTES_MAX
    }

    fn gather_count(&self) -> u32 {
        let [stream] = self.streams.as_slice() else { return 1 };
        let outstanding = u32::try_from(stream.pending.count()).unwrap_or(u32::MAX);
        let is_dense = self.wake_ups.are_answers_within(GATHER_APART_NS_MAX, outstanding);
        if !self.is_loading || !stream.demand.follows_answers() || !is_dense {
            return 1;
        }
        GATHER_COUNT.min(outstanding / GATHER_PART).max(1)
    }
}
