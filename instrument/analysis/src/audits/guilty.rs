//! What goes wrong with trials, one thing for each audit: the table by which power is measured beside false alarms. An
//! audit that is in the list and not here fails `the_guilty_are_found`.

use std::time::Duration;

use model::facts::{
    DiskFacts, DiskOperations, LedgerEntry, LinkTraffic, MetricSample, NetworkFacts, PoolFacts,
    PreflightFinding, WorkerFacts,
};
use model::plan::{Arrivals, DiskPlan, DisksPlan, NamesRule, Schedule};
use model::quantity::Rate;
use model::{Class, NO_STAMP, Outcome, Row};

use super::connections::tests::through_a_pool;
use crate::testing::{Trial, row};

/// Trials that are broken here begin their window so long after their start.
pub(super) const WARM_UP_NS: i64 = 5_000_000_000;

const MS: i64 = 1_000_000;

/// An audit, what is wrong, and how a calm trial is made to have it.
type Guilt = (&'static str, &'static str, fn(&mut Trial));

/// In the order of the list of audits; `repeatability` looks across trials and has its own.
pub(super) const GUILTY: &[Guilt] = &[
    ("backlog_drift", "capacity 2 % too small", |trial| {
        slowed(trial, |old| 2 * MS + (old - WARM_UP_NS).max(0) / 50);
    }),
    ("backlog_drift", "capacity 0.5 % too small, of a regular server", |trial| {
        slowed(trial, |old| 2 * MS + (old - WARM_UP_NS).max(0) / 200);
    }),
    ("client_failures", "a fifth fails in the client", |trial| {
        for old in trial.rows.iter_mut().step_by(5) {
            *old = row(old.tx, old.due, 1_000, Outcome::Rejected(Class::Client));
        }
    }),
    ("clock", "one is sent before it was due", |trial| {
        let middle = trial.rows.len() / 2;
        trial.rows[middle].sent = trial.rows[middle].due - 5;
    }),
    ("complete", "the record ends early", |trial| trial.facts.complete = false),
    ("connections", "64 connections for a load that needs 90", |trial| {
        *trial = through_a_pool(300, |_, _| 300 * MS, 64);
    }),
    ("conservation", "a row is written twice", |trial| trial.rows.push(trial.rows[3])),
    ("disks", "nothing reaches the disk of a node", |trial| {
        trial.facts.after.disks[0].all.calls = 0;
    }),
    ("drain", "the drain gives up on 500", |trial| {
        trial.facts.load.drain_left = 500;
        trial.setting.load.drain_max = Duration::from_secs(1);
    }),
    ("duplicates", "one answer comes twice", |trial| worker(trial).duplicate_answers = 1),
    ("even_arrivals", "1/s: one phase of each second", |trial| {
        let rate = Rate::per_second(1);
        trial.setting.load.arrivals = Arrivals::Open { schedule: Schedule::Constant { rate } };
    }),
    ("even_arrivals", "50/s, a pause of 60 ms in each second", |trial| {
        let rate = Rate::per_second(50);
        trial.setting.load.arrivals = Arrivals::Open { schedule: Schedule::Constant { rate } };
        let due = |n: u64| i64::try_from(rate.due_ns(n)).unwrap();
        let end = trial.facts.measure_end();
        let rows = (0..).map(|n| (n, due(n))).take_while(|(_, due)| *due < end);
        let paused = |due: i64| (60 * MS - (due + 400 * MS) % (1_000 * MS)).max(0);
        let done = |(n, due)| row(n, due, 2 * MS + paused(due), Outcome::Committed);
        trial.rows = rows.map(done).collect();
    }),
    ("first_use", "the first request on each of 40 connections takes 1.5 s", |trial| {
        for (old, n) in trial.rows.iter_mut().zip(0..) {
            let time = if n < 40 { 1_500 * MS } else { old.end - old.due };
            *old = Row { connection: n % 40, ..row(old.tx, old.due, time, Outcome::Committed) };
        }
    }),
    ("first_use", "the first request of all takes 3 s", |trial| {
        trial.facts.declared.preflight[0].took_ns = Some(3_000 * MS);
    }),
    ("generator_busy", "a thread has no time left", |trial| {
        worker(trial).cpu_ns = worker(trial).wall_ns / 100 * 99;
    }),
    ("host", "a third of the processor is stolen", |trial| trial.metrics[0].value = 0.3),
    ("latency_drift", "from 4 ms to 8 ms through the window", |trial| {
        let window = trial.facts.measure_end() - WARM_UP_NS;
        for old in &mut trial.rows {
            let more = (old.due - WARM_UP_NS).max(0) * 4 / (window / MS);
            *old = row(old.tx, old.due, old.end - old.due + more, Outcome::Committed);
        }
    }),
    ("latency_drift", "a half slower from the middle on", |trial| {
        let middle = (trial.facts.measure_end() + WARM_UP_NS) / 2;
        for old in &mut trial.rows {
            let more = if old.due < middle { 0 } else { 2 * MS };
            *old = row(old.tx, old.due, old.end - old.due + more, Outcome::Committed);
        }
    }),
    ("ledger", "one acknowledged entry is lost", |trial| {
        trial.entries.as_mut().unwrap().remove(777);
    }),
    ("links", "the emulator drops a packet of its own", |trial| {
        trial.facts.after.network.as_mut().unwrap().total.emulator_dropped = 1;
    }),
    ("littles_law", "overload by a half", |trial| {
        slowed(trial, |old| 2 * MS + (old - WARM_UP_NS).max(0) / 2);
    }),
    ("offered_rate", "a fifth is never sent", |trial| {
        for old in trial.rows.iter_mut().step_by(5) {
            *old = row(old.tx, old.due, 1_000, Outcome::Shed);
        }
    }),
    ("preflight", "a kind of request cannot succeed", |trial| {
        trial.facts.declared.preflight[0].ok = false;
    }),
    ("protocol", "a twentieth of the answers may be another's", |trial| {
        let answers = trial.rows.len() as u64;
        worker(trial).protocol_errors = 3;
        worker(trial).connections.doubtful = answers / 20;
    }),
    ("receive_lag", "a tenth is read 20 ms late", |trial| {
        // Of the others nobody knows, and it is in their marks.
        for (n, old) in trial.rows.iter_mut().enumerate().step_by(10) {
            match n % 13 {
                0 => old.receive_lag = 20 * MS,
                _ => *old = row(old.tx, old.due, old.end - old.due + 20 * MS, Outcome::Committed),
            }
        }
    }),
    ("send_lag", "a tenth is sent 20 ms late", |trial| {
        for old in trial.rows.iter_mut().step_by(10) {
            old.sent = old.ready + 20 * MS;
            old.end = old.end.max(old.sent + MS);
            old.marks[0] = old.end;
        }
    }),
    ("silence", "nothing is answered for 2 s", |trial| {
        trial.setting.load.arrivals = closed(4);
        let frozen = WARM_UP_NS + 9_000 * MS;
        trial.rows.retain(|old| !(frozen..frozen + 2_000 * MS).contains(&old.end));
    }),
    ("stage_order", "a mark before its send", |trial| {
        for old in trial.rows.iter_mut().step_by(7) {
            old.marks[0] = old.due - 5_000;
        }
    }),
    ("survivorship", "nothing is committed", |trial| {
        for old in &mut trial.rows {
            *old = row(old.tx, old.due, MS, Outcome::Unknown);
            old.marks[0] = NO_STAMP;
        }
    }),
    ("warm_up", "the first tenth is five times as slow", |trial| {
        for old in &mut trial.rows {
            let is_early = old.due - WARM_UP_NS < 3_000 * MS;
            let time = old.end - old.due + if is_early { 20 * MS } else { 0 };
            *old = row(old.tx, old.due, time, Outcome::Committed);
        }
    }),
];

/// Every transaction takes as long as `time` says of when it was due.
fn slowed(trial: &mut Trial, time: fn(i64) -> i64) {
    for old in &mut trial.rows {
        *old = row(old.tx, old.due, time(old.due), Outcome::Committed);
    }
}

/// So many clients, who do not think.
pub(super) fn closed(clients: u32) -> Arrivals {
    let (think, poll) = (Duration::ZERO, Duration::ZERO);
    Arrivals::Closed { clients, think, window: 0, poll, steps: Vec::new() }
}

fn worker(trial: &mut Trial) -> &mut WorkerFacts {
    &mut trial.facts.load.workers[0]
}

/// The trial with facts that every audit has something to look at in, all of them calm.
pub(super) fn with_all_facts(mut trial: Trial) -> Trial {
    // The ledger has them in the order in which they were done.
    let committed = trial.rows.iter().filter(|row| row.outcome == Outcome::Committed);
    let mut done: Vec<_> = committed.map(|row| (row.end, row.tx)).collect();
    done.sort_unstable();
    let entries = (0..).zip(done).map(|(n, (_, tx))| LedgerEntry::new(n, tx, true));
    trial.entries = Some(entries.collect());
    let mut idle =
        WorkerFacts { wall_ns: 30_000_000_000, cpu_ns: 3_000_000_000, ..Default::default() };
    idle.connections.life_over(trial.rows.len() as u64, false);
    idle.pool = PoolFacts { first: 1_024, bound: 1_024, carries: 1, ..PoolFacts::default() };
    trial.rows.iter_mut().step_by(13).for_each(|row| row.receive_lag = 2_000);
    trial.facts.load.workers = vec![idle];
    let (source, name) = ("host".to_owned(), "steal_share".to_owned());
    trial.metrics = vec![MetricSample { at: WARM_UP_NS + 5, source, name, value: 0.001 }];
    trial.facts.declared.preflight = vec![PreflightFinding {
        kind: "tx".to_owned(),
        ok: true,
        detail: "committed".to_owned(),
        took_ns: Some(6 * MS),
        ..Default::default()
    }];
    let late = LinkTraffic {
        packets: 10_000,
        late_p50_ns: 40_000,
        late_p99_ns: 600_000,
        late_max_ns: 3_000_000,
        ..LinkTraffic::default()
    };
    let delay_ns_min = 20_000_000;
    trial.facts.after.network =
        Some(NetworkFacts { total: late, delay_ns_min, ..NetworkFacts::default() });
    let all = DiskOperations {
        calls: 10_000,
        own_p50_ns: 6_000,
        own_p99_ns: 90_000,
        own_max_ns: 4_000_000,
        ..DiskOperations::default()
    };
    trial.facts.after.disks = vec![DiskFacts { node: "a".into(), all, ..DiskFacts::default() }];
    let disk = DiskPlan {
        size: 1,
        names: NamesRule::Journal,
        sync_delay: Duration::ZERO,
        read_delay: Duration::ZERO,
        write_delay: Duration::ZERO,
    };
    trial.setting.disks = Some(DisksPlan { nodes: vec!["a".into()], disk });
    trial
}
