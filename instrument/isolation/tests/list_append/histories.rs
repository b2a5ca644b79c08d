//! Histories with whole lists, as a test writes them, and how they are handed to the checker.

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
