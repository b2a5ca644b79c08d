//! What a stream asks for: due times from a schedule, clients that wait for their answers, or as much as the
//! connections take. It knows when the next transaction is due and nothing of what became of earlier ones,
//! except that a client's next one follows its last one's end.

use std::collections::VecDeque;
use std::time::Duration;

use model::Stamp;

use crate::schedule::DueTimes;

/// When the transactions of one stream of one worker fall due.
pub(crate) enum Demand {
    /// From the schedule. Holds the next one.
    Timed { next: Option<Stamp>, times: DueTimes },
    /// Clients that have nothing outstanding, each with the time of its next transaction, in order.
    Clients { due: VecDeque<Turn>, think_ns: i64, left: u64, end: Stamp },
    /// As much as the connections take.
    Saturating { left: u64, end: Stamp },
    /// No more.
    Over,
}

/// A client and when it sends next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    due: Stamp,
    client: u32,
}

impl Demand {
    pub(crate) fn timed(mut times: DueTimes) -> Self {
        Self::Timed { next: times.next().map(|(_, due)| due), times }
    }

    /// These clients, whose first transactions are all due at `start`; at most `left` transactions, none due
    /// at `end` or later.
    pub(crate) fn clients(
        clients: impl Iterator<Item = u32>,
        think: Duration,
        start: Stamp,
        left: u64,
        end: Stamp,
    ) -> Self {
        let think_ns = i64::try_from(think.as_nanos()).unwrap_or(i64::MAX);
        let due = clients.map(|client| Turn { due: start, client }).collect();
        Self::Clients { due, think_ns, left, end }
    }

    /// Takes the next due time if it has come, and the client whose turn it is if clients bring them.
    pub(crate) fn take_due(&mut self, now: Stamp) -> Option<(Stamp, Option<u32>)> {
        match self {
            Self::Timed { next, times } => {
                let due = next.filter(|due| *due <= now)?;
                *next = times.next().map(|(_, due)| due);
                Some((due, None))
            }
            Self::Clients { due, left, end, .. } => {
                let first = *due.front().filter(|turn| turn.due <= now)?;
                if *left == 0 || first.due >= *end {
                    *self = Self::Over;
                    return None;
                }
                *left -= 1;
                due.pop_front();
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

    /// A client's transaction has ended.
    pub(crate) fn client_is_back(&mut self, client: u32, end: Stamp) {
        if let Self::Clients { due, think_ns, .. } = self {
            let next = end.saturating_add(*think_ns);
            // Ends come in the order of time but for stamps of marks routed from another worker.
            let at = due.iter().rposition(|earlier| earlier.due <= next);
            due.insert(at.map_or(0, |index| index + 1), Turn { due: next, client });
        }
    }

    /// When the next transaction falls due, as far as is known.
    pub(crate) fn next_due(&self) -> Option<Stamp> {
        match self {
            Self::Timed { next, .. } => *next,
            Self::Clients { due, left, .. } => {
                due.front().map(|turn| turn.due).filter(|_| *left > 0)
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
        matches!(self, Self::Saturating { .. } | Self::Clients { think_ns: 0, .. })
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
