//! From numbers to a verdict: thresholds, checks, minutes, the knee.

pub(crate) mod beyond;
pub(crate) mod certain;
pub(crate) mod checks;
pub(crate) mod expression;
pub(crate) mod implicit;
pub(crate) mod knee;
pub(crate) mod minutes;
pub(crate) mod resolution;
pub(crate) mod scalability;
pub(crate) mod search;
pub(crate) mod statement;
pub(crate) mod thresholds;
pub(crate) mod verdict;

use crate::figures::part::parts;
use beyond::Beyond;
use minutes::Minutes;

parts! {
    /// The rows beyond the limits of thresholds, counted while they stream past.
    Limits {
        beyond: Beyond,
        minutes: Option<Minutes>,
    }
}
