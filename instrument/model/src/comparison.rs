//! A comparison of two sides, number by number, and the history of one experiment: what `compare` concludes and `report`
//! shows. Their JSON forms are `assay.comparison/1` and `assay.trend/1`.

use serde::{Deserialize, Serialize};

use crate::quantity::{show_count, show_ns};
use crate::result::{CurvePoint, Exit};

/// The name of a comparison's form.
pub const COMPARISON_SCHEMA: &str = "assay.comparison/1";
/// The name of a history's form.
pub const TREND_SCHEMA: &str = "assay.trend/1";

/// Two sides of a comparison and what differs between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// The side that is held to be known.
    pub baseline: ComparedSide,
    /// The side that is judged.
    pub candidate: ComparedSide,
    /// The ratio that makes no difference to the user, less one: 0.05 is 5 %.
    pub margin: f64,
    /// How sure each interval is, after the correction for the number of numbers: 0.99375 of eight.
    pub confidence: f64,
    /// Whether trials of the two sides were run by turns and are compared pair by pair.
    pub is_paired: bool,
    /// The gravest change of all numbers.
    pub change: Change,
    /// The result in one sentence.
    pub words: String,
    /// The limits of these runs; empty = nothing to say.
    pub unknown: String,
    /// Differences between plans, hosts and builds.
    pub differences: Vec<Difference>,
    /// All numbers, those that changed most first.
    pub numbers: Vec<ComparedNumber>,
    /// Response times by percentile, setting by setting.
    pub curves: Vec<ComparedCurves>,
}

impl Comparison {
    /// The exit code that it means.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self.change {
            Change::Worse => Exit::Regression,
            Change::Inconclusive => Exit::CannotTell,
            Change::Better | Change::Equivalent => Exit::Ok,
        }
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// Its name: a run folder, a baseline name, a label of an axis.
    pub label: String,
    /// When its runs started, RFC 3339.
    pub started: Vec<String>,
    /// How many trials it has in all settings.
    pub trials: u64,
}

/// One thing in which two plans, hosts or builds differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its name: `load.rate`, `host.cpu`, `assay`.
    pub of: String,
    /// Its value in the baseline; empty = absent.
    pub baseline: String,
    /// Its value in the candidate; empty = absent.
    pub candidate: String,
    /// Whether numbers of the two cannot be held against each other because of it.
    pub matters: bool,
}

/// The answer for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The interval lies within the margin.
    Equivalent,
    /// It differs for the better.
    Better,
    /// Neither a difference nor that there is none can be told.
    Inconclusive,
    /// It differs for the worse.
    Worse,
}

impl Change {
    /// From best to gravest.
    pub const ALL: [Self; 4] = [Self::Equivalent, Self::Better, Self::Inconclusive, Self::Worse];

    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::Better => "better",
            Self::Inconclusive => "inconclusive",
            Self::Worse => "worse",
        }
    }
}

/// The unit of a compared number, which also says which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedUnit {
    /// Nanoseconds: fewer are better.
    Ns,
    /// Per second: more are better.
    PerSecond,
    /// A number of things: more are better.
    Count,
    /// A share of one of what failed: less is better. It is compared by the difference, because a ratio to none is none.
    FailedShare,
}

impl ComparedUnit {
    /// Whether more of it is better.
    #[must_use]
    pub const fn is_more_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::Count)
    }
}

/// One number of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedNumber {
    /// The setting's key without what tells the sides apart; empty = the only one.
    pub setting: String,
    /// Its name: `p99`, `goodput`.
    pub name: String,
    /// Its unit.
    pub unit: ComparedUnit,
    /// Of the baseline: the middle trial's; null = infinite, or not known.
    pub baseline: Option<f64>,
    /// Of the candidate.
    pub candidate: Option<f64>,
    /// Candidate ÷ baseline, over all trials; of a share candidate − baseline. Null = it cannot be given.
    pub effect: Option<f64>,
    /// Lower end of its interval; null = open.
    pub low: Option<f64>,
    /// Upper end; null = open.
    pub high: Option<f64>,
    /// The answer.
    pub change: Change,
    /// The answer in words.
    pub words: String,
}

impl ComparedNumber {
    /// A value in its unit.
    #[must_use]
    pub fn show(&self, value: Option<f64>) -> String {
        let Some(value) = value.filter(|value| value.is_finite()) else { return "∞".to_owned() };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a time in nanoseconds, or thousandths"
        )]
        let whole = |value: f64| value.round() as i64;
        match self.unit {
            ComparedUnit::Ns => show_ns(whole(value)),
            ComparedUnit::PerSecond if value >= 1000.0 => {
                format!("{}/s", show_count(whole(value).unsigned_abs()))
            }
            ComparedUnit::PerSecond => format!("{}/s", significant(value)),
            ComparedUnit::Count => significant(value),
            ComparedUnit::FailedShare => format!("{}%", significant(value * 100.0)),
        }
    }
}

/// Three significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 8 digits")]
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.digits$}")
}

/// Response times by percentile of one setting, a curve a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedCurves {
    /// The setting's key, as in [`ComparedNumber::setting`].
    pub setting: String,
    /// The baseline's trials.
    pub baseline: Vec<Vec<CurvePoint>>,
    /// The candidate's.
    pub candidate: Vec<Vec<CurvePoint>>,
}

/// The runs of one experiment over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// [`TREND_SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// How change points are found, in words.
    pub method: String,
    /// Runs, oldest first.
    pub runs: Vec<TrendRun>,
    /// The numbers, each with a value a run.
    pub numbers: Vec<TrendNumber>,
}

/// One run of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrendRun {
    /// Its folder.
    pub folder: String,
    /// RFC 3339.
    pub started: String,
    /// Its baseline names.
    pub baseline_names: Vec<String>,
    /// Differences from the run before that matter: `load.rate: 50/s, before 40/s`.
    pub differs: Vec<String>,
}

/// One number of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrendNumber {
    /// The setting's key; empty = the only one.
    pub setting: String,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: ComparedUnit,
    /// Its value in each run; null = it has none.
    pub values: Vec<Option<f64>>,
    /// Where its level changed, oldest first.
    pub changes: Vec<TrendChange>,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrendChange {
    /// The first run of the new level, from 0.
    pub run: usize,
    /// The level before: the median.
    pub from: f64,
    /// The level after.
    pub to: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: values are shown in their unit with three significant digits, and one that is infinite as such.
    #[test]
    fn shown() {
        let of = |unit| ComparedNumber {
            setting: String::new(),
            name: "p99".to_owned(),
            unit,
            baseline: None,
            candidate: None,
            effect: None,
            low: None,
            high: None,
            change: Change::Worse,
            words: String::new(),
        };
        assert_eq!(of(ComparedUnit::Ns).show(Some(1_230_000.0)), "1.23 ms");
        assert_eq!(of(ComparedUnit::Ns).show(None), "∞");
        assert_eq!(of(ComparedUnit::PerSecond).show(Some(12_345.6)), "12,346/s");
        assert_eq!(of(ComparedUnit::PerSecond).show(Some(49.87)), "49.9/s");
        assert_eq!(of(ComparedUnit::FailedShare).show(Some(0.00123)), "0.123%");
    }

    /// Claim: only what is worse is a regression, and what cannot be told is said so.
    #[test]
    fn order() {
        assert!(Change::ALL.is_sorted());
        for change in Change::ALL {
            assert_eq!(serde_json::to_value(change).unwrap(), change.word());
        }
    }
}
