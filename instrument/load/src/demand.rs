//! The demand of a stream: due times from a schedule, clients that wait for their answers, or as much as the
//! connections take. It knows when the next transaction is due and nothing of what became of earlier ones,
//! except that a client's next one follows its last one's end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use model::plan::ClientStep;
use model::seed::Rng;
use model::{Seed, Stamp};

use crate::schedule::DueTimes;
use crate::trial::whole_ns;

/// When the transactions of one stream of one worker fall due.
pub(crate) enum Demand {
    /// From the schedule. Holds the next one.
    Timed { next: Option<Stamp>, times: DueTimes },
    /// Clients that have nothing outstanding, each with the time of its next transaction: those that send at once, in order,
    /// and those that think or will only then be there.
    Clients {
        due: VecDeque<Turn>,
        later: BinaryHeap<Reverse<Turn>>,
        presence: Presence,
        think: Think,
        left: u64,
        end: Stamp,
    },
    /// As much as the connections take.
    Saturating { left: u64, end: Stamp },
    /// No more.
    Over,
}

/// A client and when it sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    due: Stamp,
    client: u32,
}

/// How long clients think, each time anew: evenly between half and one and a half times the mean. With one length for all,
/// clients that were answered together would think together, and a fault might meet none of them.
#[derive(Debug)]
pub(crate) struct Think {
    mean_ns: i64,
    /// Absent: each is as long as the mean.
    rng: Option<Box<Rng>>,
}

impl Think {
    /// About so long.
    pub(crate) fn about(mean: Duration, seed: Seed, worker: u32) -> Self {
        let rng = Box::new(seed.split_index("think", worker.into()).rng());
        Self { rng: Some(rng), ..Self::exactly(mean) }
    }

    /// Always so long.
    pub(crate) fn exactly(mean: Duration) -> Self {
        Self { mean_ns: whole_ns(mean), rng: None }
    }

    fn next_ns(&mut self) -> i64 {
        match (&mut self.rng, u64::try_from(self.mean_ns)) {
            (Some(rng), Ok(mean @ 1..)) => {
                let more = i64::try_from(rng.below(mean)).expect("less than the mean");
                self.mean_ns / 2 + more
            }
            _ => self.mean_ns,
        }
    }
}

/// How many clients are there and from when: in each stretch the first so many of all.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    /// In order; the first begins with the load, the last goes on.
    stretches: Vec<(Stamp, u32)>,
}

impl Presence {
    /// So many from `start` on.
    pub(crate) fn constant(clients: u32, start: Stamp) -> Self {
        Self { stretches: vec![(start, clients)] }
    }

    /// The steps of a plan: those of the first step in the warm-up, too.
    pub(crate) fn stepwise(steps: &[ClientStep], warmup: Duration) -> Self {
        let mut from = whole_ns(warmup);
        let mut stretches: Vec<(Stamp, u32)> = Vec::with_capacity(steps.len());
        for step in steps {
            stretches.push((if stretches.is_empty() { 0 } else { from }, step.clients));
            from = from.saturating_add(whole_ns(step.length));
        }
        Self { stretches }
    }

    /// The first time, not before `at`, when a client is there.
    fn next(&self, client: u32, at: Stamp) -> Option<Stamp> {
        let now = self.stretches.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        let later = self.stretches[now..].iter().find(|(_, clients)| client < *clients)?;
        Some(later.0.max(at))
    }
}

impl Demand {
    pub(crate) fn timed(mut times: DueTimes) -> Self {
        Self::Timed { next: times.next().map(|(_, due)| due), times }
    }

    /// These clients, whose first transactions are due when they are there; at most `left` transactions, none due
    /// at `end` or later.
    pub(crate) fn clients(
        clients: impl Iterator<Item = u32>,
        think: Think,
        presence: Presence,
        left: u64,
        end: Stamp,
    ) -> Self {
        let start = presence.stretches[0].0;
        let (mut due, mut later) = (VecDeque::new(), Vec::new());
        let mut count = 0;
        for client in clients {
            count += 1;
            match presence.next(client, start) {
                Some(at) if at == start => due.push_back(Turn { due: start, client }),
                Some(at) => later.push(Reverse(Turn { due: at, client })),
                None => {}
            }
        }
        // Whoever leaves may join again, and all may think at once: no room is made on the path of a transaction.
        if presence.stretches.len() > 1 || think.mean_ns > 0 {
            due.reserve(count - due.len());
            later.reserve(count - later.len());
        }
        Self::Clients { due, later: BinaryHeap::from(later), presence, think, left, end }
    }

    /// Takes the next due time if it has come, and the client whose turn it is if clients bring them.
    pub(crate) fn take_due(&mut self, now: Stamp) -> Option<(Stamp, Option<u32>)> {
        match self {
            Self::Timed { next, times } => {
                let due = next.filter(|due| *due <= now)?;
                *next = times.next().map(|(_, due)| due);
                Some((due, None))
            }
            Self::Clients { due, later, left, end, .. } => {
                let first = next_turn(due, later).filter(|turn| turn.due <= now)?;
                if *left == 0 || first.due >= *end {
                    *self = Self::Over;
                    return None;
                }
                *left -= 1;
                if due.front() == Some(&first) {
                    due.pop_front();
                } else {
                    later.pop();
                }
                Some((first.due, Some(first.client)))
            }
            Self::Saturating { .. } | Self::Over => None,
        }
    }

    /// A connection has been free since `freed_at`: the due time of what it should carry, in a saturating load.
    pub(crate) fn take_for_free_connection(
        &mut self,
        freed_at: Stamp,
        now: Stamp,
    ) -> Option<Stamp> {
        let Self::Saturating { left, end } = self else { return None };
        let due = freed_at.max(0);
        if *left == 0 || now >= *end || due >= *end {
            *self = Self::Over;
            return None;
        }
        if now < 0 {
            return None;
        }
        *left -= 1;
        Some(due)
    }

    /// A client's transaction has ended. One that has left sends no more until it joins again.
    pub(crate) fn client_is_back(&mut self, client: u32, end: Stamp) {
        if let Self::Clients { due, later, presence, think, .. } = self {
            let next = end.saturating_add(think.next_ns());
            match presence.next(client, next) {
                Some(at) if at == end => {}
                Some(at) => return later.push(Reverse(Turn { due: at, client })),
                None => return,
            }
            // Ends come in the order of time but for stamps of marks routed from another worker.
            let at = due.iter().rposition(|earlier| earlier.due <= next);
            due.insert(at.map_or(0, |index| index + 1), Turn { due: next, client });
        }
    }

    /// When the next transaction falls due, as far as is known.
    pub(crate) fn next_due(&self) -> Option<Stamp> {
        match self {
            Self::Timed { next, .. } => *next,
            Self::Clients { due, later, left, .. } => {
                next_turn(due, later).map(|turn| turn.due).filter(|_| *left > 0)
            }
            Self::Saturating { .. } | Self::Over => None,
        }
    }

    /// Whether nothing will fall due any more, whatever ends.
    pub(crate) fn is_over(&self, now: Stamp) -> bool {
        match self {
            Self::Timed { next, .. } => next.is_none(),
            Self::Clients { left, end, .. } | Self::Saturating { left, end } => {
                *left == 0 || now >= *end
            }
            Self::Over => true,
        }
    }

    /// Whether transactions follow answers at once, so that nothing is lost by waiting for several answers.
    pub(crate) fn follows_answers(&self) -> bool {
        matches!(
            self,
            Self::Saturating { .. } | Self::Clients { think: Think { mean_ns: 0, .. }, .. }
        )
    }

    /// Whether it is as much as the connections take.
    pub(crate) fn is_saturating(&self) -> bool {
        matches!(self, Self::Saturating { .. })
    }

    /// Whether clients bring it, so that what waits is bounded by their number.
    pub(crate) fn is_clients(&self) -> bool {
        matches!(self, Self::Clients { .. })
    }
}

/// The earliest turn of those who wait for theirs and those who think or will join.
fn next_turn(due: &VecDeque<Turn>, later: &BinaryHeap<Reverse<Turn>>) -> Option<Turn> {
    match (due.front(), later.peek()) {
        (Some(due), Some(Reverse(later))) => Some(*due.min(later)),
        (due, later) => due.or(later.map(|Reverse(turn)| turn)).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: in each step exactly its clients send, the first of all; whoever leaves is silent until it joins again, and
    /// joins when its step begins.
    #[test]
    fn clients_join_and_leave() {
        let step = |clients, ms| ClientStep { clients, length: Duration::from_millis(ms) };
        let steps = [step(1, 10), step(3, 10), step(0, 10), step(2, 10)];
        let presence = Presence::stepwise(&steps, Duration::from_millis(10));
        let end = 50_000_000;
        let think = Think::exactly(Duration::from_millis(1));
        let mut demand = Demand::clients(0..3, think, presence, u64::MAX, end);
        let mut sent = Vec::new();
        while let Some(now) = demand.next_due() {
            let Some((due, Some(client))) = demand.take_due(now) else { break };
            assert_eq!(due, now);
            sent.push((due / 1_000_000, client));
            demand.client_is_back(client, due);
        }
        let of = |from: i64, to: i64, clients: u32| {
            (from..to).flat_map(move |ms| (0..clients).map(move |client| (ms, client)))
        };
        let wanted: Vec<_> = of(0, 20, 1).chain(of(20, 30, 3)).chain(of(40, 50, 2)).collect();
        assert_eq!(sent, wanted);
        assert!(demand.is_over(end));
    }

    /// Claim: clients that were answered together do not send together again: each thinks for a time of its own, between half
    /// and one and a half times the mean, the same with the same seed.
    #[test]
    fn clients_that_think_do_not_march_in_step() {
        let turns = |seed| {
            let presence = Presence::constant(64, 0);
            let think = Think::about(Duration::from_millis(5), Seed(seed), 0);
            let mut demand = Demand::clients(0..64, think, presence, u64::MAX, i64::MAX);
            while demand.take_due(0).is_some() {}
            (0..64).for_each(|client| demand.client_is_back(client, 1_000_000));
            let mut turns = Vec::new();
            while let Some(now) = demand.next_due() {
                turns.extend(demand.take_due(now).map(|(due, client)| (due - 1_000_000, client)));
            }
            turns
        };
        let first = turns(1);
        assert_eq!(first.len(), 64);
        assert!(first.iter().all(|(thought, _)| (2_500_000..7_500_000).contains(thought)));
        // No tenth of the time holds more than a third of them.
        for tenth in 0..10 {
            let within = |(thought, _): &&(Stamp, Option<u32>)| thought / 500_000 - 5 == tenth;
            assert!(first.iter().filter(within).count() <= 21, "{first:?}");
        }
        assert!(turns(1) == first && turns(2) != first);
    }
}
