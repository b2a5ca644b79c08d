//! Histories with whole lists, as a test writes them, and how they are handed to the checker.

use std::collections::HashMap;

use isolation::{Effect, Element, History, Key, MicroOp, Prefix, Transaction, Verdict};
use model::seed::Rng;

/// An operation and, of a read, the whole list that it returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Did {
    Append(Key, Element),
    Read(Key, Vec<Element>),
}

/// A transaction; its number is its place in the history.
#[derive(Clone, Debug)]
pub struct Tx {
    pub invoked: i64,
    pub completed: i64,
    pub effect: Effect,
    pub ops: Vec<Did>,
}

impl Tx {
    /// A committed one.
    pub fn new(invoked: i64, completed: i64, ops: &[Did]) -> Self {
        Self { invoked, completed, effect: Effect::Certain, ops: ops.to_vec() }
    }

    /// Of another outcome: what it read is not known.
    pub fn but(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
}

/// What the checker says. Transactions and pieces of lists come in an order drawn at random, and a list as a whole or as
/// what is behind a part that was handed over before.
pub fn check(history: &[Tx], rng: &mut Rng) -> Verdict {
    let mut checked = History::default();
    let mut order: Vec<usize> = (0..history.len()).collect();
    shuffle(&mut order, rng);
    let mut pieces: Vec<(Key, Prefix, Vec<Element>)> = Vec::new();
    for n in order {
        let tx = &history[n];
        let is_read = tx.effect == Effect::Certain;
        let ops: Vec<MicroOp> = tx
            .ops
            .iter()
            .map(|did| match did {
                Did::Append(key, element) => MicroOp::Append { key: *key, element: *element },
                Did::Read(key, list) => {
                    if is_read {
                        let whole = rng.below(2) == 0 || list.is_empty();
                        let cut = if whole { 0 } else { draw(rng, list.len()) };
                        pieces.push((*key, Prefix::of(&list[..cut]), list[cut..].to_vec()));
                        pieces.push((*key, Prefix::EMPTY, list[..cut].to_vec()));
                    }
                    MicroOp::Read { key: *key, found: is_read.then(|| Prefix::of(list)) }
                }
            })
            .collect();
        let Tx { invoked, completed, effect, .. } = *tx;
        checked.add(Transaction { id: n as u64, invoked, completed, effect }, &ops);
    }
    shuffle(&mut pieces, rng);
    for (key, from, elements) in pieces {
        checked.list(key, from, &elements);
    }
    checked.check()
}

/// Uniform below `bound`.
pub fn draw(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("small")
}

pub fn shuffle<T>(list: &mut [T], rng: &mut Rng) {
    for n in (1..list.len()).rev() {
        list.swap(n, draw(rng, n + 1));
    }
}

type State = HashMap<Key, Vec<Element>>;

/// How a small store is broken.
#[derive(Clone, Copy, PartialEq)]
enum Store {
    /// Each transaction at one moment of its own.
    Strict,
    /// The same, and moments may lie outside of the time between sending and answer.
    OutOfTime,
    /// Each operation at a moment of its own.
    Interleaved,
    /// Reads of one state, writes at another.
    Snapshot,
}

/// A history of so many transactions of up to so many operations, sent within a time; one lasts 20 on average. What they
/// read is what a store gives that keeps its promises or not, and now and then something else.
pub fn of_some_store(rng: &mut Rng, count: usize, ops: usize, keys: usize, time: u64) -> Vec<Tx> {
    let store = match rng.below(5) {
        0 | 1 => Store::Strict,
        2 => Store::OutOfTime,
        3 => Store::Interleaved,
        _ => Store::Snapshot,
    };
    let mut element = 0;
    let mut txs = Vec::new();
    // By time: transaction and operation.
    let mut events: Vec<(i64, usize, usize)> = Vec::new();
    for n in 0..count {
        let key = |rng: &mut Rng| u32::try_from(draw(rng, keys)).expect("small");
        let ops: Vec<Did> = (0..1 + draw(rng, ops))
            .map(|_| match rng.below(2) {
                0 => Did::Read(key(rng), Vec::new()),
                _ => {
                    element += 1;
                    Did::Append(key(rng), element - 1)
                }
            })
            .collect();
        let invoked = i64::try_from(rng.below(time)).expect("small");
        let length = 1 + i64::try_from(rng.below(40)).expect("small");
        let effect = match rng.below(10) {
            0 => Effect::None,
            1 => Effect::Possible,
            _ => Effect::Certain,
        };
        let during = |rng: &mut Rng| match store {
            Store::OutOfTime => i64::try_from(rng.below(time + 40)).expect("small"),
            _ => invoked + i64::try_from(rng.below(length.unsigned_abs() + 1)).expect("small"),
        };
        let (one, other) = (during(rng), during(rng));
        let moments = ops.iter().map(|did| match (store, did) {
            (Store::Strict | Store::OutOfTime, _) => one,
            (Store::Interleaved, _) => during(rng),
            (Store::Snapshot, Did::Read(..)) => one.min(other),
            (Store::Snapshot, Did::Append(..)) => one.max(other),
        });
        let moments: Vec<i64> = moments.collect();
        // Of what is refused nothing happens, mostly; of what nobody knows half.
        let happens = match effect {
            Effect::Certain => true,
            Effect::None => rng.below(8) == 0,
            Effect::Possible => rng.below(2) == 0,
        };
        if happens {
            events.extend((0..).zip(moments).map(|(op, moment)| (moment, n, op)));
        }
        txs.push(Tx { invoked, completed: invoked + length, effect, ops });
    }
    events.sort_unstable();
    let mut state = State::new();
    for (_, n, op) in events {
        match &mut txs[n].ops[op] {
            Did::Append(key, element) => state.entry(*key).or_default().push(*element),
            Did::Read(key, list) => *list = state.get(key).cloned().unwrap_or_default(),
        }
    }
    if rng.below(4) == 0 {
        disturb(&mut txs, element, rng);
    }
    txs
}

/// Changes one read.
fn disturb(txs: &mut [Tx], elements: Element, rng: &mut Rng) {
    let mut reads: Vec<&mut Vec<Element>> = txs
        .iter_mut()
        .flat_map(|tx| &mut tx.ops)
        .filter_map(|did| match did {
            Did::Read(_, list) => Some(list),
            Did::Append(..) => None,
        })
        .collect();
    if reads.is_empty() {
        return;
    }
    let chosen = draw(rng, reads.len());
    let list = &mut reads[chosen];
    match rng.below(4) {
        0 => {
            list.pop();
        }
        1 => list.push(u32::try_from(rng.below(u64::from(elements) + 2)).expect("small")),
        2 if list.len() > 1 => {
            let last = list.len() - 1;
            list.swap(last, draw(rng, last));
        }
        _ => {
            let copy = list.first().copied();
            list.extend(copy);
        }
    }
}
