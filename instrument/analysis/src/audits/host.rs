//! Could the host carry the trial: clock rate, stolen time, descriptors, ports?

use model::result::{AuditOutcome, FigureUnit};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, SLOWED, failed, ok, warn};
use crate::figures::share::percent;

/// Time that a hypervisor took away, as a share. It lengthens latencies like a pause of the system.
const STEAL_WARN: f64 = 0.02;
const STEAL_MAX: f64 = 0.20;
/// Mean clock rate as a share of the highest: a throttled host made low rates look slower than high ones.
const MHZ_WARN: f64 = 0.80;
const MHZ_MIN: f64 = 0.60;
/// The clock rate is looked at where at least this share of the processors was in use: at half of it in the worst
/// case, all busy ones at the highest rate and all idle ones at none, the mean would still be [`MHZ_WARN`].
const BUSY_MIN: f64 = 0.80;
/// More nodes than processors that together keep this share of them busy wait for each other, which nodes with
/// processors of their own would not.
const SHARED_MAX: f64 = 0.90;
/// Descriptors that this process needs beside its connections.
const FILES_BESIDE: u64 = 64;

pub(super) const AUDIT: Audit = Audit {
    name: "host",
    question: "Could this machine carry the trial: clock rate, files, ports, processors taken by others?",
    voids: SLOWED,
    figures: &[("steal", FigureUnit::Share), ("used", FigureUnit::Share)],
};

/// The worst first.
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let findings = [
        limits(evidence),
        clock_rate(evidence),
        steal(evidence),
        governor(evidence),
        shared(evidence),
    ];
    let worst = findings.iter().map(|it| it.outcome).max().expect("five findings");
    let said = findings.into_iter().filter(|it| it.outcome == worst && !it.detail.is_empty());
    let said = said.map(|it| it.detail).collect::<Vec<_>>().join("; ");
    let finding = match worst {
        AuditOutcome::Failed => failed(said),
        AuditOutcome::Warn => warn(said),
        AuditOutcome::Ok | AuditOutcome::Skipped => ok(said),
    };
    let mean = |series: &str| evidence.result.resources.get(series).map_or(f64::NAN, |of| of.1);
    finding.with("steal", mean(STEAL)).with("used", used_share(evidence).unwrap_or(f64::NAN))
}

/// Open files and local ports against the connections that the plan may open.
fn limits(evidence: &Evidence<'_>) -> Finding {
    let host = evidence.environment;
    let load = &evidence.trial.setting.load;
    let connections = u64::from(load.connections)
        + evidence.trial.setting.probe.as_ref().map_or(0, |probe| u64::from(probe.connections));
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
    // The mean is of all processors: idle ones rest at a low rate, and that says nothing of the busy ones.
    let is_busy = used_share(evidence).is_some_and(|used| used >= BUSY_MIN);
    match mean / highest {
        share if share < MHZ_MIN && is_busy => failed(format!(
            "{said} while they were busy: throttled, so that the system looks slower than it is"
        )),
        share if share < MHZ_WARN && is_busy => warn(said),
        share if share < MHZ_WARN => ok(format!("{said}, most of them idle")),
        _ => ok(said),
    }
}

/// The share of this host's processors that was in use.
fn used_share(evidence: &Evidence<'_>) -> Option<f64> {
    let (_, used, _) = evidence.result.resources.get("host.cpu_cores")?;
    Some(used / f64::from(evidence.environment.cpus.max(1)))
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
    let nodes = evidence.trial.facts.after.nodes.len();
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
    if evidence.is_saturated {
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
pub(super) mod tests {
    use model::facts::{MetricSample, NodeFacts};
    use model::plan::{Level, ThresholdPlan};
    use model::result::AuditOutcome;

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("a third of the processor is stolen", |trial| trial.metrics[0].value = 0.3)];

    fn sampled(name: &str, value: f64) -> AuditOutcome {
        let mut trial = Trial::clean();
        trial.metrics =
            vec![MetricSample { at: 5, source: "host".into(), name: name.into(), value }];
        audit(&trial.result(), "host").outcome
    }

    /// Claim: more nodes than processors which use them up fail, or warn where saturation was declared and came; two that do, and
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
        let declared = |expr: &str| [ThresholdPlan::new(expr, Level::Saturated)];
        assert_eq!(outcome(64, 0.03, &declared("p99 < 1ms")), AuditOutcome::Warn);
        assert_eq!(outcome(64, 0.03, &declared("p99 < 1s")), AuditOutcome::Failed, "it held");
    }

    /// Claim: processors that are idle may rest; a laptop that is throttled while it works (850 of 2,600 MHz) fails.
    #[test]
    fn clock_rates() {
        let laptop = |used: f64| {
            let mut laptop = Trial::clean();
            laptop.environment.cpus = 8;
            let sample = |name: &str, value| MetricSample {
                at: 5,
                source: "host".into(),
                name: name.into(),
                value,
            };
            laptop.environment.cpu_mhz = (850.0, 2_600.0);
            laptop.metrics = vec![sample("cpu_mhz", 850.0), sample("cpu_cores", used)];
            let result = laptop.result();
            audit(&result, "host").clone()
        };
        assert_eq!(laptop(0.7).outcome, AuditOutcome::Ok);
        let throttled = laptop(7.5);
        assert_eq!(throttled.outcome, AuditOutcome::Failed);
        assert!(throttled.detail.contains("850 of 2600 MHz"), "{}", throttled.detail);
    }

    /// Claim: stolen time and too few descriptors each fail.
    #[test]
    fn hosts_that_cannot() {
        let mut few = Trial::clean();
        few.environment.files_max = 64;
        assert_eq!(audit(&few.result(), "host").outcome, AuditOutcome::Failed);
        assert_eq!(sampled("steal_share", 0.3), AuditOutcome::Failed);
        assert_eq!(sampled("steal_share", 0.05), AuditOutcome::Warn);
        assert_eq!(sampled("steal_share", 0.001), AuditOutcome::Ok);
    }
}
