//! From notifications to entries of the log: attestations of a transaction gather until each of its inputs is vouched for;
//! then it stands in the queue, in the very bytes that its entry will have.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::machine::{Broken, Rules};
use crate::protocol::Hash;
use crate::protocol::entry::{self, Entry, read_entry};
use crate::protocol::request::{Notification, all_inputs};
use crate::protocol::transaction::Transaction;
use crate::spent::Secret;

/// No entry is longer, whatever the cap: it fits a value of the log.
pub const ENTRY_BYTES_MAX: usize = 15 << 20;

/// The bounds of what waits.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Most transactions in the queue.
    pub queue_max: usize,
    /// Most bytes of them.
    pub queue_bytes_max: usize,
    /// Most transactions that wait for attestations.
    pub partial_max: usize,
    /// Most bytes of them, without what it takes to find them again.
    pub partial_bytes_max: usize,
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
    /// The lowest height that was said first of an input; none where none was.
    height: Option<u64>,
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

impl Making {
    /// Bytes of its transactions, without the heights that stand before each.
    fn transaction_bytes(&self) -> usize {
        let count = usize::try_from(self.count).expect("it was counted");
        self.bytes.len() - entry::HEAD_BYTES - 8 * count
    }
}

/// Hashes a number to itself: it was mixed with a secret before.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed")
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// What waits.
#[derive(Debug)]
pub struct Intake {
    bounds: Bounds,
    secret: Secret,
    ignores_height_zero: bool,
    broken: Broken,
    /// By the transaction's bytes: two that differ are two, whatever their names.
    partial: HashMap<Box<[u8]>, Gathered>,
    partial_bytes: usize,
    /// How many of them have a name at this place: one that is complete by itself, as nearly all are, is looked for among
    /// them only where one of its name waits.
    partial_names: HashMap<u64, u32, BuildHasherDefault<AsItIs>>,
    /// Times that a transaction was looked for among those that wait for attestations.
    searches: u64,
    queue: VecDeque<Making>,
    waiting: usize,
    waiting_bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl Intake {
    /// An empty one. With `ignores_height_zero` a height of 0 counts as none, unless it is all there is: the published
    /// system's rule, by which an input that was spent long ago can be spent again.
    #[must_use]
    pub fn new(bounds: Bounds, rules: &Rules, ignores_height_zero: bool) -> Self {
        let entry_bytes = bounds.entry_bytes.min(ENTRY_BYTES_MAX);
        Self {
            bounds: Bounds { entry_bytes, ..bounds },
            secret: rules.secret,
            ignores_height_zero,
            broken: rules.broken,
            partial: HashMap::new(),
            partial_bytes: 0,
            partial_names: HashMap::default(),
            searches: 0,
            queue: VecDeque::new(),
            waiting: 0,
            waiting_bytes: 0,
            spare: Vec::new(),
        }
    }

    /// Takes a notification; `height` is that of the last block.
    #[inline]
    pub fn take(&mut self, it: &Notification<'_>, height: u64) -> Taken {
        if self.waiting >= self.bounds.queue_max
            || self.waiting_bytes >= self.bounds.queue_bytes_max
        {
            return Taken::Full;
        }
        let all = all_inputs(it.transaction.inputs.len());
        if it.attested() == all && !self.waits(it.transaction.id) {
            self.push(it.height, &it.transaction);
            return Taken::Complete;
        }
        self.gather(it, all, height)
    }

    /// Whether one of this name may wait for attestations.
    #[inline]
    fn waits(&self, id: &Hash) -> bool {
        !self.partial_names.is_empty() && self.partial_names.contains_key(&self.secret.place(id))
    }

    fn gather(&mut self, it: &Notification<'_>, all: u128, height: u64) -> Taken {
        self.searches += 1;
        let mut key = Vec::with_capacity(it.transaction.bytes());
        it.transaction.write(&mut key);
        let before = self.partial.get(&key[..]).copied();
        let mut gathered = before.unwrap_or(Gathered { attested: 0, height: None, since: height });
        // Who has vouched for an input before keeps the height that was said then.
        if it.attested() & !gathered.attested != 0 {
            gathered.height = Some(self.lower(gathered.height, it.height));
        }
        gathered.attested |= it.attested();
        let is_enough = gathered.attested == all || self.broken == Broken::CompletesWithOne;
        if is_enough {
            if let Some((bytes, _)) = self.partial.remove_entry(&key[..]) {
                self.forget(&bytes);
            }
            self.push(gathered.height.unwrap_or(it.height), &it.transaction);
            return Taken::Complete;
        }
        let is_full = self.partial.len() >= self.bounds.partial_max
            || self.partial_bytes + key.len() > self.bounds.partial_bytes_max;
        if before.is_none() {
            if is_full {
                return Taken::Full;
            }
            self.partial_bytes += key.len();
            *self.partial_names.entry(self.secret.place(it.transaction.id)).or_default() += 1;
        }
        self.partial.insert(key.into_boxed_slice(), gathered);
        Taken::Partial
    }

    /// The lower of two heights at which inputs of a transaction were seen unspent.
    fn lower(&self, known: Option<u64>, said: u64) -> u64 {
        match known {
            Some(0) if self.ignores_height_zero => said,
            Some(known) if self.ignores_height_zero && said == 0 => known,
            Some(known) if self.broken == Broken::HighestHeight => known.max(said),
            Some(known) => known.min(said),
            None => said,
        }
    }

    /// One does not wait for attestations any more.
    fn forget(&mut self, bytes: &[u8]) {
        self.partial_bytes -= bytes.len();
        let place = self.secret.place(bytes.first_chunk().expect("a transaction has a name"));
        if let Some(count) = self.partial_names.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                self.partial_names.remove(&place);
            }
        }
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
        self.waiting_bytes += transaction.bytes();
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

    /// Bytes of them.
    #[must_use]
    pub const fn partial_bytes(&self) -> usize {
        self.partial_bytes
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
        self.waiting_bytes -= making.transaction_bytes();
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
                    self.waiting_bytes -= it.transaction.bytes();
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
        let is_late = |it: &Gathered| height > it.since.saturating_add(blocks);
        let late: Vec<_> = self.partial.extract_if(|_, it| is_late(it)).collect();
        for (bytes, _) in late {
            self.forget(&bytes);
            if let Ok(it) = Transaction::read(&bytes) {
                each(&it);
            }
        }
    }

    /// Gives up everything that waits, each told to `each`.
    pub fn give_up(&mut self, mut each: impl FnMut(&Transaction<'_>)) {
        self.partial_names.clear();
        self.partial_bytes = 0;
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
        (self.waiting, self.waiting_bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::request::{Request, read_request, write_notify};

    const BOUNDS: Bounds = Bounds {
        queue_max: 4,
        queue_bytes_max: 1 << 20,
        partial_max: 2,
        partial_bytes_max: 1 << 20,
        entry_bytes: 300,
    };

    fn intake(bounds: Bounds) -> Intake {
        Intake::new(bounds, &Rules::published(Secret::new(1)), false)
    }

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
        let mut intake = intake(BOUNDS);
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

    /// Claim: the height of a transaction is the lowest that was said of an input, 0 too; by the published rule 0 counts as
    /// none, unless it is all there is.
    #[test]
    fn height_zero() {
        for (ignores_height_zero, expected) in [(false, [0, 0, 0]), (true, [7, 7, 0])] {
            let rules = Rules::published(Secret::new(1));
            let mut intake = Intake::new(BOUNDS, &rules, ignores_height_zero);
            for (id, first, second) in [(1, 0, 7), (2, 7, 0), (3, 0, 0)] {
                assert_eq!(take(&mut intake, id, first, &[0]), Taken::Partial);
                assert_eq!(take(&mut intake, id, second, &[1]), Taken::Complete);
            }
            let heights = entries(&mut intake).concat().into_iter().map(|(_, height)| height);
            assert_eq!(heights.collect::<Vec<_>>(), expected, "{ignores_height_zero}");
        }
    }

    /// Claim: a transaction that waits for attestations costs those of other names nothing: they are not looked for among
    /// those that wait; one of its own name is, and what was said of it before counts.
    #[test]
    fn one_that_waits_costs_others_nothing() {
        let mut intake = intake(Bounds { queue_max: 1_000, ..BOUNDS });
        take(&mut intake, 0, 3, &[0]);
        assert_eq!(intake.searches, 1);
        for id in 1..=200 {
            assert_eq!(take(&mut intake, id, 9, &[0, 1]), Taken::Complete);
        }
        assert_eq!(intake.searches, 1);
        assert_eq!(take(&mut intake, 0, 9, &[0, 1]), Taken::Complete);
        assert_eq!((intake.searches, intake.partial()), (2, 0));
        assert_eq!(entries(&mut intake).concat().last(), Some(&(0, 3)));
        take(&mut intake, 0, 9, &[0, 1]);
        assert_eq!(intake.searches, 2, "it waits no longer");
    }

    /// Claim: what waits for attestations or for the log is bounded in bytes, and room that is given back can be used again.
    #[test]
    fn bytes_are_bounded() {
        // Of two inputs and no outputs: 112 bytes.
        let bounds =
            Bounds { partial_max: 10, partial_bytes_max: 250, queue_bytes_max: 200, ..BOUNDS };
        let mut intake = intake(bounds);
        assert_eq!(
            [1, 2, 3].map(|id| take(&mut intake, id, 5, &[0])),
            [Taken::Partial, Taken::Partial, Taken::Full]
        );
        assert_eq!((intake.partial_bytes(), take(&mut intake, 1, 5, &[0])), (224, Taken::Partial));
        assert_eq!(take(&mut intake, 1, 5, &[1]), Taken::Complete);
        assert_eq!((intake.partial_bytes(), take(&mut intake, 3, 5, &[0])), (112, Taken::Partial));
        assert_eq!(take(&mut intake, 4, 5, &[0, 1]), Taken::Complete);
        assert_eq!(take(&mut intake, 5, 5, &[0, 1]), Taken::Full);
        assert_eq!(entries(&mut intake).concat().len(), 2);
        assert_eq!(take(&mut intake, 5, 5, &[0, 1]), Taken::Complete);
        intake.drop_incomplete(9, 1, |_| {});
        assert_eq!((intake.partial(), intake.partial_bytes()), (0, 0));
        intake.give_up(|_| {});
        assert_eq!(intake.waiting_bytes, 0);
    }

    /// Claim: what has become too old in the queue is taken out of its entry, and what waits too long for attestations is
    /// given up, each told.
    #[test]
    fn too_old() {
        let mut intake = intake(Bounds { queue_max: 10, ..BOUNDS });
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
