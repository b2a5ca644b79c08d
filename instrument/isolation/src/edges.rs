//! Which transaction must stand before which: the graph whose cycles are anomalies.
//!
//! Beside the transactions it has two kinds of nodes, so that there are no more edges than in proportion to the history.
//! A *moment* stands for all transactions answered between two sendings; each moment comes before the next one, so that
//! two transactions of which one was answered before the other was sent have a path of moments between them. A *crowd*
//! stands for the transactions whose appends to one list were not seen: each that read the whole known list is before
//! all of them.

use std::collections::BTreeMap;

use crate::direct::Reads;
use crate::graph::Edges;
use crate::history::{Effect, History, MicroOp};
use crate::prefix::Key;
use crate::versions::Versions;
use crate::{NONE, at, small};

/// What an edge says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From the writer of an element to that of the next.
    Ww,
    /// From the writer to a reader.
    Wr,
    /// From a reader to the writer of the next element, or to the crowd of those.
    Rw,
    /// To, between and from moments.
    RealTime,
    /// From a crowd to one of it.
    OfCrowd,
}

/// All that edges are made of.
pub(crate) struct Relations<'a> {
    pub(crate) history: &'a History,
    pub(crate) versions: &'a Versions,
    reads: &'a Reads,
    moments: Moments,
    crowds: Crowds,
}

impl<'a> Relations<'a> {
    pub(crate) fn new(history: &'a History, versions: &'a Versions, reads: &'a Reads) -> Self {
        Self {
            history,
            versions,
            reads,
            moments: Moments::new(history, versions),
            crowds: Crowds::new(history, versions, reads),
        }
    }
}

impl Edges for Relations<'_> {
    fn each(&self, mut emit: impl FnMut(u32, u32)) {
        self.all(|from, to, _| emit(from, to));
    }
}

impl Relations<'_> {
    pub(crate) fn transactions(&self) -> usize {
        self.history.ids.len()
    }

    pub(crate) fn nodes(&self) -> usize {
        self.transactions() + self.moments.count + self.crowds.list.len()
    }

    fn moment(&self, moment: u32) -> u32 {
        small(self.transactions()) + moment
    }

    fn crowd(&self, crowd: usize) -> u32 {
        small(self.transactions() + self.moments.count + crowd)
    }

    /// Reads of what others made: the list, how long it was, and its version.
    pub(crate) fn outward(&self, place: u32) -> impl Iterator<Item = (Key, u32, u32)> {
        let (start, ops) = self.history.ops_of(place);
        let outward = (start..).zip(ops).filter(|(n, _)| self.reads.is_outward(*n));
        outward.filter_map(|(_, op)| {
            let MicroOp::Read { key, found: Some(found) } = op.get() else { return None };
            Some((key, found.len, self.versions.slots(key)?.0 + found.len))
        })
    }

    /// Tells each edge.
    #[inline]
    pub(crate) fn all(&self, mut emit: impl FnMut(u32, u32, Kind)) {
        self.ww(&mut emit);
        self.of_reads(&mut emit);
        self.of_crowds(&mut emit);
        self.of_moments(&mut emit);
    }

    fn ww(&self, emit: &mut impl FnMut(u32, u32, Kind)) {
        // Of two keys that follow each other the second begins with the empty list, which no transaction made.
        let mut before = NONE;
        for by in &self.versions.made_by {
            if before != NONE && *by != NONE && before != *by {
                emit(before, *by, Kind::Ww);
            }
            before = *by;
        }
    }

    fn of_reads(&self, emit: &mut impl FnMut(u32, u32, Kind)) {
        for place in self.history.places() {
            for (key, _, slot) in self.outward(place) {
                let by = self.versions.made_by[at(slot)];
                if by != NONE && by != place {
                    emit(by, place, Kind::Wr);
                }
                let next = self.versions.ended_by[at(slot)];
                if next == NONE {
                    self.to_crowd(place, key, emit);
                } else if next != place {
                    emit(place, next, Kind::Rw);
                }
            }
        }
    }

    /// From one that read all that is known of a list to those whose appends were not seen.
    fn to_crowd(&self, place: u32, key: Key, emit: &mut impl FnMut(u32, u32, Kind)) {
        let Some(number) = self.crowds.of_key(key) else { return };
        let crowd = &self.crowds.list[number];
        if crowd.readers < crowd.members.len() {
            emit(place, self.crowd(number), Kind::Rw);
        }
        // Two that read the same and both append are an anomaly however many more there are.
        for reader in crowd.members.iter().take(crowd.readers.min(2)) {
            if *reader != place {
                emit(place, *reader, Kind::Rw);
            }
        }
    }

    fn of_crowds(&self, emit: &mut impl FnMut(u32, u32, Kind)) {
        for (number, crowd) in self.crowds.list.iter().enumerate() {
            for (n, member) in crowd.members.iter().enumerate() {
                if crowd.last != NONE && crowd.last != *member {
                    emit(crowd.last, *member, Kind::Ww);
                }
                if n >= crowd.readers {
                    emit(self.crowd(number), *member, Kind::OfCrowd);
                }
            }
        }
    }

    fn of_moments(&self, emit: &mut impl FnMut(u32, u32, Kind)) {
        for moment in 1..small(self.moments.count) {
            emit(self.moment(moment - 1), self.moment(moment), Kind::RealTime);
        }
        for place in self.history.places() {
            let (before, after) = (self.moments.before[at(place)], self.moments.after[at(place)]);
            if before != NONE {
                emit(self.moment(before), place, Kind::RealTime);
            }
            if after != NONE {
                emit(place, self.moment(after), Kind::RealTime);
            }
        }
    }
}

/// Real time, as a chain of moments.
struct Moments {
    count: usize,
    /// The last moment before each transaction; [`NONE`] = none.
    before: Vec<u32>,
    /// The first one after it.
    after: Vec<u32>,
}

impl Moments {
    fn new(history: &History, versions: &Versions) -> Self {
        let mut sent: Vec<(i64, u32)> = history
            .places()
            .filter(|place| versions.is_in[at(*place)])
            .map(|place| (history.invoked[at(place)], place))
            .collect();
        let mut answered: Vec<(i64, u32)> = history
            .places()
            .filter(|place| history.effects[at(*place)] == Effect::Certain)
            .map(|place| (history.completed[at(place)], place))
            .collect();
        // Stable sorts are quick where runs are in order already, as histories are.
        sent.sort();
        answered.sort();
        let mut before = vec![NONE; history.len()];
        let mut after = vec![NONE; history.len()];
        let mut moment = 0;
        let mut answers = answered.into_iter().peekable();
        for (invoked, place) in sent {
            let mut is_new = false;
            // What is answered and sent at one time runs beside each other.
            while let Some((_, one)) = answers.next_if(|(completed, _)| *completed < invoked) {
                after[at(one)] = moment;
                is_new = true;
            }
            moment += u32::from(is_new);
            before[at(place)] = moment.checked_sub(1).unwrap_or(NONE);
        }
        Self { count: at(moment), before, after }
    }
}

/// The transactions whose appends were not seen, by list.
struct Crowds {
    list: Vec<Crowd>,
    /// Index into the list by key; [`NONE`] = none.
    by_key: Vec<u32>,
}

struct Crowd {
    /// Who appended last of those that were seen.
    last: u32,
    /// First those that had read all that is known of the list, as many as `readers`; then the others.
    members: Vec<u32>,
    readers: usize,
}

impl Crowds {
    fn new(history: &History, versions: &Versions, reads: &Reads) -> Self {
        let mut by_key: BTreeMap<Key, [Vec<u32>; 2]> = BTreeMap::new();
        for place in history.places().filter(|place| versions.is_in[at(*place)]) {
            let (start, ops) = history.ops_of(place);
            for op in ops {
                let MicroOp::Append { key, element } = op.get() else { continue };
                if versions.length(element) != 0 {
                    continue;
                }
                let reads_all = (start..).zip(ops).any(|(n, op)| match op.get() {
                    MicroOp::Read { key: other, found: Some(found) } if other == key => {
                        let Some(slot) = versions.slot(key, found) else { return false };
                        reads.is_outward(n) && versions.ended_by[at(slot)] == NONE
                    }
                    _ => false,
                });
                let members = &mut by_key.entry(key).or_default()[usize::from(!reads_all)];
                if members.last() != Some(&place) {
                    members.push(place);
                }
            }
        }
        let mut crowds = Self { list: Vec::new(), by_key: vec![NONE; versions.keys()] };
        for (key, [mut members, others]) in by_key {
            let readers = members.len();
            members.extend(others);
            let last = versions.slots(key).map_or(NONE, |(_, last)| versions.made_by[at(last)]);
            if let Some(place) = crowds.by_key.get_mut(at(key)) {
                *place = small(crowds.list.len());
            }
            crowds.list.push(Crowd { last, members, readers });
        }
        crowds
    }

    fn of_key(&self, key: Key) -> Option<usize> {
        self.by_key.get(at(key)).filter(|crowd| **crowd != NONE).map(|crowd| at(*crowd))
    }
}
