//! Do arrivals at even distances meet pauses that come at even distances, too? Then it is one phase that decides which of
//! them are met: 1/s beside a pause of 60 ms in each second meets all of them or none, for as long as it is measured. The
//! numbers hold for these phases, so that it warns and voids nothing.
//!
//! Two things are told: slow answers that come in step with the arrivals, of which each meets only a few; and a rate that
//! looks at so few phases of a second that a pause which comes each second can hide between them.

use std::time::Duration;

use model::plan::Schedule;
use model::quantity::show_ns;
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use crate::figures::grid::SECOND;
use crate::figures::phases::{Phases, Rhythm};

/// With so many phases of a second or fewer, a pause of a tenth of it can hide.
const PHASES_FEW: u64 = 10;
/// Slow is what takes so many times the median.
const SLOW_TIMES: i64 = 3;
/// A pause that meets so many arrivals or more is counted well enough: one more or less is a tenth of them.
const MET_MANY: f64 = 10.0;

pub(super) const AUDIT: Audit = Audit {
    name: "even_arrivals",
    question: "Are arrivals in step with pauses of the system, so that they meet them always or never?",
    voids: &[],
    figures: &[("phases", FigureUnit::Count), ("period", FigureUnit::Ns)],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    if let Some(Schedule::Poisson { .. }) = evidence.schedule() {
        return ok("arrivals are random: they meet a pause as often as it is long");
    }
    let Some(phases) = evidence.figures.phases.as_ref() else {
        return skipped("arrivals are not at even distances");
    };
    let rhythm = evidence
        .response
        .and_then(|times| times.all().quantile(0.5))
        .and_then(|median| phases.rhythm(median.saturating_mul(SLOW_TIMES)));
    finding(phases, rhythm)
}

#[expect(clippy::cast_precision_loss, reason = "few phases, and times below 2^53 ns")]
fn finding(phases: &Phases, rhythm: Option<Rhythm>) -> Finding {
    let of_second = phases.rate.phases_of(Duration::from_secs(1));
    let apart = show_ns(i64::try_from(phases.rate.due_ns(1)).unwrap_or(i64::MAX));
    let finding = match rhythm {
        Some(found) if found.is_in_step && found.met < MET_MANY => warn(format!(
            "slow answers come every {} ({} times), and arrivals every {apart} are in step with them: each time the same \
             {:.0} of {} are met, and a shift of a few milliseconds would make it more or fewer; arrival = \"poisson\" \
             meets all phases",
            show_ns(found.period_ns),
            found.times,
            found.met,
            found.period_ns / phases.cell_ns,
        )),
        _ if of_second <= PHASES_FEW => warn(format!(
            "arrivals every {apart}, exactly, see {} of a second: a pause of up to {} that comes each second is met \
             always or never; arrival = \"poisson\" meets all phases",
            if of_second == 1 { "one phase".to_owned() } else { format!("{of_second} phases") },
            show_ns(SECOND / i64::try_from(of_second.max(1)).unwrap_or(1))
        )),
        Some(found) => ok(format!(
            "slow answers come every {} ({} times), and arrivals every {apart} meet enough of their phases",
            show_ns(found.period_ns),
            found.times
        )),
        None => ok(format!(
            "slow answers, if there are any, do not come in step with arrivals every {apart}"
        )),
    };
    let period = rhythm.map_or(f64::NAN, |found| found.period_ns as f64);
    finding.with("phases", of_second as f64).with("period", period)
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use model::Outcome;
    use model::plan::{Arrivals, Schedule};
    use model::quantity::Rate;
    use model::result::{AuditOutcome, AuditResult};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit, row, setting};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[
        ("1/s: one phase of each second", |trial| {
            let rate = Rate::per_second(1);
            trial.setting.load.arrivals = Arrivals::Open { schedule: Schedule::Constant { rate } };
        }),
        ("50/s, a pause of 60 ms in each second", |trial| {
            let rate = Rate::per_second(50);
            trial.setting.load.arrivals = Arrivals::Open { schedule: Schedule::Constant { rate } };
            let due = |n: u64| i64::try_from(rate.due_ns(n)).unwrap();
            let end = trial.facts.measure_end();
            let rows = (0..).map(|n| (n, due(n))).take_while(|(_, due)| *due < end);
            let paused = |due: i64| (60 * MS - (due + 400 * MS) % (1_000 * MS)).max(0);
            let done = |(n, due)| row(n, due, 2 * MS + paused(due), Outcome::Committed);
            trial.rows = rows.map(done).collect();
        }),
    ];

    const MS: i64 = 1_000_000;

    /// For 30 s, of a server that takes 2 ms and does nothing for 60 ms from `phase_ns` on in each second.
    fn with(rate: &str, phase_ns: i64) -> AuditResult {
        let rate = Rate::parse(rate).unwrap();
        let mut trial = Trial::clean();
        trial.setting = setting(rate, Duration::from_secs(30));
        trial.facts.declared.measure_end = 30_000 * MS;
        trial.facts.load.drain_end = 31_000 * MS;
        let due = |n| i64::try_from(rate.due_ns(n)).unwrap();
        let rows = (0..).map(|n| (n, due(n))).take_while(|(_, due)| *due < 30_000 * MS);
        trial.rows = rows
            .map(|(n, due)| {
                let phase = (due - phase_ns).rem_euclid(1_000 * MS);
                let paused = if phase < 60 * MS { 60 * MS - phase } else { 0 };
                row(n, due, 2 * MS + paused, Outcome::Committed)
            })
            .collect();
        audit(&trial.result(), "even_arrivals").clone()
    }

    /// Claim: one arrival a second sees one phase of it, whether it meets the pause or not; twenty a second are told to be in
    /// step with it, a thousand meet enough of it, and 19.7 a second do not stay in step.
    #[test]
    fn pauses_in_step() {
        for phase in [0, 500 * MS] {
            let one = with("1/s", phase);
            assert_eq!(one.outcome, AuditOutcome::Warn, "{}", one.detail);
            assert!(one.detail.contains("met always or never"), "{}", one.detail);
        }
        let some = with("20/s", 0);
        assert_eq!(some.outcome, AuditOutcome::Warn, "{}", some.detail);
        let said = "slow answers come every 1.00 s (30 times), and arrivals every 50.0 ms are in step with them: each time \
                    the same 2 of 20 are met";
        assert!(some.detail.starts_with(said), "{}", some.detail);
        for rate in ["1000/s", "19.7/s"] {
            let many = with(rate, 0);
            assert_eq!(many.outcome, AuditOutcome::Ok, "{rate}: {}", many.detail);
        }
    }

    /// Claim: slow answers that come at random are not in step, and Poisson arrivals have nothing to be in step with.
    #[test]
    fn nothing_in_step() {
        let mut trial = Trial::clean();
        for (n, old) in trial.rows.iter_mut().enumerate() {
            if n.wrapping_mul(2_654_435_761) % 4_294_967_296 < 42_949_672 {
                *old = row(old.tx, old.due, 50 * MS, Outcome::Committed);
            }
        }
        let found = audit(&trial.clone().result(), "even_arrivals").clone();
        assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
        let schedule = Schedule::Poisson { rate: Rate::per_second(1_000) };
        trial.setting.load.arrivals = Arrivals::Open { schedule };
        let found = audit(&trial.result(), "even_arrivals").clone();
        assert!(found.detail.contains("arrivals are random"), "{}", found.detail);
    }
}
