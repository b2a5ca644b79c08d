//! Did the disks that the plan asks for do what they were asked, and nothing else? What they add to a sync would be
//! read as the system's, and what they make durable of their own accord would hide what a cut of the power takes.

use model::facts::DiskFacts;
use model::quantity::show_ns;
use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, SLOWED, failed, ok, skipped, warn};

/// The time that a disk may add to an operation at the p99, whatever was asked: on an idle machine it adds a hundredth.
const OWN_MAX_NS: u64 = 1_000_000;
/// The same, as a share of the smallest delay that was asked for.
const OWN_PER_DELAY: u64 = 10;

pub(super) const AUDIT: Audit = Audit {
    name: "disks",
    question: "Did the nodes' own disks do what was asked, and nothing else?",
    voids: &[
        Voided::either(Family::Response),
        Voided::either(Family::Service),
        Voided::either(Family::Committed),
        Voided::either(Family::Failures),
        Voided::either(Family::Timeouts),
        Voided::either(Family::Outstanding),
        Voided::either(Family::Fates),
        Voided::either(Family::NodeStages),
    ],
    figures: &[("own_p99", FigureUnit::Ns)],
};

#[expect(clippy::cast_precision_loss, reason = "a time below 2^53 ns")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let own = evidence.trial.facts.after.disks.iter().map(|disk| disk.all.own_p99_ns).max();
    finding(evidence).with("own_p99", own.map_or(f64::NAN, |ns| ns as f64))
}

fn finding(evidence: &Evidence<'_>) -> Finding {
    let disks = &evidence.trial.facts.after.disks;
    if disks.is_empty() {
        return match &evidence.trial.setting.disks {
            None => skipped("the plan has no disks of its own"),
            Some(_) if evidence.is_cut() => skipped("the trial ended before its disks were read"),
            Some(plan) => failed(format!(
                "the plan gives a disk to {}, and no node has one: the nodes kept their files elsewhere",
                plan.nodes.join(", ")
            )),
        };
    }
    if let Some(disk) = disks.iter().find(|disk| !disk.failed.is_empty()) {
        return failed(format!("the disk of `{}` failed: {}", disk.node, disk.failed));
    }
    if let Some(disk) = disks.iter().find(|disk| disk.all.calls == 0) {
        return failed(format!(
            "nothing reached the disk of `{}`: the node keeps its files elsewhere",
            disk.node
        ));
    }
    let Some(worst) = disks.iter().max_by_key(|disk| excess(disk)) else {
        unreachable!("there is a disk")
    };
    let said = said(disks, worst);
    if excess(worst) > 0 {
        return failed(format!(
            "{said}; more than {} changes what was asked for: run on an idle machine, or with less load",
            show_ns(allowed(worst).cast_signed())
        ))
        .voiding(SLOWED.iter().copied());
    }
    if let Some(disk) = disks.iter().find(|disk| disk.written_back > 0) {
        return warn(format!(
            "{said}; the disk of `{}` had no room to keep apart what was synced and what was not, and made everything \
             durable {} times: give it a larger size, or a cut of the power takes less than it should",
            disk.node, disk.written_back
        ));
    }
    ok(said)
}

fn allowed(disk: &DiskFacts) -> u64 {
    OWN_MAX_NS.max(disk.delay_ns_min / OWN_PER_DELAY)
}

/// By how much a disk added more than it may; 0: it did not.
fn excess(disk: &DiskFacts) -> u64 {
    disk.all.own_p99_ns.saturating_sub(allowed(disk))
}

fn said(disks: &[DiskFacts], worst: &DiskFacts) -> String {
    let calls: u64 = disks.iter().map(|disk| disk.all.calls).sum();
    let syncs: u64 = disks.iter().map(|disk| disk.syncs.calls).sum();
    let of = if disks.len() == 1 { String::new() } else { format!(" of {} disks", disks.len()) };
    let mut parts = vec![format!(
        "{calls} requests{of}, {syncs} of them syncs; the disk of `{}` added {} (p50), {} (p99), {} (most) to what was \
         asked",
        worst.node,
        show_ns(worst.all.own_p50_ns.cast_signed()),
        show_ns(worst.all.own_p99_ns.cast_signed()),
        show_ns(worst.all.own_max_ns.cast_signed())
    )];
    let sum = |of: fn(&DiskFacts) -> u64| disks.iter().map(of).sum::<u64>();
    let power = sum(|disk| disk.power_losses);
    if power > 0 {
        parts.push(format!(
            "its power was cut {power} times, which took {} bytes and {} names that were not synced",
            sum(|disk| disk.lost_bytes),
            sum(|disk| disk.lost_names)
        ));
    }
    let errors = sum(|disk| disk.all.errors);
    let full = sum(|disk| disk.refused_full);
    parts.extend((errors > 0).then(|| format!("{errors} errors, as asked")));
    parts.extend((full > 0).then(|| format!("{full} writes refused for want of room")));
    parts.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use model::facts::DiskFacts;
    use model::plan::{DiskPlan, DisksPlan, NamesRule};
    use model::result::AuditOutcome;

    use crate::audits::guilty::{Guilt, calm_disk};
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("nothing reaches the disk of a node", |trial| {
            trial.facts.after.disks[0].all.calls = 0;
        })];

    fn disks(change: impl FnOnce(&mut Vec<DiskFacts>)) -> (AuditOutcome, String) {
        let mut facts = vec![calm_disk("a"), calm_disk("b")];
        change(&mut facts);
        let mut trial = Trial::clean();
        trial.facts.after.disks = facts;
        trial.setting.disks = Some(DisksPlan {
            nodes: vec!["a*".into()],
            disk: DiskPlan {
                size: 1,
                names: NamesRule::Journal,
                sync_delay: Duration::ZERO,
                read_delay: Duration::ZERO,
                write_delay: Duration::ZERO,
            },
        });
        let found = trial.result();
        let found = audit(&found, "disks");
        (found.outcome, found.detail.clone())
    }

    /// Claim: a disk that broke, that nothing reached or that is not there fails; what was asked for (a cut of the power,
    /// errors, a full disk) does not; what it made durable by itself is warned of; without disks there is nothing to say.
    #[test]
    fn what_disks_do() {
        let (outcome, detail) = disks(|disks| {
            disks[1].power_losses = 2;
            disks[1].lost_bytes = 512;
            disks[0].all.errors = 3;
            disks[0].refused_full = 4;
        });
        assert_eq!(outcome, AuditOutcome::Ok, "{detail}");
        for said in [
            "20000 requests of 2 disks",
            "cut 2 times, which took 512 bytes",
            "3 errors",
            "4 writes refused",
        ] {
            assert!(detail.contains(said), "{said}: {detail}");
        }
        let (outcome, detail) = disks(|disks| disks[1].failed = "gone".into());
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(detail.contains("the disk of `b` failed: gone"), "{detail}");
        let (outcome, detail) = disks(|disks| disks[1].all.calls = 0);
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(detail.contains("nothing reached the disk of `b`"), "{detail}");
        let (outcome, detail) = disks(Vec::clear);
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(detail.contains("gives a disk to a*, and no node has one"), "{detail}");
        let (outcome, detail) = disks(|disks| disks[0].written_back = 1);
        assert_eq!(outcome, AuditOutcome::Warn);
        assert!(detail.contains("larger size"), "{detail}");
        assert_eq!(audit(&Trial::clean().result(), "disks").outcome, AuditOutcome::Skipped);
    }

    /// Claim: calm disks are never warned of and never fail, whatever was asked of them and however much they did: slow,
    /// full and faulty ones, one or many, cut from their power or not.
    #[test]
    fn calm_disks_are_satisfied() {
        let mut rng = model::Seed(9).rng();
        for round in 0..30 {
            let mut said = String::new();
            let (outcome, detail) = disks(|disks| {
                let calm = disks[0].clone();
                disks.resize(1 + rng.below(5) as usize, calm);
                for disk in disks.iter_mut() {
                    disk.all.calls = 1 + rng.below(10_000_000);
                    disk.syncs.calls = rng.below(disk.all.calls + 1);
                    disk.delay_ns_min = rng.below(3) * rng.below(200_000_000);
                    let may = 1_000_000.max(disk.delay_ns_min / 10);
                    disk.all.own_p99_ns = rng.below(may + 1);
                    disk.all.own_p50_ns = rng.below(disk.all.own_p99_ns + 1);
                    // A single request may wait for the processor for long: no quantile of it.
                    disk.all.own_max_ns = disk.all.own_p99_ns + rng.below(5_000_000_000);
                    disk.all.errors = rng.below(100);
                    disk.refused_full = rng.below(100);
                    disk.power_losses = rng.below(3);
                    disk.lost_bytes = disk.power_losses * rng.below(1 << 30);
                    disk.lost_names = disk.power_losses * rng.below(100);
                }
                said = format!("{disks:?}");
            });
            assert_eq!(outcome, AuditOutcome::Ok, "round {round}: {detail}\n{said}");
        }
    }

    /// Claim: what a disk adds fails above a millisecond at the p99, and above a tenth of the smallest delay where that
    /// is more; the disk that is worst by that is the one that is named.
    #[test]
    fn what_they_add() {
        let (outcome, detail) = disks(|disks| disks[1].all.own_p99_ns = 1_200_000);
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(
            detail.contains("disk of `b` added") && detail.contains("more than 1.00 ms"),
            "{detail}"
        );
        let slow = |p99: u64| {
            disks(|disks| {
                disks[1].delay_ns_min = 20_000_000;
                disks[1].all.own_p99_ns = p99;
            })
        };
        assert_eq!(slow(1_900_000).0, AuditOutcome::Ok);
        let (outcome, detail) = slow(2_100_000);
        assert_eq!(outcome, AuditOutcome::Failed);
        assert!(detail.contains("2.10 ms (p99)") && detail.contains("2.00 ms changes"), "{detail}");
    }
}
