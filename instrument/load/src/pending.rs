//! Outstanding transactions of one stream of one worker: found by transaction number, by connection, and by age, each
//! in constant time, without a hash map on the path of a transaction that is answered in its turn.
//!
//! Numbers are given out in ascending order, or nearly so where each client has one ahead, so a ring indexed by number
//! finds an entry. It covers a window that slides with the oldest outstanding number; a few that are much older than
//! the rest move to a map, so that one lost answer cannot make the window grow for as long as its timeout lasts.
//! Nothing here decides what became of a transaction.

use std::collections::HashMap;

use model::{NO_STAMP, Row, Stamp};

use crate::numbers::NumberSet;

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;
/// Numbers that the ring covers at first, and at most: 4 MiB of it, two seconds of 500,000/s.
const RING_MIN: usize = 1 << 10;
const RING_MAX: usize = 1 << 20;

/// An outstanding transaction.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its row; until it ends `row.connection` is the worker's own index of the connection that carries it, or [`NONE`], and
    /// `row.end` is its number in the stream of this worker.
    pub row: Row,
    /// Neighbours on the connection, in the order of submission.
    previous_here: u32,
    next_here: u32,
    /// Neighbours in the order of sending.
    earlier: u32,
    later: u32,
}

// Two lines of the processor's cache.
const _: () = assert!(size_of::<Entry>() <= 128);

impl Entry {
    /// Its number in the stream of this worker.
    pub(crate) const fn number(&self) -> u64 {
        self.row.end.cast_unsigned()
    }

    /// The connection that carries it, by the worker's own index; [`NONE`]: it waits to be sent again.
    pub(crate) fn connection(&self) -> u32 {
        self.row.connection
    }
}

/// The transactions outstanding on one connection, in the order of submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnConnection {
    first: u32,
    last: u32,
    /// The first that has not been handed to the driver yet.
    first_unsent: u32,
    pub count: u32,
}

impl Default for OnConnection {
    fn default() -> Self {
        Self { first: NONE, last: NONE, first_unsent: NONE, count: 0 }
    }
}

impl OnConnection {
    /// The oldest, or [`NONE`].
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Whether something was submitted and not handed to the driver yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.first_unsent != NONE
    }
}

/// The state of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Outstanding, in this slot.
    Outstanding(u32),
    /// It ended without an answer; this is the first one since.
    Unanswered,
    /// It ended with an answer.
    Answered,
    /// It was never given to a session.
    Never,
    /// It ended so long ago that how is no longer known.
    Forgotten,
}

#[derive(Debug)]
pub(crate) struct Pending {
    entries: Vec<Entry>,
    free: Vec<u32>,
    ring: Box<[u32]>,
    /// The lowest number that the ring covers.
    base: u64,
    /// One past the highest number given to a session.
    given: u64,
    stragglers: HashMap<u64, u32>,
    /// Numbers that ended without an answer and have had none since.
    unanswered: NumberSet,
    /// Numbers that were shed or refused.
    unsent: NumberSet,
    oldest: u32,
    youngest: u32,
}

impl Pending {
    /// Numbers come in ascending order, but for some that are up to `slack` lower.
    pub(crate) fn new(slack: u32) -> Self {
        let ring = (slack as usize * 2).next_power_of_two().clamp(RING_MIN, RING_MAX);
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            ring: vec![NONE; ring].into(),
            base: 0,
            given: 0,
            stragglers: HashMap::new(),
            unanswered: NumberSet::default(),
            unsent: NumberSet::default(),
            oldest: NONE,
            youngest: NONE,
        }
    }

    /// How many are outstanding.
    pub(crate) fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn entry(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }

    pub(crate) fn row_mut(&mut self, slot: u32) -> &mut Row {
        &mut self.entries[slot as usize].row
    }

    /// Registers a transaction before its bytes are sent. Gives its slot.
    pub(crate) fn insert(
        &mut self,
        number: u64,
        row: Row,
        connection: u32,
        list: &mut OnConnection,
    ) -> u32 {
        self.cover(number);
        let entry = Entry {
            row: Row { connection, end: number.cast_signed(), ..row },
            previous_here: NONE,
            next_here: NONE,
            earlier: NONE,
            later: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 are outstanding")
            }
        };
        if number >= self.base {
            let place = self.place(number);
            self.ring[place] = slot;
        } else {
            self.stragglers.insert(number, slot);
        }
        self.given = self.given.max(number + 1);
        self.append(slot, list);
        slot
    }

    /// Moves an entry to the end of another list: to a connection, whose bytes have yet to leave, or
    /// (`connection` is [`NONE`]) to those that wait for one.
    pub(crate) fn give_to(
        &mut self,
        slot: u32,
        connection: u32,
        from: &mut OnConnection,
        to: &mut OnConnection,
    ) {
        self.unlink(slot, from);
        self.entries[slot as usize].row.connection = connection;
        self.append(slot, to);
    }

    fn append(&mut self, slot: u32, list: &mut OnConnection) {
        let entry = &mut self.entries[slot as usize];
        (entry.previous_here, entry.next_here) = (list.last, NONE);
        match list.last {
            NONE => list.first = slot,
            last => self.entries[last as usize].next_here = slot,
        }
        list.last = slot;
        if list.first_unsent == NONE {
            list.first_unsent = slot;
        }
        list.count += 1;
    }

    fn unlink(&mut self, slot: u32, list: &mut OnConnection) {
        let entry = &self.entries[slot as usize];
        let (previous, next) = (entry.previous_here, entry.next_here);
        match previous {
            NONE => list.first = next,
            previous => self.entries[previous as usize].next_here = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.entries[next as usize].previous_here = previous,
        }
        if list.first_unsent == slot {
            list.first_unsent = next;
        }
        list.count -= 1;
    }

    /// Those on a list whose bytes have not left yet, in their order.
    pub(crate) fn unsent(&self, list: &OnConnection) -> impl Iterator<Item = u32> {
        let first = (list.first_unsent != NONE).then_some(list.first_unsent);
        std::iter::successors(first, |slot| {
            Some(self.entries[*slot as usize].next_here).filter(|next| *next != NONE)
        })
    }

    /// Stamps what was submitted on a connection since the last time: its bytes go to the driver now.
    /// Gives how many were not sent before.
    pub(crate) fn mark_sent(&mut self, list: &mut OnConnection, sent: Stamp) -> u64 {
        let mut count = 0;
        let mut slot = list.first_unsent;
        while slot != NONE {
            let entry = &mut self.entries[slot as usize];
            let next = entry.next_here;
            entry.row.attempts += 1;
            if entry.row.sent != NO_STAMP {
                slot = next;
                continue;
            }
            entry.row.sent = sent;
            entry.earlier = self.youngest;
            if self.youngest == NONE {
                self.oldest = slot;
            } else {
                self.entries[self.youngest as usize].later = slot;
            }
            self.youngest = slot;
            slot = next;
            count += 1;
        }
        list.first_unsent = NONE;
        count
    }

    /// The one that was sent first, or [`NONE`].
    pub(crate) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// When that one was due.
    pub(crate) fn oldest_due(&self) -> Option<Stamp> {
        (self.oldest != NONE).then(|| self.entries[self.oldest as usize].row.due)
    }

    /// Whether an entry's bytes were handed to the driver.
    pub(crate) fn is_sent(&self, slot: u32) -> bool {
        self.entries[slot as usize].row.sent != NO_STAMP
    }

    /// Where a number's entry is, or [`NONE`].
    pub(crate) fn slot(&self, number: u64) -> u32 {
        if number >= self.given {
            return NONE;
        }
        if number < self.base {
            return self.stragglers.get(&number).copied().unwrap_or(NONE);
        }
        // The place may be another number's: the window slides back where numbers come out of their order.
        let slot = self.ring[self.place(number)];
        let is_its = slot != NONE && self.entries[slot as usize].number() == number;
        if is_its { slot } else { NONE }
    }

    /// The state of a number.
    pub(crate) fn find(&mut self, number: u64) -> Known {
        if number >= self.given {
            return Known::Never;
        }
        let slot = self.slot(number);
        if slot != NONE {
            // Registered and not yet sent: whoever answers it was never asked.
            let is_sent = self.entries[slot as usize].row.sent != NO_STAMP;
            return if is_sent { Known::Outstanding(slot) } else { Known::Never };
        }
        if self.unanswered.remove(number) {
            Known::Unanswered
        } else if self.unsent.holds(number) {
            Known::Never
        } else if self.unanswered.has_forgotten(number) || self.unsent.has_forgotten(number) {
            Known::Forgotten
        } else {
            Known::Answered
        }
    }

    /// Takes an entry out. `list` is its connection's.
    pub(crate) fn remove(&mut self, slot: u32, list: &mut OnConnection) -> Row {
        let entry = &self.entries[slot as usize];
        let (row, number) = (entry.row, entry.number());
        let (earlier, later) = (entry.earlier, entry.later);
        if number >= self.base {
            let place = self.place(number);
            self.ring[place] = NONE;
        } else {
            self.stragglers.remove(&number);
        }
        self.unlink(slot, list);
        if row.sent != NO_STAMP {
            match earlier {
                NONE => self.oldest = later,
                earlier => self.entries[earlier as usize].later = later,
            }
            match later {
                NONE => self.youngest = earlier,
                later => self.entries[later as usize].earlier = earlier,
            }
        }
        self.free.push(slot);
        row
    }

    /// Remembers that a number ended without an answer.
    pub(crate) fn note_unanswered(&mut self, number: u64) {
        self.unanswered.insert(number);
    }

    /// Remembers that a number that ended without an answer has had one since.
    pub(crate) fn note_answered(&mut self, number: u64) {
        self.unanswered.remove(number);
    }

    /// Remembers that a number was never sent.
    pub(crate) fn note_unsent(&mut self, number: u64) {
        self.unsent.insert(number);
    }

    fn place(&self, number: u64) -> usize {
        usize::try_from(number).expect("a 64-bit machine") & (self.ring.len() - 1)
    }

    /// Slides, grows or relieves the ring until it covers `number`.
    fn cover(&mut self, number: u64) {
        if self.count() == 0 {
            // Lower ones may come yet: of clients, or of those that wait for others to leave with.
            self.base = number.saturating_sub(self.ring.len() as u64 / 2);
        }
        while number.saturating_sub(self.base) >= self.ring.len() as u64 {
            let place = self.place(self.base);
            let slot = self.ring[place];
            if slot != NONE {
                if self.ring.len() < RING_MAX {
                    self.grow();
                    continue;
                }
                self.stragglers.insert(self.base, slot);
                self.ring[place] = NONE;
            }
            self.base += 1;
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.ring);
        self.ring = vec![NONE; old.len() * 2].into();
        let old_mask = old.len() - 1;
        for number in self.base..self.base + old.len() as u64 {
            let from = usize::try_from(number).expect("a 64-bit machine") & old_mask;
            let to = self.place(number);
            self.ring[to] = old[from];
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Outcome;

    use super::*;

    fn row(tx: u64) -> Row {
        Row { tx, due: 0, ready: 0, outcome: Outcome::Unknown, ..Row::EMPTY }
    }

    /// Claim: numbers are found in any order of ending, the ring grows only while they are spread, and one
    /// that stays behind does not make it grow past its bound.
    #[test]
    fn a_straggler_costs_no_window() {
        let mut pending = Pending::new(0);
        let mut list = OnConnection::default();
        let mut other = OnConnection::default();
        pending.insert(0, row(0), 0, &mut other);
        pending.mark_sent(&mut other, 1);
        for number in 1..3_000_000_u64 {
            pending.insert(number, row(number), 1, &mut list);
            pending.mark_sent(&mut list, 2);
            let Known::Outstanding(slot) = pending.find(number) else { panic!("{number} is out") };
            assert_eq!(pending.remove(slot, &mut list).tx, number);
        }
        assert_eq!(pending.ring.len(), RING_MAX);
        assert_eq!((pending.count(), pending.entries.len()), (1, 2));
        let Known::Outstanding(slot) = pending.find(0) else { panic!("0 is still out") };
        assert_eq!(slot, pending.oldest());
        assert_eq!(pending.remove(slot, &mut other).tx, 0);
        assert_eq!(pending.find(0), Known::Answered);
        assert_eq!(pending.oldest(), NONE);
    }

    /// Claim: the lists by connection and by age survive removals at both ends and in the middle.
    #[test]
    fn lists_hold_together() {
        let mut pending = Pending::new(0);
        let mut list = OnConnection::default();
        for number in 0..5 {
            pending.insert(number, row(number), 0, &mut list);
        }
        assert_eq!(pending.find(3), Known::Never, "not sent yet, so nobody can have been asked");
        assert_eq!(pending.mark_sent(&mut list, 9), 5);
        for (gone, expected) in [(2, vec![0, 1, 3, 4]), (0, vec![1, 3, 4]), (4, vec![1, 3])] {
            let Known::Outstanding(slot) = pending.find(gone) else { panic!() };
            pending.remove(slot, &mut list);
            let (mut here, mut aged) = (Vec::new(), Vec::new());
            let mut at = list.first();
            while at != NONE {
                here.push(pending.entry(at).number());
                at = pending.entry(at).next_here;
            }
            let mut at = pending.oldest();
            while at != NONE {
                aged.push(pending.entry(at).number());
                at = pending.entry(at).later;
            }
            assert_eq!((&here, &aged), (&expected, &expected));
        }
        assert_eq!(list.count, 2);
    }

    /// Claim: a number that was given up is told from one that was answered, once; one never given is neither.
    #[test]
    fn late_repeated_and_invented_differ() {
        let mut pending = Pending::new(0);
        let mut list = OnConnection::default();
        for number in 0..2 {
            pending.insert(number, row(number), 0, &mut list);
        }
        pending.mark_sent(&mut list, 1);
        for number in 0..2 {
            let Known::Outstanding(slot) = pending.find(number) else { panic!() };
            pending.remove(slot, &mut list);
        }
        pending.note_unanswered(1);
        assert_eq!(pending.find(0), Known::Answered);
        assert_eq!(pending.find(1), Known::Unanswered);
        assert_eq!(pending.find(1), Known::Answered, "the second late answer repeats the first");
        assert_eq!(pending.find(2), Known::Never);
    }

    /// Claim: after a stall of seven seconds at 40,000/s with a timeout of one, in which as many were shed as given up,
    /// each answer is late and each answer to one that was never sent is a phantom: none is called a duplicate.
    #[test]
    fn a_long_stall_makes_no_duplicates() {
        let stalled = 7 * 40_000;
        let mut pending = Pending::new(0);
        let mut list = OnConnection::default();
        for number in 0..2 * stalled {
            if number % 2 == 1 {
                pending.note_unsent(number);
                continue;
            }
            let slot = pending.insert(number, row(number), 0, &mut list);
            pending.mark_sent(&mut list, 1);
            pending.remove(slot, &mut list);
            pending.note_unanswered(number);
        }
        for number in 0..2 * stalled {
            let expected = if number % 2 == 1 { Known::Never } else { Known::Unanswered };
            assert_eq!(pending.find(number), expected, "{number}");
        }
        assert_eq!(pending.find(0), Known::Answered, "the second answer to the first of them");
    }
}
