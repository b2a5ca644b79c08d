//! What is wrong with a single transaction or a single list: everything that needs no cycle.

use crate::history::{Effect, History, MicroOp, Op};
use crate::prefix::{Key, Prefix};
use crate::verdict::{Anomaly, Instance, Verdict};
use crate::versions::Versions;
use crate::{NONE, at};

/// What reads are good for, by operation.
pub(crate) struct Reads {
    /// Whether an operation is a read of a version that others made, and what it found is one: a bit each.
    outward: Vec<u64>,
}

impl Reads {
    #[inline]
    pub(crate) fn is_outward(&self, op: usize) -> bool {
        self.outward[op / 64] >> (op % 64) & 1 != 0
    }
}

/// Looks at every read of what was committed.
pub(crate) fn look(history: &History, versions: &Versions, verdict: &mut Verdict) -> Reads {
    let mut look = Look {
        history,
        versions,
        verdict,
        reads: Reads { outward: vec![0; history.ops.len().div_ceil(64)] },
        updated_by: vec![NONE; versions.count_slots()],
    };
    for place in history.places() {
        if history.effects[at(place)] == Effect::Certain {
            look.transaction(place);
        }
        if versions.is_in[at(place)] {
            look.appends(place);
        }
    }
    let reads = look.reads;
    dirty_updates(history, versions, verdict);
    reads
}

struct Look<'a> {
    history: &'a History,
    versions: &'a Versions,
    verdict: &'a mut Verdict,
    reads: Reads,
    /// By version: the first transaction that read it and then appended to the list.
    updated_by: Vec<u32>,
}

impl Look<'_> {
    fn transaction(&mut self, place: u32) {
        let (start, ops) = self.history.ops_of(place);
        for (n, op) in ops.iter().enumerate() {
            let MicroOp::Read { key, found: Some(found) } = op.get() else { continue };
            let instance =
                || Instance::Read { id: self.history.ids[at(place)], key, len: found.len };
            if !agrees_with_itself(&ops[..n], key, found) {
                self.verdict.add(Anomaly::Internal, false, instance());
            }
            let Some(slot) = self.versions.slot(key, found) else {
                if self.versions.contradicts(key, found) {
                    self.verdict.add(Anomaly::IncompatibleOrder, false, instance());
                } else {
                    self.verdict.unread += 1;
                }
                continue;
            };
            self.verdict.reads += 1;
            if !ends_with_own(&ops[..n], key, slot, self.versions) {
                self.verdict.add(Anomaly::Internal, false, instance());
            }
            if reads_ahead(&ops[n + 1..], key, found, self.versions) {
                self.verdict.add(Anomaly::FutureRead, false, instance());
            }
            let by = self.versions.made_by[at(slot)];
            if by != place && self.versions.is_intermediate(slot) {
                self.verdict.add(Anomaly::IntermediateRead, false, instance());
            }
            if !self.versions.spoilt.is_empty() {
                self.spoilt(place, key, found.len);
            }
            if ops[..n].iter().all(|earlier| !tells(*earlier, key)) {
                let op = start + n;
                self.reads.outward[op / 64] |= 1 << (op % 64);
                self.update(place, &ops[n + 1..], key, slot);
            }
        }
    }

    /// What a transaction appends to one list stands there in its order, and nothing of the beginning is missing.
    fn appends(&mut self, place: u32) {
        let (_, ops) = self.history.ops_of(place);
        for (n, op) in ops.iter().enumerate() {
            let MicroOp::Append { key, element } = op.get() else { continue };
            let length = self.versions.length(element);
            for earlier in &ops[..n] {
                match earlier.get() {
                    MicroOp::Append { key: other, element: first }
                        if other == key
                            && length != 0
                            && !(1..length).contains(&self.versions.length(first)) =>
                    {
                        let (id, elements) = (self.history.ids[at(place)], [first, element]);
                        let instance = Instance::Appends { id, key, elements };
                        self.verdict.add(Anomaly::DisorderedAppends, false, instance);
                    }
                    _ => {}
                }
            }
        }
    }

    fn spoilt(&mut self, place: u32, key: Key, len: u32) {
        let Some(spoilt) = self.versions.spoilt.get(&key) else { return };
        for (anomaly, from) in [
            (Anomaly::GarbageRead, spoilt.garbage),
            (Anomaly::DuplicateElement, spoilt.twice),
            (Anomaly::AbortedRead, spoilt.refused),
        ] {
            if from.is_some_and(|from| from <= len) {
                let id = self.history.ids[at(place)];
                self.verdict.add(anomaly, false, Instance::Read { id, key, len });
            }
        }
    }

    /// A transaction that read a version: if it goes on to append, no other may have done so.
    fn update(&mut self, place: u32, later: &[Op], key: Key, slot: u32) {
        if !later.iter().any(|op| op.key() == key && matches!(op.get(), MicroOp::Append { .. })) {
            return;
        }
        let first = &mut self.updated_by[at(slot)];
        if *first == NONE {
            *first = place;
            return;
        }
        let ids = [self.history.ids[at(*first)], self.history.ids[at(place)]];
        let len = self.versions.slots(key).map_or(0, |(first, _)| slot - first);
        self.verdict.add(Anomaly::LostUpdate, false, Instance::Pair { ids, key, len });
    }
}

/// Whether an operation says something of what a later read of the key must find.
fn tells(op: Op, key: Key) -> bool {
    op.key() == key && !matches!(op.get(), MicroOp::Read { found: None, .. })
}

/// Whether a read finds what the transaction's last read of the list found, and behind it what it appended since.
fn agrees_with_itself(earlier: &[Op], key: Key, found: Prefix) -> bool {
    let mut expected: Option<Prefix> = None;
    for op in earlier.iter().filter(|op| op.key() == key) {
        match op.get() {
            MicroOp::Append { element, .. } => {
                expected = expected.map(|prefix| prefix.then(element));
            }
            MicroOp::Read { found: Some(found), .. } => expected = Some(found),
            MicroOp::Read { found: None, .. } => {}
        }
    }
    expected.is_none_or(|expected| expected == found)
}

/// Whether a read of a list that the transaction has not read before ends with what it appended.
fn ends_with_own(earlier: &[Op], key: Key, slot: u32, versions: &Versions) -> bool {
    let of_key = || earlier.iter().filter(|op| op.key() == key).map(|op| op.get());
    if of_key().any(|op| matches!(op, MicroOp::Read { found: Some(_), .. })) {
        return true;
    }
    let mut slot = slot;
    for op in of_key().rev() {
        let MicroOp::Append { element, .. } = op else { continue };
        // The empty list's element is none of anybody's.
        if versions.elements[at(slot)] != element {
            return false;
        }
        slot -= 1;
    }
    true
}

/// Whether a read finds what the transaction appends only later.
fn reads_ahead(later: &[Op], key: Key, found: Prefix, versions: &Versions) -> bool {
    later.iter().filter(|op| op.key() == key).any(|op| match op.get() {
        MicroOp::Append { element, .. } => (1..=found.len).contains(&versions.length(element)),
        MicroOp::Read { .. } => false,
    })
}

fn dirty_updates(history: &History, versions: &Versions, verdict: &mut Verdict) {
    let mut keys: Vec<Key> = versions.spoilt.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let Some((refused, element)) = versions.spoilt[&key].dirty else { continue };
        let Some((writer, _)) = history.writer(key, element) else { continue };
        let committed = (element, history.ids[at(writer)]);
        verdict.add(Anomaly::DirtyUpdate, false, Instance::Update { key, refused, committed });
    }
}
