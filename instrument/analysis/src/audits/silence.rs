//! Was there a time in which a closed loop got no answer at all? Its clients wait, and what they would have sent meanwhile
//! is in no number: of two seconds without an answer the quantiles know one long wait for each client (coordinated
//! omission, by the plan). What an open loop is due meanwhile waits, and counts.
//!
//! A silence is as long as ten rounds of all clients, and a tenth of a second: answers that come in blocks, and clients
//! that think, are silent by nature for one round. Told is what makes a hundredth of the window, or lasts a second.

use std::ops::Range;

use model::Stamp;
use model::plan::{Arrivals, Schedule};
use model::quantity::{show_count, show_ns};
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use crate::figures::grid::SECOND;

/// Rounds of all clients that a silence lasts at least …
const ROUNDS_MIN: f64 = 10.0;
/// … and how long.
const SILENCE_NS_MIN: i64 = SECOND / 10;
/// Told from this share of the window on: less moves no p99.
const SHARE_MIN: f64 = 0.01;
/// Fewer answers than this have no rhythm.
const ENDED_MIN: u64 = 20;

pub(super) const AUDIT: Audit = Audit {
    name: "silence",
    question: "Did a closed loop wait without any answer, so that its quantiles leave something out?",
    voids: &[],
    figures: &[
        ("longest", FigureUnit::Ns),
        ("silent", FigureUnit::Share),
        ("not_sent", FigureUnit::Count),
    ],
};

#[expect(clippy::cast_precision_loss, reason = "counts and times below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let (Some(ends), Some(clients)) = (evidence.figures.ended.times.as_ref(), clients(evidence))
    else {
        return ok("the load is open: what is due while nothing is answered waits, and counts");
    };
    if evidence.trial.setting.probe.is_some() {
        return skipped("the probe is measured, not the closed loop");
    }
    let ended: u64 = evidence.figures.flow.slots[..evidence.trial.grid.slots]
        .iter()
        .map(|it| u64::from(it.ended))
        .sum();
    if ended < ENDED_MIN {
        return skipped("fewer than twenty answers came in the window");
    }
    let start = evidence.trial.grid.start;
    let window_ns = evidence.result.window_ns;
    let round_ns = clients * window_ns as f64 / ended as f64;
    let silence_ns_min = SILENCE_NS_MIN.max((ROUNDS_MIN * round_ns) as i64);
    let silences = ends.silences(start..start + window_ns, silence_ns_min);
    let longest = silences.iter().max_by_key(|it| it.end - it.start);
    let Some(longest) = longest else {
        let said = format!("answers came all the time: no {} without one", show_ns(silence_ns_min));
        return ok(said).with("longest", 0.0).with("silent", 0.0).with("not_sent", 0.0);
    };
    let silent_ns: i64 = silences.iter().map(|it| it.end - it.start).sum();
    let longest_ns = longest.end - longest.start;
    let silent = silent_ns as f64 / window_ns as f64;
    // Of the rest of the window; what each client had outstanding when a silence began was sent, and is in the numbers.
    let per_ns = ended as f64 / (window_ns - silent_ns).max(1) as f64;
    let left_out = (per_ns * silent_ns as f64 - clients * silences.len() as f64).max(0.0);
    let times = match silences.len() {
        1 => String::new(),
        n => format!(", {n} times, the longest {}", show_ns(longest_ns)),
    };
    let said = format!(
        "nothing was answered for {} of {} ({}{} into the window)",
        show_ns(silent_ns),
        show_ns(window_ns),
        times.trim_start_matches(", ").to_owned() + if times.is_empty() { "" } else { ", " },
        show_ns(longest.start - start),
    );
    let finding = if silent < SHARE_MIN && longest_ns < SECOND {
        ok(said)
    } else {
        warn(format!(
            "{said}: a closed loop sends nothing meanwhile, so that its quantiles leave it out; at the rate of the rest \
             about {} more would have been due{}; offer a rate instead",
            show_count(left_out.round() as u64),
            p99_of_all(evidence, &silences, (per_ns, left_out))
        ))
    };
    let finding = finding.with("longest", longest_ns as f64).with("silent", silent);
    finding.with("not_sent", left_out)
}

/// Clients of a closed loop; of a load that is as much as the connections take, what it had outstanding.
#[expect(clippy::cast_precision_loss, reason = "areas of time")]
fn clients(evidence: &Evidence<'_>) -> Option<f64> {
    match &evidence.trial.setting.load.arrivals {
        Arrivals::Closed { clients, .. } => Some(f64::from(*clients)),
        Arrivals::Open { schedule: Schedule::Constant { rate } } if rate.is_max() => Some(
            (evidence.figures.flow.area_ns as f64 / evidence.trial.grid.length().max(1) as f64)
                .max(1.0),
        ),
        Arrivals::Open { .. } => None,
    }
}

/// The p99 with those that were left out, each of which would have waited for the rest of its silence; nothing
/// where they are too few to decide it.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
fn p99_of_all(
    evidence: &Evidence<'_>,
    silences: &[Range<Stamp>],
    (per_ns, left_out): (f64, f64),
) -> String {
    let Some(measured) = evidence.response.and_then(|times| times.all().quantile(0.99)) else {
        return String::new();
    };
    let allowed = 0.01 * (evidence.figures.flow.due_in_window as f64 + left_out);
    let beyond = |wait: f64| {
        silences.iter().map(|it| ((it.end - it.start) as f64 - wait).max(0.0) * per_ns).sum::<f64>()
    };
    let (mut low, mut high) = (measured as f64, 1e18);
    if beyond(low) <= allowed {
        return String::new();
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > allowed { low = middle } else { high = middle }
    }
    format!(
        ", and p99 of all would be about {} instead of {}",
        show_ns(low as i64),
        show_ns(measured)
    )
}

#[cfg(test)]
pub(super) mod tests {
    use model::plan::Arrivals;
    use model::result::{AuditOutcome, AuditResult, Verdict};
    use model::{Outcome, Stamp};

    use crate::audits::guilty::{self, Guilt, WARM_UP_NS};
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("nothing is answered for 2 s", |trial| {
        trial.setting.load.arrivals = guilty::closed(4);
        let frozen = WARM_UP_NS + 9_000 * MS;
        trial.rows.retain(|old| !(frozen..frozen + 2_000 * MS).contains(&old.end));
    })];

    const MS: Stamp = 1_000_000;

    /// Eight clients for ten seconds, each of whose requests takes 4 ms; nothing is answered in these stretches.
    fn closed(silent: &[(Stamp, Stamp)]) -> Trial {
        let mut trial = Trial::clean();
        trial.setting.load.arrivals = Arrivals::Closed {
            clients: 8,
            think: std::time::Duration::ZERO,
            window: 0,
            poll: std::time::Duration::ZERO,
            steps: Vec::new(),
        };
        trial.rows.clear();
        let mut free = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| n * MS / 2);
        while let Some(first) = free.iter_mut().min().filter(|at| **at < 10_000 * MS) {
            let due = *first;
            let ends = due + 4 * MS;
            let end = silent.iter().find(|it| (it.0..it.1).contains(&ends)).map_or(ends, |it| it.1);
            let tx = u64::try_from(trial.rows.len()).unwrap();
            trial.rows.push(row(tx, due, end - due, Outcome::Committed));
            *first = end;
        }
        trial
    }

    fn found(silent: &[(Stamp, Stamp)]) -> AuditResult {
        let result = closed(silent).result();
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
        audit(&result, "silence").clone()
    }

    /// Claim: two seconds of ten without an answer are told, with what would have been due and what p99 would be; a closed
    /// loop whose answers go on, or come in blocks, is not; of an open one there is nothing to say.
    #[test]
    fn a_silence_is_told() {
        let dead = found(&[(5_200 * MS, 7_200 * MS)]);
        assert_eq!(dead.outcome, AuditOutcome::Warn, "{}", dead.detail);
        let said = "nothing was answered for 2.00 s of 10.0 s (5.20 s into the window): a closed loop sends nothing \
                    meanwhile, so that its quantiles leave it out; at the rate of the rest about 3,992 more would have been \
                    due, and p99 of all would be about 1.90 s instead of 4.00 ms; offer a rate instead";
        assert_eq!(dead.detail, said);
        assert_eq!(found(&[]).outcome, AuditOutcome::Ok);
        let blocks: Vec<_> = (0..20).map(|n| (n * 500 * MS, (n * 500 + 499) * MS)).collect();
        let blocks = found(&blocks);
        assert_eq!(blocks.outcome, AuditOutcome::Ok, "{}", blocks.detail);
        let often: Vec<_> = (0..9).map(|n| (n * 1_000 * MS, (n * 1_000 + 200) * MS)).collect();
        let often = found(&often);
        assert!(
            often.outcome == AuditOutcome::Warn && often.detail.contains("9 times"),
            "{}",
            often.detail
        );
        let open = Trial::clean().result();
        assert_eq!(audit(&open, "silence").outcome, AuditOutcome::Ok);
    }
}
