//! The plan that the examples of this crate make their rows for.

use std::time::Duration;

use model::options::Options;
use model::plan::{Arrivals, LoadPlan, MeasurePlan, Pacing, Schedule, SettingPlan, SystemPlan};
use model::quantity::Rate;

/// A setting of constant load on the echo system, read back from its ledger.
pub fn setting(rate: u64, duration: Duration) -> SettingPlan {
    let rate = Rate::per_second(rate);
    SettingPlan {
        key: "default".into(),
        values: Default::default(),
        trials: 1,
        expect: None,
        system: SystemPlan {
            kind: "echo".into(),
            deploy: Options::empty(),
            workload: Options::empty(),
        },
        load: LoadPlan {
            arrivals: Arrivals::Open { schedule: Schedule::Constant { rate } },
            connections: 64,
            connections_max: 64,
            threads: 1,
            warmup: Duration::ZERO,
            duration,
            drain_max: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
            backlog_max: 100_000,
            lookahead: 1_024,
            pacing: Pacing::Balanced,
            batch: None,
            transactions_max: 0,
            affinity: Default::default(),
            resend: None,
            until: String::new(),
        },
        probe: None,
        measure: MeasurePlan { window: Duration::from_secs(10), ..MeasurePlan::default() },
        faults: Vec::new(),
        links: None,
        disks: None,
    }
}
