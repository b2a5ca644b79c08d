//! A kind that can never succeed makes a constant share of failures, which reads like a limit of the system.

use model::result::{Family, FigureUnit, Voided};

use super::{Audit, Evidence, Finding, failed, ok, skipped, warn};

/// Kinds named in the sentence.
const NAMED_MAX: usize = 3;

pub(super) const AUDIT: Audit = Audit {
    name: "preflight",
    question: "Can every kind succeed at all?",
    voids: &[
        Voided::too_high(Family::Response),
        Voided::too_high(Family::Failures),
        Voided::too_low(Family::Committed),
    ],
    figures: &[("broken", FigureUnit::Count)],
};

#[expect(clippy::cast_precision_loss, reason = "a count")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let tried = &evidence.facts.declared.preflight;
    if tried.is_empty() {
        return skipped("the system offers no pass over its kinds");
    }
    let broken: Vec<_> = tried.iter().filter(|finding| !finding.ok).collect();
    let remarked: Vec<_> = tried.iter().filter(|finding| !finding.remark.is_empty()).collect();
    if broken.is_empty() && !remarked.is_empty() {
        let named = remarked.iter().take(NAMED_MAX);
        let mut named: Vec<_> =
            named.map(|finding| format!("{} ({})", finding.kind, finding.remark)).collect();
        if remarked.len() > NAMED_MAX {
            named.push(format!("{} more", remarked.len() - NAMED_MAX));
        }
        let said =
            format!("each of {} kinds can succeed, but see {}", tried.len(), named.join(", "));
        return warn(said).with("broken", 0.0);
    }
    if broken.is_empty() {
        return ok(format!("each of {} kinds can succeed", tried.len())).with("broken", 0.0);
    }
    let mut named: Vec<_> = broken
        .iter()
        .take(NAMED_MAX)
        .map(|finding| format!("{} ({})", finding.kind, finding.detail))
        .collect();
    if broken.len() > NAMED_MAX {
        named.push(format!("{} more", broken.len() - NAMED_MAX));
    }
    failed(format!(
        "{} of {} kinds cannot succeed, at any load: {}",
        broken.len(),
        tried.len(),
        named.join(", ")
    ))
    .with("broken", broken.len() as f64)
}

#[cfg(test)]
mod tests {
    use model::facts::PreflightFinding;
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit};

    /// Claim: what a reader should know of a kind that can succeed is told.
    #[test]
    fn remarks_are_told() {
        let mut trial = Trial::clean();
        trial.facts.declared.preflight = vec![PreflightFinding {
            kind: "GET /".into(),
            ok: true,
            detail: "302 Found".into(),
            remark: "a redirect is not followed, and counts as committed".into(),
        }];
        let result = trial.result();
        let found = audit(&result, "preflight");
        assert_eq!(found.outcome, AuditOutcome::Warn);
        assert!(found.detail.contains("GET / (a redirect is not followed"), "{}", found.detail);
    }

    /// Claim: one target of 41 that always answers 404 is named.
    #[test]
    fn names_the_target() {
        let mut trial = Trial::clean();
        trial.facts.declared.preflight = (0..41)
            .map(|n| PreflightFinding {
                kind: if n == 40 { "GET /block/last/".into() } else { format!("GET /{n}") },
                ok: n != 40,
                detail: if n == 40 { "404 Not Found".into() } else { "200 OK".into() },
                remark: String::new(),
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
