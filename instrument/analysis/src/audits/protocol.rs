//! A server that breaks its protocol: where one answer ends and the next begins can then be mistaken, so that answers
//! count for requests that they do not belong to.

use model::quantity::show_count;
use model::result::{Family, FigureUnit, Voided};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};
use crate::figures::share::{percent, share};

pub(super) const AUDIT: Audit = Audit {
    name: "protocol",
    question: "Did the server keep to its protocol, or may an answer have counted for another request?",
    voids: &[
        Voided::either(Family::Response),
        Voided::either(Family::Service),
        Voided::either(Family::Committed),
        Voided::either(Family::Failures),
        Voided::either(Family::Timeouts),
        Voided::either(Family::Fates),
    ],
    figures: &[("doubtful", FigureUnit::Share)],
};

/// A larger share of answers that may belong to other requests changes what every count and every latency means.
const DOUBTFUL_SHARE_MAX: f64 = 0.001;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let Some(seen) = &evidence.result.health else {
        return skipped("no connection of the engine's own: a client library speaks the protocol");
    };
    let answers = evidence.engine.connections.answers;
    if seen.protocol_errors == 0 && seen.unasked_bytes == 0 {
        let opened = show_count(seen.opened);
        return ok(format!(
            "every byte on {opened} connections followed the protocol and answered a request"
        ));
    }
    let mut said = Vec::new();
    if seen.protocol_errors > 0 {
        let times = show_count(seen.protocol_errors);
        said.push(format!("{times} connections were ended because the server broke the protocol"));
    }
    if seen.unasked_bytes > 0 {
        said.push(format!("{} unsolicited bytes received", show_count(seen.unasked_bytes)));
    }
    let doubtful = share(seen.doubtful, answers);
    if seen.doubtful > 0 {
        said.push(format!(
            "{} of {} answers ({}) came on these connections before, and any of them may be another request's",
            show_count(seen.doubtful),
            show_count(answers),
            percent(doubtful)
        ));
    }
    let said = said.join("; ");
    let finding = if doubtful > DOUBTFUL_SHARE_MAX { failed(said) } else { warn(said) };
    finding.with("doubtful", doubtful)
}

#[cfg(test)]
pub(super) mod tests {
    use model::facts::{ConnectionFacts, WorkerFacts};
    use model::result::AuditOutcome;
    use model::result::AuditResult;

    use crate::audits::guilty::{Guilt, worker};
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("a twentieth of the answers may be another's", |trial| {
            let answers = trial.rows.len() as u64;
            worker(trial).protocol_errors = 3;
            worker(trial).connections.doubtful = answers / 20;
        })];

    fn with(protocol_errors: u64, unasked_bytes: u64, doubtful: u64) -> AuditResult {
        let mut trial = Trial::clean();
        let mut connections = ConnectionFacts { unasked_bytes, doubtful, ..Default::default() };
        connections.life_over(10_000, false);
        trial.facts.load.workers = vec![WorkerFacts {
            wall_ns: 10_000_000_000,
            protocol_errors,
            connections,
            ..WorkerFacts::default()
        }];
        audit(&trial.result(), "protocol").clone()
    }

    /// Claim: answers that may be another request's void what was measured; a break after which there are none, or next
    /// to none, is told; unsolicited bytes are told; and where nothing came there is nothing to say.
    #[test]
    fn what_a_break_costs() {
        assert_eq!(with(0, 0, 0).outcome, AuditOutcome::Ok);
        let found = with(3, 12, 400);
        assert_eq!(found.outcome, AuditOutcome::Failed);
        for words in
            ["3 connections were ended", "12 unsolicited bytes", "400 of 10,000 answers (4.0 %)"]
        {
            assert!(found.detail.contains(words), "{}", found.detail);
        }
        assert_eq!(with(3, 0, 0).outcome, AuditOutcome::Warn);
        assert_eq!(with(1, 0, 9).outcome, AuditOutcome::Warn);
        assert_eq!(with(0, 7, 0).outcome, AuditOutcome::Warn);
        let clean = Trial::clean().result();
        assert_eq!(audit(&clean, "protocol").outcome, AuditOutcome::Skipped);
    }
}
