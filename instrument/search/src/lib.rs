//! The highest value of a key (a rate, clients, connections) that keeps all thresholds, found by trials: which value to try
//! next, and what the trials so far show; and between trials, whether a system that goes on running is calm.
//!
//! A pure state machine: trials in, the next trial out. `assay run` carries it out, and `assay report` replays it from the
//! trials of the run folder.
//!
//! The order of the trials follows what published search methods agree on (RFC 2544's bisection, the bounds of MLRsearch,
//! <https://datatracker.ietf.org/doc/draft-ietf-bmwg-mlrsearch/>): short trials double the value until one fails, and of a
//! rate what came through at that overload is the first guess between the two; long trials halve what is between; and the
//! result is confirmed by fresh trials below it and refuted by fresh trials above it, because the highest value that
//! happened to pass is too high more often than not.

mod calm;

use std::time::Duration;

pub use calm::{Calm, PROBES_BEFORE, Probed};
use model::plan::{LoadPlan, SearchKey, SearchPlan};
use model::result::{SearchClass, SearchEnd, SearchRole};

/// The factor between two values of the bracket.
const BRACKET_STEP: f64 = 2.0;
/// The same after a value was confirmed too low, in widths.
const NEAR_WIDTHS: f64 = 4.0;
/// How far below the first value the bracket goes.
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
    /// The value to try: a rate per second, or a count.
    pub value: f64,
    /// Its measured window.
    pub length: Duration,
    /// Its purpose.
    pub role: SearchRole,
}

impl Ask {
    /// Compares with a load of a plan: another version of the search may have written one that this one does not ask for.
    #[must_use]
    pub fn is_of(&self, find: SearchKey, load: &LoadPlan) -> bool {
        // A plan's rate has three decimals, a first value of 10/3s has more.
        let is_its_value = |value: f64| (value - self.value).abs() < 0.001;
        find.value(load).is_some_and(is_its_value) && load.duration == self.length
    }
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
    /// Doubling, or halving where not even the first value is kept.
    Bracket {
        value: f64,
    },
    Bisect {
        value: f64,
    },
    Confirm {
        value: f64,
        kept: u32,
    },
    Refute {
        value: f64,
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
    /// Values that a trial kept, ascending; those at or above a failure are dropped.
    kept: Vec<f64>,
    /// Values that failed, ascending; those below a refutation that did not hold, or near above it, are dropped.
    failed: Vec<f64>,
    confirmed: Option<f64>,
    refuted: Option<f64>,
    untold: u32,
    rounds: u32,
}

impl Search {
    /// Begins at the plan's first value.
    #[must_use]
    pub fn new(plan: &SearchPlan) -> Self {
        let value = plan.from.min(plan.most);
        Self {
            plan: plan.clone(),
            phase: Phase::Bracket { value },
            kept: Vec::new(),
            failed: Vec::new(),
            confirmed: None,
            refuted: None,
            untold: 0,
            rounds: 0,
        }
    }

    /// The next trial; `None` at the end.
    #[must_use]
    pub fn next(&self) -> Option<Ask> {
        let (value, length, role) = match self.phase {
            Phase::Bracket { value } => (value, self.plan.bracket, SearchRole::Bracket),
            Phase::Bisect { value } => (value, self.plan.hold, SearchRole::Bisect),
            Phase::Confirm { value, .. } => (value, self.plan.hold, SearchRole::Confirm),
            Phase::Refute { value, .. } => (value, self.plan.hold, SearchRole::Refute),
            Phase::Ended(_) => return None,
        };
        Some(Ask { value, length, role })
    }

    /// How it ended; `None` before that.
    #[must_use]
    pub const fn end(&self) -> Option<SearchEnd> {
        match self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// The highest value that was kept, below every failure.
    #[must_use]
    pub fn kept(&self) -> Option<f64> {
        self.kept.last().copied()
    }

    fn lowest_failed(&self) -> Option<f64> {
        self.failed.first().copied()
    }

    /// How long the rest of the search takes, each trial with this warm-up, if its trials agree and the limit is in the
    /// middle of what is known, or, where no value has failed yet, at four times the highest that was kept (at the
    /// beginning, the first): half of the factor of sixteen that a search is told of.
    #[must_use]
    pub fn remaining(&self, warmup: Duration) -> Duration {
        let low = self.kept();
        let limit = match (low, self.lowest_failed()) {
            (Some(low), Some(high)) => (low * high).sqrt(),
            (None, Some(high)) => high / GUESS,
            (low, None) => low.unwrap_or(self.plan.from) * GUESS,
        };
        let (mut rest, mut length) = (self.clone(), Duration::ZERO);
        for _ in 0..GUESSED_MAX {
            let Some(ask) = rest.next() else { break };
            length += ask.length + warmup;
            let is_kept = ask.value <= limit;
            let class = if is_kept { SearchClass::Kept } else { SearchClass::Failed };
            rest.observe(Seen { class, through_per_s: ask.value.min(limit) });
        }
        length
    }

    /// The highest value that fresh trials confirmed.
    #[must_use]
    pub const fn confirmed(&self) -> Option<f64> {
        self.confirmed
    }

    /// The lowest value that fresh trials refuted, or without one the lowest that failed.
    #[must_use]
    pub fn refuted(&self) -> Option<f64> {
        self.refuted.or_else(|| self.lowest_failed())
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
            (Phase::Bracket { value }, true) => self.bracket_kept(value),
            (Phase::Bracket { value }, false) => self.bracket_failed(value, seen.through_per_s),
            (Phase::Bisect { value }, true) => {
                self.keep(value);
                self.narrow(None)
            }
            (Phase::Bisect { value }, false) => {
                self.fail(value);
                self.narrow(None)
            }
            (Phase::Confirm { value, kept }, true) if kept + 1 < self.plan.confirmations => {
                Phase::Confirm { value, kept: kept + 1 }
            }
            (Phase::Confirm { value, .. }, true) => self.confirm(value),
            (Phase::Confirm { value, .. }, false) => {
                self.fail(value);
                self.again(Self::narrow_again)
            }
            (Phase::Refute { value, kept, failed }, _) => {
                let (kept, failed) = if is_kept { (kept + 1, failed) } else { (kept, failed + 1) };
                self.refute(value, kept, failed)
            }
            (ended @ Phase::Ended(_), _) => ended,
        };
    }

    fn bracket_kept(&mut self, value: f64) -> Phase {
        self.keep(value);
        match self.lowest_failed() {
            Some(_) => self.narrow(None),
            None if value >= self.plan.most => Phase::Confirm { value, kept: 0 },
            None => Phase::Bracket { value: self.at_most(value * BRACKET_STEP) },
        }
    }

    fn bracket_failed(&mut self, value: f64, through_per_s: f64) -> Phase {
        self.fail(value);
        if !self.kept.is_empty() {
            return self.narrow(Some(through_per_s));
        }
        // Goodput is a rate, and says nothing of a count.
        let through = if self.is_count() { value } else { through_per_s.max(value / 100.0) };
        self.lower((value / BRACKET_STEP).min(through))
    }

    /// Between the highest value that was kept and the lowest that failed; of a rate, what came through at overload is the first guess.
    fn narrow(&mut self, through_per_s: Option<f64>) -> Phase {
        let (Some(low), Some(high)) = (self.kept(), self.lowest_failed()) else {
            return match self.kept.last() {
                Some(_) => Phase::Ended(SearchEnd::Untold),
                None => self.below(),
            };
        };
        let is_near = high <= low * (1.0 + self.plan.width);
        if is_near || (self.is_count() && high - low <= 1.0) {
            return Phase::Confirm { value: self.rounded(low * (1.0 - self.plan.margin)), kept: 0 };
        }
        let apart = 1.0 + self.plan.width / 2.0;
        let is_guess = |guess: &f64| low * apart < *guess && *guess < high / apart;
        let guess = through_per_s.filter(|guess| !self.is_count() && is_guess(guess));
        let middle = self.rounded(guess.unwrap_or((low * high).sqrt()));
        match self.is_count() {
            true => Phase::Bisect { value: middle.clamp(low + 1.0, high - 1.0) },
            false => Phase::Bisect { value: middle },
        }
    }

    fn narrow_again(&mut self) -> Phase {
        self.narrow(None)
    }

    /// Nothing that was kept is left: half of the lowest failure.
    fn below(&self) -> Phase {
        self.lower(self.lowest_failed().unwrap_or(self.plan.from) / BRACKET_STEP)
    }

    /// A lower value of the bracket, unless there is none.
    fn lower(&self, value: f64) -> Phase {
        let lower = self.rounded(value);
        let is_low = match self.is_count() {
            true => self.lowest_failed().is_some_and(|failed| lower >= failed),
            false => lower * BRACKET_LOW < self.plan.from,
        };
        match is_low {
            true => Phase::Ended(SearchEnd::NotEven),
            false => Phase::Bracket { value: lower },
        }
    }

    fn confirm(&mut self, value: f64) -> Phase {
        self.confirmed = Some(value);
        self.keep(value);
        if value >= self.plan.most {
            return Phase::Ended(SearchEnd::AtLeast);
        }
        let margin = self.plan.margin;
        let above = self.above(value, (1.0 + margin) / (1.0 - margin));
        Phase::Refute { value: above, kept: 0, failed: 0 }
    }

    /// The majority of the trials above the result decides.
    fn refute(&mut self, value: f64, kept: u32, failed: u32) -> Phase {
        let needed = self.plan.confirmations / 2 + 1;
        if failed == needed {
            self.refuted = Some(value);
            return Phase::Ended(SearchEnd::Found);
        }
        if kept < needed {
            return Phase::Refute { value, kept, failed };
        }
        // Failures so near above it are doubted, too: otherwise one by accident would hold the search for rounds.
        let near = value * (1.0 + self.plan.width);
        self.failed.retain(|failed| *failed > near);
        self.keep(value);
        if !self.failed.is_empty() {
            return self.again(Self::narrow_again);
        }
        // The limit is near: doubling would look for it far away.
        let step = 1.0 + NEAR_WIDTHS * self.plan.width;
        let above = self.above(value, step);
        self.again(|_| match above > value {
            true => Phase::Bracket { value: above },
            false => Phase::Confirm { value, kept: 0 },
        })
    }

    /// A value higher than another by a factor, and of a count by at least one.
    fn above(&self, value: f64, factor: f64) -> f64 {
        let least = if self.is_count() { value + 1.0 } else { 0.0 };
        self.at_most((value * factor).max(least))
    }

    fn at_most(&self, value: f64) -> f64 {
        self.rounded(value).min(self.plan.most)
    }

    fn rounded(&self, value: f64) -> f64 {
        if self.is_count() { rounded(value).round().max(1.0) } else { rounded(value) }
    }

    const fn is_count(&self) -> bool {
        self.plan.find.is_count()
    }

    fn again(&mut self, go_on: impl FnOnce(&mut Self) -> Phase) -> Phase {
        self.rounds += 1;
        match self.rounds > ROUNDS_MAX {
            true => Phase::Ended(SearchEnd::Unsteady),
            false => go_on(self),
        }
    }

    fn keep(&mut self, value: f64) {
        // A value that was kept above one that failed is not trusted.
        if self.lowest_failed().is_none_or(|failed| value < failed) {
            self.kept.push(value);
            self.kept.sort_by(f64::total_cmp);
        }
    }

    fn fail(&mut self, value: f64) {
        self.failed.push(value);
        self.failed.sort_by(f64::total_cmp);
        self.kept.retain(|kept| *kept < value);
        if self.confirmed.is_some_and(|confirmed| confirmed >= value) {
            self.confirmed = None;
        }
    }
}

/// Three significant digits: a value that people can say.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10_f64.powf(value.log10().floor() - 2.0);
    let rounded = (value / unit).round() * unit;
    // The same number however it was reached; a rate has three decimals.
    ((rounded * 1000.0).round() / 1000.0).max(0.001)
}

#[cfg(test)]
mod tests;
