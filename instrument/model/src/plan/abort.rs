//! Ending a trial early: by a threshold that stays broken while the load runs, and by a load that is hopeless.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{parse_duration, parse_percent};

/// The treatment of a load that cannot come to anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hopeless {
    /// It is ended, and the report says why.
    #[default]
    End,
    /// It goes on as planned.
    GoOn,
}

/// A threshold that ends a trial, in the form that can be judged while the load runs.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortPlan {
    /// As written.
    pub expr: String,
    /// How long it has to be broken, and the length of time that is looked at.
    pub after: Duration,
    /// The quantile that it is about, as a fraction of one; absent: the share of what was committed.
    pub quantile: Option<f64>,
    comparison: &'static str,
    /// Nanoseconds, or a fraction of one.
    limit: f64,
}

/// The longest time that is looked back while a load runs.
pub const ABORT_AFTER_MAX: Duration = Duration::from_secs(600);

impl AbortPlan {
    /// Reads `success >= 99%` or `p99 < 500ms`.
    ///
    /// # Errors
    /// When it is neither: other numbers are known only when the load is over.
    pub fn parse(expr: &str, after: Duration) -> Result<Self, String> {
        let refused = || {
            format!(
                "`{expr}` cannot be judged while the load runs; thresholds with `abort` are of the form success >= 99% or \
                 p99 < 500ms"
            )
        };
        let sign = ["<=", ">=", "<", ">", "=="].into_iter().find(|sign| expr.contains(sign));
        let comparison = sign.ok_or_else(refused)?;
        let (name, limit) = expr.split_once(comparison).ok_or_else(refused)?;
        let (name, limit) = (name.trim(), limit.trim());
        let quantile = match name.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok()) {
            Some(percent) if (0.0..100.0).contains(&percent) => Some(percent / 100.0),
            None if name == "success" => None,
            _ => return Err(refused()),
        };
        let limit = match quantile {
            None => parse_percent(limit).map_err(|_| refused())?,
            Some(_) => parse_duration(limit).map_err(|_| refused())?.as_secs_f64() * 1e9,
        };
        Ok(Self { expr: expr.to_owned(), after, quantile, comparison, limit })
    }

    /// The share of all that are due that may miss it, each for itself; `None` of one that is missed by too few.
    #[must_use]
    pub fn share_allowed(&self) -> Option<f64> {
        match (self.quantile, self.comparison) {
            (Some(q), "<" | "<=") => Some(1.0 - q),
            (None, ">" | ">=" | "==") => Some(1.0 - self.limit),
            _ => None,
        }
    }

    /// Whether it holds of a number: nanoseconds, or a fraction of one.
    #[must_use]
    pub fn holds(&self, got: f64) -> bool {
        match self.comparison {
            "<=" => got <= self.limit,
            ">=" => got >= self.limit,
            "<" => got < self.limit,
            ">" => got > self.limit,
            _ => (got - self.limit).abs() < 1e-9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what can be judged while a load runs is read, and everything else is told so.
    #[test]
    fn expressions() {
        let read = |expr| AbortPlan::parse(expr, Duration::from_secs(1));
        for (expr, quantile, yes, no) in [
            ("success >= 99%", None, 0.99, 0.98),
            ("success == 100%", None, 1.0, 0.999),
            ("p99.9 < 500ms", Some(0.999), 4.9e8, 5e8),
            ("p50<=1s", Some(0.5), 1e9, f64::INFINITY),
        ] {
            let plan = read(expr).unwrap();
            assert_eq!(
                plan.quantile.map(|q| (q * 1e6).round()),
                quantile.map(|q: f64| (q * 1e6).round())
            );
            assert!(plan.holds(yes) && !plan.holds(no), "{expr}");
        }
        for expr in ["lost == 0", "p99 < 5", "success > many", "p99", "p200 < 1s", "goodput > 5/s"]
        {
            assert!(
                read(expr).unwrap_err().contains("cannot be judged while the load runs"),
                "{expr}"
            );
        }
    }
}
