//! From a run folder on disk to a result, and to the same result again.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use analysis::analyse;
use model::check::{Check, CheckFinding, CheckState, Entries, Reads};
use model::facts::{
    AfterFacts, DeclaredFacts, Environment, KindFacts, LedgerEntry, LedgerFacts, LoadFacts,
    TrialFacts, WorkerFacts,
};
use model::plan::{Arrivals, Level, LoadPlan, Plan, SettingPlan, ThresholdPlan};
use model::quantity::Rate;
use model::result::Verdict;
use model::{NO_STAMP, Outcome, Row, Seed, WallTime};
use record::RunFolder;

const MS: i64 = 1_000_000;
const ROWS: u64 = 5_000;

fn plan() -> Plan {
    let arrivals = Arrivals::constant(Rate::per_second(1_000));
    let load = LoadPlan::plain(arrivals, 4, Duration::from_secs(5));
    let setting = SettingPlan::plain("echo", load);
    let promise = |expr: &str| ThresholdPlan::new(expr, Level::Fail);
    Plan {
        percentiles: vec![0.5, 0.99],
        thresholds: vec![promise("p99 < 1s"), promise("lost == 0")],
        ..Plan::plain("folder", vec![setting])
    }
}

fn row(tx: u64) -> Row {
    let due = i64::try_from(tx).unwrap() * MS;
    let end = due + 2 * MS + i64::try_from(tx % 97).unwrap() * 1_000;
    Row {
        tx,
        due,
        ready: due,
        sent: due + 5_000,
        marks: [end, NO_STAMP, NO_STAMP, NO_STAMP],
        end,
        receive_lag: NO_STAMP,
        outcome: Outcome::Committed,
        code: 0,
        error: 0,
        kind: 0,
        connection: 0,
        worker: 0,
        stream: 0,
        attempts: 1,
        client: 0,
        bytes_out: 8,
        bytes_in: 8,
    }
}

fn facts(complete: bool) -> TrialFacts {
    let declared = DeclaredFacts {
        setting: "default".into(),
        stages: vec!["committed".into()],
        kinds: vec![KindFacts::recorded("tx")],
        measure_end: 5_000 * MS,
        ..DeclaredFacts::default()
    };
    if !complete {
        return TrialFacts { declared, ..TrialFacts::default() };
    }
    let workers = vec![WorkerFacts {
        due: ROWS,
        sent: ROWS,
        answered: ROWS,
        wall_ns: 1,
        ..WorkerFacts::default()
    }];
    let ledger = LedgerFacts {
        read: true,
        entries: ROWS,
        detail: "by a test".into(),
        ..LedgerFacts::default()
    };
    TrialFacts {
        declared,
        load: LoadFacts { drain_end: 5_010 * MS, workers, ..LoadFacts::default() },
        after: AfterFacts { ledger, ..AfterFacts::default() },
        complete,
        ..TrialFacts::default()
    }
}

fn write(root: &Path, complete: bool) -> RunFolder {
    let run = RunFolder::create(root, "folder", WallTime::from_unix_ns(0)).unwrap();
    run.write_plan(&plan()).unwrap();
    run.write_environment(&Environment::default()).unwrap();
    let trial = run.trial("default", 0).unwrap();
    trial.write_facts(&facts(complete)).unwrap();
    let mut log = trial.row_log().unwrap();
    let rows: Vec<Row> = (0..if complete { ROWS } else { ROWS / 2 }).map(row).collect();
    for batch in rows.chunks(512) {
        log.append(batch).unwrap();
    }
    log.close().unwrap();
    if complete {
        let mut ledger = trial.ledger_writer().unwrap();
        for tx in 0..ROWS {
            ledger.push(LedgerEntry::new(tx, tx, true), None).unwrap();
        }
        ledger.close().unwrap();
        trial.seal().unwrap();
    }
    run
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A check that counts what it sees and finds fault with it.
struct Complaint(u64, u64);

impl CheckState for Complaint {
    fn row(&mut self, _: &Row) {
        self.0 += 1;
    }
    fn entry(&mut self, _: &LedgerEntry, _: &[u8]) {
        self.1 += 1;
    }
    fn finish(self: Box<Self>) -> CheckFinding {
        let words = format!("are wrong in {} rows and {} entries", self.0, self.1);
        CheckFinding {
            holds: false,
            count: 2,
            examples: vec![7, 9],
            words,
            ..CheckFinding::default()
        }
    }
}

/// It complains of every trial with the seed 0, and has nothing to say of others.
const COMPLAINTS: &[Check] = &[
    Check {
        name: "complaint",
        summary: "nothing is right",
        reads: Reads { rows: true, observations: false, entries: Entries::Bare },
        applies: |input| input.seed == Seed(0) && input.kinds[0].is_recorded,
        start: |_| Box::new(Complaint(0, 0)),
    },
    Check {
        name: "elsewhere",
        summary: "for other workloads",
        reads: Reads { rows: true, observations: false, entries: Entries::Bare },
        applies: |input| input.kinds.iter().any(|kind| !kind.is_recorded),
        start: |_| Box::new(Complaint(0, 0)),
    },
];

/// Claim: a whole folder passes, and its copy elsewhere gives the same bytes.
#[test]
fn a_copy_gives_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    let run = write(root.path(), true);
    let elsewhere = root.path().join("elsewhere");
    copy(run.path(), &elsewhere);
    let text = |run: &RunFolder| {
        let result = analyse(run, &|_| &[]).unwrap();
        assert_eq!((result.verdict, result.exit_code), (Verdict::Pass, 0), "{}", result.reason);
        assert_eq!(result.settings[0].trials[0].fates.as_ref().unwrap().once, ROWS);
        serde_json::to_string(&result).unwrap()
    };
    assert_eq!(text(&run), text(&RunFolder::open(&elsewhere).unwrap()));
}

/// Claim: a check of the system's own that applies to the trial sees every row and entry, and what it finds makes the
/// run fail; one that does not apply is not asked.
#[test]
fn checks_are_heard() {
    let root = tempfile::tempdir().unwrap();
    let run = write(root.path(), true);
    let checks = |kind: &str| {
        assert_eq!(kind, "echo");
        COMPLAINTS
    };
    let result = analyse(&run, &checks).unwrap();
    assert_eq!(result.exit_code, 99);
    let said = "check complaint: 2 are wrong in 5000 rows and 5000 entries (tx 7, tx 9)";
    assert!(result.reason.contains(said), "{}", result.reason);
    let found = &result.settings[0].trials[0].checks;
    assert_eq!((found.len(), &found[0].examples[..]), (1, &[7, 9][..]));
}

/// Claim: a folder that a kill left behind is reported as far as it goes, from the row log and over the planned
/// window, and says so; its numbers are of the part that was recorded.
#[test]
fn what_a_kill_left_behind() {
    let root = tempfile::tempdir().unwrap();
    let run = write(root.path(), false);
    let result = analyse(&run, &|_| &[]).unwrap();
    assert!(result.interrupted);
    assert_eq!((result.verdict, result.exit_code), (Verdict::Invalid, 130), "{}", result.reason);
    let trial = &result.settings[0].trials[0];
    assert_eq!(trial.counts.committed, ROWS / 2);
    assert!((trial.rates.offered_per_s - 1_000.0).abs() < 1.0, "{:?}", trial.rates);
}

/// Claim: a trial that ended before it wrote anything down is left out, and the run counts as interrupted.
#[test]
fn a_trial_without_facts() {
    let root = tempfile::tempdir().unwrap();
    let run = RunFolder::create(root.path(), "folder", WallTime::from_unix_ns(0)).unwrap();
    run.write_plan(&plan()).unwrap();
    run.write_environment(&Environment::default()).unwrap();
    run.trial("default", 0).unwrap();
    let result = analyse(&run, &|_| &[]).unwrap();
    assert!(result.interrupted && result.settings[0].trials.is_empty());
    assert_eq!(result.exit_code, 130);
}
