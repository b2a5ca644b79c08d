//! From notifications to entries of the log: attestations of a transaction gather until each of its inputs is vouched for;
//! then it stands in the queue, in the very bytes that its entry will have.

use std::collections::{HashMap, VecDeque};

use crate::protocol::entry::{self, Entry, read_entry};
use crate::protocol::request::{Notification, all_inputs};
use crate::protocol::transaction::Transaction;

/// No entry is longer, whatever the cap: it fits a value of the log.
pub const ENTRY_BYTES_MAX: usize = 15 << 20;

/// The bounds of what waits.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Most transactions in the queue.
    pub queue_max: usize,
    /// Most transactions that wait for attestations.
    pub partial_max: usize,
    /// An entry ends with the transaction that reaches this.
    pub entry_bytes: usize,
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The transaction is complete, and stands in the queue.
    Complete,
    /// It waits for more attestations.
    Partial,
    /// Too much waits.
    Full,
}

/// Attestations of a transaction.
#[derive(Clone, Copy, Debug)]
struct Gathered {
    attested: u128,
    /// The lowest height but 0, which counts as none.
    height: u64,
    /// The height of the last block when the first of them came.
    since: u64,
}

/// An entry in the making.
#[derive(Debug, Default)]
struct Making {
    bytes: Vec<u8>,
    count: u64,
    /// The lowest height in it.
    height_min: u64,
}

/// What waits.
#[derive(Debug)]
pub struct Intake {
    bounds: Bounds,
    /// By the transaction's bytes: two that differ are two, whatever their names.
    partial: HashMap<Box<[u8]>, Gathered>,
    queue: VecDeque<Making>,
    waiting: usize,
    spare: Vec<Vec<u8>>,
}

impl Intake {
    /// An empty one.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let entry_bytes = bounds.entry_bytes.min(ENTRY_BYTES_MAX);
        Self {
            bounds: Bounds { entry_bytes, ..bounds },
            partial: HashMap::new(),
            queue: VecDeque::new(),
            waiting: 0,
            spare: Vec::new(),
        }
    }

    /// Takes a notification; `height` is that of the last block.
    #[inline]
    pub fn take(&mut self, it: &Notification<'_>, height: u64) -> Taken {
        if self.waiting >= self.bounds.queue_max {
            return Taken::Full;
        }
        let all = all_inputs(it.transaction.inputs.len());
        if self.partial.is_empty() && it.attested() == all {
            self.push(it.height, &it.transaction);
            return Taken::Complete;
        }
        self.gather(it, all, height)
    }

    fn gather(&mut self, it: &Notification<'_>, all: u128, height: u64) -> Taken {
        let mut key = Vec::with_capacity(it.transaction.bytes());
        it.transaction.write(&mut key);
        let mut gathered = Gathered { attested: 0, height: 0, since: height };
        if let Some(before) = self.partial.get(&key[..]) {
            gathered = *before;
        }
        // Who has vouched for an input before keeps the height that was said then.
        if it.attested() & !gathered.attested != 0 {
            let known = [gathered.height, it.height].into_iter().filter(|it| *it != 0);
            gathered.height = known.min().unwrap_or(0);
        }
        gathered.attested |= it.attested();
        if gathered.attested == all {
            self.partial.remove(&key[..]);
            let complete_height = if all == 0 { it.height } else { gathered.height };
            self.push(complete_height, &it.transaction);
            return Taken::Complete;
        }
        if self.partial.len() >= self.bounds.partial_max && !self.partial.contains_key(&key[..]) {
            return Taken::Full;
        }
        self.partial.insert(key.into_boxed_slice(), gathered);
        Taken::Partial
    }

    #[inline]
    fn push(&mut self, height: u64, transaction: &Transaction<'_>) {
        let needs_new = self.queue.back().is_none_or(|last| {
            last.bytes.len() >= self.bounds.entry_bytes
                || last.bytes.len() + 8 + transaction.bytes() > ENTRY_BYTES_MAX
        });
        if needs_new {
            self.begin();
        }
        let last = self.queue.back_mut().expect("there is one now");
        entry::push_transaction(&mut last.bytes, height, transaction);
        last.count += 1;
        last.height_min = last.height_min.min(height);
        self.waiting += 1;
    }

    fn begin(&mut self) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        entry::begin_transactions(&mut bytes);
        self.queue.push_back(Making { bytes, count: 0, height_min: u64::MAX });
    }

    /// Transactions in the queue.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Transactions that wait for attestations.
    #[must_use]
    pub fn partial(&self) -> usize {
        self.partial.len()
    }

    /// How long the next entry would be; none where the queue is empty.
    #[must_use]
    pub fn next_bytes(&self) -> Option<usize> {
        self.queue.front().map(|making| making.bytes.len())
    }

    /// Whether the next entry is as long as it may become.
    #[must_use]
    pub fn is_entry_full(&self) -> bool {
        self.queue.len() > 1 || self.next_bytes().is_some_and(|it| it >= self.bounds.entry_bytes)
    }

    /// Takes the next entry out of the queue: `make` is given its bytes and how many transactions it has.
    pub fn next_entry(&mut self, make: impl FnOnce(&[u8], u64)) {
        let Some(mut making) = self.queue.pop_front() else { return };
        self.waiting -= usize::try_from(making.count).expect("it was counted");
        if making.count > 0 {
            entry::set_count(&mut making.bytes, making.count);
            make(&making.bytes, making.count);
        }
        making.bytes.clear();
        // One that has grown beyond the cap is given back.
        if self.spare.len() < 4 && making.bytes.capacity() <= 4 << 20 {
            self.spare.push(making.bytes);
        }
    }

    /// Takes those out of the next entry that are not `in_range`, each told to `each`.
    pub fn drop_expired(
        &mut self,
        in_range: impl Fn(u64) -> bool,
        mut each: impl FnMut(&Transaction<'_>),
    ) {
        let Some(making) = self.queue.front_mut() else { return };
        if in_range(making.height_min) {
            return;
        }
        entry::set_count(&mut making.bytes, making.count);
        let mut kept = Making { bytes: Vec::new(), count: 0, height_min: u64::MAX };
        entry::begin_transactions(&mut kept.bytes);
        if let Ok(Entry::Transactions(batch)) = read_entry(&making.bytes) {
            for it in batch.iter() {
                if in_range(it.height) || it.transaction.inputs.is_empty() {
                    entry::push_transaction(&mut kept.bytes, it.height, &it.transaction);
                    kept.count += 1;
                    kept.height_min = kept.height_min.min(it.height);
                } else {
                    self.waiting -= 1;
                    each(&it.transaction);
                }
            }
        }
        *making = kept;
    }

    /// Forgets those that have waited for attestations for longer than `blocks`, each told to `each`: the first height that
    /// was said of them is too old.
    pub fn drop_incomplete(
        &mut self,
        height: u64,
        blocks: u64,
        mut each: impl FnMut(&Transaction<'_>),
    ) {
        self.partial.retain(|bytes, gathered| {
            let is_kept = height <= gathered.since.saturating_add(blocks);
            if !is_kept && let Ok(it) = Transaction::read(bytes) {
                each(&it);
            }
            is_kept
        });
    }

    /// Gives up everything that waits, each told to `each`.
    pub fn give_up(&mut self, mut each: impl FnMut(&Transaction<'_>)) {
        for bytes in std::mem::take(&mut self.partial).keys() {
            if let Ok(it) = Transaction::read(bytes) {
                each(&it);
            }
        }
        for mut making in std::mem::take(&mut self.queue) {
            entry::set_count(&mut making.bytes, making.count);
            if let Ok(Entry::Transactions(batch)) = read_entry(&making.bytes) {
                batch.iter().for_each(|it| each(&it.transaction));
            }
        }
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::request::{Request, read_request, write_notify};

    const BOUNDS: Bounds = Bounds { queue_max: 4, partial_max: 2, entry_bytes: 300 };

    fn take(intake: &mut Intake, id: u8, height: u64, attested: &[u64]) -> Taken {
        let (id, inputs) = ([id; 32], [[7; 32], [8; 32]]);
        let mut bytes = Vec::new();
        write_notify(
            &mut bytes,
            height,
            &Transaction { id: &id, inputs: &inputs, outputs: &[] },
            attested,
        );
        let Ok(Request::Notify(it)) = read_request(&bytes[8..]) else { panic!() };
        intake.take(&it, height)
    }

    fn entries(intake: &mut Intake) -> Vec<Vec<(u8, u64)>> {
        let mut entries = Vec::new();
        while intake.next_bytes().is_some() {
            intake.next_entry(|bytes, count| {
                let Ok(Entry::Transactions(batch)) = read_entry(bytes) else { panic!() };
                assert_eq!(batch.count(), count);
                entries.push(batch.iter().map(|it| (it.transaction.id[0], it.height)).collect());
            });
        }
        entries
    }

    /// Claim: a transaction is complete once each input is vouched for, with the oldest height that was said first of an
    /// input; an entry ends at its cap; what is too much is refused.
    #[test]
    fn gathering() {
        let mut intake = Intake::new(BOUNDS);
        assert_eq!(take(&mut intake, 1, 9, &[0, 1]), Taken::Complete);
        assert_eq!(take(&mut intake, 2, 8, &[0]), Taken::Partial);
        assert_eq!(take(&mut intake, 2, 3, &[0]), Taken::Partial);
        assert_eq!(take(&mut intake, 3, 5, &[1]), Taken::Partial);
        assert_eq!(take(&mut intake, 4, 5, &[1]), Taken::Full);
        assert_eq!(take(&mut intake, 2, 9, &[0, 1]), Taken::Complete);
        assert_eq!(take(&mut intake, 5, 0, &[0, 1]), Taken::Complete);
        assert_eq!(take(&mut intake, 3, 7, &[0]), Taken::Complete);
        assert_eq!(take(&mut intake, 6, 7, &[0, 1]), Taken::Full);
        assert_eq!((intake.waiting(), intake.partial()), (4, 0));
        assert_eq!(entries(&mut intake), [vec![(1, 9), (2, 8), (5, 0)], vec![(3, 5)]]);
        assert_eq!(intake.waiting(), 0);
    }

    /// Claim: what has become too old in the queue is taken out of its entry, and what waits too long for attestations is
    /// given up, each told.
    #[test]
    fn too_old() {
        let mut intake = Intake::new(Bounds { queue_max: 10, ..BOUNDS });
        for (id, height) in [(1, 4), (2, 5), (3, 3)] {
            take(&mut intake, id, height, &[0, 1]);
        }
        let mut told = Vec::new();
        intake.drop_expired(|height| height >= 4, |it| told.push(it.id[0]));
        take(&mut intake, 4, 6, &[1]);
        intake.drop_incomplete(8, 1, |it| told.push(it.id[0]));
        assert_eq!((told, intake.waiting()), (vec![3, 4], 2));
        assert_eq!(entries(&mut intake), [[(1, 4), (2, 5)]]);
        take(&mut intake, 5, 6, &[0, 1]);
        take(&mut intake, 6, 6, &[1]);
        let mut told = Vec::new();
        intake.give_up(|it| told.push(it.id[0]));
        assert_eq!((told, intake.waiting(), intake.next_bytes()), (vec![6, 5], 0, None));
    }
}
