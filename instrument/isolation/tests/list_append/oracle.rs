//! The checker against a search of all orders, on histories small enough for one.

use std::collections::HashMap;

use crate::histories::{Did, Tx, check, draw, of_some_store};
use isolation::{Effect, Element, Key, Level};
use model::Seed;

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

/// Claim: of twenty thousand random small histories, of stores that keep their promises and of others, with refused
/// transactions and unknown ones, the checker says of each what a search of all orders says: whether it is serializable,
/// and whether it is so in real time.
#[test]
fn as_all_orders_say() {
    let mut seen = [0_u32; 3];
    for seed in 0..20_000 {
        let mut rng = Seed(seed).rng();
        let (count, keys) = (2 + draw(&mut rng, 6), 1 + draw(&mut rng, 3));
        let history = of_some_store(&mut rng, count, 3, keys, 60);
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
