//! Transactions prepared ahead of their due times, each worker its own. Encoding and signing happen here, not
//! between a due time and its send. It never decides when anything is due.
//!
//! In an open loop they are prepared in the order in which they will be taken. In a closed loop each client's next
//! one is prepared for that client as soon as its last one was taken, so that numbers there are given out in another
//! order than they are sent in, and those that a client never came to send are left out at the end.

use std::collections::VecDeque;

use model::TxId;
use sut::{Made, Workload};

/// A transaction whose payload is ready.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub id: TxId,
    /// Its number in its stream on this worker.
    pub number: u64,
    pub made: Made,
    pub payload: Vec<u8>,
}

/// Which numbers a source gives: transaction `n` has the id `first_id + n · stride`, and at most `count_max` are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub first_id: TxId,
    pub stride: u64,
    pub count_max: u64,
}

/// The clients whose transactions are prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    /// The workload says it: so many ahead.
    Anybodys { ahead_max: u32 },
    /// One ahead for each of so many clients: `first`, `first + stride`, …
    Clients { count: u32, first: u32, stride: u32 },
}

/// The transactions of one stream of one worker.
pub(crate) struct Source {
    workload: Box<dyn Workload>,
    ahead: Ahead,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    spare_max: usize,
    next_number: u64,
    /// How many were prepared for due times; the other numbers went to those that follow answers.
    begun: u64,
    numbers: Numbers,
    /// Taken in all, and since the last [`Source::fill`].
    taken: u64,
    taken_lately: usize,
    /// Times that a transaction had to be prepared when it was already due.
    pub dry: u64,
}

enum Ahead {
    Queue { prepared: VecDeque<Prepared>, max: usize },
    Clients { prepared: Vec<Option<Prepared>>, missing: VecDeque<u32>, first: u32, stride: u32 },
}

impl Source {
    pub(crate) fn new(workload: Box<dyn Workload>, whose: Whose, numbers: Numbers) -> Self {
        let (ahead, spare_max) = match whose {
            Whose::Anybodys { ahead_max } => {
                let max = (ahead_max as usize).max(1);
                (Ahead::Queue { prepared: VecDeque::with_capacity(max.min(1 << 16)), max }, max)
            }
            Whose::Clients { count, first, stride } => {
                let prepared = (0..count).map(|_| None).collect();
                let missing = (0..count).collect();
                // One ahead of each client, and one that waits for its batch: so many come back at once.
                let spare_max = (count as usize).saturating_mul(2).max(1);
                (Ahead::Clients { prepared, missing, first, stride }, spare_max)
            }
        };
        Self {
            workload,
            ahead,
            spare: Vec::new(),
            spare_max,
            next_number: 0,
            begun: 0,
            numbers,
            taken: 0,
            taken_lately: 0,
            dry: 0,
        }
    }

    /// The next transaction: of the client whose turn it is, if clients bring them.
    pub(crate) fn take(&mut self, client: Option<u32>) -> Prepared {
        self.taken += 1;
        self.taken_lately += 1;
        match (&mut self.ahead, client) {
            (Ahead::Queue { prepared, .. }, None) => {
                if let Some(prepared) = prepared.pop_front() {
                    return prepared;
                }
            }
            (Ahead::Clients { prepared, missing, first, stride }, Some(client)) => {
                let place = (client - *first) / *stride;
                if let Some(prepared) = prepared[place as usize].take() {
                    missing.push_back(place);
                    return prepared;
                }
            }
            _ => unreachable!("a closed loop has clients, an open one has none"),
        }
        self.dry += 1;
        self.prepare(client)
    }

    /// Takes a payload's buffer back.
    pub(crate) fn recycle(&mut self, mut payload: Vec<u8>) {
        if payload.capacity() > 0 && self.spare.len() < self.spare_max {
            payload.clear();
            self.spare.push(payload);
        }
    }

    /// Whether every transaction that there may be was taken.
    pub(crate) fn is_used_up(&self) -> bool {
        self.taken >= self.numbers.count_max
    }

    /// Whether a number is prepared and was not taken.
    pub(crate) fn holds(&self, number: u64) -> bool {
        match &self.ahead {
            Ahead::Queue { prepared, .. } => prepared.iter().any(|it| it.number == number),
            Ahead::Clients { prepared, .. } => {
                prepared.iter().flatten().any(|it| it.number == number)
            }
        }
    }

    /// How many there are still to prepare, and how many were taken since the last filling.
    pub(crate) fn missing(&self) -> (usize, usize) {
        let missing = match &self.ahead {
            Ahead::Queue { prepared, max } => {
                let left = self.numbers.count_max.saturating_sub(self.begun);
                (max - prepared.len().min(*max)).min(usize::try_from(left).unwrap_or(usize::MAX))
            }
            Ahead::Clients { .. } if self.is_used_up() => 0,
            Ahead::Clients { missing, .. } => missing.len(),
        };
        (missing, self.taken_lately)
    }

    /// Prepares `count` more, of those that [`Source::missing`] counts.
    pub(crate) fn fill(&mut self, count: usize) {
        self.taken_lately = 0;
        for _ in 0..count {
            let client = match &mut self.ahead {
                Ahead::Queue { .. } => None,
                Ahead::Clients { missing, first, stride, .. } => {
                    let Some(place) = missing.pop_front() else { return };
                    Some(*first + place * *stride)
                }
            };
            let made = self.prepare(client);
            match (&mut self.ahead, client) {
                (Ahead::Clients { prepared, first, stride, .. }, Some(client)) => {
                    prepared[((client - *first) / *stride) as usize] = Some(made);
                }
                (Ahead::Queue { prepared, .. }, _) => prepared.push_back(made),
                _ => {}
            }
        }
    }

    /// One that follows an answer, with the payload that its session wrote. It takes the next number, beyond those that are
    /// prepared ahead.
    pub(crate) fn follow(&mut self, made: Made, payload: Vec<u8>) -> Prepared {
        let (number, id) = self.number();
        Prepared { id, number, made, payload }
    }

    /// An empty buffer for a payload.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn number(&mut self) -> (u64, TxId) {
        let number = self.next_number;
        self.next_number += 1;
        (number, self.numbers.first_id + number * self.numbers.stride)
    }

    fn prepare(&mut self, client: Option<u32>) -> Prepared {
        let (number, id) = self.number();
        self.begun += 1;
        let mut payload = self.buffer();
        let made = self.workload.next(id, client, &mut payload);
        assert!(
            client.is_none_or(|client| client == made.client),
            "a workload that is asked for a client's transaction makes that client's"
        );
        Prepared { id, number, made, payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;

    impl Workload for Plain {
        fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
            payload.extend_from_slice(&id.to_le_bytes());
            Made::of(0, client)
        }
    }

    /// Claim: each client has one prepared for it, with the ids of this worker, whatever the order of their turns;
    /// a client that comes too early is counted, and takes no other's.
    #[test]
    fn clients_have_their_own() {
        let numbers = Numbers { first_id: 1, stride: 4, count_max: 7 };
        let whose = Whose::Clients { count: 3, first: 1, stride: 4 };
        let mut source = Source::new(Box::new(Plain), whose, numbers);
        assert_eq!(source.missing(), (3, 0));
        source.fill(3);
        let take = |source: &mut Source, client: u32| {
            let taken = source.take(Some(client));
            assert_eq!((taken.made.client, taken.id), (client, 1 + 4 * taken.number));
            taken.number
        };
        assert_eq!([take(&mut source, 9), take(&mut source, 1)], [2, 0]);
        assert_eq!((source.missing(), source.holds(1), source.holds(2)), ((2, 2), true, false));
        source.fill(1);
        assert_eq!([take(&mut source, 9), take(&mut source, 1)], [3, 4]);
        assert_eq!(source.dry, 1, "the second client's was not prepared yet");
        source.fill(2);
        assert_eq!([take(&mut source, 1), take(&mut source, 5)], [5, 1]);
        assert!(!source.is_used_up());
        assert_eq!(take(&mut source, 9), 6);
        assert!(source.is_used_up());
        assert_eq!(source.missing().0, 0, "nothing is prepared for nobody");
    }
}
