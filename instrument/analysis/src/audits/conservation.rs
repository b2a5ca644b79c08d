//! Nothing may appear or vanish between the engine, the record and the ledger: every sum must come out twice.

use model::quantity::show_count;
use model::result::{Family, Voided};
use model::{NO_STAMP, Outcome};

use super::evidence::Evidence;
use super::finding::{ALL_OF_ROWS, Audit, Finding, failed, ok, skipped};
use crate::figures::node_stages::NodeStages;

pub(super) const AUDIT: Audit = Audit {
    name: "conservation",
    question: "Does every sum come out twice: what fell due, what ended, what the ledger holds?",
    voids: &ALL_OF_ROWS,
    figures: &[],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let mut broken = rows_with_themselves(evidence);
    if !evidence.trial.facts.complete {
        if broken.is_empty() {
            return skipped("the engine's counters were lost with the crash");
        }
        return failed(broken.join("; "));
    }
    broken.extend(rows_with_engine(evidence));
    let of_the_nodes =
        evidence.figures.node_stages.as_ref().map_or_else(Vec::new, NodeStages::unbalanced);
    if broken.is_empty() && !of_the_nodes.is_empty() {
        let said = format!("inside the nodes {}", of_the_nodes.join("; "));
        return failed(said).voiding([Voided::either(Family::NodeStages)]);
    }
    let of_the_ledger = ledger_with_rows(evidence);
    if broken.is_empty() && !of_the_ledger.is_empty() {
        return failed(of_the_ledger.join("; ")).voiding([Voided::either(Family::Fates)]);
    }
    broken.extend(of_the_ledger);
    if broken.is_empty() {
        return ok(format!(
            "due {} = committed {} + rejected {} + unknown {} + shed {}; rows and engine agree",
            show_count(evidence.figures.all.due()),
            show_count(evidence.figures.all.of(Outcome::Committed)),
            show_count(evidence.figures.all.counts().rejected),
            show_count(evidence.figures.all.of(Outcome::Unknown)),
            show_count(evidence.figures.all.of(Outcome::Shed)),
        ));
    }
    failed(broken.join("; "))
}

/// One row a transaction, and no id out of the numbering.
fn rows_with_themselves(evidence: &Evidence<'_>) -> Vec<String> {
    let join = &evidence.figures.join;
    let found = [
        (join.repeated_rows, "rows repeat the transaction of another row"),
        (join.strange_rows, "rows hold impossible ids or times"),
    ];
    let said = found.iter().filter(|(count, _)| *count > 0);
    said.map(|(count, what)| format!("{} {what}", show_count(*count))).collect()
}

/// The engine's counters against its record.
fn rows_with_engine(evidence: &Evidence<'_>) -> Vec<String> {
    let (engine, all) = (&evidence.engine, &evidence.figures.all);
    if evidence.trial.facts.load.workers.is_empty() {
        return Vec::new();
    }
    let never_sent = all.due().saturating_sub(all.sent() + all.of(Outcome::Shed));
    let equations = [
        ("due", engine.due, "rows", all.due()),
        ("sent", engine.sent, "rows that were sent", all.sent()),
        ("shed", engine.shed, "rows that were shed", all.of(Outcome::Shed)),
        ("refused", engine.refused, "rows rejected before they were sent", never_sent),
        (
            "sent",
            engine.sent,
            "answered + unanswered",
            engine.answered.saturating_add(engine.unanswered),
        ),
    ];
    equations
        .into_iter()
        .filter(|(_, left, _, right)| left != right)
        .map(|(what, left, other, right)| {
            format!(
                "the engine counts {} {what}, but {other} are {}",
                show_count(left),
                show_count(right)
            )
        })
        .collect()
}

/// Every entry has its fate, and every transaction that was acknowledged. What fates they are is for thresholds to say.
fn ledger_with_rows(evidence: &Evidence<'_>) -> Vec<String> {
    let Some(fates) = &evidence.result.fates else { return Vec::new() };
    if evidence.trial.facts.load.drain_end == NO_STAMP {
        return Vec::new();
    }
    let mut broken = Vec::new();
    let explained = fates.once
        + evidence.figures.join.acknowledged_often
        + fates.late
        + fates.duplicate
        + fates.refused_entries
        + fates.refused_yet_present
        + fates.phantom;
    if fates.entries != explained {
        broken.push(format!(
            "the ledger has {} entries, and {} have a fate",
            show_count(fates.entries),
            show_count(explained)
        ));
    }
    let known = fates.once + evidence.figures.join.acknowledged_often + fates.lost;
    // Reads are acknowledged, too, and leave nothing there.
    let unrecorded = evidence.figures.join.acknowledged_unrecorded;
    let acknowledged = evidence.figures.all.of(Outcome::Committed).saturating_sub(unrecorded);
    if known != acknowledged {
        broken.push(format!(
            "{} were acknowledged, and {} of them have a fate in the ledger",
            show_count(acknowledged),
            show_count(known)
        ));
    }
    if evidence.trial.facts.after.ledger.entries != fates.entries {
        broken.push(format!(
            "{} ledger entries were read, {} were recorded",
            show_count(evidence.trial.facts.after.ledger.entries),
            show_count(fates.entries)
        ));
    }
    broken
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::LedgerEntry;
    use model::result::{AuditOutcome, Family, Voided};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("a row is written twice", |trial| trial.rows.push(trial.rows[3]))];

    fn entries(ids: impl Iterator<Item = u64>) -> Option<Vec<LedgerEntry>> {
        Some(ids.map(|tx| LedgerEntry::new(tx, tx, true)).collect())
    }

    /// Claim: a counter of the engine that the rows do not bear out fails, and so does a row written twice.
    #[test]
    fn rows_and_engine() {
        let mut trial = Trial::clean();
        trial.rows.push(trial.rows[3]);
        let result = trial.result();
        assert!(audit(&result, "conservation").detail.contains("1 rows repeat"));
        let mut trial = Trial::clean();
        trial.consistent = false;
        trial.facts.load.workers = vec![model::facts::WorkerFacts {
            due: 10_001,
            sent: 10_000,
            answered: 10_000,
            ..Default::default()
        }];
        let result = trial.result();
        let found = audit(&result, "conservation");
        assert_eq!(found.outcome, AuditOutcome::Failed);
        assert!(found.detail.contains("counts 10,001 due"), "{}", found.detail);
    }

    /// Claim: whatever the system made of its ledger, every entry has a fate, and that is no fault of the record; one
    /// entry that was read and is not in the record voids the fates and nothing else.
    #[test]
    fn rows_and_ledger() {
        for ids in [entries(0..10_000), entries(0..10_001), entries(1..10_000)] {
            let mut trial = Trial::clean();
            trial.entries = ids;
            assert_eq!(audit(&trial.result(), "conservation").outcome, AuditOutcome::Ok);
        }
        let mut trial = Trial::clean();
        trial.entries = entries(0..10_000);
        trial.consistent = false;
        trial.facts.after.ledger.read = true;
        trial.facts.after.ledger.entries = 10_001;
        let result = trial.result();
        let found = audit(&result, "conservation");
        assert_eq!(found.outcome, AuditOutcome::Failed, "{}", found.detail);
        assert_eq!(found.voids, [Voided::either(Family::Fates)]);
    }
}
