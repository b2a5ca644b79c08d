//! Failures of this client (descriptors, ports, name lookup) are not the system's, and must not be read as such.

use model::quantity::show_count;
use model::{Class, Outcome};

use super::{Evidence, Finding, failed, ok, percent, share, warn};

/// A larger share of client-side failures than this changes what every count means.
const SHARE_MAX: f64 = 0.001;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let client = evidence.all.of(Outcome::Rejected(Class::Client));
    let transport = evidence.all.of(Outcome::Rejected(Class::Transport));
    let due = evidence.all.due();
    let of_transport = format!("{} broken connections", show_count(transport));
    if client == 0 {
        return ok(format!("no failure of the client itself; {of_transport}"));
    }
    let said = format!(
        "{} of {} transactions ({}) failed in this client, not in the system: descriptors, ports or name lookup; {of_transport}",
        show_count(client),
        show_count(due),
        percent(share(client, due))
    );
    if share(client, due) > SHARE_MAX { failed(said) } else { warn(said) }
}

#[cfg(test)]
mod tests {
    use model::result::AuditOutcome;
    use model::{Class, Outcome};

    use crate::testing::{Trial, audit, row};

    fn with_failures(count: usize, class: Class) -> AuditOutcome {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().take(count) {
            *old = row(old.tx, old.due, 100_000, Outcome::Rejected(class));
        }
        audit(&trial.result(), "client_failures").outcome
    }

    /// Claim: many client-side failures fail, a few warn, and the system's own failures are not among them.
    #[test]
    fn apart_from_the_systems() {
        assert_eq!(with_failures(100, Class::Client), AuditOutcome::Failed);
        assert_eq!(with_failures(3, Class::Client), AuditOutcome::Warn);
        assert_eq!(with_failures(100, Class::Server), AuditOutcome::Ok);
    }
}
