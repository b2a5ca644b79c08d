//! The reader's next step, by the result: one sentence.
//!
//! It must never send a reader to what there is not: each sentence follows from facts of the result.

use model::result::{AuditOutcome, RunResult, TrialResult, Verdict};

use crate::figures::{failed, latency, ratio};
use crate::tables::{self, Shown, final_latency};

/// From this share of failures on, what was answered says more than how long it took.
const FAILED_SHARE: f64 = 0.01;
/// From this share of the response time on, the service time is where it is spent.
const SERVICE_SHARE: f64 = 0.5;

/// The sentence; none where everything is as it should be.
pub(crate) fn next_words(run: &RunResult, shown: &[Shown<'_>]) -> Option<String> {
    let is_of_it = |row: &&Shown<'_>| row.trial.verdict == run.verdict && !tables::is_declared(row);
    let said = match run.verdict {
        Verdict::Pass => return None,
        Verdict::Undecided => "measure as long as the thresholds say".to_owned(),
        Verdict::Invalid => {
            let audits = shown.iter().filter(is_of_it).flat_map(|row| &row.trial.audits);
            match audits.into_iter().any(|audit| audit.outcome == AuditOutcome::Failed) {
                true => "mend what the audits marked ✗ say, and run it again".to_owned(),
                false => "run it again on an idle machine".to_owned(),
            }
        }
        Verdict::Fail => after_failure(shown.iter().find(is_of_it)?.trial),
    };
    Some(format!("Next: {said}."))
}

fn after_failure(trial: &TrialResult) -> String {
    let disagrees = |fates: &model::result::Fates| fates.lost + fates.duplicate + fates.phantom > 0;
    if trial.fates.as_ref().is_some_and(disagrees) {
        return "look for the transactions named below in the system's own log: its answers and its ledger disagree"
            .to_owned();
    }
    let counts = &trial.counts;
    if ratio(failed(counts), counts.due) > FAILED_SHARE {
        return "read the errors below: what the system answered, how often, and from when to when"
            .to_owned();
    }
    let p99 = |of: &model::result::Distribution| {
        of.quantiles.iter().find(|q| q.name == "p99").and_then(|q| q.value_ns)
    };
    let of = final_latency(trial);
    let times = of.and_then(|it| Some((p99(&it.response)?, p99(&it.service)?)));
    #[expect(clippy::cast_precision_loss, reason = "only to compare")]
    match times {
        Some((response, service)) if (service as f64) < response as f64 * SERVICE_SHARE => format!(
            "requests waited to be sent (p99 of the service time is {}): offer less, or look whether connections were the limit",
            latency(Some(service))
        ),
        Some((_, service)) => format!(
            "the time is spent in the system, not in this client (p99 of the service time is {}): profile the system under this load",
            latency(Some(service))
        ),
        None => "read the thresholds below".to_owned(),
    }
}
