//! The search for the highest value of a key that keeps the thresholds: its result, and every trial on the way.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::facts::RestFacts;
use crate::plan::{SearchDeploy, SearchKey};
use crate::quantity::show_duration;

/// The highest value of a key that keeps the thresholds, and how it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The thresholds that were to be met.
    pub asked: Vec<String>,
    /// How it ended; null = it was interrupted.
    pub end: Option<SearchEnd>,
    /// The key whose highest value was searched for.
    #[serde(default)]
    pub find: SearchKey,
    /// The highest value that fresh trials confirmed (a rate per second, or a count); null = none was.
    #[serde(alias = "confirmed_per_s")]
    pub confirmed: Option<f64>,
    /// The lowest value above it that does not keep the thresholds; null = none was found.
    #[serde(alias = "refuted_per_s")]
    pub refuted: Option<f64>,
    /// Whether each trial started the system anew.
    #[serde(default)]
    pub deploy: SearchDeploy,
    /// The measured window of the trials that confirm and refute, nanoseconds: the time for which the value is sustained.
    pub hold_ns: i64,
    /// How many trials confirm.
    pub confirmations: u32,
    /// The limit that was reached first at the lowest value that failed.
    pub limit: Option<SearchLimit>,
    /// Where more load brings less; null = it did not, up to the highest value that was tried.
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
    /// The value that was tried: a rate per second, or a count.
    #[serde(alias = "per_s")]
    pub value: f64,
    /// Whether it kept the thresholds.
    pub class: SearchClass,
    /// Its goodput, per second.
    #[serde(default)]
    pub goodput_per_s: f64,
    /// The wait before it until the system was calm; null = none was needed, for the system was started for the trial.
    #[serde(default)]
    pub rest: Option<RestFacts>,
}

/// A system that brings less the more is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchCollapse {
    /// The lowest value that was tried at which goodput is less than nine tenths of the most.
    #[serde(alias = "per_s")]
    pub from: f64,
    /// The most goodput of any trial at a lower value, per second.
    pub most_per_s: f64,
    /// The goodput of the highest value that was tried, per second.
    pub least_per_s: f64,
    /// The highest value that was tried.
    #[serde(alias = "at_per_s")]
    pub at: f64,
}

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchRole {
    /// A short one: between which values the limit is.
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
    /// A value is confirmed and one above it refuted.
    Found,
    /// The highest value that may be tried is confirmed.
    AtLeast,
    /// No value is kept, however low.
    NotEven,
    /// Several trials in a row could not tell.
    Untold,
    /// Trials contradicted each other too often.
    Unsteady,
    /// The next trial of the run folder is not the one that this version asks for: another version wrote the folder.
    OtherTrials,
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

/// The end of a sentence about a search that another version made.
const OTHER_TRIALS: &str = "; the trials that follow are not the ones that this version of assay asks for: \
                            the report that the folder was written with has its result";

impl SearchResult {
    /// The result in one sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let asked = self.asked.join(" and ");
        let hold = show_duration(Duration::from_nanos(self.hold_ns.unsigned_abs()));
        let limit = self.limit.map_or("", SearchLimit::in_words);
        let show = |value: f64| self.find.with_unit(value);
        let (one, higher) = match self.find {
            SearchKey::Rate => ("rate", "higher rate was"),
            SearchKey::Clients => ("number of clients", "more clients were"),
            SearchKey::Connections => ("number of connections", "more connections were"),
        };
        let Some(confirmed) = self.confirmed else {
            return match self.end {
                None => format!("interrupted before a {one} was found that keeps {asked}"),
                Some(SearchEnd::NotEven) => {
                    format!("no {one} keeps {asked}, down to {}{limit}", show(self.lowest()))
                }
                Some(SearchEnd::Untold) => format!(
                    "no {one} is confirmed: several trials in a row could not tell whether {asked} is kept at {}{limit}",
                    show(self.last())
                ),
                Some(SearchEnd::OtherTrials) => format!("no {one} is confirmed{OTHER_TRIALS}"),
                _ => format!(
                    "no {one} is confirmed that keeps {asked}: trials contradicted each other"
                ),
            };
        };
        let trials = match self.confirmations {
            1 => format!("a trial of {hold}"),
            trials => format!("{trials} trials of {hold}"),
        };
        // The refuted count is higher than the confirmed one: never 1.
        let [keep, does] = match (self.find.is_count(), confirmed == 1.0) {
            (true, false) => ["keep", "do"],
            (true, true) => ["keeps", "do"],
            (false, _) => ["keeps", "does"],
        };
        let state = match self.deploy {
            SearchDeploy::Each => "",
            SearchDeploy::Once => " of a system that kept its state between trials",
        };
        let found = format!("{} {keep} {asked}, confirmed by {trials}{state}", show(confirmed));
        match (self.end, self.refuted.map(show)) {
            (Some(SearchEnd::AtLeast), _) => format!("{found}; no {higher} allowed"),
            (Some(SearchEnd::Found), Some(refuted)) => {
                format!("{found}; {refuted} {does} not{limit}{}", self.collapse_in_words())
            }
            (Some(SearchEnd::Unsteady | SearchEnd::Untold), _) => {
                format!("{found}; trials above it contradicted each other or could not tell")
            }
            (Some(SearchEnd::OtherTrials), _) => format!("{found}{OTHER_TRIALS}"),
            _ => format!("{found}; interrupted before a value above it was refuted"),
        }
    }

    /// The end of a sentence: where more load brings less.
    fn collapse_in_words(&self) -> String {
        let Some(it) = self.collapse else { return String::new() };
        let show = |value: f64| self.find.with_unit(value);
        let goodput = |per_s: f64| SearchKey::Rate.with_unit(per_s.round());
        format!(
            "; from {} on it collapses: of {} only {} come through, of less load {} did",
            show(it.from),
            show(it.at),
            goodput(it.least_per_s),
            goodput(it.most_per_s)
        )
    }

    fn lowest(&self) -> f64 {
        self.trials.iter().map(|trial| trial.value).fold(f64::INFINITY, f64::min)
    }

    fn last(&self) -> f64 {
        self.trials.last().map_or(0.0, |trial| trial.value)
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
        let of = |find, end, confirmed, refuted| {
            let found = SearchResult {
                asked: vec!["p99 < 100ms".to_owned()],
                end,
                find,
                confirmed,
                refuted,
                deploy: SearchDeploy::Each,
                hold_ns: 30_000_000_000,
                confirmations: 3,
                limit: Some(SearchLimit::Backlog),
                collapse: None,
                trials: vec![SearchTrial {
                    setting: String::new(),
                    trial: 0,
                    role: SearchRole::Bracket,
                    value: 50.0,
                    class: SearchClass::Failed,
                    goodput_per_s: 40.0,
                    rest: None,
                }],
            };
            found.in_words()
        };
        let rate = SearchKey::Rate;
        assert_eq!(
            of(rate, Some(SearchEnd::Found), Some(836.0), Some(924.0)),
            "836/s keeps p99 < 100ms, confirmed by 3 trials of 30s; 924/s does not: more comes than it serves"
        );
        assert_eq!(
            of(SearchKey::Clients, Some(SearchEnd::Found), Some(1.0), Some(2.0)),
            "1 client keeps p99 < 100ms, confirmed by 3 trials of 30s; 2 clients do not: more comes than it serves"
        );
        assert_eq!(
            of(SearchKey::Connections, Some(SearchEnd::AtLeast), Some(64.0), None),
            "64 connections keep p99 < 100ms, confirmed by 3 trials of 30s; no more connections were allowed"
        );
        assert_eq!(
            of(rate, Some(SearchEnd::NotEven), None, Some(50.0)),
            "no rate keeps p99 < 100ms, down to 50/s: more comes than it serves"
        );
        for end in [SearchEnd::Untold, SearchEnd::Unsteady, SearchEnd::OtherTrials]
            .map(Some)
            .into_iter()
            .chain([None])
        {
            for find in SearchKey::ALL {
                assert!(!of(find, end, None, Some(924.0)).contains("confirmed by"), "{end:?}");
            }
        }
        assert!(of(rate, Some(SearchEnd::AtLeast), Some(836.0), None).ends_with("was allowed"));
    }
}
