//! Replay in the order of commits: against a search of all orders, and each way in which an answer can be wrong.

use isolation::models::{MapAnswer, MapModel, MapOp};
use isolation::replay::{Model, Replay, Replayed, Span};
use model::Seed;
use model::seed::Rng;

type Op = MapOp<u8, u32>;

/// A call on a map, in the order in which the system says that it was committed.
#[derive(Clone, Debug)]
struct Call {
    span: Span,
    ops: Vec<Op>,
    answer: MapAnswer<u32>,
}

fn replayed(calls: &[Call]) -> Replayed {
    let mut replay = Replay::new(MapModel::default());
    for (id, Call { span, ops, answer }) in (0..).zip(calls) {
        replay.next(id, Some(*span), ops, Some(answer));
    }
    replay.finish().0
}

/// Whether this very order is one that answers and real time agree with, looking at each pair of calls.
fn is_lawful(calls: &[Call]) -> bool {
    let mut held: Vec<(u8, u32)> = Vec::new();
    let in_time = calls.iter().enumerate().all(|(n, earlier)| {
        calls[n..].iter().all(|later| {
            later.span.completed.is_none_or(|completed| completed >= earlier.span.invoked)
        })
    });
    in_time
        && calls.iter().all(|call| {
            let before = held.clone();
            let get = |held: &[(u8, u32)], key: u8| {
                held.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
            };
            let mut found = Vec::new();
            let mut is_done = true;
            for op in &call.ops {
                match op {
                    MapOp::Get(key) => found.push(get(&held, *key)),
                    MapOp::Check(key, value) => is_done &= get(&held, *key) == *value,
                    MapOp::Put(key, _) | MapOp::Delete(key) => {
                        held.retain(|(other, _)| other != key);
                        if let MapOp::Put(key, value) = op {
                            held.push((*key, *value));
                        }
                    }
                }
            }
            if !is_done {
                held = before;
            }
            call.answer == if is_done { MapAnswer::Done(found) } else { MapAnswer::CheckFailed }
        })
}

/// Twelve calls, answered by a map or, now and then, otherwise, in an order that real time mostly agrees with.
fn calls(rng: &mut Rng) -> Vec<Call> {
    let mut model = MapModel::default();
    (0..12)
        .map(|n| {
            let ops: Vec<Op> = (0..=rng.below(3))
                .map(|_| {
                    let key = u8::try_from(rng.below(2)).expect("small");
                    let value = u32::try_from(rng.below(3)).expect("small");
                    match rng.below(4) {
                        0 => MapOp::Put(key, value),
                        1 => MapOp::Delete(key),
                        2 => MapOp::Check(key, (value > 0).then_some(value)),
                        _ => MapOp::Get(key),
                    }
                })
                .collect();
            let moment = 10 * n;
            let around = |rng: &mut Rng| i64::try_from(rng.below(13)).expect("small");
            let completed = (rng.below(8) > 0).then(|| moment + around(rng));
            let span = Span { invoked: moment - around(rng), completed };
            let mut answer = answered(&mut model, &ops);
            if let (0, MapAnswer::Done(found)) = (rng.below(40), &mut answer)
                && let Some(first) = found.first_mut()
            {
                *first = if first.is_some() { None } else { Some(1) };
            }
            Call { span, ops, answer }
        })
        .collect()
}

/// What a map answers, found by asking it: the one that it does not call wrong.
fn answered(model: &mut MapModel<u8, u32>, ops: &[Op]) -> MapAnswer<u32> {
    let gets = ops.iter().filter(|op| matches!(op, MapOp::Get(_))).count();
    let values = [None, Some(0), Some(1), Some(2)];
    for code in 0..4_usize.pow(u32::try_from(gets).expect("small")) {
        let found =
            (0..gets).map(|n| values[code / 4_usize.pow(u32::try_from(n).expect("small")) % 4]);
        let answer = MapAnswer::Done(found.collect());
        if model.clone().apply(ops, Some(&answer)) {
            model.apply(ops, None);
            return answer;
        }
    }
    assert!(model.apply(ops, Some(&MapAnswer::CheckFailed)), "a map has an answer to everything");
    MapAnswer::CheckFailed
}

/// Claim: of four thousand random sequences of calls on a map, with failed checks, wrong answers, calls without an answer
/// and times that contradict the order, a replay accepts exactly those that a comparison of all pairs accepts.
#[test]
fn as_all_pairs_say() {
    let mut seen = [0; 2];
    for seed in 0..4_000 {
        let calls = calls(&mut Seed(seed).rng());
        let expected = is_lawful(&calls);
        assert_eq!(replayed(&calls).holds(), expected, "seed {seed}: {calls:#?}");
        seen[usize::from(expected)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 300), "{seen:?}");
}

/// Claim: what is wrong is counted and named: who was answered wrongly, and who stands behind whom.
#[test]
fn what_is_wrong_is_named() {
    let call = |invoked, completed, ops: &[Op], found: &[Option<u32>]| Call {
        span: Span { invoked, completed: Some(completed) },
        ops: ops.to_vec(),
        answer: MapAnswer::Done(found.to_vec()),
    };
    let (put, get) = (MapOp::Put(0, 7), MapOp::Get(0));
    let honest = [
        call(0, 10, std::slice::from_ref(&put), &[]),
        call(5, 20, std::slice::from_ref(&get), &[Some(7)]),
    ];
    assert!(replayed(&honest).holds());
    let wrong = [honest[0].clone(), call(5, 20, std::slice::from_ref(&get), &[None])];
    let found = replayed(&wrong);
    assert_eq!((found.wrong, found.wrong_ids, found.misplaced), (1, vec![1], 0));
    // The later one had been answered before the earlier one was sent.
    let late = [call(100, 110, std::slice::from_ref(&put), &[]), honest[1].clone()];
    let found = replayed(&late);
    assert_eq!((found.wrong, found.misplaced, found.misplaced_ids), (0, 1, vec![[0, 1]]));
}
