//! The checks on whole trials of a simulated store: rows, observations as sessions write them, and a ledger.

use std::collections::HashMap;

use model::check::{Check, CheckFinding, CheckInput};
use model::facts::{KindFacts, LedgerEntry};
use model::observation::Observation;
use model::options::{Options, Span, Value};
use model::{Class, NO_STAMP, Outcome, Row, Seed, Stamp, TxId};

use super::{COMMIT_ORDER, CONSERVED, LIST_APPEND};
use crate::models::{BankAnswer, BankModel};
use crate::observation::{self, Shown};
use crate::replay::Model as _;
use crate::workload::{self, BankOp};
use crate::{Element, GARBAGE, Key, MicroOp};

const SESSIONS: u64 = 3;
const SEED: Seed = Seed(11);

/// What a trial leaves.
#[derive(Clone, Default)]
struct Trial {
    rows: Vec<Row>,
    observations: Vec<(TxId, Vec<u8>)>,
    entries: Vec<LedgerEntry>,
}

/// What the simulated store is told to do wrong.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    Honest,
    /// Reads of every fiftieth transaction are of what there was a hundred transactions ago.
    Stale,
    /// Reads of every fiftieth transaction see an element that was never appended.
    Garbage,
    /// Every fiftieth transaction is acknowledged and has no effect.
    Forgets,
    /// Every fiftieth transaction is committed twice.
    Twice,
    /// The ledger has two entries each fifty in the other order.
    Swaps,
    /// Every fiftieth transaction is refused and has its effect all the same.
    RefusesAndDoes,
    /// Every tenth transaction ends as unknown, of which half have their effect: no lie.
    Unknown,
    /// Of the lists that are shown the last elements are cut off on the way.
    Malformed,
}

fn row(tx: TxId, moment: Stamp) -> Row {
    // Clients overlap by some twenty transactions.
    let (sent, end) = (moment - 9_000, moment + 8_000);
    let mut row = Row { tx, sent, end, attempts: 1, ..Row::EMPTY };
    row.marks[0] = end;
    row
}

/// Two thousand transactions of lists.
fn trial_of_lists(options: &Options, lie: Lie) -> Trial {
    let lists = with_input(options, super::lists);
    let mut trial = Trial::default();
    let mut sessions: Vec<Shown> = (0..SESSIONS).map(|_| Shown::default()).collect();
    let mut state: HashMap<Key, Vec<Element>> = HashMap::new();
    let mut past = vec![state.clone()];
    let mut ops = Vec::new();
    for tx in 0..2_000_u64 {
        lists.ops(tx, &mut ops);
        let is_one = tx % 50 == 49;
        let mut row = row(tx, Stamp::try_from(tx).unwrap() * 1_000);
        let is_unknown = lie == Lie::Unknown && tx % 10 == 3;
        if is_unknown {
            row.outcome = Outcome::Unknown;
            row.marks[0] = NO_STAMP;
        }
        if lie == Lie::RefusesAndDoes && is_one {
            row.outcome = Outcome::Rejected(Class::Conflict);
        }
        let has_effect = !(lie == Lie::Forgets && is_one || is_unknown && tx % 20 == 3);
        let mut bytes = Vec::new();
        Shown::begin(&mut bytes);
        let session = usize::try_from(tx % SESSIONS).unwrap();
        let old = past[past.len().saturating_sub(100)].clone();
        let times = if lie == Lie::Twice && is_one { 2 } else { 1 };
        for time in 0..times {
            let mut after = state.clone();
            for op in &ops {
                match *op {
                    MicroOp::Append { key, element } => after.entry(key).or_default().push(element),
                    MicroOp::Read { key, .. } => {
                        let from = if lie == Lie::Stale && is_one { &old } else { &after };
                        let mut list = from.get(&key).cloned().unwrap_or_default();
                        if lie == Lie::Garbage && is_one {
                            list.push(GARBAGE);
                        }
                        if time == 0 && row.outcome == Outcome::Committed {
                            sessions[session].read(key, &list, &mut bytes);
                        }
                    }
                }
            }
            if has_effect {
                state = after;
            }
        }
        if lie == Lie::Malformed && is_one {
            bytes.pop();
        }
        past.push(state.clone());
        if row.outcome == Outcome::Committed {
            trial.observations.push((tx, bytes));
        }
        if has_effect && !workload::Lists::only_reads(&ops) {
            trial.entries.push(LedgerEntry::new(trial.entries.len() as u64, tx, true));
        }
        trial.rows.push(row);
    }
    if lie == Lie::Swaps {
        trial.entries.chunks_exact_mut(50).for_each(|chunk| chunk.swap(0, 49));
    }
    trial
}

/// Two thousand transactions of an honest bank, whose answers `tell` may change on their way.
fn trial_of_bank(options: &Options, tell: impl Fn(TxId, &mut BankAnswer)) -> Trial {
    let bank = with_input(options, super::bank);
    let mut model = BankModel::new(&bank);
    let mut trial = Trial::default();
    for tx in 0..2_000_u64 {
        let op = bank.op(tx);
        let mut answer = match op {
            BankOp::ReadAll => BankAnswer::Balances(model.balances.clone()),
            BankOp::Transfer { from, amount, .. } => {
                let held = model.balances[crate::at(from)];
                BankAnswer::Moved(held >= i64::try_from(amount).unwrap())
            }
        };
        assert!(model.apply(&op, Some(&answer)));
        tell(tx, &mut answer);
        let mut bytes = Vec::new();
        match answer {
            BankAnswer::Moved(was_moved) => observation::put_transfer(was_moved, &mut bytes),
            BankAnswer::Balances(all) => observation::put_balances(&all, &mut bytes),
        }
        trial.observations.push((tx, bytes));
        if op != BankOp::ReadAll {
            trial.entries.push(LedgerEntry::new(trial.entries.len() as u64, tx, true));
        }
        trial.rows.push(row(tx, Stamp::try_from(tx).unwrap() * 1_000));
    }
    trial
}

fn workload(kind: &str, more: &[(&str, Value)]) -> Options {
    let mut options = Options::empty();
    let mut set = |key: &str, value: Value| {
        options.set(key, Options { span: Span::default(), value });
    };
    set("kind", Value::String(kind.to_owned()));
    more.iter().for_each(|(key, value)| set(key, value.clone()));
    options
}

fn with_input<T>(workload: &Options, then: impl FnOnce(&CheckInput<'_>) -> T) -> T {
    let deploy = Options::empty();
    let kinds = [KindFacts::recorded("write"), KindFacts::read("read")];
    let stages = ["committed".to_owned()];
    then(&CheckInput {
        seed: SEED,
        deploy: &deploy,
        workload,
        kinds: &kinds,
        stages: &stages,
        final_stages: model::FinalStages::all(0),
        states: &[],
    })
}

/// What a check finds in a trial; observations come in another order than that of the rows.
fn found(check: &Check, workload: &Options, trial: &Trial) -> CheckFinding {
    with_input(workload, |input| {
        assert!((check.applies)(input));
        let mut state = (check.start)(input);
        trial.rows.iter().for_each(|row| state.row(row));
        for turn in 0..7 {
            for (tx, bytes) in trial.observations.iter().skip(turn).step_by(7) {
                state.observation(&Observation { tx: *tx, at: 0, bytes });
            }
        }
        trial.entries.iter().for_each(|entry| state.entry(entry, &[]));
        state.finish()
    })
}

fn small_lists(more: &[(&str, Value)]) -> Options {
    let keys = [("keys", Value::Integer(5)), ("appends", Value::Integer(50))];
    workload(workload::LIST_APPEND, &[&keys, more].concat())
}

/// Claim: an honest store is strictly serializable, with transactions of unknown outcome too, all of its reads are looked
/// at, and its ledger's order explains its answers.
#[test]
fn honest_stores_are_believed() {
    let options = small_lists(&[]);
    for lie in [Lie::Honest, Lie::Unknown] {
        let trial = trial_of_lists(&options, lie);
        let finding = found(&LIST_APPEND, &options, &trial);
        assert!(finding.holds, "{}", finding.words);
        assert_eq!(finding.count, 2_000);
        assert!(finding.words.ends_with("reads: strictly serializable"), "{}", finding.words);
        let finding = found(&COMMIT_ORDER, &options, &trial);
        assert!(finding.holds && finding.count > 1_000, "{}", finding.words);
    }
}

/// Claim: each lie of a store is found by the check that can see it, and said in the right words.
#[test]
fn lies_about_lists_are_found() {
    let options = small_lists(&[]);
    let cases = [
        (Lie::Stale, "G-single (read skew)"),
        (Lie::Garbage, "garbage read"),
        (Lie::Twice, "duplicate element"),
        (Lie::RefusesAndDoes, "G1a (aborted read)"),
        (Lie::Malformed, "answers that are not of what was asked"),
    ];
    for (lie, name) in cases {
        let finding = found(&LIST_APPEND, &options, &trial_of_lists(&options, lie));
        assert!(!finding.holds && !finding.examples.is_empty(), "{name}");
        assert!(finding.words.contains(name), "{name}: {}", finding.words);
    }
    let forgets = trial_of_lists(&options, Lie::Forgets);
    let finding = found(&LIST_APPEND, &options, &forgets);
    assert!(!finding.holds && finding.words.contains("in real time"), "{}", finding.words);
    let stale = trial_of_lists(&options, Lie::Stale);
    let finding = found(&COMMIT_ORDER, &options, &stale);
    assert!(!finding.holds && finding.words.contains("answered otherwise"), "{}", finding.words);
    let swapped = trial_of_lists(&options, Lie::Swaps);
    let finding = found(&COMMIT_ORDER, &options, &swapped);
    assert!(finding.words.contains("only after they had been answered"), "{}", finding.words);
    let finding = found(&LIST_APPEND, &options, &swapped);
    assert!(finding.holds, "{}", finding.words);
}

/// Claim: a system that promises less is held to that.
#[test]
fn a_weaker_promise() {
    let weak = small_lists(&[("isolation", Value::String("read-committed".to_owned()))]);
    let stale = trial_of_lists(&weak, Lie::Stale);
    let finding = found(&LIST_APPEND, &weak, &stale);
    assert!(finding.holds && finding.words.contains("read committed"), "{}", finding.words);
    let garbage = trial_of_lists(&weak, Lie::Garbage);
    assert!(!found(&LIST_APPEND, &weak, &garbage).holds);
}

/// Claim: what a transaction without a row appended is nobody's invention: a trial that was cut off is not accused.
#[test]
fn a_trial_that_was_cut_off() {
    let options = small_lists(&[]);
    let mut trial = trial_of_lists(&options, Lie::Honest);
    trial.rows.retain(|row| row.tx % 100 != 7);
    trial.observations.retain(|(tx, _)| tx % 100 != 7);
    let finding = found(&LIST_APPEND, &options, &trial);
    assert!(finding.holds, "{}", finding.words);
}

/// Claim: what was refused when it was sent again may have had its effect the first time, and is no aborted read.
#[test]
fn refused_when_sent_again() {
    let options = small_lists(&[]);
    let mut trial = trial_of_lists(&options, Lie::RefusesAndDoes);
    assert!(!found(&LIST_APPEND, &options, &trial).holds);
    let refused = trial.rows.iter_mut().filter(|row| row.outcome != Outcome::Committed);
    refused.for_each(|row| row.attempts = 2);
    let finding = found(&LIST_APPEND, &options, &trial);
    assert!(finding.holds, "{}", finding.words);
}

/// Claim: an answer that comes twice is no contradiction unless it is another one.
#[test]
fn answers_that_come_twice() {
    let options = small_lists(&[]);
    let mut trial = trial_of_lists(&options, Lie::Honest);
    let again = trial.observations[1_500..1_600].to_vec();
    trial.observations.extend(again);
    assert!(found(&LIST_APPEND, &options, &trial).holds);
    assert!(found(&COMMIT_ORDER, &options, &trial).holds);
    // The same transaction's reads, all as empty lists.
    for (_, bytes) in &mut trial.observations[2_000..] {
        let reads = observation::lists(bytes).unwrap().len();
        *bytes = [vec![1], vec![0; reads]].concat();
    }
    let finding = found(&LIST_APPEND, &options, &trial);
    assert!(finding.words.contains("answered twice"), "{}", finding.words);
    let finding = found(&COMMIT_ORDER, &options, &trial);
    assert!(finding.words.contains("answered twice"), "{}", finding.words);
}

/// Claim: an honest bank keeps its total, and one that does not, that overdraws an account, or that answers otherwise than
/// its ledger says is found.
#[test]
fn the_bank() {
    let options = workload(workload::BANK, &[("balance", Value::Integer(20))]);
    let honest = trial_of_bank(&options, |_, _| {});
    for check in [&CONSERVED, &COMMIT_ORDER] {
        let finding = found(check, &options, &honest);
        assert!(finding.holds && finding.count > 400, "{}", finding.words);
    }
    let stolen = trial_of_bank(&options, |tx, answer| {
        if let BankAnswer::Balances(all) = answer
            && tx > 1_000
        {
            all[0] += 1;
        }
    });
    let finding = found(&CONSERVED, &options, &stolen);
    assert!(finding.words.contains("another total") && finding.count > 200, "{}", finding.words);
    let overdrawn = trial_of_bank(&options, |_, answer| {
        if let BankAnswer::Balances(all) = answer {
            let all_of_it = all[0] + 1;
            all[0] -= all_of_it;
            all[1] += all_of_it;
        }
    });
    let finding = found(&CONSERVED, &options, &overdrawn);
    assert!(finding.words.contains("below nothing"), "{}", finding.words);
    assert!(!finding.words.contains("another total"), "{}", finding.words);
    let denied = trial_of_bank(&options, |tx, answer| {
        if let BankAnswer::Moved(was_moved) = answer
            && tx % 100 == 0
        {
            *was_moved = !*was_moved;
        }
    });
    let finding = found(&COMMIT_ORDER, &options, &denied);
    assert!(!finding.holds && finding.words.contains("answered otherwise"), "{}", finding.words);
}

/// Claim: a check that was shown no read says so and gives no verdict; from one committed read on that is missing it counts
/// what it was not shown.
#[test]
fn what_was_not_seen_is_no_proof() {
    let lists = small_lists(&[]);
    let bank = workload(workload::BANK, &[("balance", Value::Integer(20))]);
    let of_lists = trial_of_lists(&lists, Lie::Honest);
    let of_bank = trial_of_bank(&bank, |_, _| {});
    for (check, options, whole) in [
        (&LIST_APPEND, &lists, &of_lists),
        (&COMMIT_ORDER, &lists, &of_lists),
        (&COMMIT_ORDER, &bank, &of_bank),
        (&CONSERVED, &bank, &of_bank),
    ] {
        let seen = found(check, options, whole);
        assert_eq!((seen.holds, seen.missing, seen.saw_nothing), (true, 0, false), "{seen:?}");
        let blind = Trial { observations: Vec::new(), ..whole.clone() };
        let nothing = found(check, options, &blind);
        assert!(nothing.holds && nothing.saw_nothing && nothing.missing > 100, "{nothing:?}");
        assert!(nothing.words.contains("no verdict"), "{}", nothing.words);
        let mut partly = whole.clone();
        partly.observations.retain(|(tx, _)| tx % 3 != 0);
        let some = found(check, options, &partly);
        assert!(some.holds && !some.saw_nothing && some.missing > 10, "{some:?}");
        assert!(some.words.contains("nothing was kept of what they read"), "{}", some.words);
    }
}
