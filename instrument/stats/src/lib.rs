//! Pure arithmetic on samples: histograms, quantiles and means with intervals, censoring, trends.
//!
//! It must never do I/O, read a clock, draw randomness or know what a transaction is: numbers in, numbers
//! out, the same on every run. Conventions that everything here shares:
//!
//! * **Quantile**: the smallest recorded value `v` with `count(≤ v) ≥ ceil(q · n)`, as HdrHistogram defines
//!   it. Values are binned with three significant digits; the value given is the highest that its bin stands
//!   for, and never more than the largest sample.
//! * **Interval**: 95 %, two-sided, by batch means over blocks of time ([`interval`]), because the samples of
//!   a queue depend on each other. An end that the samples cannot give is `None`, never a guess.

mod bucket_counts;
mod candidates;
pub mod carry;
pub mod censoring;
pub mod change;
pub mod combined;
pub mod divisive;
pub mod exceedance;
mod excursions;
mod float;
pub mod histogram;
pub mod interval;
mod layout;
mod level;
mod moments;
mod percentile_steps;
mod quantile_interval;
pub mod queue;
pub mod ratio;
pub mod sections;
mod sparse;
pub mod special;
mod tail;
mod timed;
pub mod trend;
pub mod usl;
pub mod warmup;

pub use bucket_counts::BucketCounts;
pub use histogram::Histogram;
pub use layout::rank;
pub use moments::Moments;
pub use percentile_steps::{PercentileStep, percentile_steps};
pub use quantile_interval::QuantileInterval;
pub use sparse::SparseHistogram;
pub use tail::Tail;
pub use timed::TimedHistogram;
