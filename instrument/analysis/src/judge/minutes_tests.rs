//! Minutes with rows that were counted by hand.

use std::time::Duration;

use model::facts::{KindFacts, PreflightFinding};
use model::plan::{Level, ThresholdPlan};
use model::quantity::Rate;
use model::{Class, Outcome, Row};

use super::*;
use crate::testing::{Trial, row, setting};

const MS: i64 = 1_000_000;

fn threshold(expr: &str) -> ThresholdPlan {
    ThresholdPlan {
        expr: expr.into(),
        at: Default::default(),
        level: Level::Saturated,
        confidence: None,
        abort: None,
    }
}

/// 10/s for 150 s, each answered after `ms` of its number.
fn trial(ms: impl Fn(u64) -> i64) -> Trial {
    let mut trial = Trial::clean();
    trial.setting = setting(Rate::per_second(10), Duration::from_secs(150));
    trial.thresholds = vec![threshold("success == 100%"), threshold("p99 < 100ms")];
    trial.facts.declared.measure_end = 150_000 * MS;
    trial.facts.load.drain_end = 160_000 * MS;
    let of = |tx: u64| row(tx, tx.cast_signed() * 100 * MS, ms(tx) * MS, Outcome::Committed);
    trial.rows = (0..1_500).map(of).collect();
    trial
}

fn minutes(trial: Trial) -> MinutesResult {
    trial.result().minutes.expect("two whole minutes")
}

/// Claim: whole minutes of due times are judged, each by all that were due in it, and what is left at the end is not one.
#[test]
fn by_hand() {
    // Of the 600 of the first minute six take a second: the 594th of them, p99, does not.
    let slow = |tx: u64| if (6..1_200).contains(&tx) { 2 } else { 1_000 };
    let all = minutes(trial(slow));
    assert_eq!(all.judged, ["success == 100%", "p99 < 100ms"]);
    assert_eq!((all.quantile.as_str(), all.minutes.len()), ("p99", 2));
    assert!(all.minutes.iter().all(|it| it.holds && it.due == 600 && it.committed == 600));
    assert_eq!(all.minutes[1].start_ns, 60_000 * MS);
    // A seventh does.
    let all = minutes(trial(|tx| if tx <= 6 { 1_000 } else { 2 }));
    let holds: Vec<bool> = all.minutes.iter().map(|it| it.holds).collect();
    assert_eq!(holds, [false, true]);
    let worst = all.minutes[0].quantile_ns.expect("all were answered");
    assert!((worst - 1_000 * MS).abs() <= 8 * MS, "{worst}");
}

/// Claim: a threshold of level warn fails no minute, and where there is no other nothing is judged.
#[test]
fn a_wish_is_not_promised() {
    let wish = ThresholdPlan { level: Level::Warn, ..threshold("p50 < 1ms") };
    let mut trial = trial(|_| 2);
    trial.thresholds.push(wish.clone());
    let all = minutes(trial.clone());
    assert_eq!(all.judged, ["success == 100%", "p99 < 100ms"]);
    assert!(all.minutes.iter().all(|it| it.holds));
    trial.thresholds = vec![wish];
    assert!(trial.result().minutes.is_none());
}

/// Claim: one refusal fails a threshold of success in its minute alone, and where more than the share is never answered
/// the quantile is infinite.
#[test]
fn refused_and_lost() {
    let with = |change: &dyn Fn(&mut Row)| {
        let mut trial = trial(|_| 2);
        change(&mut trial.rows[700]);
        minutes(trial)
    };
    let refused = with(&|old| *old = row(old.tx, old.due, MS, Outcome::Rejected(Class::Limited)));
    let holds: Vec<bool> = refused.minutes.iter().map(|it| it.holds).collect();
    assert_eq!((holds, refused.minutes[1].committed), (vec![true, false], 599));
    let mut lost = trial(|_| 2);
    lost.thresholds = vec![threshold("p99.9 < 1s")];
    lost.rows[700] = row(700, 70_000 * MS, 30_000 * MS, Outcome::Unknown);
    let lost = minutes(lost);
    assert_eq!((lost.minutes[1].quantile_ns, lost.minutes[1].holds), (None, false));
    assert_eq!((lost.quantile.as_str(), lost.minutes[0].holds), ("p99.9", true));
}

/// Claim: a kind that cannot succeed at any load is left out and named; without a whole minute, or with thresholds that
/// cannot be told of one, there is nothing.
#[test]
fn what_is_left_out() {
    let mut half = trial(|_| 2);
    half.facts.declared.kinds = vec![KindFacts::recorded("good"), KindFacts::recorded("bad")];
    half.facts.declared.preflight = vec![PreflightFinding {
        kind: "bad".into(),
        ok: false,
        detail: "404".into(),
        ..Default::default()
    }];
    for row in half.rows.iter_mut().skip(1).step_by(2) {
        (row.kind, row.outcome) = (1, Outcome::Rejected(Class::BadRequest));
    }
    let all = minutes(half);
    assert_eq!(all.left_out, ["bad"]);
    assert!(all.minutes.iter().all(|it| it.holds && it.due == 300), "{all:?}");
    let mut other = trial(|_| 2);
    other.thresholds =
        vec![threshold("goodput >= 95% of offered"), threshold("committed.p99 < 1s")];
    assert!(other.result().minutes.is_none());
    let mut short = trial(|_| 2);
    short.facts.declared.measure_end = 59_999 * MS;
    assert!(short.result().minutes.is_none());
}

fn borne(key: &str, held: u64, minutes: u64, in_doubt: &[&str]) -> SettingResult {
    let mut trial = trial(|_| 2).result();
    trial.minutes.as_mut().expect("two minutes").left_out.clear();
    SettingResult {
        key: key.into(),
        borne: Some(BorneResult {
            minutes,
            held,
            quantile: "p99".into(),
            worst_ns: Some(12_341_000),
            success_min: 1.0,
            in_doubt: in_doubt.iter().map(|it| (*it).to_owned()).collect(),
            words: String::new(),
        }),
        verdict: model::result::Verdict::Pass,
        trials: vec![trial],
        ..SettingResult::default()
    }
}

/// Claim: what is promised is the highest load up to which every minute holds; one beyond a load that does not is none,
/// nor is one whose numbers do not hold.
#[test]
fn in_words() {
    let of = |settings: &[SettingResult]| {
        let rates = [20.0, 30.0, 40.0];
        let loads: Vec<Load<'_>> = rates
            .into_iter()
            .zip(settings)
            .map(|(per_s, setting)| Load { per_s, setting })
            .collect();
        promised("set=blocks", &loads).expect("there are minutes")
    };
    let (good, bad) = (|key| borne(key, 10, 10, &[]), |key| borne(key, 4, 10, &[]));
    let (key, words) = of(&[good("a"), good("b"), bad("c")]);
    assert_eq!(key, "b");
    assert_eq!(
        words,
        "set=blocks: at 30/s: p99 ≤ 12.4 ms and success ≥ 100.00% in 10 of 10 minutes (judged by success == 100%, \
         p99 < 100ms); at 40/s 4 of 10 minutes hold"
    );
    assert_eq!(of(&[good("a"), bad("b"), good("c")]).0, "a");
    let (key, words) = of(&[good("a"), good("b"), good("c")]);
    assert!(key == "c" && words.ends_with("no higher load was tried"), "{words}");
    let (key, words) = of(&[bad("a"), bad("b"), bad("c")]);
    assert!(key == "a" && words.contains("no load that was tried can be promised"), "{words}");
    let (key, words) = of(&[good("a"), borne("b", 10, 10, &["send_lag"]), good("c")]);
    assert!(key == "a" && words.contains("by numbers that do not (send_lag)"), "{words}");
}

/// Claim: an audit that voids times which may only be too long leaves a threshold that they are short; one that may be too
/// short does not; and what the preflight objects to is no doubt where it is left out.
#[test]
fn doubts() {
    use model::result::{Family, Voided};
    let doubtful = |voided: Voided, audit: &str, left_out: bool| {
        let mut setting = borne("a", 2, 2, &[]);
        let trial = &mut setting.trials[0];
        if left_out {
            trial.minutes.as_mut().expect("two minutes").left_out.push("bad".into());
        }
        let found = trial.audits.iter_mut().find(|it| it.name == audit).expect("it is in the list");
        found.voids = vec![voided];
        super::borne(&[threshold("p99 < 100ms")], &setting).expect("two minutes").in_doubt
    };
    assert!(doubtful(Voided::too_high(Family::Response), "send_lag", false).is_empty());
    assert_eq!(doubtful(Voided::too_low(Family::Response), "send_lag", false), ["send_lag"]);
    assert_eq!(doubtful(Voided::too_low(Family::Response), "preflight", false), ["preflight"]);
    assert!(doubtful(Voided::too_low(Family::Response), "preflight", true).is_empty());
}

/// Claim: three digits, and never less than it was.
#[test]
fn upwards() {
    for (ns, up) in [(12_341_000, 12_400_000), (999, 999), (1_000, 1_000), (1_001, 1_010), (0, 0)] {
        assert_eq!(rounded_up(ns), up);
    }
}
