//! The search for the highest rate that keeps the thresholds: its result, and every trial on the way.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::show_duration;

/// The highest rate that keeps the thresholds, and how it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The thresholds that were to be met.
    pub asked: Vec<String>,
    /// How it ended; null = it was interrupted.
    pub end: Option<SearchEnd>,
    /// The highest rate that fresh trials confirmed, per second; null = none was.
    pub confirmed_per_s: Option<f64>,
    /// The lowest rate above it that does not keep the thresholds, per second; null = none was found.
    pub refuted_per_s: Option<f64>,
    /// The measured window of the trials that confirm and refute, nanoseconds: the time for which the rate is sustained.
    pub hold_ns: i64,
    /// How many trials confirm.
    pub confirmations: u32,
    /// The limit that was reached first at the lowest rate that failed.
    pub limit: Option<SearchLimit>,
    /// Where more load brings less; null = it did not, up to the highest rate that was tried.
    #[serde(default)]
    pub collapse: Option<SearchCollapse>,
    /// Every trial, in the order in which they were run.
    pub trials: Vec<SearchTrial>,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchTrial {
    /// The setting's key.
    pub setting: String,
    /// Its number in that setting.
    pub trial: u32,
    /// Its purpose.
    pub role: SearchRole,
    /// The rate that was asked for, per second.
    pub per_s: f64,
    /// Whether it kept the thresholds.
    pub class: SearchClass,
    /// Its goodput, per second.
    #[serde(default)]
    pub goodput_per_s: f64,
}

/// A system that brings less the more is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchCollapse {
    /// The lowest rate that was tried at which goodput is less than nine tenths of the most, per second.
    pub per_s: f64,
    /// The most goodput of any trial at a lower rate, per second.
    pub most_per_s: f64,
    /// The goodput of the highest rate that was tried, per second, and that rate.
    pub least_per_s: f64,
    /// The highest rate that was tried, per second.
    pub at_per_s: f64,
}

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchRole {
    /// A short one: between which rates the limit is.
    Bracket,
    /// Half of what is between.
    Bisect,
    /// A fresh one below the highest that passed.
    Confirm,
    /// A fresh one above it.
    Refute,
}

/// The answer of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchClass {
    /// All thresholds are met.
    Kept,
    /// A threshold failed, if perhaps by chance, or not all that was offered came through.
    Failed,
    /// Neither can be told: the instrument decides.
    Untold,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// A rate is confirmed and one above it refuted.
    Found,
    /// The highest rate that may be offered is confirmed.
    AtLeast,
    /// No rate is kept, however low.
    NotEven,
    /// Several trials in a row could not tell.
    Untold,
    /// Trials contradicted each other too often.
    Unsteady,
}

/// The part that reached its limit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchLimit {
    /// This client could not send or read in time.
    Generator,
    /// A rate limiter of the system refused.
    Limiter,
    /// The system refused otherwise: full queues, no room.
    Admission,
    /// Transactions failed or were never answered.
    Failures,
    /// Acknowledged transactions were lost, doubled or invented.
    Loss,
    /// More came than was served, and waited.
    Backlog,
    /// Answers took too long, though as many were given as came.
    Latency,
}

impl SearchResult {
    /// The result in one sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let asked = self.asked.join(" and ");
        let hold = show_duration(Duration::from_nanos(self.hold_ns.unsigned_abs()));
        let limit = self.limit.map_or("", SearchLimit::in_words);
        let rate = |per_s: f64| format!("{per_s}/s");
        let Some(confirmed) = self.confirmed_per_s.map(rate) else {
            return match self.end {
                None => format!("interrupted before a rate was found that keeps {asked}"),
                Some(SearchEnd::NotEven) => {
                    format!("no rate keeps {asked}, down to {}{limit}", rate(self.lowest_per_s()))
                }
                Some(SearchEnd::Untold) => format!(
                    "no rate is confirmed: several trials in a row could not tell whether {asked} is kept at {}{limit}",
                    rate(self.last_per_s())
                ),
                _ => format!(
                    "no rate is confirmed that keeps {asked}: trials contradicted each other"
                ),
            };
        };
        let collapse = self.collapse.map_or_else(String::new, |it| it.in_words());
        let trials = match self.confirmations {
            1 => format!("a trial of {hold}"),
            trials => format!("{trials} trials of {hold}"),
        };
        let found = format!("{confirmed} keeps {asked}, confirmed by {trials}");
        match (self.end, self.refuted_per_s.map(rate)) {
            (Some(SearchEnd::AtLeast), _) => format!("{found}; no higher rate was allowed"),
            (Some(SearchEnd::Found), Some(refuted)) => {
                format!("{found}; {refuted} does not{limit}{collapse}")
            }
            (Some(SearchEnd::Unsteady | SearchEnd::Untold), _) => {
                format!("{found}; trials above it contradicted each other or could not tell")
            }
            _ => format!("{found}; interrupted before a higher rate was refuted"),
        }
    }

    fn lowest_per_s(&self) -> f64 {
        self.trials.iter().map(|trial| trial.per_s).fold(f64::INFINITY, f64::min)
    }

    fn last_per_s(&self) -> f64 {
        self.trials.last().map_or(0.0, |trial| trial.per_s)
    }
}

impl SearchCollapse {
    /// The end of a sentence.
    fn in_words(self) -> String {
        format!(
            "; from {}/s on it collapses: of {}/s only {:.0}/s come through, of less load {:.0}/s did",
            self.per_s, self.at_per_s, self.least_per_s, self.most_per_s
        )
    }
}

impl SearchClass {
    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Failed => "failed",
            Self::Untold => "cannot tell",
        }
    }
}

impl SearchLimit {
    /// The end of a sentence.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Generator => ": this client is the limit, and not the system",
            Self::Limiter => ": the system's limiter refuses requests",
            Self::Admission => ": the system refuses requests",
            Self::Failures => ": requests stay without an answer",
            Self::Loss => ": its ledger disagrees with its answers",
            Self::Backlog => ": more comes than it serves",
            Self::Latency => ": answers take too long",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: each end has its sentence, and none names a rate that was not confirmed as the result.
    #[test]
    fn sentences() {
        let of = |end, confirmed_per_s, refuted_per_s| {
            let found = SearchResult {
                asked: vec!["p99 < 100ms".to_owned()],
                end,
                confirmed_per_s,
                refuted_per_s,
                hold_ns: 30_000_000_000,
                confirmations: 3,
                limit: Some(SearchLimit::Backlog),
                collapse: None,
                trials: vec![SearchTrial {
                    setting: String::new(),
                    trial: 0,
                    role: SearchRole::Bracket,
                    per_s: 50.0,
                    class: SearchClass::Failed,
                    goodput_per_s: 40.0,
                }],
            };
            found.in_words()
        };
        assert_eq!(
            of(Some(SearchEnd::Found), Some(836.0), Some(924.0)),
            "836/s keeps p99 < 100ms, confirmed by 3 trials of 30s; 924/s does not: more comes than it serves"
        );
        assert_eq!(
            of(Some(SearchEnd::NotEven), None, Some(50.0)),
            "no rate keeps p99 < 100ms, down to 50/s: more comes than it serves"
        );
        for end in [None, Some(SearchEnd::Untold), Some(SearchEnd::Unsteady)] {
            assert!(!of(end, None, Some(924.0)).contains("confirmed by"), "{end:?}");
        }
        assert!(of(Some(SearchEnd::AtLeast), Some(836.0), None).ends_with("was allowed"));
    }
}
