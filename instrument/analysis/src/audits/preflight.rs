//! A kind that can never succeed makes a constant share of failures, which reads like a limit of the system.

use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};

/// Kinds named in the sentence.
const NAMED_MAX: usize = 3;

pub(super) const AUDIT: Audit = Audit {
    name: "preflight",
    question: "Can every kind succeed at all?",
    voids: &[
        Voided::too_high(Family::Response),
        Voided::too_high(Family::Failures),
        Voided::too_high(Family::Timeouts),
        Voided::too_low(Family::Committed),
    ],
    figures: &[("broken", FigureUnit::Count)],
};

#[expect(clippy::cast_precision_loss, reason = "a count")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let all = evidence.trial.facts.declared.preflight.iter();
    let (notes, tried): (Vec<_>, Vec<_>) = all.partition(|finding| finding.is_note);
    let notes: String = notes.iter().map(|note| format!("; {}", note.detail)).collect();
    let of_commits = remarked_commits(evidence);
    if tried.is_empty() && !of_commits.is_empty() {
        return warn(of_commits.join("; "));
    }
    if tried.is_empty() {
        return skipped("no kind was tried before the load");
    }
    let broken: Vec<_> = tried.iter().filter(|finding| !finding.ok).collect();
    let remarked: Vec<_> = tried.iter().filter(|finding| !finding.remark.is_empty()).collect();
    if broken.is_empty() && !(remarked.is_empty() && of_commits.is_empty()) {
        let named = remarked.iter().take(NAMED_MAX);
        let mut named: Vec<_> =
            named.map(|finding| format!("{} ({})", finding.kind, finding.remark)).collect();
        if remarked.len() > NAMED_MAX {
            named.push(format!("{} more", remarked.len() - NAMED_MAX));
        }
        named.extend(of_commits);
        let said = format!(
            "each of {} kinds can succeed, but see {}{notes}",
            tried.len(),
            named.join(", ")
        );
        return warn(said).with("broken", 0.0);
    }
    if broken.is_empty() {
        let said = format!("each of {} kinds can succeed{notes}", tried.len());
        return ok(said).with("broken", 0.0);
    }
    let mut named: Vec<_> = broken
        .iter()
        .take(NAMED_MAX)
        .map(|finding| format!("{} ({})", finding.kind, finding.detail))
        .collect();
    if broken.len() > NAMED_MAX {
        named.push(format!("{} more", broken.len() - NAMED_MAX));
    }
    let found = failed(format!(
        "the test request before the load failed for {} of {} kinds: {}{notes}",
        broken.len(),
        tried.len(),
        named.join(", ")
    ))
    .with("broken", broken.len() as f64);
    // Of a load that was not sent there are no numbers.
    if evidence.trial.facts.load.is_withheld { found.voiding([]) } else { found }
}

/// Transactions that the trial itself committed with a code of which a reader should know something: the pass tried each kind once, if
/// there was one at all.
fn remarked_commits(evidence: &Evidence<'_>) -> Vec<String> {
    let result = evidence.result;
    let of_code = |code: u16| {
        let group = result.codes.iter().find(|group| group.name == code.to_string());
        group.map_or(0, |group| group.counts.committed)
    };
    let remarks = evidence.trial.facts.declared.code_remarks.iter();
    remarks
        .map(|it| (of_code(it.code), it))
        .filter(|(count, _)| *count > 0)
        .map(|(count, it)| {
            let all = result.counts.committed;
            format!("{count} of {all} committed have code {} ({})", it.code, it.remark)
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::{CodeRemark, PreflightFinding};
    use model::result::AuditOutcome;

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("a kind of request cannot succeed", |trial| {
            trial.facts.declared.preflight[0].ok = false;
        })];

    /// Claim: what a reader should know of a kind that can succeed is told.
    #[test]
    fn remarks_are_told() {
        let mut trial = Trial::clean();
        trial.facts.declared.preflight = vec![PreflightFinding {
            remark: "a redirect is not followed, and counts as committed".into(),
            ..PreflightFinding::new("GET /", true, "302 Found")
        }];
        let result = trial.result();
        let found = audit(&result, "preflight");
        assert_eq!(found.outcome, AuditOutcome::Warn);
        assert!(found.detail.contains("GET / (a redirect is not followed"), "{}", found.detail);
    }

    /// Claim: a trial that committed what a reader would not expect says so itself, whether there was a pass before or not.
    #[test]
    fn commits_are_remarked() {
        let found = |redirects: bool, preflight: Vec<PreflightFinding>| {
            let mut trial = Trial::clean();
            let remark = "a redirect is not followed, and counts as committed".to_owned();
            trial.facts.declared.code_remarks = vec![CodeRemark { code: 302, remark }];
            trial.facts.declared.preflight = preflight;
            trial.rows.iter_mut().step_by(4).for_each(|row| {
                row.code = if redirects { 302 } else { row.code };
            });
            let found = audit(&trial.result(), "preflight").clone();
            (found.outcome, found.detail)
        };
        assert_eq!(found(false, Vec::new()).0, AuditOutcome::Skipped);
        let said = "2500 of 10000 committed have code 302 (a redirect is not followed";
        let finding = PreflightFinding::new("GET /", true, "");
        for preflight in [vec![], vec![finding]] {
            let (outcome, detail) = found(true, preflight);
            assert_eq!(outcome, AuditOutcome::Warn);
            assert!(detail.contains(said), "{detail}");
        }
    }

    /// Claim: one target of 41 that always answers 404 is named.
    #[test]
    fn names_the_target() {
        let mut trial = Trial::clean();
        trial.facts.declared.preflight = (0..41)
            .map(|n| {
                let is_bad = n == 40;
                let kind = if is_bad { "GET /block/last/".into() } else { format!("GET /{n}") };
                PreflightFinding::new(
                    kind,
                    !is_bad,
                    if is_bad { "404 Not Found" } else { "200 OK" },
                )
            })
            .collect();
        let result = trial.result();
        let found = audit(&result, "preflight");
        assert_eq!(found.outcome, AuditOutcome::Failed);
        assert!(found.detail.contains("1 of 41"), "{}", found.detail);
        assert!(found.detail.contains("GET /block/last/ (404 Not Found)"), "{}", found.detail);
        let clean = Trial::clean().result();
        assert_eq!(audit(&clean, "preflight").outcome, AuditOutcome::Skipped);
    }
}
