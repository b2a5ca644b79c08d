//! Follow-ups: a transaction that its session announced, of the same client, due so long after the answer was
//! read. Until then it waits here, where no connection is taken up by it. A user who has begun goes on in the drain; when the
//! load is stopped, what he would have done is shed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Outcome, Row, Stamp, TxId};
use sut::{Made, Next};

use super::receive::Found;
use super::{Engine, Stream, Waiting};
use crate::source::Prepared;
use crate::trial::whole_ns;

/// The follow-ups of one stream.
#[derive(Default)]
pub(super) struct FollowUps {
    waiting: BinaryHeap<Reverse<FollowUp>>,
    /// The follow-up that was announced of the transaction that is being ended.
    announced: Option<(TxId, Next, Vec<u8>)>,
    /// How many there were.
    count: u64,
}

struct FollowUp {
    due: Stamp,
    prepared: Prepared,
}

impl FollowUp {
    fn order(&self) -> (Stamp, u64) {
        (self.due, self.prepared.number)
    }
}

impl PartialEq for FollowUp {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for FollowUp {}

impl PartialOrd for FollowUp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FollowUp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl FollowUps {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether anything has followed an answer here.
    pub(super) const fn has_any(&self) -> bool {
        self.count > 0
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Stamp> {
        self.waiting.peek().map(|Reverse(first)| first.due)
    }

    fn pop(&mut self) -> Option<Waiting> {
        let Reverse(FollowUp { due, prepared }) = self.waiting.pop()?;
        Some(Waiting { prepared, due })
    }
}

impl Stream {
    /// Whether numbers are given out in another order than they are sent in.
    pub(super) fn is_out_of_order(&self) -> bool {
        self.demand.is_clients() || self.follow_ups.has_any()
    }

    /// A transaction has ended, and its answer, if it had one, was read at `read`. Says whether its client goes on.
    pub(super) fn goes_on(&mut self, row: &Row, outcome: Outcome, read: Stamp) -> bool {
        let is_announced = |(tx, ..): &mut (TxId, Next, Vec<u8>)| *tx == row.tx;
        let Some((_, next, payload)) = self.follow_ups.announced.take_if(is_announced) else {
            return false;
        };
        if matches!(outcome, Outcome::Unknown | Outcome::Shed) {
            self.source.recycle(payload);
            return false;
        }
        let made = Made { kind: next.kind, client: row.client };
        let due = read.saturating_add(whole_ns(next.after));
        let prepared = self.source.follow(made, payload);
        self.follow_ups.count += 1;
        self.follow_ups.waiting.push(Reverse(FollowUp { due, prepared }));
        true
    }
}

impl Engine<'_> {
    /// A mark for a transaction of this worker after which its client goes on, if the mark ends it.
    pub(super) fn settle_followed(&mut self, found: Found, next: Next, payload: &[u8]) {
        let stream = usize::from(found.tx >= model::PROBE_BASE);
        if self.trial.setup.control.is_stopped() || stream >= self.streams.len() {
            return self.settle(found);
        }
        let here = &mut self.streams[stream];
        let mut buffer = here.source.buffer();
        buffer.extend_from_slice(payload);
        here.follow_ups.announced = Some((found.tx, next, buffer));
        self.settle(found);
        let here = &mut self.streams[stream];
        if let Some((.., buffer)) = here.follow_ups.announced.take() {
            here.source.recycle(buffer);
        }
    }

    /// Takes what follows answers and is due, and what the schedule has before each of them.
    pub(super) fn take_follow_ups(&mut self, index: usize) {
        while let Some(waiting) = self.follow_up_due(index) {
            if self.is_loading {
                self.take_due(index, waiting.due);
            }
            self.place(index, waiting);
        }
    }

    /// The next that is due. When the load is stopped all that there are end here.
    pub(super) fn follow_up_due(&mut self, index: usize) -> Option<Waiting> {
        let due = self.streams[index].follow_ups.next_due()?;
        if self.trial.setup.control.is_stopped() {
            self.end_follow_ups(index);
            return None;
        }
        if due > self.now {
            return None;
        }
        self.facts.due += 1;
        self.streams[index].follow_ups.pop()
    }

    /// Sheds what follows answers and will not be sent. Gives how many those were.
    pub(super) fn end_follow_ups(&mut self, index: usize) -> u64 {
        let mut count = 0;
        while let Some(mut waiting) = self.streams[index].follow_ups.pop() {
            waiting.due = waiting.due.min(self.now);
            self.facts.due += 1;
            count += 1;
            self.end_unsent(index, waiting, Outcome::Shed, "");
        }
        count
    }
}
