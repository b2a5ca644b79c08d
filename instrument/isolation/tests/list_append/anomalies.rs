//! Each anomaly by itself, in the smallest history that has it, and mutations of a long one.

use std::collections::HashMap;

use crate::histories::{Did, Tx, check, draw};
use isolation::{Anomaly, Effect, Element, GARBAGE, Instance, Key, Level, Verdict};
use model::Seed;
use model::seed::Rng;

fn put(key: Key, element: Element) -> Did {
    Did::Append(key, element)
}

fn get(key: Key, list: &[Element]) -> Did {
    Did::Read(key, list.to_vec())
}

/// Transactions that all ran beside each other.
fn beside(ops: &[&[Did]]) -> Vec<Tx> {
    ops.iter().map(|ops| Tx::new(0, 10, ops)).collect()
}

/// What is found, by name, in whatever order the history is handed over.
fn found(history: &[Tx]) -> Vec<(Anomaly, bool)> {
    let once = |seed| check(history, &mut Seed(seed).rng());
    let names = |verdict: Verdict| verdict.anomalies.into_keys().collect::<Vec<_>>();
    let first = names(once(0));
    for seed in 1..20 {
        assert_eq!(names(once(seed)), first);
    }
    first
}

/// Claim: what is wrong with a single transaction or a single list is found and named, and nothing else is.
#[test]
fn direct_anomalies() {
    use Anomaly::*;
    let aborted = {
        let mut history = beside(&[&[put(0, 1)], &[get(0, &[1])]]);
        history[0].effect = Effect::None;
        history
    };
    let dirty = {
        let mut history = beside(&[&[put(0, 1)], &[put(0, 2)], &[get(0, &[1, 2])]]);
        history[0].effect = Effect::None;
        history
    };
    let cases: [(&str, Vec<Tx>, &[Anomaly]); 15] = [
        ("nothing", beside(&[&[put(0, 1), get(0, &[1])], &[get(0, &[])]]), &[]),
        ("garbage", beside(&[&[get(0, &[GARBAGE])]]), &[GarbageRead]),
        ("of another list", beside(&[&[put(1, 4)], &[get(0, &[4])]]), &[GarbageRead]),
        ("twice", beside(&[&[put(0, 1)], &[get(0, &[1, 1])]]), &[DuplicateElement]),
        (
            "two orders",
            beside(&[&[put(0, 1)], &[put(0, 2)], &[get(0, &[1, 2])], &[get(0, &[2, 1])]]),
            &[IncompatibleOrder],
        ),
        ("aborted", aborted, &[AbortedRead]),
        (
            "intermediate",
            beside(&[&[put(0, 1), put(0, 2)], &[get(0, &[1])]]),
            &[IntermediateRead, GSingle],
        ),
        ("dirty", dirty, &[AbortedRead, DirtyUpdate]),
        (
            "the second first",
            beside(&[&[put(0, 1), put(0, 2)], &[get(0, &[2, 1])]]),
            &[IntermediateRead, DisorderedAppends],
        ),
        (
            "the second alone",
            beside(&[&[put(0, 1), put(0, 2)], &[get(0, &[2])]]),
            &[DisorderedAppends, GSingle],
        ),
        ("own append not read", beside(&[&[put(0, 1), get(0, &[])], &[get(0, &[1])]]), &[Internal]),
        ("two reads differ", beside(&[&[put(0, 1)], &[get(0, &[1]), get(0, &[])]]), &[Internal]),
        (
            "read and append and read something else",
            beside(&[&[get(0, &[]), put(0, 1), get(0, &[])], &[get(0, &[1])]]),
            &[Internal],
        ),
        ("read ahead", beside(&[&[get(0, &[1]), put(0, 1)]]), &[FutureRead]),
        (
            "both went on",
            beside(&[&[get(0, &[]), put(0, 1)], &[get(0, &[]), put(0, 2)]]),
            &[LostUpdate, G2Item],
        ),
    ];
    for (name, history, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|anomaly| (*anomaly, false)).collect();
        assert_eq!(found(&history), expected, "{name}");
    }
}

/// A history with one cycle: what it is called, whether real time is part of it, its length, and what it allows.
type Case = (&'static str, Vec<Tx>, Anomaly, bool, usize, Level);

/// Claim: each class of cycles is found, named by its edges, and shown by its shortest cycle; and what only real time
/// contradicts says so and leaves the history serializable.
#[test]
fn cycles() {
    use Anomaly::*;
    let after = |mut history: Vec<Tx>| {
        for (n, tx) in (0..).zip(&mut history) {
            (tx.invoked, tx.completed) = (100 * n, 100 * n + 10);
        }
        history
    };
    let lists = get(0, &[1, 2]);
    let cases: [Case; 9] = [
        (
            "two lists in two orders",
            beside(&[
                &[put(0, 1), put(1, 4)],
                &[put(0, 2), put(1, 3)],
                &[lists.clone(), get(1, &[3, 4])],
            ]),
            G0,
            false,
            2,
            Level::None,
        ),
        (
            "each read the other's",
            beside(&[&[put(0, 1), get(1, &[2])], &[put(1, 2), get(0, &[1])]]),
            G1c,
            false,
            2,
            Level::ReadUncommitted,
        ),
        (
            "one half of a transaction",
            beside(&[&[put(0, 1), put(1, 2)], &[get(0, &[1]), get(1, &[])]]),
            GSingle,
            false,
            2,
            Level::ReadCommitted,
        ),
        (
            "a long fork",
            beside(&[
                &[put(0, 1)],
                &[put(1, 2)],
                &[get(0, &[1]), get(1, &[])],
                &[get(0, &[]), get(1, &[2])],
            ]),
            GNonadjacent,
            false,
            4,
            Level::ReadCommitted,
        ),
        (
            "each missed the other's",
            beside(&[&[get(0, &[]), put(1, 1)], &[get(1, &[]), put(0, 2)]]),
            G2Item,
            false,
            2,
            Level::SnapshotIsolation,
        ),
        (
            "an order against time",
            after(vec![
                Tx::new(0, 0, &[put(0, 2)]),
                Tx::new(0, 0, &[put(0, 1)]),
                Tx::new(0, 0, &[lists]),
            ]),
            G0,
            true,
            2,
            Level::Serializable,
        ),
        (
            "read before it was sent",
            after(vec![Tx::new(0, 0, &[get(0, &[1])]), Tx::new(0, 0, &[put(0, 1)])]),
            G1c,
            true,
            2,
            Level::Serializable,
        ),
        (
            "a stale read",
            after(vec![Tx::new(0, 0, &[put(0, 1)]), Tx::new(0, 0, &[get(0, &[])])]),
            GSingle,
            true,
            2,
            Level::Serializable,
        ),
        (
            "a stale read of one of many",
            after(
                (0..50)
                    .map(|n| Tx::new(0, 0, &[put(0, n)]))
                    .chain([Tx::new(0, 0, &[get(0, &(0..20).collect::<Vec<_>>())])])
                    .chain([Tx::new(0, 0, &[get(0, &(0..50).collect::<Vec<_>>())])])
                    .collect(),
            ),
            GSingle,
            true,
            2,
            Level::Serializable,
        ),
    ];
    for (name, history, anomaly, is_real_time, length, level) in cases {
        assert_eq!(found(&history), [(anomaly, is_real_time)], "{name}");
        let verdict = check(&history, &mut Seed(1).rng());
        assert_eq!(verdict.level(), level, "{name}");
        let Instance::Cycle(cycle) = &verdict.anomalies[&(anomaly, is_real_time)].instances[0]
        else {
            panic!("{name}: no cycle is shown");
        };
        assert_eq!(cycle.0.len(), length, "{name}: {}", cycle.words());
        let next = cycle.0.iter().cycle().skip(1);
        assert!(cycle.0.iter().zip(next).all(|(one, next)| one.to == next.from), "{name}");
    }
}

/// Claim: a transaction of unknown outcome is nobody's fault while nobody sees it, at whatever time it takes effect
/// after it was sent; seen before that, or with one half only, it is.
#[test]
fn unknown_outcomes() {
    let sent = |at, ops: &[Did]| Tx::new(at, at + 5, ops).but(Effect::Possible);
    let seen_late = [
        sent(0, &[put(0, 1), put(1, 2)]),
        Tx::new(100, 110, &[get(0, &[]), get(1, &[])]),
        Tx::new(200, 210, &[get(0, &[1]), get(1, &[2])]),
    ];
    assert_eq!(found(&seen_late), []);
    assert_eq!(found(&seen_late[..2]), []);
    let seen_early = [Tx::new(0, 10, &[get(0, &[1])]), sent(100, &[put(0, 1)])];
    assert_eq!(found(&seen_early), [(Anomaly::G1c, true)]);
    let seen_in_half =
        [sent(0, &[put(0, 1), put(1, 2)]), Tx::new(100, 110, &[get(0, &[1]), get(1, &[])])];
    assert_eq!(found(&seen_in_half), [(Anomaly::GSingle, false)]);
}

/// Claim: words say who, what and when.
#[test]
fn words() {
    let history = [
        Tx::new(5, 1_500_000_000, &[put(0, 1)]),
        Tx::new(2_000_000_001, 3_000_000_000, &[get(0, &[])]),
    ];
    let verdict = check(&history, &mut Seed(1).rng());
    let broken = &verdict.anomalies[&(Anomaly::GSingle, true)];
    assert_eq!((broken.count, broken.instances[0].ids().len()), (1, 2));
    assert_eq!(
        broken.instances[0].words(),
        "1 read list 0 with 0 elements, without 1 of 0; 0 was answered at 1.500000000 s, before 1 was sent at \
         2.000000001 s"
    );
}

/// A long history of a store that keeps its promises: three hundred transactions of eight clients on four lists.
fn long(rng: &mut Rng) -> Vec<Tx> {
    let mut txs: Vec<(i64, Tx)> = Vec::new();
    let mut element = 0;
    for client in 0..8_i64 {
        let mut now = client;
        for _ in 0..38 {
            let ops = (0..1 + draw(rng, 4)).map(|_| {
                let key = u32::try_from(rng.below(4)).expect("small");
                element += 1;
                if rng.below(2) == 0 { put(key, element) } else { get(key, &[]) }
            });
            let ops: Vec<Did> = ops.collect();
            let invoked = now + 1 + i64::try_from(rng.below(9)).expect("small");
            let during = i64::try_from(rng.below(80)).expect("small");
            now = invoked + during + i64::try_from(rng.below(80)).expect("small");
            txs.push((invoked + during, Tx::new(invoked, now, &ops)));
        }
    }
    txs.sort_by_key(|(moment, _)| *moment);
    let mut txs: Vec<Tx> = txs.into_iter().map(|(_, tx)| tx).collect();
    replay(&mut txs, |_, _| {});
    txs
}

/// Lets the transactions happen in their order; `lie` is shown each one and the lists after it.
fn replay(txs: &mut [Tx], mut lie: impl FnMut(usize, &mut HashMap<Key, Vec<Element>>)) {
    let mut lists: HashMap<Key, Vec<Element>> = HashMap::new();
    for (n, tx) in txs.iter_mut().enumerate() {
        for did in &mut tx.ops {
            match did {
                Did::Append(key, element) => lists.entry(*key).or_default().push(*element),
                Did::Read(key, list) => *list = lists.get(key).cloned().unwrap_or_default(),
            }
        }
        lie(n, &mut lists);
    }
}

/// The list of the first read from the middle of a history on that is at least so long and not of a key that its
/// transaction appends to.
fn a_read(txs: &mut [Tx], len: usize) -> &mut Vec<Element> {
    let middle = txs.len() / 2;
    let tx = txs[middle..].iter_mut().find(|tx| {
        tx.ops.len() == 1 && matches!(&tx.ops[0], Did::Read(_, list) if list.len() >= len)
    });
    match &mut tx.expect("a long history has such a read").ops[0] {
        Did::Read(_, list) => list,
        Did::Append(..) => unreachable!("a read was looked for"),
    }
}

/// Claim: a long history of an honest store is clean, and each mutation of it is found and named: an append that vanishes,
/// one that is applied twice, a read of an old state, one whose elements changed places, one of two states at once.
#[test]
fn mutations() {
    use Anomaly::*;
    for seed in 0..50 {
        let mut rng = Seed(seed).rng();
        let honest = long(&mut rng);
        let middle = honest.len() / 2;
        assert_eq!(found(&honest), [], "seed {seed}");

        // Acknowledged, and in no list ever after.
        let mut dropped = honest.clone();
        let when = honest[middle].completed;
        dropped.push(Tx::new(when, when + 1, &[put(0, 900)]));
        let names = found(&dropped);
        assert!(matches!(names[..], [(G0 | GSingle, true)]), "seed {seed}: {names:?}");

        let mut twice = honest.clone();
        replay(&mut twice, |n, lists| {
            if n == middle {
                lists.values_mut().for_each(|list| list.extend(list.last().copied()));
            }
        });
        let names = found(&twice);
        assert!(names.contains(&(DuplicateElement, false)), "seed {seed}: {names:?}");

        let mut stale = honest.clone();
        let list = a_read(&mut stale, 12);
        list.truncate(list.len() - 10);
        let names = found(&stale);
        assert!(names.contains(&(GSingle, true)), "seed {seed}: {names:?}");

        let mut reordered = honest.clone();
        let list = a_read(&mut reordered, 3);
        list.swap(0, 1);
        assert_eq!(found(&reordered), [(IncompatibleOrder, false)], "seed {seed}");

        let mut torn = honest.clone();
        let (wrote, read) =
            (Tx::new(-100, -90, &[put(4, 900), put(5, 901)]), [get(4, &[900]), get(5, &[])]);
        torn.extend([wrote, Tx::new(-95, -85, &read)]);
        assert_eq!(found(&torn), [(GSingle, false)], "seed {seed}");
    }
}
