//! Was the number of connections the limit, and not the system? Where each carries one request at a time, a client with
//! N of them gets N ÷ service time through, however fast the system would be; waiting for a free one is inside the
//! response time, and the rate that comes through looks like a capacity.
//!
//! The rule. Only transactions that fell due while all connections were busy and no more could be opened count, and
//! only where their wait is inside the 99th percentile: more than a millisecond and more than a tenth of the time for
//! which a transaction has its connection. Then that time is compared: where one was free, and while something waited.
//! A system at its limit is slower the more it is given, so that the second is the longer one (twice it, where the
//! queue fills at a constant rate). Where it is not, more connections would have brought more: the client was the limit.

use model::plan::{Affinity, Arrivals, Schedule};
use model::quantity::{show_count, show_ns};

use model::result::{AuditOutcome, Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};

pub(crate) const AUDIT: Audit = Audit {
    name: "connections",
    question: "Did this client have too few connections, and not the system too little room?",
    voids: &[
        Voided::too_high(Family::Response),
        Voided::too_high(Family::Timeouts),
        Voided::too_high(Family::Outstanding),
        Voided::too_low(Family::Committed),
        Voided::too_low(Family::Sent),
    ],
    figures: &[("blocked", FigureUnit::Count), ("grown", FigureUnit::Count)],
};

/// Shorter waits matter to nobody.
const WAIT_NS_MIN: f64 = 1e6;
/// The wait's share of the time on a connection below which it is small.
const WAIT_SHARE_MIN: f64 = 0.1;
/// Up to this much longer is flat. Halfway to capacity a queue already takes longer than that.
const FLAT_MAX: f64 = 1.25;

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let used = &evidence.result.connections;
    let finding = finding(evidence).with("blocked", used.blocked as f64);
    finding.with("grown", used.grown as f64)
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    if let Some(reason) = waits_by_plan(evidence) {
        return skipped(reason);
    }
    let used = &evidence.result.connections;
    if used.bound == 0 {
        return skipped("the record does not say how many connections there were");
    }
    let said = match used.grown {
        0 => format!("{} connections, none was added", show_count(used.first)),
        grown => format!(
            "{} connections, {} more were opened because all were busy (the most: {})",
            show_count(used.first),
            show_count(grown),
            show_count(used.bound)
        ),
    };
    if used.blocked == 0 {
        return ok(said);
    }
    let blocked = format!(
        "{} transactions found all {} busy",
        show_count(used.blocked),
        show_count(used.first + used.grown)
    );
    let Some(occupancy) = occupancy(evidence) else {
        return warn(format!("{said}; {blocked}, and how long these were in use cannot be said"));
    };
    let [free, busy] = [occupancy.free_ns, occupancy.busy_ns].map(shown);
    let times = format!("{free} where one was free, {busy} while something waited");
    if occupancy.busy_ns > FLAT_MAX * occupancy.free_ns {
        return ok(format!(
            "{said}; {blocked}, and each was in use for longer the more there were ({times}): more of them would not \
             have brought more"
        ));
    }
    if !matters(evidence, occupancy.free_ns) {
        return warn(format!("{said}; {blocked}, too few to show in the 99th percentile"));
    }
    failed(format!(
        "all {} connections were busy while service time was flat ({times}): the client's pool was the limit, and goodput \
         and latency are its own and not the system's; {}",
        show_count(used.first + used.grown),
        remedy(evidence)
    ))
}

/// Whether the number of connections was the limit, so that nothing can be said of the system's.
pub(super) fn are_the_limit(evidence: &Evidence<'_>) -> bool {
    finding(evidence).outcome == AuditOutcome::Failed
}

/// Why transactions wait for connections because the plan says so, if they do.
fn waits_by_plan(evidence: &Evidence<'_>) -> Option<&'static str> {
    let load = &evidence.trial.setting.load;
    let is_max =
        |schedule: &Schedule| matches!(schedule, Schedule::Constant { rate } if rate.is_max());
    match &load.arrivals {
        Arrivals::Closed { .. } => Some("a closed loop has as many connections as the plan says"),
        Arrivals::Open { schedule } if is_max(schedule) => {
            Some("the load is as much as the connections take")
        }
        Arrivals::Open { .. } if load.batch.is_some() => {
            Some("transactions wait for their batches, and not for a connection")
        }
        Arrivals::Open { .. } if load.affinity == Affinity::Client => {
            Some("each client waits for its own connection")
        }
        Arrivals::Open { .. } => None,
    }
}

fn occupancy(evidence: &Evidence<'_>) -> Option<crate::figures::pool::Occupancy> {
    let pools = evidence.trial.facts.load.workers.iter().map(|worker| &worker.pool);
    let capacity = pools.map(|pool| u64::from(pool.bound) * u64::from(pool.carries)).sum();
    evidence.figures.pool.occupancy(capacity)
}

/// Whether waits show in what is printed.
#[expect(clippy::cast_precision_loss, reason = "a time below 2^53")]
fn matters(evidence: &Evidence<'_>, free_ns: f64) -> bool {
    let wait = evidence.figures.pool.waits().quantile(0.99).unwrap_or(0) as f64;
    wait > WAIT_NS_MIN.max(WAIT_SHARE_MIN * free_ns)
}

fn remedy(evidence: &Evidence<'_>) -> String {
    let (planned, bound) =
        (evidence.trial.setting.load.connections_max, evidence.result.connections.bound);
    if bound < u64::from(planned) {
        return format!(
            "the plan allows {}, and the limit of open files or the adapter {} (ulimit -n)",
            show_count(u64::from(planned)),
            show_count(bound)
        );
    }
    "raise load.connections_max, or leave it out".to_owned()
}

#[expect(clippy::cast_possible_truncation, reason = "for people")]
fn shown(ns: f64) -> String {
    show_ns(ns as i64)
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::facts::{Grown, PoolFacts, WorkerFacts};
    use model::result::AuditOutcome;

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("64 connections for a load that needs 90", |trial| {
            *trial = through_a_pool(300, |_, _| 300 * MS, 64);
        })];

    const MS: i64 = 1_000_000;

    /// A trial of `rate` a second for ten seconds over a pool of 64; `service` says from how many are outstanding how long
    /// the next one takes, and when the server takes nothing at all. The pool is simulated as the engine has it.
    pub(crate) fn through_a_pool(
        rate: i64,
        service: impl Fn(i64, usize) -> i64,
        pool: usize,
    ) -> Trial {
        let mut trial = Trial::clean();
        let mut free_at = vec![0_i64; pool];
        let mut blocked = 0;
        let count = rate * 10;
        trial.rows = (0..count)
            .map(|n| {
                let due = n * 1_000_000_000 / rate;
                let first = (0..pool).min_by_key(|at| free_at[*at]).unwrap();
                let ready = due.max(free_at[first]);
                let outstanding = free_at.iter().filter(|at| **at > ready).count();
                let end = ready + service(ready, outstanding + 1);
                free_at[first] = end;
                blocked += u64::from(ready > due);
                let tx = u64::try_from(n).unwrap();
                let mut row = row(tx, due, end - due, Outcome::Committed);
                (row.ready, row.sent) = (ready, ready + 10_000);
                row
            })
            .collect();
        let bound = u32::try_from(pool).unwrap();
        let pool = PoolFacts { first: bound, bound, carries: 1, blocked, ..PoolFacts::default() };
        let worker = WorkerFacts { wall_ns: 10_000_000_000, pool, ..WorkerFacts::default() };
        trial.facts.load.workers = vec![worker];
        trial.facts.load.drain_end = 30_000_000_000;
        trial
    }

    /// Claim: a server that takes 300 ms, any number at once: 64 connections are enough for 100 and 200/s, at 300/s the
    /// pool is the limit and the trial says nothing of the system; with 300 connections it is not.
    #[test]
    fn the_pool_was_the_limit() {
        for (rate, pool, outcome) in [
            (100, 64, AuditOutcome::Ok),
            (200, 64, AuditOutcome::Ok),
            (300, 64, AuditOutcome::Failed),
            (300, 300, AuditOutcome::Ok),
        ] {
            let result = through_a_pool(rate, |_, _| 300 * MS, pool).result();
            let found = audit(&result, "connections");
            assert_eq!(found.outcome, outcome, "{rate} over {pool}: {}", found.detail);
            if outcome == AuditOutcome::Failed {
                let words =
                    "all 64 connections were busy while service time was flat (300 ms where";
                assert!(found.detail.starts_with(words), "{}", found.detail);
                let drift = audit(&result, "backlog_drift");
                assert!(!drift.detail.contains("the system is saturated"), "{}", drift.detail);
            }
        }
    }

    /// Claim: a server of 213/s that is offered 300/s is the limit itself, whatever the number of connections that it
    /// keeps busy; and so is one with 32 places.
    #[test]
    fn the_system_was_the_limit() {
        let one = |_: i64, outstanding: usize| outstanding as i64 * 1_000_000_000 / 213;
        let places = |_: i64, outstanding: usize| outstanding.max(32) as i64 * 1_000_000_000 / 213;
        let services: [&dyn Fn(i64, usize) -> i64; 2] = [&one, &places];
        for service in services {
            let result = through_a_pool(300, service, 64).result();
            let found = audit(&result, "connections");
            assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
            assert!(found.detail.contains("longer the more there were"), "{}", found.detail);
            assert!(audit(&result, "backlog_drift").detail.contains("the system is saturated"));
        }
    }

    /// Claim: a stall of the system that keeps all connections busy for a second is the system's, though those that
    /// waited for it to end were then served as fast as ever.
    #[test]
    fn a_stall_is_the_systems() {
        let stalls = |at: i64, _: usize| {
            let stall = 4_000 * MS..5_000 * MS;
            2 * MS + if stall.contains(&at) { stall.end - at } else { 0 }
        };
        let result = through_a_pool(1_000, stalls, 64).result();
        assert!(result.connections.blocked > 800, "{:?}", result.connections);
        let found = audit(&result, "connections");
        assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
    }

    /// Claim: what was opened during the load is said, with its bound, and stands in the result by second.
    #[test]
    fn what_was_opened_is_said() {
        let mut trial = through_a_pool(300, |_, _| 300 * MS, 300);
        let pool = &mut trial.facts.load.workers[0].pool;
        (pool.first, pool.bound) = (64, 1_024);
        pool.grown = vec![Grown { second: 0, count: 25 }, Grown { second: 7, count: 1 }];
        let result = trial.result();
        assert_eq!(result.connections.grown_by_second, [(0, 25), (7, 1)]);
        let found = audit(&result, "connections");
        let words = "64 connections, 26 more were opened because all were busy (the most: 1,024)";
        assert_eq!((found.outcome, found.detail.as_str()), (AuditOutcome::Ok, words));
    }
}
