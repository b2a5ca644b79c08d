//! The checker against a search of all orders, on histories small enough for one.

use std::collections::HashMap;

use crate::histories::{Did, Tx, check, draw};
use isolation::{Effect, Element, Key, Level};
use model::Seed;
use model::seed::Rng;

type State = HashMap<Key, Vec<Element>>;

/// Whether an order of all that was committed, and of any of those whose outcome is not known, explains every read.
fn is_explained(history: &[Tx], in_real_time: bool) -> bool {
    let mut left: Vec<usize> =
        (0..history.len()).filter(|n| history[*n].effect != Effect::None).collect();
    search(history, in_real_time, &mut left, &State::new())
}

fn search(history: &[Tx], in_real_time: bool, left: &mut Vec<usize>, state: &State) -> bool {
    if left.iter().all(|n| history[*n].effect == Effect::Possible) {
        return true;
    }
    for place in 0..left.len() {
        let tx = &history[left[place]];
        let must_wait = left.iter().map(|n| &history[*n]).any(|other| {
            in_real_time && other.effect == Effect::Certain && other.completed < tx.invoked
        });
        if must_wait {
            continue;
        }
        let Some(state) = applied(tx, state) else { continue };
        let n = left.remove(place);
        let found = search(history, in_real_time, left, &state);
        left.insert(place, n);
        if found {
            return true;
        }
    }
    false
}

/// The state behind a transaction, if its reads agree with the one before.
fn applied(tx: &Tx, state: &State) -> Option<State> {
    let mut state = state.clone();
    for did in &tx.ops {
        match did {
            Did::Append(key, element) => state.entry(*key).or_default().push(*element),
            Did::Read(key, list) => {
                let held = state.get(key).map_or(&[][..], Vec::as_slice);
                if tx.effect == Effect::Certain && held != list {
                    return None;
                }
            }
        }
    }
    Some(state)
}

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

/// A history of up to seven transactions on up to three lists. What they read is what such a store gives, and now and then
/// something else.
fn history(rng: &mut Rng) -> Vec<Tx> {
    let count = 2 + draw(rng, 6);
    let keys = 1 + rng.below(3);
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
        let key = |rng: &mut Rng| u32::try_from(rng.below(keys)).expect("small");
        let ops: Vec<Did> = (0..1 + draw(rng, 3))
            .map(|_| match rng.below(2) {
                0 => Did::Read(key(rng), Vec::new()),
                _ => {
                    element += 1;
                    Did::Append(key(rng), element - 1)
                }
            })
            .collect();
        let invoked = i64::try_from(rng.below(60)).expect("small");
        let length = 1 + i64::try_from(rng.below(40)).expect("small");
        let effect = match rng.below(10) {
            0 => Effect::None,
            1 => Effect::Possible,
            _ => Effect::Certain,
        };
        let during = |rng: &mut Rng| match store {
            Store::OutOfTime => i64::try_from(rng.below(100)).expect("small"),
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

/// Claim: of twenty thousand random small histories, of stores that keep their promises and of others, with refused
/// transactions and unknown ones, the checker says of each what a search of all orders says: whether it is serializable,
/// and whether it is so in real time.
#[test]
fn as_all_orders_say() {
    let mut seen = [0_u32; 3];
    for seed in 0..20_000 {
        let mut rng = Seed(seed).rng();
        let history = history(&mut rng);
        let verdict = check(&history, &mut rng);
        let (strict, any) = (is_explained(&history, true), is_explained(&history, false));
        assert_eq!(
            (verdict.is_strict_serializable(), verdict.is_serializable()),
            (strict, any),
            "seed {seed}: {verdict:#?}\nof {history:#?}"
        );
        let level = verdict.level();
        assert_eq!(level == Level::StrictSerializable, strict);
        seen[usize::from(strict) + usize::from(any)] += 1;
    }
    // Each kind of history is common enough for the claim to be one.
    assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
}
