//! Is there a trend left at the start of the window, so that the numbers mix the warm-up with the steady state?
//!
//! The start is what MSER-5 would cut, or the first tenth if that is longer or alone is unlike the rest. It is compared
//! with the rest by mean response time, and the difference counts only if the scatter of blocks of the same length
//! cannot explain it: MSER alone cuts somewhere in most correlated series.

use model::quantity::show_ns;
use model::result::{Direction, Family, FigureUnit, Voided};
use stats::special::t_quantile;
use stats::warmup::mser5;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};
use crate::figures::share::percent;

/// A start that differs from the rest by less than this changes no conclusion.
const OFF_WARN: f64 = 0.10;
/// From here on the printed mean and median are of no state in particular.
const OFF_MAX: f64 = 0.25;
/// How sure a difference must be, one-sided. Far out, because MSER picks the start that differs most and
/// neighbouring blocks of a busy queue depend on each other.
const CONFIDENCE: f64 = 0.9995;
/// Each third of what MSER cut must differ by at least this share of the difference of the whole …
const SUSTAINED_MIN: f64 = 0.25;
/// … and of the first tenth by this: those who wait for the end of a stall wait the less the later they came, the last
/// third of them a third of the mean of all.
const SUSTAINED_TENTH_MIN: f64 = 0.5;
/// At most one part in this many is the start: what is left must be able to say what steady means.
const START_PARTS_MIN: usize = 5;

pub(super) const AUDIT: Audit = Audit {
    name: "warm_up",
    question: "Is there a trend left at the start of the window?",
    voids: &[Voided::either(Family::Response), Voided::either(Family::Service)],
    figures: &[("off", FigureUnit::Share), ("start", FigureUnit::Ns), ("rest", FigureUnit::Ns)],
};

#[expect(clippy::cast_precision_loss, reason = "sums and counts")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    if evidence.load_changes() {
        return skipped("the plan changes the load during the window");
    }
    if !evidence.trial.setting.faults.is_empty() {
        return skipped("the plan injects faults during the window");
    }
    let slots = evidence.response.map_or(&[][..], |times| times.slots());
    let sums: Vec<(f64, f64)> = slots
        .iter()
        .map(|slot| (slot.moments().sum() as f64, slot.moments().count() as f64))
        .filter(|(_, count)| *count > 0.0)
        .collect();
    let means: Vec<f64> = sums.iter().map(|(sum, count)| sum / count).collect();
    let Some(truncation) = mser5(&means) else {
        return skipped("the measured window is too short to see a trend");
    };
    let tenth = means.len() / 10;
    let cuts =
        [truncation.cut.max(tenth), tenth].map(|cut| cut.min(means.len() / START_PARTS_MIN).max(1));
    // MSER cuts a little late, and what it cut too much is not like the start: the first tenth is looked at by itself.
    let by_mser = Start::of(&sums, cuts[0], SUSTAINED_MIN);
    let by_tenth = Start::of(&sums, cuts[1], SUSTAINED_TENTH_MIN);
    let Start { cut, start, rest, is_sure } =
        if !by_mser.is_sure && by_tenth.is_sure { by_tenth } else { by_mser };
    let off = (start - rest) / rest;
    let said = format!(
        "mean response {} in the first {} of the window, {} after it ({}{})",
        show_ns(start as i64),
        percent(cut as f64 / means.len() as f64),
        show_ns(rest as i64),
        if off < 0.0 { "−" } else { "+" },
        percent(off.abs())
    );
    let finding = if !is_sure && let Some(change) = evidence.change() {
        let moves = change.in_words(evidence.trial.grid.length());
        skipped(format!("{said}: its start is not told apart, because {moves} (see latency_drift)"))
    } else if !is_sure || off.abs() < OFF_WARN {
        ok(format!("{said}: no trend left at the start"))
    } else {
        let said = format!("{said}: the start is not like the rest; lengthen load.warmup");
        // A saturated queue starts low because it starts empty: that is what the declared threshold looked for.
        match off.abs() < OFF_MAX || evidence.is_saturated {
            true => warn(said),
            false => failed(said).voiding(mixed_with(off)),
        }
    };
    finding.with("off", off).with("start", start).with("rest", rest)
}

/// The start of a window and what comes after it.
struct Start {
    /// Slots of the start.
    cut: usize,
    /// Mean of the start, and of what comes after it.
    start: f64,
    rest: f64,
    /// Whether they differ by more than chance.
    is_sure: bool,
}

impl Start {
    fn of(sums: &[(f64, f64)], cut: usize, sustained_min: f64) -> Self {
        let (start, rest) = (mean_of(&sums[..cut]), mean_of(&sums[cut..]));
        let off = (start - rest) / rest;
        // One burst in the start is no trend: each third of it must differ to the same side, and by how much of the whole.
        let third = (cut / 3).max(1);
        let is_sustained =
            sums[..cut].chunks(third).filter(|part| part.len() == third).all(|part| {
                let part_off = (mean_of(part) - rest) / rest;
                part_off.signum() == off.signum() && part_off.abs() >= off.abs() * sustained_min
            });
        let is_sure = is_sustained && (start - rest).abs() > scatter(&sums[cut..], cut, rest);
        Self { cut, start, rest, is_sure }
    }
}

/// A slow start makes the window's times too high for what comes after it, a fast one too low.
fn mixed_with(off: f64) -> [Voided; 2] {
    let may_be = if off > 0.0 { Direction::TooHigh } else { Direction::TooLow };
    [Family::Response, Family::Service].map(|family| Voided { family, may_be })
}

fn mean_of(sums: &[(f64, f64)]) -> f64 {
    let (sum, count) = sums.iter().fold((0.0, 0.0), |(s, c), slot| (s + slot.0, c + slot.1));
    sum / count
}

/// How far the mean of one block of `length` slots strays from the mean of all by chance: Student's t on blocks
/// of that length in `sums`. Never less than a thousandth of the mean, which is what the histogram resolves.
#[expect(clippy::cast_precision_loss, reason = "a few blocks")]
fn scatter(sums: &[(f64, f64)], length: usize, mean: f64) -> f64 {
    let blocks: Vec<f64> = sums.chunks_exact(length).map(mean_of).collect();
    let n = blocks.len() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    let squares: f64 = blocks.iter().map(|block| (block - mean).powi(2)).sum();
    let deviation = (squares / (n - 1.0)).sqrt().max(mean.abs() / 1_000.0);
    t_quantile(CONFIDENCE, n - 1.0) * deviation * (1.0 + 1.0 / n).sqrt()
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::result::AuditOutcome;

    use crate::audits::guilty::{Guilt, MS, WARM_UP_NS};
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("the first tenth is five times as slow", |trial| {
            for old in &mut trial.rows {
                let is_early = old.due - WARM_UP_NS < 3_000 * MS;
                let time = old.end - old.due + if is_early { 20 * MS } else { 0 };
                *old = row(old.tx, old.due, time, Outcome::Committed);
            }
        })];

    fn with(length: fn(i64, i64) -> i64) -> model::result::AuditResult {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            let noise = old.end - old.due - 2_000_000;
            *old = row(old.tx, old.due, length(old.due, noise), Outcome::Committed);
        }
        let result = trial.result();
        audit(&result, "warm_up").clone()
    }

    /// Claim: a start three times as slow fails, one 15 % slower warns, and a level window passes.
    #[test]
    fn trend_at_the_start() {
        let slow =
            with(|due, noise| noise + if due < 1_500_000_000 { 6_000_000 } else { 2_000_000 });
        assert_eq!(slow.outcome, AuditOutcome::Failed, "{}", slow.detail);
        let mild =
            with(|due, noise| noise + if due < 1_500_000_000 { 2_400_000 } else { 2_000_000 });
        assert_eq!(mild.outcome, AuditOutcome::Warn, "{}", mild.detail);
        let level = with(|_, noise| noise + 2_000_000);
        assert_eq!(level.outcome, AuditOutcome::Ok, "{}", level.detail);
    }

    /// Claim: one freeze in the middle is not a warm-up.
    #[test]
    fn a_freeze_is_no_warm_up() {
        let frozen = with(|due, noise| {
            noise
                + 2_000_000
                + if (5_000_000_000..6_000_000_000).contains(&due) {
                    6_000_000_000 - due
                } else {
                    0
                }
        });
        assert_ne!(frozen.outcome, AuditOutcome::Failed, "{}", frozen.detail);
    }
}
