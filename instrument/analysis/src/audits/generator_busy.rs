//! Was the generator itself the limit? Then the numbers describe it, not the system.

use model::facts::{LoadFacts, WorkerFacts};
use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};
use crate::figures::share::percent;

/// Share of a thread's time in use (without the spinning that pacing does on purpose) from which one reads on.
const BUSY_WARN: f64 = 0.80;
/// From here on the thread has no time left in which it could have sent or stamped anything earlier.
const BUSY_MAX: f64 = 0.95;
/// Share of its time that a thread wanted to run and had no processor. Arrivals that it delayed show in the
/// send lag too, which decides; alone it condemns only when it was most of the time.
const RUN_QUEUE_WARN: f64 = 0.05;
const RUN_QUEUE_MAX: f64 = 0.50;

pub(super) const AUDIT: Audit = Audit {
    name: "generator_busy",
    question: "Was the load generator itself the limit?",
    voids: &[
        // A busy generator sends and reads late, and a closed loop that waits for it asks for less.
        Voided::too_high(Family::Response),
        Voided::too_high(Family::Service),
        Voided::too_high(Family::Outstanding),
        Voided::too_high(Family::Timeouts),
        Voided::too_low(Family::Committed),
        Voided::too_low(Family::Offered),
        Voided::too_low(Family::Sent),
    ],
    figures: &[("busy", FigureUnit::Share), ("waited", FigureUnit::Share)],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let load = &evidence.trial.facts.load;
    let workers = load.workers.iter().enumerate().filter(|(_, worker)| worker.wall_ns > 0);
    let shares: Vec<(usize, (f64, f64))> = workers.map(|(at, it)| (at, shares(it))).collect();
    let most = |of: fn(&(f64, f64)) -> f64| {
        let all = shares.iter().map(|(at, both)| (*at, of(both)));
        all.max_by(|(_, one), (_, other)| one.total_cmp(other))
    };
    let (Some((busiest, busy)), Some((hindered, waited))) = (most(|it| it.0), most(|it| it.1))
    else {
        return skipped("the engine recorded no processor time");
    };
    let engine = &evidence.engine;
    let mut said = format!(
        "the busiest engine thread worked {} of the time and waited {} for a processor",
        percent(busy),
        percent(waited)
    );
    if engine.lookahead_dry > 0 {
        said += &format!("; {} transactions were not prepared in time", engine.lookahead_dry);
    }
    let of_agent = |worker| agent_of(load, worker).map(|name| format!(" of agent {name}"));
    let finding = if busy > BUSY_MAX {
        failed(format!(
            "{said}: the generator{} was the limit, not the system; raise load.threads or lower the load",
            of_agent(busiest).unwrap_or_default()
        ))
    } else if waited > RUN_QUEUE_MAX {
        failed(format!(
            "{said}: other work held the processors{}; run on an idle machine",
            of_agent(hindered).unwrap_or_default()
        ))
    } else if busy > BUSY_WARN || waited > RUN_QUEUE_WARN {
        warn(said)
    } else {
        ok(said)
    };
    finding.with("busy", busy).with("waited", waited)
}

/// The agent that a thread is of: those of agents that came to their ends stand in the agents' order.
fn agent_of(load: &LoadFacts, worker: usize) -> Option<&str> {
    let mut left = load.workers.len();
    let mut found = None;
    for agent in load.agents.iter().filter(|agent| agent.lost.is_empty()) {
        let from = load.workers.len() - left;
        let count = usize::try_from(agent.workers).ok()?;
        left = left.checked_sub(count)?;
        if (from..from + count).contains(&worker) {
            found = Some(agent.name.as_str());
        }
    }
    found.filter(|_| left == 0)
}

#[expect(clippy::cast_precision_loss, reason = "shares")]
fn shares(worker: &WorkerFacts) -> (f64, f64) {
    let wall = worker.wall_ns as f64;
    (worker.cpu_ns.saturating_sub(worker.spin_ns) as f64 / wall, worker.run_queue_ns as f64 / wall)
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::WorkerFacts;
    use model::result::AuditOutcome;

    use crate::audits::guilty::{Guilt, worker};
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("a thread has no time left", |trial| {
        worker(trial).cpu_ns = worker(trial).wall_ns / 100 * 99;
    })];

    /// Claim: where agents sent, the one whose thread was throttled is named.
    #[test]
    fn a_throttled_agent_is_named() {
        let agent = |name: &str| model::facts::AgentFacts {
            name: name.to_owned(),
            workers: 1,
            ..Default::default()
        };
        let thread = |cpu_ns, run_queue_ns| WorkerFacts {
            wall_ns: 1_000,
            cpu_ns,
            run_queue_ns,
            ..WorkerFacts::default()
        };
        for (of_b, said) in [
            (thread(200, 600), "other work held the processors of agent b-7"),
            (thread(990, 0), "the generator of agent b-7 was the limit"),
        ] {
            let mut trial = Trial::clean();
            trial.facts.load.agents = vec![agent("a-1"), agent("b-7")];
            trial.facts.load.workers = vec![thread(100, 1), of_b];
            let found = audit(&trial.result(), "generator_busy").clone();
            assert_eq!(found.outcome, AuditOutcome::Failed);
            assert!(found.detail.contains(said), "{}", found.detail);
        }
    }

    /// Claim: a thread without idle time fails, spinning on purpose does not, and a crowded host warns before it fails.
    #[test]
    fn busy_and_crowded() {
        for (cpu_ns, spin_ns, run_queue_ns, outcome) in [
            (990, 0, 0, AuditOutcome::Failed),
            (990, 800, 0, AuditOutcome::Ok),
            (850, 0, 0, AuditOutcome::Warn),
            (200, 0, 100, AuditOutcome::Warn),
            (200, 0, 600, AuditOutcome::Failed),
            (200, 0, 10, AuditOutcome::Ok),
        ] {
            let mut trial = Trial::clean();
            trial.facts.load.workers.push(WorkerFacts {
                wall_ns: 1_000,
                cpu_ns,
                spin_ns,
                run_queue_ns,
                ..WorkerFacts::default()
            });
            assert_eq!(
                audit(&trial.result(), "generator_busy").outcome,
                outcome,
                "{cpu_ns} {run_queue_ns}"
            );
        }
    }
}
