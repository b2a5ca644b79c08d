//! The check `register`: do reads return what a register could hold? Each key is a register that transactions write their
//! own number to, so that a read says which of them wrote what it saw.
//!
//! Decided by the theorem of P. Gibbons and E. Korach (Testing shared memories, SIAM Journal on Computing 26(4), 1997) in
//! the form that W. Golab, X. Li and M. Shah give it (Analyzing consistency properties for fun and profit, PODC 2011):
//! a write and the reads that returned it are a cluster; its zone lies between the earliest end and the latest beginning
//! of any of them, forward if the end comes first, else backward. A history is linearizable exactly if no read ends before
//! its write begins, no two forward zones of a key overlap and no backward zone lies inside a forward one. It takes a
//! sort. Before that, what is certain by itself is named: a read whose value was overwritten before it began, by a write
//! that began when the value was already there. That holds whatever the other reads say, so that one lie does not bring
//! honest reads under suspicion.
//!
//! A transaction begins when it is handed to the socket and ends when its answer is out of the kernel: both as the client
//! sees them, so that a contradiction is the system's. One without an answer may take effect at any time after it began.

use std::collections::{BTreeSet, HashMap};

use model::facts::KindFacts;
use model::options::{Problems, Section};
use model::{Class, FinalStages, NO_STAMP, Observation, Outcome, PROBE_BASE, Row, Stamp, TxId};
use sut::{Check, CheckFinding, CheckInput, CheckState, Entries, Reads};

use crate::options::keys;
use crate::workload::key_of;

/// The line in the adapter's list.
pub(crate) const CHECK: Check = Check {
    name: "register",
    summary: "reads return what the last write of their key left there, as far as real time tells",
    reads: Reads { rows: true, observations: true, entries: Entries::Unread },
    applies: |input| input.kinds.iter().any(|kind| !kind.is_recorded),
    start: |input| Box::new(Register::new(input)),
};

/// Transactions of each stream that are looked at, those that were due first: some 150 bytes each.
const LOOKED_AT_MAX: u64 = 2_000_000;
/// The value of a key that nobody has written to.
const UNWRITTEN: TxId = TxId::MAX;

/// The state of the check.
struct Register {
    keys: u64,
    kinds: Vec<KindFacts>,
    final_stages: FinalStages,
    calls: HashMap<TxId, Call>,
    /// A read, when its answer came, and what it returned.
    reads: Vec<(TxId, Stamp, Returned)>,
    beyond: u64,
}

/// A transaction as the client saw it.
#[derive(Clone, Copy)]
struct Call {
    from: Stamp,
    /// [`Stamp::MAX`]: no answer.
    to: Stamp,
    is_read: bool,
    /// Refused by the system: it can have had no effect.
    is_refused: bool,
    /// Sent more than once: it may have had its effect more than once.
    is_resent: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Returned {
    Value(TxId),
    Nonsense,
}

impl Register {
    fn new(input: &CheckInput<'_>) -> Self {
        let mut problems = Problems::default();
        let mut workload = Section::open(input.workload, "workload", &mut problems);
        Self {
            keys: keys(&mut workload, &mut problems),
            kinds: input.kinds.to_vec(),
            final_stages: input.final_stages,
            calls: HashMap::new(),
            reads: Vec::new(),
            beyond: 0,
        }
    }
}

impl CheckState for Register {
    fn row(&mut self, row: &Row) {
        if row.sent == NO_STAMP {
            return;
        }
        if is_beyond(row.tx) {
            self.beyond += 1;
            return;
        }
        let kind = usize::try_from(row.kind).ok().and_then(|kind| self.kinds.get(kind));
        // The refusal of a later attempt says nothing of the first.
        let is_refused = matches!(row.outcome, Outcome::Rejected(class)
            if class != Class::Transport && class != Class::Client && row.attempts <= 1);
        let mark = row.marks[self.final_stages.of(row.stream)];
        let call = Call {
            from: row.sent,
            to: if row.outcome == Outcome::Committed { mark } else { Stamp::MAX },
            is_read: kind.is_some_and(|kind| !kind.is_recorded),
            is_refused,
            is_resent: row.attempts > 1,
        };
        self.calls.insert(row.tx, call);
    }

    fn observation(&mut self, observation: &Observation<'_>) {
        if is_beyond(observation.tx) {
            return;
        }
        let returned = match observation.bytes {
            [] => Returned::Value(UNWRITTEN),
            bytes => bytes
                .try_into()
                .map_or(Returned::Nonsense, |bytes| Returned::Value(u64::from_le_bytes(bytes))),
        };
        self.reads.push((observation.tx, observation.at, returned));
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        let mut found = Found::default();
        let mut by_key: HashMap<u64, History> = HashMap::new();
        let writes = self.calls.iter().filter(|(_, call)| !call.is_read && !call.is_refused);
        for (tx, call) in writes {
            let history = by_key.entry(key_of(*tx, self.keys)).or_default();
            history.is_ambiguous |= call.is_resent;
            history.writes.push(Write { tx: *tx, from: call.from, to: call.to });
        }
        for (tx, at, returned) in &self.reads {
            let Some(call) = self.calls.get(tx).filter(|call| call.is_read) else { continue };
            let key = key_of(*tx, self.keys);
            let read = |value| Read { tx: *tx, from: call.from, to: *at, value };
            match *returned {
                // Written by one that is not looked at.
                Returned::Value(value) if value != UNWRITTEN && is_beyond(value) => {}
                Returned::Value(value) if self.could_hold(key, value, *at) => {
                    by_key.entry(key).or_default().reads.push(read(value));
                }
                Returned::Value(_) | Returned::Nonsense => {
                    found.unwritten.insert(*tx);
                }
            }
        }
        let mut looked_at = 0;
        let mut ambiguous = 0;
        for history in by_key.into_values() {
            if history.is_ambiguous {
                ambiguous += 1;
                continue;
            }
            looked_at += history.reads.len() as u64;
            history.look(&mut found);
        }
        found.finding(looked_at, ambiguous, self.beyond)
    }
}

impl Register {
    /// Whether `value` was ever written to `key`, and not only after `at`.
    fn could_hold(&self, key: u64, value: TxId, at: Stamp) -> bool {
        value == UNWRITTEN
            || self.calls.get(&value).is_some_and(|write| {
                !write.is_read
                    && !write.is_refused
                    && key_of(value, self.keys) == key
                    && write.from <= at
            })
    }
}

fn is_beyond(tx: TxId) -> bool {
    tx % PROBE_BASE >= LOOKED_AT_MAX
}

/// One key's transactions.
#[derive(Default)]
struct History {
    writes: Vec<Write>,
    reads: Vec<Read>,
    /// One of its writes was sent more than once.
    is_ambiguous: bool,
}

struct Write {
    tx: TxId,
    from: Stamp,
    to: Stamp,
}

struct Read {
    tx: TxId,
    from: Stamp,
    to: Stamp,
    value: TxId,
}

/// A write and the reads that returned it.
#[derive(Clone, Copy)]
struct Cluster {
    value: TxId,
    written_from: Stamp,
    /// The earliest end of any of them: by then the value was there.
    first_end: Stamp,
    /// The latest beginning of any of them: the value was still there then.
    last_from: Stamp,
}

impl Cluster {
    fn is_forward(&self) -> bool {
        self.first_end < self.last_from
    }
}

impl History {
    fn look(mut self, found: &mut Found) {
        let clusters = self.clusters();
        // The latest beginning of a write among those that were there by a time.
        let mut latest = Stamp::MIN;
        let overwritten: Vec<(Stamp, Stamp)> = clusters
            .iter()
            .map(|cluster| {
                latest = latest.max(cluster.written_from);
                (cluster.first_end, latest)
            })
            .collect();
        let there_at: HashMap<TxId, Stamp> =
            clusters.iter().map(|cluster| (cluster.value, cluster.first_end)).collect();
        self.reads.retain(|read| {
            let before = overwritten.partition_point(|(first_end, _)| *first_end < read.from);
            let latest = before.checked_sub(1).map_or(Stamp::MIN, |last| overwritten[last].1);
            let is_stale = latest > there_at[&read.value];
            if is_stale {
                found.stale.insert(read.tx);
            }
            !is_stale
        });
        self.contradictions(found);
    }

    /// The clusters, by when their values were there for certain. That nothing was written counts as written before
    /// everything.
    fn clusters(&self) -> Vec<Cluster> {
        let unwritten = Write { tx: UNWRITTEN, from: Stamp::MIN, to: Stamp::MIN };
        let mut by_value: HashMap<TxId, Cluster> = std::iter::once(&unwritten)
            .chain(&self.writes)
            .map(|write| {
                let cluster = Cluster {
                    value: write.tx,
                    written_from: write.from,
                    first_end: write.to,
                    last_from: write.from,
                };
                (write.tx, cluster)
            })
            .collect();
        for read in &self.reads {
            let cluster = by_value.get_mut(&read.value).expect("only what was written is read");
            cluster.first_end = cluster.first_end.min(read.to);
            cluster.last_from = cluster.last_from.max(read.from);
        }
        let mut clusters: Vec<Cluster> = by_value.into_values().collect();
        clusters.sort_unstable_by_key(|cluster| (cluster.first_end, cluster.value));
        clusters
    }

    /// What is left: zones that cannot both be right. The reads of the older value that began when the newer was there
    /// are named.
    fn contradictions(&self, found: &mut Found) {
        let mut clusters = self.clusters();
        let mut reads_of: HashMap<TxId, Vec<&Read>> = HashMap::new();
        for read in &self.reads {
            reads_of.entry(read.value).or_default().push(read);
        }
        let reads_of = |value| reads_of.get(&value).map_or(&[][..], Vec::as_slice);
        let mut suspect = |older: &Cluster, newer: &Cluster| {
            // Somebody saw the newer value after the older had been there; else it was there when its write ended.
            let seen = reads_of(newer.value).iter().filter(|read| read.from > older.first_end);
            let seen = seen.map(|read| read.to).min().filter(|to| *to < older.last_from);
            let since = seen.unwrap_or(newer.first_end);
            let late = reads_of(older.value).iter().filter(|read| read.from > since);
            found.contradicting.extend(late.map(|read| read.tx));
        };
        let mut longest: Option<Cluster> = None;
        for cluster in clusters.iter().filter(|cluster| cluster.is_forward()) {
            match longest {
                Some(open) if cluster.first_end < open.last_from => suspect(&open, cluster),
                _ => {}
            }
            if longest.is_none_or(|open| open.last_from < cluster.last_from) {
                longest = Some(*cluster);
            }
        }
        let forward: Vec<Cluster> = clusters.extract_if(.., |one| one.is_forward()).collect();
        for inner in clusters {
            // Of those that begin before it, the last is enough: they do not overlap, or are named already.
            let before = forward.partition_point(|one| one.first_end < inner.last_from);
            let Some(around) = before.checked_sub(1).map(|last| forward[last]) else { continue };
            if inner.first_end < around.last_from {
                suspect(&around, &inner);
            }
        }
    }
}

/// Reads that returned what they could not.
#[derive(Default)]
struct Found {
    unwritten: BTreeSet<TxId>,
    stale: BTreeSet<TxId>,
    contradicting: BTreeSet<TxId>,
}

impl Found {
    fn finding(self, looked_at: u64, ambiguous: u64, beyond: u64) -> CheckFinding {
        let mut limits = String::new();
        if ambiguous > 0 {
            limits
                .push_str(&format!("; {ambiguous} keys left out, of which a write was sent again"));
        }
        if beyond > 0 {
            limits.push_str(&format!("; {beyond} later transactions not looked at"));
        }
        let Self { unwritten, stale, contradicting } = self;
        let said: Vec<String> = [
            (stale.len(), "a value that had been overwritten before they began"),
            (unwritten.len(), "what was never written there, or not yet"),
            (contradicting.len(), "what contradicts another read"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        let broken: BTreeSet<TxId> =
            stale.into_iter().chain(unwritten).chain(contradicting).collect();
        if broken.is_empty() {
            let words =
                format!("reads looked at: each returned what its key may have held{limits}");
            return CheckFinding {
                holds: true,
                saw_nothing: looked_at == 0,
                count: looked_at,
                words,
                ..CheckFinding::default()
            };
        }
        CheckFinding {
            holds: false,
            count: broken.len() as u64,
            examples: broken.into_iter().take(model::check::EXAMPLES_MAX).collect(),
            words: format!("reads returned what a register could not: {}{limits}", said.join(", ")),
            ..CheckFinding::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Seed;
    use model::options::Options;

    use super::*;

    /// One transaction of a history: from, to, and what it wrote or read; its number is its place.
    #[derive(Clone, Copy, Debug)]
    enum Did {
        Write(Stamp, Stamp),
        /// Of which write it returned the value.
        Read(Stamp, Stamp, Option<usize>),
    }

    /// What the check finds in a history of one key.
    fn look(history: &[Did]) -> CheckFinding {
        let kinds = [KindFacts::recorded("put"), KindFacts::read("get")];
        let (deploy, workload) = (Options::empty(), Options::empty());
        let input = CheckInput {
            seed: Seed(1),
            deploy: &deploy,
            workload: &workload,
            kinds: &kinds,
            stages: &["committed".to_owned()],
            final_stages: model::FinalStages::all(0),
            states: &[],
        };
        assert!((CHECK.applies)(&input));
        let mut check = Register { keys: 1, ..Register::new(&input) };
        for (tx, did) in (0..).zip(history) {
            let (kind, from, to) = match *did {
                Did::Write(from, to) => (0, from, to),
                Did::Read(from, to, _) => (1, from, to),
            };
            let mut row = Row { tx, kind, sent: from, end: to, ..Row::EMPTY };
            row.marks[0] = to;
            row.outcome = if to == Stamp::MAX { Outcome::Unknown } else { Outcome::Committed };
            check.row(&row);
        }
        for (tx, did) in (0..).zip(history) {
            let Did::Read(_, at, value) = *did else { continue };
            let bytes = value.map(|value| u64::try_from(value).unwrap().to_le_bytes());
            let bytes = bytes.as_ref().map_or(&[][..], |bytes| bytes);
            check.observation(&Observation { tx, at, bytes });
        }
        Box::new(check).finish()
    }

    /// Whether some order explains a history, by trying them all.
    fn is_explained(history: &[Did], done: u32, holds: Option<usize>) -> bool {
        if done.count_ones() as usize == history.len() {
            return true;
        }
        let ends = |did: &Did| match *did {
            Did::Write(_, to) | Did::Read(_, to, _) => to,
        };
        let open = |index: &usize| done >> index & 1 == 0;
        // Whatever begins after another has ended comes behind it.
        let first_end = (0..history.len()).filter(open).map(|index| ends(&history[index])).min();
        (0..history.len()).filter(open).any(|index| {
            let (from, next) = match history[index] {
                Did::Write(from, _) => (from, Some(index)),
                Did::Read(from, _, value) if value == holds => (from, holds),
                Did::Read(..) => return false,
            };
            Some(from) <= first_end && is_explained(history, done | 1 << index, next)
        })
    }

    /// Claim: of ten thousand small histories, made so that about half cannot be explained, the check accepts exactly
    /// those that some order explains.
    #[test]
    fn as_exhaustive_search() {
        let (mut good, mut bad) = (0, 0);
        for seed in 0..10_000 {
            let mut rng = Seed(seed).rng();
            let mut below = |n: u64| i64::try_from(rng.below(n)).unwrap();
            let writes = usize::try_from(1 + below(4)).unwrap();
            let mut history: Vec<Did> = Vec::new();
            for number in 0..writes + usize::try_from(1 + below(4)).unwrap() {
                let from = below(30);
                let to = from + 1 + below(12);
                let value = usize::try_from(below(5)).unwrap();
                history.push(match number < writes {
                    true => Did::Write(from, to),
                    false => Did::Read(from, to, (value < writes).then_some(value)),
                });
            }
            let found = look(&history);
            assert_eq!(
                found.holds,
                is_explained(&history, 0, None),
                "{seed}: {history:?} {found:?}"
            );
            assert_eq!(found.holds, found.examples.is_empty(), "{seed}: {history:?} {found:?}");
            if found.holds { good += 1 } else { bad += 1 }
        }
        assert!(good > 2_000 && bad > 2_000, "{good} {bad}");
    }

    /// Claim: reads that are stale, from the future, of what nobody wrote, and two that contradict each other over writes
    /// that overlapped are named, each with its reason, and honest reads beside them are not.
    #[test]
    fn each_is_named() {
        let stale = [
            Did::Write(0, 10),
            Did::Read(11, 12, Some(0)),
            Did::Write(20, 30),
            Did::Read(31, 40, Some(0)),
            Did::Read(32, 41, Some(2)),
        ];
        let found = look(&stale);
        assert_eq!((found.holds, found.count, &found.examples[..]), (false, 1, &[3][..]));
        assert!(found.words.contains("1 a value that had been overwritten"), "{}", found.words);
        let future = [Did::Read(0, 5, Some(1)), Did::Write(6, 9), Did::Read(0, 5, Some(7))];
        let found = look(&future);
        assert_eq!(found.examples, [0, 2]);
        assert!(found.words.contains("2 what was never written there"), "{}", found.words);
        let overlapping = [
            Did::Write(0, 10),
            Did::Write(0, 10),
            Did::Read(11, 12, Some(0)),
            Did::Read(13, 14, Some(1)),
            Did::Read(15, 16, Some(0)),
        ];
        let found = look(&overlapping);
        assert_eq!(found.examples, [4]);
        assert!(found.words.contains("1 what contradicts another read"), "{}", found.words);
        // A write without an answer may take effect late, and may be read.
        let unanswered =
            [Did::Write(0, Stamp::MAX), Did::Read(1, 2, None), Did::Read(50, 60, Some(0))];
        assert_eq!((look(&unanswered).holds, look(&unanswered).count), (true, 2));
    }
}
