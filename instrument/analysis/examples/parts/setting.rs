//! The plan that the examples of this crate make their rows for.

use std::time::Duration;

use model::plan::{Arrivals, LoadPlan, MeasurePlan, SettingPlan};
use model::quantity::Rate;

/// A setting of constant load on the echo system, read back from its ledger.
pub fn setting(rate: u64, duration: Duration) -> SettingPlan {
    let arrivals = Arrivals::constant(Rate::per_second(rate));
    let load = LoadPlan {
        drain_max: Duration::from_secs(30),
        timeout: Duration::from_secs(30),
        backlog_max: 100_000,
        lookahead: 1_024,
        ..LoadPlan::plain(arrivals, 64, duration)
    };
    let measure = MeasurePlan { window: Duration::from_secs(10), ..MeasurePlan::default() };
    SettingPlan { measure, ..SettingPlan::plain("echo", load) }
}
