//! Does the system hold what it acknowledged? If not, its committed rate is a rate of promises: acknowledged is not
//! stored. That is the system's fault and no number's, so this only warns; the promises that every ledger makes
//! decide (`judge/implicit.rs`).

use std::time::Duration;

use model::facts::{LedgerFacts, LedgerFault};
use model::quantity::{show_count, show_duration};
use model::result::{Family, Fates, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};

/// Ids named in the sentence; the result lists up to a hundred.
const NAMED_MAX: usize = 3;

pub(super) const AUDIT: Audit = Audit {
    name: "ledger",
    question: "Does the system hold what it acknowledged?",
    voids: &[],
    figures: &[],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let Some(fates) = &evidence.result.fates else {
        return unread(&evidence.trial.facts.after.ledger);
    };
    let second = evidence.trial.facts.after.ledger.second.as_ref();
    let again = second.map(|second| show_duration(Duration::from_nanos(second.after_ns)));
    let again = again.unwrap_or_default();
    let early = format!("in the ledger only at its second reading, {again} after the first");
    let broken: Vec<_> = [
        (fates.lost, "lost", lost(fates)),
        (fates.acknowledged_early, "acknowledged_early", &format!("acknowledged early: {early}")),
        (fates.duplicate, "duplicate", "in the ledger again"),
        (fates.phantom, "phantom", phantom(fates)),
        (
            fates.refused_yet_present,
            "refused_yet_present",
            "refused, and in the ledger all the same",
        ),
        (fates.reordered, "reordered", "placed after one that was sent after it was acknowledged"),
    ]
    .into_iter()
    .filter(|(count, _, _)| *count > 0)
    .map(|(count, fate, what)| format!("{} {what} ({})", show_count(count), named(fates, fate)))
    .collect();
    if !broken.is_empty() {
        return warn(broken.join("; "));
    }
    let order = if evidence.figures.join.order_was_checked() {
        "in an order that time allows".to_owned()
    } else if evidence.trial.facts.after.ledger.is_unordered {
        "it has no order".to_owned()
    } else {
        format!(
            "order not looked at beyond {} transactions",
            show_count(crate::figures::fates::ORDERED_MAX)
        )
    };
    let refused = match fates.refused_as_logged {
        0 => String::new(),
        count => format!(", {} refused and logged as such", show_count(count)),
    };
    ok(format!(
        "{} entries: {} acknowledged and there once, {} late{refused}; none lost, repeated or invented; {order}",
        show_count(fates.entries),
        show_count(fates.once),
        show_count(fates.late),
    ))
}

/// The finding about a ledger that was not read.
fn unread(ledger: &LedgerFacts) -> Finding {
    let why = if ledger.detail.is_empty() {
        "the system has none that can be read"
    } else {
        ledger.detail.as_str()
    };
    match ledger.fault {
        None => skipped(format!("the ledger was not read: {why}")),
        Some(LedgerFault::Refused) => warn(why),
        Some(LedgerFault::Unreadable) => {
            let said = format!("the system keeps a ledger, and it could not be read: {why}");
            failed(said).voiding([Voided::either(Family::Fates)])
        }
    }
}

fn lost(fates: &Fates) -> &'static str {
    match fates.lost_as_refused {
        0 => "acknowledged and not in the ledger",
        some if some == fates.lost => "acknowledged and in the ledger only as refused",
        _ => "acknowledged and not in the ledger or there only as refused",
    }
}

fn phantom(fates: &Fates) -> &'static str {
    match fates.phantom_unrecorded {
        0 => "in the ledger and never submitted",
        some if some == fates.phantom => "in the ledger and of a kind that it does not record",
        _ => "in the ledger and never submitted or of a kind that it does not record",
    }
}

fn named(fates: &Fates, fate: &str) -> String {
    let ids = fates.examples.get(fate).map_or(&[][..], Vec::as_slice);
    let mut text: Vec<_> = ids.iter().take(NAMED_MAX).map(|id| format!("tx {id}")).collect();
    if ids.len() > NAMED_MAX {
        text.push("…".to_owned());
    }
    text.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::LedgerEntry;
    use model::result::{AuditOutcome, Verdict};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("one acknowledged entry is lost", |trial| {
        trial.entries.as_mut().unwrap().remove(777);
    })];

    /// Claim: a lost, a repeated, an invented and a misplaced entry are each named by id, and the trial has failed.
    #[test]
    fn liars() {
        let honest: Vec<u64> = (0..10_000).collect();
        let lose = honest.iter().copied().filter(|tx| *tx != 777).collect::<Vec<_>>();
        let repeat: Vec<u64> = honest.iter().copied().chain([42]).collect();
        let invent: Vec<u64> = honest.iter().copied().chain([55_555]).collect();
        let mut reorder = honest.clone();
        reorder.swap(10, 5_000);
        for (ids, words) in [
            (lose, "1 acknowledged and not in the ledger (tx 777)"),
            (repeat, "1 in the ledger again (tx 42)"),
            (invent, "1 in the ledger and never submitted (tx 55555)"),
            (reorder, "placed after one that was sent after it was acknowledged"),
        ] {
            let mut trial = Trial::clean();
            let is_reordered = words.starts_with("placed");
            let place = |(position, tx): (usize, &u64)| {
                LedgerEntry::new(u64::try_from(position).unwrap(), *tx, true)
            };
            let entries: Vec<LedgerEntry> = ids.iter().enumerate().map(place).collect();
            trial.entries = Some(entries.clone());
            let result = trial.result();
            let found = audit(&result, "ledger");
            assert_eq!(found.outcome, AuditOutcome::Warn);
            assert!(found.detail.contains(words), "{}", found.detail);
            assert_eq!(result.verdict, Verdict::Fail, "{}", result.reason);
            if is_reordered {
                let mut trial = Trial::clean();
                trial.entries = Some(entries);
                trial.facts.after.ledger.is_unordered = true;
                let result = trial.result();
                let found = audit(&result, "ledger");
                assert_eq!(found.outcome, AuditOutcome::Ok, "keys of a store have no order");
                assert!(found.detail.contains("it has no order"), "{}", found.detail);
            }
        }
    }
}
