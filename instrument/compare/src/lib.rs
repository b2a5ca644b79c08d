//! Did it get slower? Two sides of runs, number by number: better, worse, equivalent or inconclusive; and the history of
//! one experiment, with the places where its level changed.
//!
//! A pure function of results and plans. It never averages a percentile (a side shows its middle trial), never compares
//! what an audit voids, and never calls a difference worse that differences between two runs of the same system may be.
//!
//! The decision, for each number: the interval of the ratio candidate ÷ baseline ([`stats::ratio`]) is 1 − 0.05/n sure
//! where n numbers are looked at, so that all of them hold together in 95 of 100 comparisons. Within the margin at both
//! ends, which is what two one-sided tests ask: *equivalent*. Beyond 1 at one side: *better* or *worse*. With one trial
//! of each side nothing is known of how trials differ, so there the interval must lie beyond the margin. Else
//! *inconclusive*.

mod decide;
mod differences;
mod numbers;
mod sides;
mod trend;

pub use decide::{FAILED_MARGIN, MARGIN, compare};
pub use differences::{Subject, differences};
pub use sides::{Side, Sides};
pub use trend::{Recorded, trend};
