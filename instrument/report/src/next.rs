//! The reader's next step, by the result: one sentence.
//!
//! It must never send a reader to what there is not: each sentence follows from facts of the result.

use model::result::{Answer, AuditOutcome, RunResult, TrialResult, Verdict};

use crate::answer::{is_withheld, limits};
use crate::figures::{failed, latency, ratio};
use crate::paint::clean;
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
        _ if run.search.is_some() => {
            "read the trials of the search: those marked ✗ and ! say why".to_owned()
        }
        // Of a run that goes on nothing was judged, and the next step is its end.
        Verdict::Undecided if shown.iter().all(|row| row.trial.audits.is_empty()) => return None,
        Verdict::Undecided => longer(shown),
        Verdict::Invalid => {
            let audits = shown.iter().filter(is_of_it).flat_map(|row| &row.trial.audits);
            match audits.into_iter().any(|audit| audit.outcome == AuditOutcome::Failed) {
                true => "fix what the audits marked ✗ say, and run it again".to_owned(),
                false => "run it again on an idle machine".to_owned(),
            }
        }
        Verdict::Fail => match limits(run) {
            Some((kept, failed)) => {
                format!("the limit is between {kept} and {failed}: measure loads between them")
            }
            None => after_failure(shown.iter().find(is_of_it)?.trial),
        },
    };
    // It may quote what a server answered.
    Some(clean(&format!("Next: {said}.")))
}

/// The window that decides everything that chance left open, where it is known.
fn longer(shown: &[Shown<'_>]) -> String {
    let thresholds = shown.iter().flat_map(|row| &row.trial.thresholds);
    let open = thresholds.filter(|it| it.answer == Answer::Undecided);
    let seconds: Vec<f64> =
        open.flat_map(|it| &it.counted).filter_map(|it| it.seconds_to_decide).collect();
    match seconds.into_iter().reduce(f64::max) {
        Some(seconds) => format!("measure longer: --duration {}s", seconds.ceil()),
        None => {
            "measure longer, or with a threshold that is further from what was measured".to_owned()
        }
    }
}

fn after_failure(trial: &TrialResult) -> String {
    if is_withheld(trial) {
        return "look in the system's own log for the test request, and at its URL, method and headers"
            .to_owned();
    }
    let disagrees = |fates: &model::result::Fates| fates.lost + fates.duplicate + fates.phantom > 0;
    if trial.fates.as_ref().is_some_and(disagrees) {
        return "look for the transactions named below in the system's own log: its answers and its ledger disagree"
            .to_owned();
    }
    let counts = &trial.counts;
    if ratio(failed(counts), counts.due) > FAILED_SHARE {
        return of_errors(trial);
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

/// The failure that came most often, and whether the system came back from it.
fn of_errors(trial: &TrialResult) -> String {
    let Some(most) = trial.errors.iter().max_by_key(|it| it.count) else {
        return "read below which transactions got no answer, and from when on".to_owned();
    };
    let counted = trial.thresholds.iter().flat_map(|it| &it.counted);
    let is_silent = counted.filter_map(|it| it.silent_s).next().is_some();
    let (text, from) = (&most.text, latency(Some(most.first_ns)));
    match is_silent {
        true => format!(
            "the system stopped answering at {from} and did not come back ({text}): look in its own log for that time"
        ),
        false => format!(
            "look in the system's own log for the failures from {from} to {}, most of them: {text}",
            latency(Some(most.last_ns))
        ),
    }
}
