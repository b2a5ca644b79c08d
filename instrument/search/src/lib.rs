//! The highest rate that keeps all thresholds, found by trials: which rate to try next, and what the trials so far show.
//!
//! A pure state machine: trials in, the next trial out. `assay run` carries it out, and `assay report` replays it from the
//! trials of the run folder.
//!
//! The order of the trials follows what published search methods agree on (RFC 2544's bisection, the bounds of MLRsearch,
//! <https://datatracker.ietf.org/doc/draft-ietf-bmwg-mlrsearch/>): short trials double the rate until one fails, and what
//! came through at that overload is the first guess between the two; long trials halve what is between; and the result is
//! confirmed by fresh trials below it and refuted by fresh trials above it, because the highest rate that happened to pass
//! is too high more often than not.

use std::time::Duration;

use model::plan::SearchPlan;
use model::result::{SearchClass, SearchEnd, SearchRole};

/// The factor between two rates of the bracket.
const BRACKET_STEP: f64 = 2.0;
/// The same after a rate was confirmed too low, in widths.
const NEAR_WIDTHS: f64 = 4.0;
/// How far below the first rate the bracket goes.
const BRACKET_LOW: f64 = 100.0;
/// Trials in a row without an answer.
const UNTOLD_MAX: u32 = 3;
/// Confirmations that failed and refutations that passed, together.
const ROUNDS_MAX: u32 = 12;

/// How far away the limit is taken to be where nothing is known of it, as a factor.
const GUESS: f64 = 4.0;
/// Trials of a search whose length is guessed.
const GUESSED_MAX: usize = 1_000;

/// The next trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Its rate, per second.
    pub per_s: f64,
    /// Its measured window.
    pub length: Duration,
    /// Its purpose.
    pub role: SearchRole,
}

/// The answer of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Whether it kept the thresholds.
    pub class: SearchClass,
    /// Its goodput, per second.
    pub through_per_s: f64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubling, or halving where not even the first rate is kept.
    Bracket {
        per_s: f64,
    },
    Bisect {
        per_s: f64,
    },
    Confirm {
        per_s: f64,
        kept: u32,
    },
    Refute {
        per_s: f64,
        kept: u32,
        failed: u32,
    },
    Ended(SearchEnd),
}

/// A search: its bounds and its next trial.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    phase: Phase,
    /// Rates that a trial kept, ascending; those at or above a failure are dropped.
    kept: Vec<f64>,
    /// The lowest rate that failed since the last refutation that did not hold.
    failed: Option<f64>,
    confirmed: Option<f64>,
    refuted: Option<f64>,
    untold: u32,
    rounds: u32,
}

impl Search {
    /// Begins at the plan's first rate.
    #[must_use]
    pub fn new(plan: &SearchPlan) -> Self {
        let per_s = plan.from_per_s.min(plan.most_per_s);
        Self {
            plan: plan.clone(),
            phase: Phase::Bracket { per_s },
            kept: Vec::new(),
            failed: None,
            confirmed: None,
            refuted: None,
            untold: 0,
            rounds: 0,
        }
    }

    /// The next trial; `None` at the end.
    #[must_use]
    pub fn next(&self) -> Option<Ask> {
        let (per_s, length, role) = match self.phase {
            Phase::Bracket { per_s } => (per_s, self.plan.bracket, SearchRole::Bracket),
            Phase::Bisect { per_s } => (per_s, self.plan.hold, SearchRole::Bisect),
            Phase::Confirm { per_s, .. } => (per_s, self.plan.hold, SearchRole::Confirm),
            Phase::Refute { per_s, .. } => (per_s, self.plan.hold, SearchRole::Refute),
            Phase::Ended(_) => return None,
        };
        Some(Ask { per_s, length, role })
    }

    /// How it ended; `None` before that.
    #[must_use]
    pub const fn end(&self) -> Option<SearchEnd> {
        match self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// The highest rate that was kept, below every failure.
    #[must_use]
    pub fn kept_per_s(&self) -> Option<f64> {
        self.kept.last().copied()
    }

    /// How long the rest of the search takes, each trial with this warm-up, if its trials agree and the limit is in the
    /// middle of what is known, or, where no rate has failed yet, at four times the highest that was kept (at the
    /// beginning, the first): half of the factor of sixteen that a search is told of.
    #[must_use]
    pub fn remaining(&self, warmup: Duration) -> Duration {
        let low = self.kept_per_s();
        let limit = match (low, self.failed) {
            (Some(low), Some(high)) => (low * high).sqrt(),
            (None, Some(high)) => high / GUESS,
            (low, None) => low.unwrap_or(self.plan.from_per_s) * GUESS,
        };
        let (mut rest, mut length) = (self.clone(), Duration::ZERO);
        for _ in 0..GUESSED_MAX {
            let Some(ask) = rest.next() else { break };
            length += ask.length + warmup;
            let is_kept = ask.per_s <= limit;
            let class = if is_kept { SearchClass::Kept } else { SearchClass::Failed };
            rest.observe(Seen { class, through_per_s: ask.per_s.min(limit) });
        }
        length
    }

    /// The highest rate that fresh trials confirmed.
    #[must_use]
    pub const fn confirmed_per_s(&self) -> Option<f64> {
        self.confirmed
    }

    /// The lowest rate that fresh trials refuted, or without one the lowest that failed.
    #[must_use]
    pub fn refuted_per_s(&self) -> Option<f64> {
        self.refuted.or(self.failed)
    }

    /// Takes the answer of the trial that [`Search::next`] asked for.
    pub fn observe(&mut self, seen: Seen) {
        let is_kept = match seen.class {
            SearchClass::Untold => {
                self.untold += 1;
                if self.untold == UNTOLD_MAX {
                    self.phase = Phase::Ended(SearchEnd::Untold);
                }
                return;
            }
            SearchClass::Kept => true,
            SearchClass::Failed => false,
        };
        self.untold = 0;
        self.phase = match (self.phase, is_kept) {
            (Phase::Bracket { per_s }, true) => self.bracket_kept(per_s),
            (Phase::Bracket { per_s }, false) => self.bracket_failed(per_s, seen.through_per_s),
            (Phase::Bisect { per_s }, true) => {
                self.keep(per_s);
                self.narrow(None)
            }
            (Phase::Bisect { per_s }, false) => {
                self.fail(per_s);
                self.narrow(None)
            }
            (Phase::Confirm { per_s, kept }, true) if kept + 1 < self.plan.confirmations => {
                Phase::Confirm { per_s, kept: kept + 1 }
            }
            (Phase::Confirm { per_s, .. }, true) => self.confirm(per_s),
            (Phase::Confirm { per_s, .. }, false) => {
                self.fail(per_s);
                self.again(Self::narrow_again)
            }
            (Phase::Refute { per_s, kept, failed }, _) => {
                let (kept, failed) = if is_kept { (kept + 1, failed) } else { (kept, failed + 1) };
                self.refute(per_s, kept, failed)
            }
            (ended @ Phase::Ended(_), _) => ended,
        };
    }

    fn bracket_kept(&mut self, per_s: f64) -> Phase {
        self.keep(per_s);
        match self.failed {
            Some(_) => self.narrow(None),
            None if per_s >= self.plan.most_per_s => Phase::Confirm { per_s, kept: 0 },
            None => {
                Phase::Bracket { per_s: rounded(per_s * BRACKET_STEP).min(self.plan.most_per_s) }
            }
        }
    }

    fn bracket_failed(&mut self, per_s: f64, through_per_s: f64) -> Phase {
        self.fail(per_s);
        if !self.kept.is_empty() {
            return self.narrow(Some(through_per_s));
        }
        let lower = rounded((per_s / BRACKET_STEP).min(through_per_s.max(per_s / 100.0)));
        match lower * BRACKET_LOW < self.plan.from_per_s {
            true => Phase::Ended(SearchEnd::NotEven),
            false => Phase::Bracket { per_s: lower },
        }
    }

    /// Between the highest rate that was kept and the lowest that failed; what came through at overload is the first guess.
    fn narrow(&mut self, through_per_s: Option<f64>) -> Phase {
        let (Some(low), Some(high)) = (self.kept.last().copied(), self.failed) else {
            return match self.kept.last() {
                Some(_) => Phase::Ended(SearchEnd::Untold),
                None => self.below(),
            };
        };
        if high <= low * (1.0 + self.plan.width) {
            return Phase::Confirm { per_s: rounded(low * (1.0 - self.plan.margin)), kept: 0 };
        }
        let apart = 1.0 + self.plan.width / 2.0;
        let guess = through_per_s.filter(|guess| low * apart < *guess && *guess < high / apart);
        Phase::Bisect { per_s: rounded(guess.unwrap_or((low * high).sqrt())) }
    }

    fn narrow_again(&mut self) -> Phase {
        self.narrow(None)
    }

    /// Nothing that was kept is left: half of the lowest failure.
    fn below(&self) -> Phase {
        let per_s = rounded(self.failed.unwrap_or(self.plan.from_per_s) / BRACKET_STEP);
        match per_s * BRACKET_LOW < self.plan.from_per_s {
            true => Phase::Ended(SearchEnd::NotEven),
            false => Phase::Bracket { per_s },
        }
    }

    fn confirm(&mut self, per_s: f64) -> Phase {
        self.confirmed = Some(per_s);
        self.keep(per_s);
        if per_s >= self.plan.most_per_s {
            return Phase::Ended(SearchEnd::AtLeast);
        }
        let margin = self.plan.margin;
        let above = rounded(per_s / (1.0 - margin) * (1.0 + margin)).min(self.plan.most_per_s);
        Phase::Refute { per_s: above, kept: 0, failed: 0 }
    }

    /// The majority of the trials above the result decides.
    fn refute(&mut self, per_s: f64, kept: u32, failed: u32) -> Phase {
        let needed = self.plan.confirmations / 2 + 1;
        if failed == needed {
            self.refuted = Some(per_s);
            return Phase::Ended(SearchEnd::Found);
        }
        if kept < needed {
            return Phase::Refute { per_s, kept, failed };
        }
        self.failed = None;
        self.keep(per_s);
        // The limit is near: doubling would look for it far away.
        let step = 1.0 + NEAR_WIDTHS * self.plan.width;
        let above = rounded(per_s * step).min(self.plan.most_per_s);
        self.again(|_| match above > per_s {
            true => Phase::Bracket { per_s: above },
            false => Phase::Confirm { per_s, kept: 0 },
        })
    }

    fn again(&mut self, go_on: impl FnOnce(&mut Self) -> Phase) -> Phase {
        self.rounds += 1;
        match self.rounds > ROUNDS_MAX {
            true => Phase::Ended(SearchEnd::Unsteady),
            false => go_on(self),
        }
    }

    fn keep(&mut self, per_s: f64) {
        // A rate that was kept above one that failed is not trusted.
        if self.failed.is_none_or(|failed| per_s < failed) {
            self.kept.push(per_s);
            self.kept.sort_by(f64::total_cmp);
        }
    }

    fn fail(&mut self, per_s: f64) {
        self.failed = Some(self.failed.map_or(per_s, |failed| failed.min(per_s)));
        self.kept.retain(|kept| *kept < per_s);
        if self.confirmed.is_some_and(|confirmed| confirmed >= per_s) {
            self.confirmed = None;
        }
    }
}

/// Three significant digits: a rate that people can say.
#[must_use]
pub fn rounded(per_s: f64) -> f64 {
    if per_s <= 0.0 || !per_s.is_finite() {
        return per_s;
    }
    let unit = 10_f64.powf(per_s.log10().floor() - 2.0);
    let rounded = (per_s / unit).round() * unit;
    // The same number however it was reached; a rate has three decimals.
    ((rounded * 1000.0).round() / 1000.0).max(0.001)
}

#[cfg(test)]
mod tests;
