//! Trials that are guilty: the tests of each audit's file say what goes wrong with a trial that it must find
//! (`tests::GUILTY`), and here is what they share. Power is measured by them, beside false alarms.

use std::time::Duration;

use model::Outcome;
use model::facts::{
    DiskFacts, DiskOperations, LedgerEntry, LinkTraffic, MetricSample, NetworkFacts, PoolFacts,
    PreflightFinding, WorkerFacts,
};
use model::plan::{Arrivals, DiskPlan, DisksPlan, NamesRule};

use crate::testing::{Trial, row};

/// Trials that are broken here begin their window so long after their start.
pub(super) const WARM_UP_NS: i64 = 5_000_000_000;

pub(super) const MS: i64 = 1_000_000;

/// A fault in words, and how a calm trial is made to have it.
pub(super) type Guilt = (&'static str, fn(&mut Trial));

/// Every transaction takes as long as `time` says of when it was due.
pub(super) fn slowed(trial: &mut Trial, time: fn(i64) -> i64) {
    for old in &mut trial.rows {
        *old = row(old.tx, old.due, time(old.due), Outcome::Committed);
    }
}

/// So many clients, who do not think.
pub(super) fn closed(clients: u32) -> Arrivals {
    let (think, poll) = (Duration::ZERO, Duration::ZERO);
    Arrivals::Closed { clients, think, window: 0, poll, steps: Vec::new() }
}

pub(super) fn worker(trial: &mut Trial) -> &mut WorkerFacts {
    &mut trial.facts.load.workers[0]
}

/// A network that adds little to what was asked.
pub(super) fn calm_network() -> NetworkFacts {
    let total = LinkTraffic {
        packets: 10_000,
        late_p50_ns: 40_000,
        late_p99_ns: 600_000,
        late_max_ns: 3_000_000,
        ..LinkTraffic::default()
    };
    NetworkFacts { total, delay_ns_min: 20_000_000, ..NetworkFacts::default() }
}

/// A disk that adds little to what was asked.
pub(super) fn calm_disk(node: &str) -> DiskFacts {
    let all = DiskOperations {
        calls: 10_000,
        own_p50_ns: 6_000,
        own_p99_ns: 90_000,
        own_max_ns: 4_000_000,
        ..DiskOperations::default()
    };
    DiskFacts { node: node.to_owned(), all, ..DiskFacts::default() }
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
    trial.facts.after.network = Some(calm_network());
    trial.facts.after.disks = vec![calm_disk("a")];
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
