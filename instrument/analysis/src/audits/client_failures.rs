//! Failures of this client (descriptors, ports, name lookup, a program that is the client) are not the system's, and must not be read as such.

use model::quantity::show_count;
use model::result::FigureUnit;
use model::{Class, Outcome};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, SLOWED, failed, ok, warn};
use crate::figures::share::{percent, share};

/// A larger share of client-side failures than this changes what every count means.
const SHARE_MAX: f64 = 0.001;

pub(super) const AUDIT: Audit = Audit {
    name: "client_failures",
    question: "Did this client fail, or the way to the system, instead of the system?",
    voids: SLOWED,
    figures: &[
        ("failures", FigureUnit::Count),
        ("share", FigureUnit::Share),
        ("unopened", FigureUnit::Count),
    ],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let client = evidence.figures.all.of(Outcome::Rejected(Class::Client));
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    let finding = finding(evidence, client)
        .with("failures", client as f64)
        .with("unopened", evidence.engine.connect_failures as f64);
    finding.with("share", share(client, evidence.figures.all.due()))
}

fn finding(evidence: &Evidence<'_>, client: u64) -> Finding {
    let transport = evidence.figures.all.of(Outcome::Rejected(Class::Transport));
    let due = evidence.figures.all.due();
    // Those that were refused a connection, and those that were sent and lost theirs.
    let lost = transport.saturating_add(evidence.engine.connections.lost);
    let of_transport = format!("{} transactions lost to broken connections", show_count(lost));
    let unopened = evidence.engine.connect_failures;
    if client == 0 && unopened > 0 {
        let times = if unopened == 1 { "once" } else { "times" };
        let count =
            if unopened == 1 { String::new() } else { format!("{} ", show_count(unopened)) };
        return warn(format!(
            "no transaction failed in this client, but {count}{times} a connection could not be opened; {of_transport}"
        ));
    }
    if client == 0 {
        return ok(format!("no failure of the client itself; {of_transport}"));
    }
    let said = format!(
        "{} of {} transactions ({}) failed in this client, not in the system: descriptors, ports, name lookup, or a program that is the client; {of_transport}",
        show_count(client),
        show_count(due),
        percent(share(client, due))
    );
    if share(client, due) > SHARE_MAX { failed(said) } else { warn(said) }
}

#[cfg(test)]
pub(super) mod tests {
    use model::result::AuditOutcome;
    use model::{Class, Outcome};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("a fifth fails in the client", |trial| {
        for old in trial.rows.iter_mut().step_by(5) {
            *old = row(old.tx, old.due, 1_000, Outcome::Rejected(Class::Client));
        }
    })];

    fn with_failures(count: usize, class: Class) -> AuditOutcome {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().take(count) {
            *old = row(old.tx, old.due, 100_000, Outcome::Rejected(class));
        }
        audit(&trial.result(), "client_failures").outcome
    }

    /// Claim: connections that could not be opened are told of, also where the others carried the load.
    #[test]
    fn connections_that_could_not_be_opened() {
        let mut trial = Trial::clean();
        trial.facts.load.workers = vec![model::facts::WorkerFacts {
            wall_ns: 10_000_000_000,
            connect_failures: 3,
            ..Default::default()
        }];
        let result = trial.result();
        let found = audit(&result, "client_failures");
        assert_eq!(found.outcome, AuditOutcome::Warn);
        assert!(
            found.detail.contains("3 times a connection could not be opened"),
            "{}",
            found.detail
        );
    }

    /// Claim: many client-side failures fail, a few warn, and the system's own failures are not among them.
    #[test]
    fn apart_from_the_systems() {
        assert_eq!(with_failures(100, Class::Client), AuditOutcome::Failed);
        assert_eq!(with_failures(3, Class::Client), AuditOutcome::Warn);
        assert_eq!(with_failures(100, Class::Server), AuditOutcome::Ok);
    }
}
