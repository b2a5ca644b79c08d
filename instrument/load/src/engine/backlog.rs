//! Due transactions that wait for room on a connection: in one queue for all of a stream's connections, or in one for
//! each where a client stays on its connection. It bounds nothing and ends nothing; who calls it does.

use std::collections::VecDeque;

use model::Stamp;

use crate::source::Prepared;

/// A due transaction without a connection.
pub(super) struct Waiting {
    pub prepared: Prepared,
    pub due: Stamp,
}

/// The waiting transactions.
pub(super) struct Backlog {
    /// One queue, or one a connection, each in the order of due times.
    queues: Queues,
    count: usize,
    /// Due before this nothing waits in any of several queues.
    due_min: Stamp,
    /// Where something that was due was found last.
    found_at: usize,
}

enum Queues {
    Shared(VecDeque<Waiting>),
    Own(Vec<VecDeque<Waiting>>),
}

impl Backlog {
    /// For connections any of which will do.
    pub(super) fn shared() -> Self {
        Self { queues: Queues::Shared(VecDeque::new()), count: 0, due_min: Stamp::MAX, found_at: 0 }
    }

    /// For so many connections, each with transactions of its own.
    pub(super) fn own(connections: u32) -> Self {
        let queues = Queues::Own((0..connections).map(|_| VecDeque::new()).collect());
        Self { queues, count: 0, due_min: Stamp::MAX, found_at: 0 }
    }

    /// How many connections have transactions of their own; `None`: any connection will do for any.
    pub(super) fn homes(&self) -> Option<u32> {
        match &self.queues {
            Queues::Shared(_) => None,
            Queues::Own(queues) => Some(u32::try_from(queues.len()).expect("connections are u32")),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether nothing waits for this connection.
    pub(super) fn is_empty_for(&self, connection: u32) -> bool {
        match &self.queues {
            Queues::Shared(queue) => queue.is_empty(),
            Queues::Own(queues) => queues[connection as usize].is_empty(),
        }
    }

    /// The due time of what has waited longest; where there are several queues it may be earlier than that.
    pub(super) fn oldest_due(&self) -> Option<Stamp> {
        match &self.queues {
            Queues::Shared(queue) => queue.front().map(|waiting| waiting.due),
            Queues::Own(_) => Some(self.due_min).filter(|_| self.count > 0),
        }
    }

    /// Adds one, for `connection` if transactions have connections of their own.
    pub(super) fn push(&mut self, connection: Option<u32>, waiting: Waiting) {
        self.count += 1;
        match (&mut self.queues, connection) {
            (Queues::Shared(queue), None) => queue.push_back(waiting),
            (Queues::Own(queues), Some(connection)) => {
                self.due_min = self.due_min.min(waiting.due);
                queues[connection as usize].push_back(waiting);
            }
            _ => unreachable!("one queue has no connections, and one a connection has"),
        }
    }

    /// The next one that this connection can carry.
    pub(super) fn pop(&mut self, connection: u32) -> Option<Waiting> {
        let waiting = match &mut self.queues {
            Queues::Shared(queue) => queue.pop_front(),
            Queues::Own(queues) => queues[connection as usize].pop_front(),
        }?;
        self.count -= 1;
        Some(waiting)
    }

    /// The next one that was due at `until` or before.
    pub(super) fn pop_due(&mut self, until: Stamp) -> Option<Waiting> {
        let is_due = |waiting: &Waiting| waiting.due <= until;
        let waiting = match &mut self.queues {
            Queues::Shared(queue) if queue.front().is_some_and(is_due) => queue.pop_front(),
            Queues::Own(queues) if self.count > 0 && self.due_min <= until => {
                let mut places = (self.found_at..queues.len()).chain(0..self.found_at);
                match places.find(|place| queues[*place].front().is_some_and(is_due)) {
                    Some(place) => {
                        self.found_at = place;
                        queues[place].pop_front()
                    }
                    None => {
                        let dues = queues.iter().filter_map(VecDeque::front).map(|it| it.due);
                        self.due_min = dues.min().unwrap_or(Stamp::MAX);
                        None
                    }
                }
            }
            _ => None,
        }?;
        self.count -= 1;
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use sut::Made;

    use super::*;

    fn waiting(number: u64, due: Stamp) -> Waiting {
        let (made, payload) = (Made { kind: 0, client: 0 }, Vec::new());
        Waiting { prepared: Prepared { id: number, number, made, payload }, due }
    }

    /// Claim: with a queue a connection each keeps its order, and what is too old is found in any of them, once.
    #[test]
    fn each_connection_has_its_own() {
        let mut backlog = Backlog::own(3);
        for (connection, due) in [(2, 5_i64), (0, 6), (2, 7), (0, 8), (1, 9)] {
            backlog.push(Some(connection), waiting(due.unsigned_abs(), due));
        }
        assert_eq!((backlog.len(), backlog.oldest_due()), (5, Some(5)));
        let number = |waiting: Option<Waiting>| waiting.map(|waiting| waiting.prepared.number);
        assert_eq!(number(backlog.pop_due(4)), None);
        assert_eq!(number(backlog.pop(2)), Some(5));
        assert_eq!(number(backlog.pop_due(7)), Some(6));
        assert_eq!(number(backlog.pop_due(7)), Some(7));
        assert_eq!(number(backlog.pop_due(7)), None);
        assert_eq!((backlog.oldest_due(), backlog.is_empty_for(2)), (Some(8), true));
        assert_eq!([number(backlog.pop(0)), number(backlog.pop(0))], [Some(8), None]);
        assert_eq!(number(backlog.pop_due(Stamp::MAX)), Some(9));
        assert!(backlog.is_empty() && backlog.oldest_due().is_none());
    }
}
