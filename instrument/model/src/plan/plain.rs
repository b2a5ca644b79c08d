//! Plans made in code: what an experiment of a few lines comes to. Calibration, measuring aids and tests change the fields
//! that they are about and leave the others.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Arrivals, LoadPlan, MeasurePlan, Pacing, Schedule, SettingPlan, SystemPlan};
use crate::options::Options;
use crate::quantity::Rate;

impl Arrivals {
    /// An open loop of constant rate.
    #[must_use]
    pub fn constant(rate: Rate) -> Self {
        Self::Open { schedule: Schedule::Constant { rate } }
    }

    /// A closed loop of clients that do not think.
    #[must_use]
    pub fn closed(clients: u32) -> Self {
        let (think, poll) = (Duration::ZERO, Duration::ZERO);
        Self::Closed { clients, think, window: 0, poll, steps: Vec::new() }
    }
}

impl LoadPlan {
    /// One thread, no warm-up, and every other key at a plain value.
    #[must_use]
    pub fn plain(arrivals: Arrivals, connections: u32, duration: Duration) -> Self {
        Self {
            arrivals,
            connections,
            connections_max: connections,
            threads: 1,
            warmup: Duration::ZERO,
            duration,
            drain_max: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            backlog_max: 10_000,
            lookahead: 256,
            pacing: Pacing::Balanced,
            batch: None,
            transactions_max: 0,
            affinity: Default::default(),
            resend: None,
            until: String::new(),
            hopeless: Default::default(),
        }
    }
}

impl SettingPlan {
    /// One trial of a system without options, with nothing beside the load.
    #[must_use]
    pub fn plain(kind: &str, load: LoadPlan) -> Self {
        Self {
            key: "default".to_owned(),
            values: BTreeMap::new(),
            trials: 1,
            expect: None,
            system: SystemPlan {
                kind: kind.to_owned(),
                deploy: Options::empty(),
                workload: Options::empty(),
            },
            load,
            probe: None,
            measure: MeasurePlan::default(),
            faults: Vec::new(),
            links: None,
            disks: None,
        }
    }
}
