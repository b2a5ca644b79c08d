//! Two streams whose transactions end at different stages: each by its own, on paper first.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::result::{AuditOutcome, StreamResult};
use model::{NO_STAMP, Outcome, Row};

use crate::{Kept, MS, is_near, run_as};

/// Hundred a second and ten probes a second, for two seconds; `load` and `probe` are where they end.
fn experiment(load: &str, probe: &str) -> String {
    format!(
        "name = 'streams'\nquestion = 'Does each end at its own stage?'\n[system]\nkind = 'script'\n\
         [load]\nrate = '100/s'\nduration = '2s'\nwarmup = '0s'\nconnections = 1\ntimeout = '500ms'\nuntil = '{load}'\n\
         [probe]\ninterval = '100ms'\ntimeout = '500ms'\nuntil = '{probe}'"
    )
}

/// It accepts after 3 ms, and commits after 40 ms.
fn script() -> Script {
    Script::unbounded(Law::Constant(Duration::from_millis(40)))
        .accepting_after(Duration::from_millis(3))
}

fn run(load: &str, probe: &str, script: impl Fn() -> Script) -> Kept {
    let client =
        Client { in_flight_max: 1 << 20, closes_after_timeout: false, hears_accepted: true };
    run_as(client, &experiment(load, probe), |_, _| script())
}

/// Marks after due, and the end.
fn times(row: &Row) -> (Option<i64>, Option<i64>, i64) {
    let after = |mark: i64| (mark != NO_STAMP).then(|| mark - row.due);
    (after(row.marks[0]), after(row.marks[1]), row.end - row.due)
}

fn of_stream(rows: &[Row], stream: u8) -> Vec<Row> {
    rows.iter().filter(|row| row.stream == stream).copied().collect()
}

/// How a stream is said to have ended: its name, its stage, and whether its times are this one.
fn ended(of: &StreamResult, ns: i64) -> (&str, &str, bool) {
    let is_it = is_near(of.p50_ns, ns) && is_near(of.p99_ns, ns) && of.max_ns == Some(ns);
    (&of.stream, &of.until, is_it)
}

/// Claim: a load that ends when it is accepted, beside a probe that ends when it is committed: every row ends at its own
/// stage, to the nanosecond, and counts, rates, latencies and fates are of that stage.
#[test]
fn accepted_beside_committed() {
    let kept = run("accepted", "committed", script);
    let rows = kept.rows();
    let (load, probes) = (of_stream(&rows, 0), of_stream(&rows, 1));
    assert_eq!((load.len(), probes.len()), (200, 20));
    assert!(rows.iter().all(|row| row.outcome == Outcome::Committed));
    assert!(load.iter().all(|row| times(row) == (Some(3 * MS), None, 3 * MS)));
    assert!(probes.iter().all(|row| times(row) == (Some(3 * MS), Some(40 * MS), 40 * MS)));

    let trial = kept.trial(0);
    assert_eq!((trial.stream.as_str(), trial.final_stage.as_str()), ("probe", "committed"));
    assert_eq!(trial.final_stage_of_load(), "accepted");
    assert_eq!(ended(&trial.streams[0], 3 * MS), ("main", "accepted", true));
    assert_eq!(ended(&trial.streams[1], 40 * MS), ("probe", "committed", true));
    let background = trial.background.as_ref().unwrap();
    assert_eq!((background.due, background.committed), (200, 200));
    assert_eq!((trial.counts.due, trial.counts.committed), (20, 20));
    assert_eq!((trial.rates.goodput_per_s, trial.rates.offered_per_s), (100.0, 100.0));
    assert_eq!(trial.throughput_windows, Some((100.0, 100.0)));
    let metric = |name| analysis::metric(name, trial).map(|it| it.value);
    assert_eq!(metric("accepted"), Some(100.0));
    assert_eq!(metric("committed"), None, "the load is not followed so far");
    assert!(is_near(metric("p50").map(|ns| ns as i64), 40 * MS));
    let fates = trial.fates.as_ref().unwrap();
    assert_eq!((fates.once, fates.lost, fates.late), (220, 0, 0));
    // 100/s for 3 ms and 10/s for 40 ms.
    let outstanding = metric("audit.littles_law.outstanding").unwrap();
    assert!((outstanding - 0.7).abs() < 0.02, "{outstanding}");
    for name in ["stage_order", "littles_law", "backlog_drift", "survivorship", "conservation"] {
        let (outcome, said) = kept.audit(0, name);
        assert!(matches!(outcome, AuditOutcome::Ok | AuditOutcome::Skipped), "{name}: {said}");
    }
    assert!(kept.ran.page.contains("Each stream by its own final stage"));
}

/// Claim: the other way round holds as well: the probe is over when it is accepted, and the load waits for its commit.
#[test]
fn committed_beside_accepted() {
    let kept = run("committed", "accepted", script);
    let rows = kept.rows();
    let (load, probes) = (of_stream(&rows, 0), of_stream(&rows, 1));
    assert!(load.iter().all(|row| times(row) == (Some(3 * MS), Some(40 * MS), 40 * MS)));
    assert!(probes.iter().all(|row| times(row) == (Some(3 * MS), None, 3 * MS)));
    let trial = kept.trial(0);
    assert_eq!(ended(&trial.streams[0], 40 * MS), ("main", "committed", true));
    assert_eq!(ended(&trial.streams[1], 3 * MS), ("probe", "accepted", true));
    assert_eq!(trial.rates.goodput_per_s, 100.0);
    let commits: u64 = kept.ran.facts(0).unwrap().load.workers.iter().map(|it| it.answered).sum();
    assert_eq!(commits, 220);
}

/// Claim: where nothing is ever committed, what ends at *accepted* does not wait for it, and what ends at *committed* is
/// unknown after its timeout.
#[test]
fn only_who_waits_is_given_up() {
    let kept = run("accepted", "committed", || script().silent_every(1));
    let rows = kept.rows();
    let (load, probes) = (of_stream(&rows, 0), of_stream(&rows, 1));
    assert!(load.iter().all(|row| times(row) == (Some(3 * MS), None, 3 * MS)));
    assert!(load.iter().all(|row| row.outcome == Outcome::Committed));
    assert!(probes.iter().all(|row| row.outcome == Outcome::Unknown));
    assert!(probes.iter().all(|row| times(row) == (Some(3 * MS), None, 500 * MS)));
    let trial = kept.trial(0);
    assert_eq!((trial.counts.committed, trial.counts.unknown), (0, 20));
    assert_eq!(trial.background.as_ref().unwrap().committed, 200);
    let fates = trial.fates.as_ref().unwrap();
    assert_eq!((fates.once, fates.late), (200, 20));
}

/// Claim: one final stage for all is what it was: no table of streams, and the load's rates to the last stage.
#[test]
fn one_stage_for_all() {
    let kept = run("committed", "committed", script);
    let trial = kept.trial(0);
    assert!(!trial.has_several_ends());
    assert_eq!(trial.streams.len(), 2);
    assert_eq!(analysis::metric("committed", trial).map(|it| it.value), Some(100.0));
    assert!(!kept.ran.page.contains("Each stream by its own final stage"));
}
