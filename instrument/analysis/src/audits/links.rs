//! Did the network that the plan asks for do what it was asked, and nothing else? Its own loss and its own lateness
//! would be read as the system's.

use model::facts::NetworkFacts;
use model::quantity::show_ns;
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, NOT_AS_ASKED, SLOWED, failed, ok, skipped, warn};
use crate::figures::share::{percent, share};

/// Lateness that no delay makes harmless: a round trip on loopback through the emulator takes a tenth of it.
const LATE_MAX_NS: u64 = 1_000_000;
/// Lateness as a share of the smallest delay that was asked for: beyond it the delay was another.
const LATE_PER_DELAY: u64 = 10;
/// Share of packets before a full queue of limited bandwidth from which one reads on: it is the plan's own limit, and
/// a reader should know that it was reached.
const TAIL_WARN: f64 = 0.01;

pub(super) const AUDIT: Audit = Audit {
    name: "links",
    question: "Did the network that the plan asks for do what was asked, and nothing else?",
    voids: NOT_AS_ASKED,
    figures: &[("late_p99", FigureUnit::Ns), ("dropped", FigureUnit::Count)],
};

#[expect(clippy::cast_precision_loss, reason = "a time and a count below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let finding = finding(evidence);
    let Some(network) = &evidence.trial.facts.after.network else { return finding };
    let dropped = network.total.emulator_dropped + network.device_dropped;
    finding.with("late_p99", network.total.late_p99_ns as f64).with("dropped", dropped as f64)
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let Some(network) = &evidence.trial.facts.after.network else {
        return skipped(match evidence.trial.setting.links {
            None => "the plan has no links of its own",
            Some(_) => "the trial ended before its network was read",
        });
    };
    let total = &network.total;
    if !network.failed.is_empty() {
        return failed(format!("the emulated network failed: {}", network.failed));
    }
    let dropped = total.emulator_dropped + network.device_dropped;
    if dropped > 0 {
        return failed(format!(
            "the emulator itself dropped {dropped} of {} packets, which the plan did not ask for: {}",
            total.packets + network.device_dropped,
            "it was offered more than it can carry; lower the load or the delays"
        ))
        .voiding(SLOWED.iter().copied());
    }
    if total.packets == 0 {
        return failed("nothing passed the emulated links: the load took another way");
    }
    let allowed = LATE_MAX_NS.max(network.delay_ns_min / LATE_PER_DELAY);
    let said = said(network);
    if total.late_p99_ns > allowed {
        return failed(format!(
            "{said}; more than {} changes what was asked for: run on an idle machine, with fewer nodes or less traffic",
            show_ns(allowed.cast_signed())
        ))
        .voiding(SLOWED.iter().copied());
    }
    let full = share(total.tail_dropped, total.packets);
    if full > TAIL_WARN {
        return warn(format!("{said}; {} met a full queue of a limited link", percent(full)));
    }
    ok(said)
}

fn said(network: &NetworkFacts) -> String {
    let total = &network.total;
    let mut parts = vec![format!(
        "{} packets were handed over late by {} (p50), {} (p99), {} (most)",
        total.packets - total.lost - total.cut - total.tail_dropped,
        show_ns(total.late_p50_ns.cast_signed()),
        show_ns(total.late_p99_ns.cast_signed()),
        show_ns(total.late_max_ns.cast_signed())
    )];
    let asked = [
        (total.lost, "lost as asked"),
        (total.cut, "lost at a cut"),
        (total.tail_dropped, "dropped before a full link"),
    ];
    parts.extend(asked.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}")));
    parts.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::NetworkFacts;
    use model::result::AuditOutcome;

    use crate::audits::guilty::{Guilt, calm_network};
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("the emulator drops a packet of its own", |trial| {
            trial.facts.after.network.as_mut().unwrap().total.emulator_dropped = 1;
        })];

    fn network(change: impl FnOnce(&mut NetworkFacts)) -> (AuditOutcome, String) {
        let mut facts = calm_network();
        change(&mut facts);
        let mut trial = Trial::clean();
        trial.facts.after.network = Some(facts);
        let found = trial.result();
        let found = audit(&found, "links");
        (found.outcome, found.detail.clone())
    }

    /// Claim: loss of the emulator's own fails, wherever it happened; loss that was asked for does not; nothing
    /// carried fails; without a network there is nothing to say.
    #[test]
    fn what_the_emulator_drops() {
        let (outcome, detail) = network(|facts| facts.total.lost = 100);
        assert_eq!(outcome, AuditOutcome::Ok, "{detail}");
        assert!(
            detail.contains("9900 packets") && detail.contains("100 lost as asked"),
            "{detail}"
        );
        let (outcome, detail) = network(|facts| facts.total.emulator_dropped = 1);
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(detail.contains("dropped 1 of 10000 packets"), "{detail}");
        assert_eq!(network(|facts| facts.device_dropped = 3).0, AuditOutcome::Failed);
        assert_eq!(network(|facts| facts.total.packets = 0).0, AuditOutcome::Failed);
        assert_eq!(network(|facts| facts.failed = "gone".into()).0, AuditOutcome::Failed);
        assert_eq!(network(|facts| facts.total.tail_dropped = 500).0, AuditOutcome::Warn);
        let without = Trial::clean().result();
        assert_eq!(audit(&without, "links").outcome, AuditOutcome::Skipped);
    }

    /// Claim: a p99 of lateness above a tenth of the smallest delay fails, and above a millisecond where delays are
    /// small or none.
    #[test]
    fn lateness_beside_delays() {
        let (outcome, detail) = network(|facts| facts.total.late_p99_ns = 2_100_000);
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(detail.contains("2.10 ms (p99)") && detail.contains("2.00 ms"), "{detail}");
        assert_eq!(network(|facts| facts.total.late_p99_ns = 1_900_000).0, AuditOutcome::Ok);
        let small = |facts: &mut NetworkFacts| {
            facts.delay_ns_min = 0;
            facts.total.late_p99_ns = 1_100_000;
        };
        assert_eq!(network(small).0, AuditOutcome::Failed);
    }
}
