//! Could the host carry the trial: clock rate, stolen time, descriptors, ports?

use super::{Evidence, Finding, failed, ok, percent, warn};

/// Time that a hypervisor took away, as a share. It lengthens latencies like a pause of the system.
const STEAL_WARN: f64 = 0.02;
const STEAL_MAX: f64 = 0.20;
/// Mean clock rate as a share of the highest: a throttled host made low rates look slower than high ones.
const MHZ_WARN: f64 = 0.80;
const MHZ_MIN: f64 = 0.60;
/// More nodes than processors that together keep this share of them busy wait for each other, which nodes with
/// processors of their own would not.
const SHARED_MAX: f64 = 0.90;
/// Descriptors that this process needs beside its connections.
const FILES_BESIDE: u64 = 64;

/// The worst first.
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let findings = [
        limits(evidence),
        clock_rate(evidence),
        steal(evidence),
        governor(evidence),
        shared(evidence),
    ];
    let worst = findings.iter().map(|(outcome, _)| *outcome).max().expect("five findings");
    let said: Vec<_> = findings
        .into_iter()
        .filter(|(outcome, said)| *outcome == worst && !said.is_empty())
        .map(|(_, said)| said)
        .collect();
    (worst, said.join("; "))
}

/// Open files and local ports against the connections that the plan may open.
fn limits(evidence: &Evidence<'_>) -> Finding {
    let host = evidence.environment;
    let load = &evidence.setting.load;
    let connections = u64::from(load.connections)
        + evidence.setting.probe.as_ref().map_or(0, |probe| u64::from(probe.connections));
    let needed = connections + FILES_BESIDE;
    if host.files_max > 0 && host.files_max < needed {
        return failed(format!(
            "{connections} connections need {needed} open files, the limit is {} (raise it: ulimit -n)",
            host.files_max
        ));
    }
    if host.ports > 0 && u64::from(host.ports) < connections {
        return failed(format!(
            "{connections} connections need as many local ports, the host has {} (net.ipv4.ip_local_port_range)",
            host.ports
        ));
    }
    ok(format!("files {} and ports {} suffice", host.files_max, host.ports))
}

/// `host.cpu_mhz` over the trial, or what the environment says.
fn clock_rate(evidence: &Evidence<'_>) -> Finding {
    let (low, high) = evidence.environment.cpu_mhz;
    let sampled = evidence.result.resources.get("host.cpu_mhz");
    let (mean, highest) = match sampled {
        Some((_, mean, max)) => (*mean, max.max(high)),
        None => (low, high),
    };
    if highest <= 0.0 || mean <= 0.0 {
        return ok("the host does not say its clock rate");
    }
    let said = format!("the processors ran at {mean:.0} of {highest:.0} MHz");
    match mean / highest {
        share if share < MHZ_MIN => failed(format!(
            "{said}: throttled, so that low loads look slower than high ones (set the governor to performance)"
        )),
        share if share < MHZ_WARN => warn(said),
        _ => ok(said),
    }
}

fn steal(evidence: &Evidence<'_>) -> Finding {
    let Some((_, mean, _)) = evidence.result.resources.get(STEAL) else {
        return ok(String::new());
    };
    let said = format!("the hypervisor took {} of the time", percent(*mean));
    match *mean {
        share if share > STEAL_MAX => failed(format!("{said}: latencies are partly its own")),
        share if share > STEAL_WARN => warn(said),
        _ => ok(said),
    }
}

/// The series of stolen time, as a share of all processors' time.
const STEAL: &str = "host.steal_share";

/// Nodes that share the processors of this host and use them up.
fn shared(evidence: &Evidence<'_>) -> Finding {
    let nodes = evidence.facts.after.nodes.len();
    let processors = evidence.environment.cpus;
    let used = evidence.result.resources.get(NODES_CPU).map_or(0.0, |(_, mean, _)| *mean);
    let share = used / f64::from(processors.max(1));
    if nodes <= processors as usize || share < SHARED_MAX {
        return ok(String::new());
    }
    let said = format!(
        "{nodes} nodes share {processors} processors and used {} of them: latencies are this host's and not the system's",
        percent(share)
    );
    if evidence.saturation_is_declared() {
        return warn(said);
    }
    failed(format!("{said}; stretch its times, or start fewer"))
}

/// The series of what all nodes use together, in cores.
const NODES_CPU: &str = "nodes.sum.cpu_cores";

fn governor(evidence: &Evidence<'_>) -> Finding {
    match evidence.environment.governor.as_str() {
        "powersave" | "conservative" => {
            warn(format!("the scaling governor is {}", evidence.environment.governor))
        }
        _ => ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use model::facts::{MetricSample, NodeFacts};
    use model::plan::{Level, ThresholdPlan};
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit};

    fn sampled(name: &str, value: f64) -> AuditOutcome {
        let mut trial = Trial::clean();
        trial.metrics =
            vec![MetricSample { at: 5, source: "host".into(), name: name.into(), value }];
        audit(&trial.result(), "host").outcome
    }

    /// Claim: more nodes than processors which use them up fail, or warn where saturation is declared; two that do, and
    /// many that do not, are fine.
    #[test]
    fn nodes_that_share() {
        let outcome = |nodes: usize, each: f64, thresholds: &[ThresholdPlan]| {
            let mut trial = Trial::clean();
            trial.thresholds = thresholds.to_vec();
            trial.environment.cpus = 2;
            for node in 0..nodes {
                let name = format!("node{node}");
                let (source, metric) = (name.clone(), "cpu_cores".to_owned());
                trial.metrics.push(MetricSample { at: 5, source, name: metric, value: each });
                trial.facts.after.nodes.push(NodeFacts { name, ..NodeFacts::default() });
            }
            audit(&trial.result(), "host").outcome
        };
        assert_eq!(outcome(64, 0.03, &[]), AuditOutcome::Failed);
        assert_eq!(outcome(64, 0.01, &[]), AuditOutcome::Ok);
        assert_eq!(outcome(2, 0.99, &[]), AuditOutcome::Ok);
        let declared = ThresholdPlan {
            expr: "goodput >= 98% of offered".into(),
            at: Default::default(),
            level: Level::Saturated,
        };
        assert_eq!(outcome(64, 0.03, &[declared]), AuditOutcome::Warn);
    }

    /// Claim: the throttled laptop (850 of 2,600 MHz), stolen time and too few descriptors each fail.
    #[test]
    fn hosts_that_cannot() {
        let mut laptop = Trial::clean();
        laptop.environment.cpu_mhz = (850.0, 2_600.0);
        let result = laptop.result();
        let found = audit(&result, "host");
        assert_eq!(found.outcome, AuditOutcome::Failed);
        assert!(found.detail.contains("850 of 2600 MHz"), "{}", found.detail);
        let mut few = Trial::clean();
        few.environment.files_max = 64;
        assert_eq!(audit(&few.result(), "host").outcome, AuditOutcome::Failed);
        assert_eq!(sampled("steal_share", 0.3), AuditOutcome::Failed);
        assert_eq!(sampled("steal_share", 0.05), AuditOutcome::Warn);
        assert_eq!(sampled("steal_share", 0.001), AuditOutcome::Ok);
    }
}
