//! Runs of several settings: declared verdicts, tables, the knee, exit codes, sameness.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Outcome;
use model::facts::Environment;
use model::options::Options;
use model::plan::{Axis, Level, Plan, TablePlan, ThresholdPlan};
use model::quantity::Rate;
use model::result::{Family, RunResult, TrialResult, Verdict, Voided};

use super::{RunInput, SettingInput, summarise};
use crate::testing::{Trial, row, setting};

const RATES: [u64; 3] = [500, 1_000, 2_000];

fn plan() -> Plan {
    let settings = RATES
        .iter()
        .map(|rate| {
            let mut setting = setting(Rate::per_second(*rate), Duration::from_secs(10));
            setting.key = format!("rate={rate}/s");
            setting.values = BTreeMap::from([("rate".to_owned(), format!("{rate}/s"))]);
            setting.system.deploy = Options::empty();
            setting
        })
        .collect();
    Plan {
        percentiles: vec![0.5, 0.99],
        axes: vec![Axis {
            name: "rate".into(),
            labels: RATES.map(|rate| format!("{rate}/s")).to_vec(),
        }],
        thresholds: vec![
            ThresholdPlan::new("p90 < 1s", Level::Warn),
            ThresholdPlan::new("committed >= 98% of offered", Level::Saturated),
        ],
        tables: vec![TablePlan {
            group: Vec::new(),
            rows: "rate".into(),
            across: String::new(),
            cell: String::new(),
            columns: ["requests", "throughput", "success", "p50", "p99.9", "codes", "lost"]
                .map(str::to_owned)
                .to_vec(),
            unit: "ms".into(),
        }],
        ..Plan::plain("test", settings)
    }
}

/// A system that serves 1,000 a second in order; one trial at each rate.
fn trials(plan: &Plan) -> Vec<(usize, TrialResult)> {
    let of = |(index, rate): (usize, &u64)| {
        let mut trial = Trial::clean();
        let input = SettingInput::of(plan, &plan.settings[index]);
        assert_eq!(
            input.percentiles,
            [0.5, 0.9, 0.99, 0.999],
            "named percentiles are computed too"
        );
        trial.setting = plan.settings[index].clone();
        trial.thresholds = input.thresholds;
        trial.percentiles = input.percentiles;
        let gap = 1_000_000_000 / i64::try_from(*rate).unwrap();
        let mut free = 0;
        trial.rows = (0..rate * 10)
            .map(|tx| {
                let due = i64::try_from(tx).unwrap() * gap;
                free = free.max(due) + 1_000_000;
                row(tx, due, free - due, Outcome::Committed)
            })
            .collect();
        trial.facts.load.drain_end = 30_000_000_000;
        (index, trial.result())
    };
    RATES.iter().enumerate().map(of).collect()
}

fn run(plan: &Plan, interrupted: bool) -> RunResult {
    summarise_of(plan, trials(plan), interrupted)
}

fn summarise_of(plan: &Plan, of: Vec<(usize, TrialResult)>, interrupted: bool) -> RunResult {
    let environment = Environment::default();
    let input = RunInput { plan, environment: &environment, interrupted, fidelity: Vec::new() };
    summarise(&input, of)
}

/// The same where the load of the third setting was not offered.
fn run_not_offered(plan: &Plan, interrupted: bool) -> RunResult {
    let mut trials = trials(plan);
    let third = &mut trials[2].1;
    (third.verdict, third.reason) = (Verdict::Invalid, "offered_rate: a tenth was not sent".into());
    summarise_of(plan, trials, interrupted)
}

/// Claim: at twice its capacity a system's goodput is its capacity, though the drain lets it catch up, and the
/// knee is named between the last rate that it keeps up with and the first that it does not.
#[test]
fn goodput_and_knee() {
    let result = run(&plan(), false);
    let last = &result.settings[2].trials[0];
    assert_eq!(last.counts.committed, 20_000, "all commit in the end");
    assert!((last.rates.goodput_per_s - 1_000.0).abs() < 10.0, "{:?}", last.rates);
    assert!(result.settings[2].saturated && !result.settings[1].saturated);
    assert!(result.knee.contains("rate=1000/s keeps up"), "{}", result.knee);
    assert!(result.knee.contains("50 % of it"), "{}", result.knee);
    assert_eq!(result.verdict, Verdict::Pass, "saturation was declared: {}", result.reason);
    let words = "2 of 3 settings met their thresholds; 1 found the limit, as intended";
    assert_eq!(result.reason, words);
}

/// Claim: a declared verdict that comes is met, one that does not come fails the run, and an undeclared one decides.
#[test]
fn declared_verdicts() {
    let mut plan = plan();
    plan.thresholds.clear();
    plan.thresholds.push(ThresholdPlan::new("p90 < 1s", Level::Warn));
    let undeclared = run_not_offered(&plan, false);
    assert_eq!(
        (undeclared.verdict, undeclared.exit_code),
        (Verdict::Invalid, 97),
        "{}",
        undeclared.reason
    );
    assert!(undeclared.reason.contains("rate=2000/s: offered_rate"), "{}", undeclared.reason);
    plan.settings[2].expect = Some(Verdict::Invalid);
    let met = run_not_offered(&plan, false);
    assert_eq!((met.verdict, met.exit_code), (Verdict::Pass, 0), "{}", met.reason);
    plan.settings[0].expect = Some(Verdict::Invalid);
    let unmet = run_not_offered(&plan, false);
    assert_eq!((unmet.verdict, unmet.exit_code), (Verdict::Fail, 99), "{}", unmet.reason);
    assert!(unmet.reason.contains("expected invalid, came out pass"), "{}", unmet.reason);
    assert_eq!(run_not_offered(&plan, true).exit_code, 130);
}

/// Claim: a threshold that fails by a number that holds decides, whatever does not hold elsewhere: 99 before 97.
#[test]
fn broken_before_invalid() {
    let mut plan = plan();
    plan.thresholds = vec![ThresholdPlan::new("p90 < 1s", Level::Warn)];
    assert_eq!(run_not_offered(&plan, false).exit_code, 97);
    let at = BTreeMap::from([("rate".to_owned(), "500/s".to_owned())]);
    plan.thresholds.push(ThresholdPlan { at, ..ThresholdPlan::new("success < 1%", Level::Fail) });
    let broken = run_not_offered(&plan, false);
    assert_eq!((broken.verdict, broken.exit_code), (Verdict::Fail, 99), "{}", broken.reason);
    assert!(broken.reason.starts_with("rate=500/s: `success < 1%`"), "{}", broken.reason);
}

/// Claim: the table has the columns asked for, in the unit asked for, and says where a number is missing.
#[test]
fn tables() {
    let result = run(&plan(), false);
    let table = &result.tables[0];
    assert_eq!(
        table.columns,
        ["rate", "requests", "throughput", "success", "p50 (ms)", "p99.9 (ms)", "codes", "lost"]
    );
    let texts: Vec<_> = table.rows[1].iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts[..2], ["1000/s", "10,000"]);
    assert_eq!(texts[3..5], ["100.00%", "1.00"]);
    assert_eq!(texts[6..], ["200:10000", "–"]);
    assert!(!table.rows[1][5].grey, "ten samples lie beyond p99.9 of 10,000");
    assert!(table.rows[0][5].grey, "five lie beyond p99.9 of 5,000");
}

/// Claim: a number in a table that an audit voids says so, and the number beside it that is made of other observations
/// does not.
#[test]
fn void_numbers_in_tables() {
    let plan = plan();
    let mut trials = trials(&plan);
    let late = Voided::too_high(Family::Response);
    trials[0].1.audits[0].voids = vec![late];
    let run = summarise_of(&plan, trials, false);
    let void: Vec<bool> = run.tables[0].rows[0].iter().map(|cell| cell.void).collect();
    // rate, requests, throughput, success, p50, p99.9, codes, lost.
    assert_eq!(void, [false, false, false, false, true, true, false, false]);
    assert!(run.tables[0].rows[1].iter().all(|cell| !cell.void));
}

/// Claim: the same input gives the same bytes.
#[test]
fn same_bytes() {
    let text = |result: &RunResult| serde_json::to_string(result).unwrap();
    assert_eq!(text(&run(&plan(), false)), text(&run(&plan(), false)));
}
