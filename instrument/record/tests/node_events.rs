//! What nodes stamped, kept and read back: every count exact however much it is, bounds that are counted when they are
//! met, damage that is said.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::rows::new_trial;
use model::node_events::{NodeEvent, NodeSpan, NodeStage};
use model::{Seed, WallTime};
use record::TrialFolder;

const START_NS: i64 = 1_795_243_832_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

fn stages() -> Vec<NodeStage> {
    ["received", "ordered.sent", "stored"].map(|name| NodeStage::new(name, "in words")).to_vec()
}

fn wall(stamp: i64) -> WallTime {
    WallTime::from_unix_ns(START_NS + stamp)
}

/// Count, sum of lengths and lengths by second, stage and node.
type Sums = BTreeMap<(i64, String, String), (u64, u64, BTreeMap<i64, u64>)>;

fn read(trial: &TrialFolder) -> (u64, Sums) {
    let mut sums = Sums::new();
    let rows = trial.for_each_stage_second(|row| {
        let key = (row.second, row.stage.to_owned(), row.node.to_owned());
        let sum = sums.entry(key).or_default();
        sum.0 += row.count;
        sum.1 += row.sum_ns;
        assert_eq!(row.samples, row.lengths.iter().map(|(_, count)| count).sum::<u64>());
        for (highest, count) in row.lengths {
            *sum.2.entry(*highest).or_default() += count;
        }
    });
    (rows.unwrap().unwrap(), sums)
}

/// The highest value of the slot that a length falls into: three digits.
fn highest(ns: u64) -> i64 {
    let shift = 53_u32.saturating_sub(ns.leading_zeros());
    ((((ns >> shift) + 1) << shift) - 1).cast_signed()
}

/// Claim: more seconds and nodes than are ever open at once, in any order, batches among them: every count and sum comes
/// back, each length in its slot, and a negative second is a second.
#[test]
fn counts_are_exact() {
    let (_keep, trial) = new_trial(1);
    let mut writer = trial.node_events_writer(wall(0), &stages()).unwrap();
    let (mut rng, mut expected) = (Seed(11).rng(), Sums::new());
    let (mut events, mut transactions) = (0, 0);
    for round in 0..200_000_u64 {
        let stage = u32::try_from(rng.below(3)).unwrap();
        let node = format!("node-{}", rng.below(40));
        let stamp = (rng.below(3_000 * SECOND_NS as u64)).cast_signed() - 5 * SECOND_NS;
        let count = if round % 100 == 0 { rng.below(5_000) } else { 1 };
        let shift = 20 + rng.below(40);
        let took = (rng.below(4) > 0).then(|| Duration::from_nanos(rng.next_u64() >> shift));
        writer.event(&NodeEvent { stage, node: &node, at: wall(stamp), count, took });
        let key = (stamp.div_euclid(SECOND_NS), stages()[stage as usize].name.clone(), node);
        let sum = expected.entry(key).or_default();
        sum.0 += count;
        if let Some(took) = took {
            let ns = u64::try_from(took.as_nanos()).unwrap();
            sum.1 += ns;
            *sum.2.entry(highest(ns)).or_default() += 1;
        }
        (events, transactions) = (events + 1, transactions + count);
    }
    let facts = writer.close();
    assert!(facts.is_whole, "{:?}", facts.problems);
    assert_eq!((facts.events, facts.transactions), (events, transactions));
    assert_eq!((facts.outside, facts.undeclared, facts.beyond_nodes), (0, 0, 0));
    let (rows, found) = read(&trial);
    assert!(rows as usize >= found.len() && found.len() > 100_000, "{rows} {}", found.len());
    assert!(found == expected, "a count or a length differs");
    let seal = fs::read_to_string(trial.path().join("seal.json")).unwrap();
    assert!(seal.contains("stages.parquet") && !seal.contains("traces.parquet"), "{seal}");
}

/// Claim: what is counted after the open seconds were written goes to its own second, stage and node, also where the
/// event before of that stage was counted before the writing.
#[test]
fn counts_go_on_after_the_open_ones_were_written() {
    let (_keep, trial) = new_trial(1);
    let mut writer = trial.node_events_writer(wall(0), &stages()).unwrap();
    let mut event = |stage, second: i64, count| {
        let at = wall(second * SECOND_NS);
        writer.event(&NodeEvent { stage, node: "a", at, count, took: None });
    };
    // Another stage fills what may be open, so that it is written while the first stage's second is the last one of it.
    const SECONDS: i64 = 70_000;
    event(0, 5, 1);
    (0..SECONDS).for_each(|second| event(1, second, 1));
    event(0, 5, 10);
    event(2, 5, 100);
    assert!(writer.close().is_whole);
    let (rows, found) = read(&trial);
    let of = |stage: &str, second| found[&(second, stage.to_owned(), "a".to_owned())].0;
    assert_eq!((of("received", 5), of("stored", 5)), (11, 100));
    assert!((0..SECONDS).all(|second| of("ordered.sent", second) == 1));
    assert_eq!(rows, SECONDS.cast_unsigned() + 3, "one second has two rows");
    assert_eq!(found.len() as u64, rows - 1);
}

/// Claim: what has no place is left out and counted, by why; what could not be read is said, up to a bound.
#[test]
fn what_is_left_out_is_counted() {
    let (_keep, trial) = new_trial(1);
    let mut writer = trial.node_events_writer(wall(0), &stages()).unwrap();
    let event = |stage, at| NodeEvent { stage, node: "a", at, count: 1, took: None };
    writer.event(&event(0, wall(0)));
    writer.event(&event(0, WallTime::from_unix_ns(0)));
    writer.event(&event(0, WallTime::from_unix_ns(i64::MAX)));
    writer.event(&event(3, wall(0)));
    writer.span(&NodeSpan { tx: 1, stage: 9, node: "a", from: wall(0), to: wall(1) });
    for node in 0..10_001 {
        writer.event(&NodeEvent { node: &format!("node-{node}"), ..event(1, wall(0)) });
    }
    for index in 0..150 {
        writer.problem(format!("{index} {}", "é".repeat(2_000)));
    }
    let facts = writer.close();
    assert_eq!((facts.events, facts.transactions), (10_005, 10_000));
    assert_eq!((facts.outside, facts.undeclared, facts.beyond_nodes), (2, 2, 2));
    assert_eq!((facts.problems.len(), facts.problems_left_out), (100, 50));
    assert!(!facts.is_whole && facts.problems.iter().all(|it| it.len() <= 1_000));
    let (rows, found) = read(&trial);
    assert_eq!(rows, 10_000);
    assert_eq!(found[&(0, "received".into(), "a".into())].0, 1);
}

/// Claim: spans come back on the trial's line, by transaction and then by time, with their stages.
#[test]
fn spans_come_back() {
    let (_keep, trial) = new_trial(1);
    assert!(trial.spans(&stages()).unwrap().is_empty());
    let mut writer = trial.node_events_writer(wall(0), &stages()).unwrap();
    for tx in (0..1_000_u64).rev() {
        let from = tx.cast_signed() * 1_000;
        let span =
            |stage, node, from, to| NodeSpan { tx, stage, node, from: wall(from), to: wall(to) };
        writer.span(&span(2, "b", from + 50, from + 90));
        writer.span(&span(0, "a", from, from + 50));
    }
    let facts = writer.close();
    assert_eq!((facts.spans, facts.spans_kept, facts.sampled_one_in), (2_000, 2_000, 1));
    let spans = trial.spans(&stages()).unwrap();
    let seen: Vec<_> =
        spans[6..8].iter().map(|it| (it.tx, it.stage, it.node.as_str(), it.from, it.to)).collect();
    assert_eq!(seen, [(3, 0, "a", 3_000, 3_050), (3, 2, "b", 3_050, 3_090)]);
    let error = trial.spans(&stages()[..2]).unwrap_err().to_string();
    assert!(error.contains("`stored`, which trial.json does not declare"), "{error}");
}

/// Claim: a file with a byte changed or an end cut off is refused with its name and what to do.
#[test]
fn damage_is_said() {
    for name in ["stages.parquet", "traces.parquet"] {
        for cut in [false, true] {
            let (_keep, trial) = new_trial(1);
            let mut writer = trial.node_events_writer(wall(0), &stages()).unwrap();
            for tx in 0..100 {
                let took = Some(Duration::from_micros(tx));
                writer.event(&NodeEvent { stage: 0, node: "a", at: wall(0), count: 1, took });
                writer.span(&NodeSpan { tx, stage: 0, node: "a", from: wall(0), to: wall(1) });
            }
            assert!(writer.close().is_whole);
            let path = trial.path().join(name);
            let mut bytes = fs::read(&path).unwrap();
            if cut {
                bytes.truncate(bytes.len() - 9);
            } else {
                bytes[20] ^= 1;
            }
            fs::write(&path, bytes).unwrap();
            let read = match name {
                "stages.parquet" => trial.for_each_stage_second(|_| ()).map(|_| ()),
                _ => trial.spans(&stages()).map(|_| ()),
            };
            let error = read.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("restore it"), "{error}");
        }
    }
}
