//! The search for the highest value of one key that keeps the thresholds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plan::{Arrivals, LoadPlan, Schedule};
use crate::quantity::{duration_text, show_count};

/// The key whose highest value is searched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchKey {
    /// The rate of an open load.
    #[default]
    #[serde(rename = "load.rate")]
    Rate,
    /// Clients of a closed loop.
    #[serde(rename = "load.clients")]
    Clients,
    /// Connections of an open load.
    #[serde(rename = "load.connections")]
    Connections,
}

impl SearchKey {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rate, Self::Clients, Self::Connections];

    /// The key in an experiment file.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Rate => "load.rate",
            Self::Clients => "load.clients",
            Self::Connections => "load.connections",
        }
    }

    /// The key in a few letters, as an axis and in a table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Clients => "clients",
            Self::Connections => "connections",
        }
    }

    /// Its value in a load; `None` where the load has no such key.
    #[must_use]
    pub fn value(self, load: &LoadPlan) -> Option<f64> {
        match (self, &load.arrivals) {
            (Self::Clients, Arrivals::Closed { clients, window: 0, steps, .. })
                if steps.is_empty() =>
            {
                Some(f64::from(*clients))
            }
            (
                Self::Rate | Self::Connections,
                Arrivals::Open {
                    schedule: Schedule::Constant { rate } | Schedule::Poisson { rate },
                },
            ) if !rate.is_max() && !rate.is_zero() => match self {
                Self::Rate => Some(rate.as_per_second()),
                _ => Some(f64::from(load.connections)),
            },
            _ => None,
        }
    }

    /// Whether its values are whole numbers.
    #[must_use]
    pub const fn is_count(self) -> bool {
        !matches!(self, Self::Rate)
    }

    /// A value with its unit: `12,800/s`, `0.333/s`, `64 clients`, `1 client`.
    #[must_use]
    pub fn with_unit(self, value: f64) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate or a count, at most 2^53"
        )]
        let number = match value.fract() == 0.0 {
            true => show_count(value as u64),
            false => ((value * 1000.0).round() / 1000.0).to_string(),
        };
        match (self, value == 1.0) {
            (Self::Rate, _) => format!("{number}/s"),
            (_, false) => format!("{number} {}", self.word()),
            (_, true) => format!("1 {}", self.word().trim_end_matches('s')),
        }
    }
}

/// Whether the system is started for each trial of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchDeploy {
    /// Each trial starts it anew.
    #[default]
    Each,
    /// It is started once and keeps its state from trial to trial.
    Once,
}

/// How a search goes on: its settings come into the plan one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// The key whose highest value is wanted.
    #[serde(default)]
    pub find: SearchKey,
    /// The first value: a rate per second, or a count.
    #[serde(alias = "from_per_s")]
    pub from: f64,
    /// No more than this is ever tried.
    #[serde(alias = "most_per_s")]
    pub most: f64,
    /// How far apart the highest value that is kept and the lowest that is not may be at the end of the bisection, as a
    /// fraction of the lower one.
    pub width: f64,
    /// How far below the highest value that passed the confirming trials are, and how far above it the refuting ones, as a
    /// fraction of it.
    #[serde(default = "margin")]
    pub margin: f64,
    /// The measured window of the trials that bracket the limit.
    #[serde(with = "duration_text")]
    pub bracket: Duration,
    /// The measured window of all others: the time for which the result is sustained.
    #[serde(with = "duration_text")]
    pub hold: Duration,
    /// How many trials in a row confirm the result, and of how many the majority refutes the value above it.
    pub confirmations: u32,
    /// Whether each trial starts the system anew.
    #[serde(default)]
    pub deploy: SearchDeploy,
}

/// The margin of a plan of an earlier version.
const fn margin() -> f64 {
    0.05
}
