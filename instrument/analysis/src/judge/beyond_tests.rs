//! Verdicts of systems of known behaviour, by their rows: what an outside check found wrong, and what was right.

use std::time::Duration;

use model::plan::{Level, ThresholdPlan};
use model::quantity::Rate;
use model::result::{Answer, ThresholdResult, TrialResult, Verdict};
use model::{Class, Outcome};

use crate::testing::{Trial, row, setting};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

/// Whether a row of this number is one of `share` of them, spread without a rhythm.
fn is_one_of(tx: u64, share: f64) -> bool {
    let spread = (tx + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    (spread as f64) < share * (1_u64 << 53) as f64
}

/// `rate` a second for `seconds`; `end` says of each how long it takes, and what becomes of it, by number and due time.
fn load(rate: u64, seconds: u64, end: impl Fn(u64, i64) -> (i64, Outcome)) -> Trial {
    let mut trial = Trial::clean();
    trial.setting = setting(Rate::per_second(rate), Duration::from_secs(seconds));
    trial.percentiles = vec![0.5, 0.95, 0.99, 0.999];
    let gap = SECOND / i64::try_from(rate).unwrap();
    trial.rows = (0..rate * seconds)
        .map(|tx| {
            let due = i64::try_from(tx).unwrap() * gap;
            let (length, outcome) = end(tx, due);
            row(tx, due, length, outcome)
        })
        .collect();
    let window = i64::try_from(seconds).unwrap() * SECOND;
    trial.facts.declared.measure_end = window;
    trial.facts.load.drain_end = window + 31 * SECOND;
    trial
}

fn takes(rate: u64, seconds: u64, length: impl Fn(u64, i64) -> i64) -> Trial {
    load(rate, seconds, |tx, due| (length(tx, due), Outcome::Committed))
}

/// One in `1 / share` takes `slow`, the others 5 ms.
fn slow(rate: u64, seconds: u64, share: f64, slow: i64) -> Trial {
    takes(rate, seconds, |tx, _| if is_one_of(tx, share) { slow } else { 5 * MS })
}

/// Down from 5 s to 6 s: who comes then waits for the end of it.
fn down_for_a_second(rate: u64) -> Trial {
    takes(rate, 20, |_, due| if (5 * SECOND..6 * SECOND).contains(&due) { 6 * SECOND - due } else { 0 } + 5 * MS)
}

/// The instrument is stopped for 24 ms of each 370 ms: what falls due then is sent at the end of it.
fn stopped(mut trial: Trial) -> Trial {
    for row in &mut trial.rows {
        let late = (24 * MS - row.due % (370 * MS)).max(0);
        let end = row.end + late;
        (row.sent, row.end) = (row.due + late.max(10_000), end);
        row.marks[0] = end;
    }
    trial
}

fn judged(mut trial: Trial, expr: &str, confidence: Option<f64>) -> TrialResult {
    trial.thresholds = vec![ThresholdPlan { confidence, ..ThresholdPlan::new(expr, Level::Fail) }];
    trial.result()
}

/// A name, what it did, the threshold and its confidence, the answer and the verdict, and what was said before.
type Case = (&'static str, Trial, &'static str, Option<f64>, Answer, Verdict, &'static str);

/// Claim: a system is judged by its own rows: red means bad, green means good, and what cannot be told says what would tell
/// it. In the last column stands what was said before.
#[test]
fn verdicts() {
    let sure = Some(0.95);
    let unanswered = |share: f64| {
        load(100, 30, move |tx, _| match is_one_of(tx, share) {
            true => (30 * SECOND, Outcome::Unknown),
            false => (5 * MS, Outcome::Committed),
        })
    };
    let refused = || load(50, 3, |_, _| (MS, Outcome::Rejected(Class::Server)));
    let died = |at: i64| {
        load(50, 20, move |_, due| match due < at * SECOND {
            true => (5 * MS, Outcome::Committed),
            false => (30 * SECOND, Outcome::Unknown),
        })
    };
    let queue = || {
        let mut free = 0;
        let mut ends = Vec::new();
        for tx in 0..1_000_i64 {
            let work = if tx % 10 < 7 { 3 * MS } else { 14 * MS };
            free = free.max(tx * 10 * MS) + work;
            ends.push(free - tx * 10 * MS);
        }
        takes(100, 10, move |tx, _| ends[usize::try_from(tx).unwrap()])
    };
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        ("own stops", stopped(takes(100, 10, |_, _| 100 * MS)), "p99 < 110ms", None, Answer::Invalid, Verdict::Invalid, "failed, 99"),
        ("own stops, room", stopped(takes(100, 10, |_, _| 100 * MS)), "p99 < 200ms", None, Answer::Met, Verdict::Pass, "met, 0"),
        ("own stops, guilty", stopped(slow(100, 30, 0.03, 900 * MS)), "p99 < 300ms", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("dead 1 s of 20, 100/s", down_for_a_second(100), "p99 < 100ms", None, Answer::Undecided, Verdict::Undecided, "void, 97"),
        ("dead 1 s of 20, 50/s", down_for_a_second(50), "p99 < 100ms", None, Answer::Undecided, Verdict::Undecided, "void, 97"),
        ("1.5 % take 800 ms", slow(100, 15, 0.015, 800 * MS), "p99 < 500ms", None, Answer::Undecided, Verdict::Undecided, "void, 97"),
        ("1.5 % take 800 ms, 60 s", slow(100, 60, 0.015, 800 * MS), "p99 < 400ms", None, Answer::Failed, Verdict::Fail, "met in 58 of 100, 0"),
        ("3 % take 900 ms", slow(50, 20, 0.03, 900 * MS), "p99 < 300ms", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("8 % take 900 ms", slow(50, 20, 0.08, 900 * MS), "p95 < 300ms", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("6 % take 900 ms", slow(50, 20, 0.06, 900 * MS), "p95 < 300ms", None, Answer::Undecided, Verdict::Undecided, "void, 97"),
        ("60 ms pause each second", takes(1_000, 20, |_, due| (60 * MS - due % SECOND).max(0) + MS), "p95 < 9ms", None, Answer::Undecided, Verdict::Undecided, "void, 97"),
        ("5 % slow page", slow(100, 6, 0.05, 600 * MS), "p99 < 100ms", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("5 % unanswered", unanswered(0.05), "p99 < 1s", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("dead from half", died(10), "p99 < 1s", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("dead at the end", died(18), "p99 < 1s", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("all 500", refused(), "success == 100%", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("all 500, quickly", refused(), "p99 < 1s", None, Answer::Failed, Verdict::Fail, "void, 97"),
        ("an hour", queue(), "p99 < 1h", sure, Answer::Met, Verdict::Pass, "failed, 99"),
        ("constant 5 ms", takes(100, 30, |_, _| 5 * MS), "p99 < 10s", sure, Answer::Met, Verdict::Pass, "failed, 99"),
        ("constant 200 ms", takes(50, 20, |_, _| 200 * MS), "p99 < 10s", sure, Answer::Met, Verdict::Pass, "failed, 99"),
        ("constant 20 ms", takes(50, 20, |_, _| 20 * MS), "p99 < 1s", sure, Answer::Met, Verdict::Pass, "failed, 99"),
        ("2,000 under 24 ms", takes(100, 20, |tx, _| i64::try_from(tx % 24).unwrap() * MS), "p99 < 10s", sure, Answer::Met, Verdict::Pass, "failed, 99"),
        ("D/M/1 of a queue", queue(), "p99 < 500ms", None, Answer::Met, Verdict::Pass, "failed in 13 of 100, 99"),
        ("0 of 200 for 99.9 %", takes(20, 10, |_, _| 5 * MS), "success >= 99.9%", sure, Answer::Undecided, Verdict::Undecided, "met, 0"),
        ("0 of 200 for 99.9 %", takes(20, 10, |_, _| 5 * MS), "success >= 99.9%", None, Answer::Met, Verdict::Pass, "met, 0"),
        ("0 of 5,000 for 99.9 %", takes(500, 10, |_, _| 5 * MS), "success >= 99.9%", sure, Answer::Met, Verdict::Pass, "met, 0"),
        ("200 samples, 4 s", takes(50, 4, |_, _| 5 * MS), "p99 < 10s", None, Answer::Met, Verdict::Pass, "0 of 1 met, 0"),
        ("200 samples, sure", takes(50, 4, |_, _| 5 * MS), "p99 < 10s", sure, Answer::Undecided, Verdict::Undecided, "failed, 99"),
        ("the largest", takes(100, 10, |tx, _| if tx == 500 { SECOND } else { MS }), "max < 500ms", None, Answer::Failed, Verdict::Fail, "failed, 99"),
        ("the largest is own lag", stopped(takes(100, 10, |_, _| 100 * MS)), "max < 110ms", None, Answer::Invalid, Verdict::Invalid, "failed, 99"),
        ("the mean is own lag", stopped(takes(100, 10, |_, _| 100 * MS)), "mean < 100500us", None, Answer::Invalid, Verdict::Invalid, "failed, 99"),
        ("the mean is own lag, sides swapped", stopped(takes(100, 10, |_, _| 100 * MS)), "100500us > mean", None, Answer::Invalid, Verdict::Invalid, "failed, 99"),
    ];
    for (name, trial, expr, confidence, answer, verdict, before) in cases {
        let found = judged(trial, expr, confidence);
        let told = &found.thresholds[0];
        let said = format!("{name}, {expr} (before: {before}): {told:?}; {}", found.reason);
        assert_eq!((told.answer, found.verdict), (answer, verdict), "{said}");
    }
}

/// Claim: where nothing was sent, vegeta's times are not there, so that no limit of theirs is kept; its shares and rates are
/// zero and break theirs.
#[test]
fn vegeta_of_nothing_sent() {
    let mut trial = Trial::clean();
    for old in &mut trial.rows {
        *old = row(old.tx, old.due, MS, Outcome::Rejected(Class::Transport));
        old.sent = model::NO_STAMP;
    }
    for (expr, answer, verdict) in [
        ("vegeta.p99 < 500ms", Answer::Invalid, Verdict::Invalid),
        ("vegeta.mean < 500ms", Answer::Invalid, Verdict::Invalid),
        ("vegeta.max <= 1s", Answer::Invalid, Verdict::Invalid),
        ("vegeta.wait < 1s", Answer::Invalid, Verdict::Invalid),
        ("vegeta.attack < 30s", Answer::Invalid, Verdict::Invalid),
        ("vegeta.success >= 99%", Answer::Failed, Verdict::Fail),
        ("vegeta.throughput >= 100/s", Answer::Failed, Verdict::Fail),
    ] {
        let found = judged(trial.clone(), expr, None);
        let told = &found.thresholds[0];
        assert_eq!((told.answer, found.verdict), (answer, verdict), "{expr}: {told:?}");
    }
}

fn told(trial: Trial, expr: &str, confidence: Option<f64>) -> ThresholdResult {
    judged(trial, expr, confidence).thresholds.remove(0)
}

/// Claim: each answer says the counts that decide it, and what would decide where nothing does; the counts stand in the
/// result as numbers, too.
#[test]
fn counts_in_words() {
    let own = told(stopped(takes(100, 10, |_, _| 100 * MS)), "p99 < 110ms", None);
    let counted = &own.counted[0];
    assert_eq!((counted.all, counted.allowed_share), (1_000, 0.01));
    assert!(counted.beyond > 10 && counted.beyond_less_own == 0, "{counted:?}");
    let words = format!(
        "{} of 1,000 beyond 110 ms, 10 allowed, 0 without the instrument's own lag: this machine was late, not the system; use an idle machine",
        counted.beyond
    );
    assert_eq!(own.detail, words);
    let few = told(takes(12, 10, |_, _| MS), "p99 < 1s", None);
    assert_eq!(
        few.detail,
        "0 of 120 beyond 1.00 s; 299 are needed to be 95 % sure (25.0 s at this rate)"
    );
    let every_77th = |tx: u64, _| if tx % 77 == 5 { 200 * MS } else { MS };
    let some = told(takes(100, 10, every_77th), "p99 < 100ms", None);
    assert_eq!(some.answer, Answer::Undecided);
    assert!(
        some.detail.starts_with("13 of 1,000 beyond 100 ms, 10 allowed: may be chance; about ")
            && some.detail.ends_with(" at this rate would decide"),
        "{}",
        some.detail
    );
    assert!(some.counted[0].seconds_to_decide.is_some_and(|seconds| seconds > 20.0), "{some:?}");
    let dead = |_, due: i64| match due < 8 * SECOND {
        true => (MS, Outcome::Committed),
        false => (30 * SECOND, Outcome::Unknown),
    };
    let dead = told(load(100, 10, dead), "p99 < 1s", None);
    let words = "200 of 1,000 beyond 1.00 s, 10 allowed; nothing that was due in the last 2.00 s was answered";
    assert_eq!(dead.detail, words);
    assert_eq!(told(takes(100, 100, |_, _| MS), "p99 < 1h", None).detail, "");
}

/// Claim: where the instrument's own lag moves a count that chance leaves open, both counts are said, and nowhere else.
#[test]
fn both_counts_where_they_differ() {
    let lengths = |tx: u64, _| if tx % 77 == 5 { 200 * MS } else { 80 * MS };
    let late = told(stopped(takes(100, 10, lengths)), "p99 < 100ms", None);
    assert_eq!(late.answer, Answer::Undecided, "{late:?}");
    let words = "41 of 1,000 beyond 100 ms, 10 allowed, 13 without the instrument's own lag: may be chance; about ";
    assert!(late.detail.starts_with(words), "{}", late.detail);
    let idle = told(takes(100, 10, lengths), "p99 < 100ms", None);
    assert!(!idle.detail.contains("own lag"), "{}", idle.detail);
}

/// Claim: a time that is mostly of refusals says so, though it keeps the limit: it is no time in which anything was done.
#[test]
fn quick_refusals_are_called_so() {
    let mostly = |tx: u64, _| match tx % 10 {
        0 => (5 * MS, Outcome::Committed),
        _ => (MS, Outcome::Rejected(Class::Server)),
    };
    let found = told(load(100, 30, mostly), "p99 < 1s", None);
    assert_eq!((found.answer, found.counted[0].refused), (Answer::Met, 2_700));
    assert_eq!(found.detail, "2,700 of 3,000 were refused: this is how fast refusals came");
    let committed = told(load(100, 30, mostly), "committed.p99 < 1s", None);
    assert!(!committed.detail.contains("refused"), "{}", committed.detail);
}

/// Claim: without `confidence` the line of a threshold that is met says how many would exclude chance exactly where the
/// same threshold with `confidence` is undecided; with another confidence it says what that needs.
#[test]
fn met_says_where_chance_is_not_excluded() {
    let cases = [
        takes(12, 10, |_, _| MS),
        takes(100, 30, |_, _| MS),
        takes(100, 20, |tx, _| if tx % 150 == 3 { SECOND } else { MS }),
        takes(100, 60, |tx, _| if tx % 500 == 3 { SECOND } else { MS }),
        takes(100, 20, |tx, _| if tx % 2_000 < 15 { SECOND } else { MS }),
    ];
    let mut said = Vec::new();
    for trial in cases {
        for expr in ["p99 < 500ms", "p95 < 500ms", "success >= 99.9%"] {
            let of = |confidence| told(trial.clone(), expr, confidence);
            let (plain, sure, surer) = (of(None), of(Some(0.95)), of(Some(0.99)));
            assert_eq!(plain.answer, Answer::Met, "{expr}: {plain:?}");
            let is_open = plain.detail.contains("needed to be 95 % sure");
            assert_eq!(sure.answer == Answer::Undecided, is_open, "{expr}: {plain:?} {sure:?}");
            assert_eq!(sure.detail, plain.detail);
            assert_eq!(plain.detail.is_empty(), !is_open, "{expr}: {plain:?}");
            if surer.answer == Answer::Undecided {
                assert!(surer.detail.contains("needed to be 99 % sure"), "{surer:?}");
                assert!(surer.counted[0].needed > sure.counted[0].needed, "{surer:?}");
            }
            said.push(is_open);
        }
    }
    assert!(said.contains(&true) && said.contains(&false), "{said:?}");
}

/// Claim: what is beyond is counted as the language has it: `<` leaves the limit itself outside and `<=` inside; of the
/// committed only they are counted, of service times from the send, and of a stage that is not there nothing.
#[test]
fn what_is_counted() {
    let half = || {
        load(100, 10, |tx, _| match tx % 2 {
            0 => (20 * MS, Outcome::Committed),
            _ => (5 * MS, Outcome::Rejected(Class::Server)),
        })
    };
    for (expr, counts) in [
        ("p50 < 20ms", Some((1_000, 500))),
        ("p50 <= 20ms", Some((1_000, 0))),
        ("20ms > p50", Some((1_000, 500))),
        ("committed.p50 < 20ms", Some((500, 500))),
        ("answered.p99 < 10ms", Some((1_000, 500))),
        ("service.p99 < 20ms", Some((1_000, 0))),
        ("stage.committed.p50 < 20ms", Some((1_000, 500))),
        ("success >= 50%", Some((1_000, 500))),
        ("p50 > 1ms", None),
        ("mean < 1s", None),
        ("p99.nowhere < 1s", None),
    ] {
        let found = told(half(), expr, None);
        let counted = found.counted.first().map(|it| (it.all, it.beyond));
        assert_eq!(counted, counts, "{expr}: {found:?}");
    }
}
