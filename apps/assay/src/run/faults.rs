//! The planned faults of a trial: checked against what was deployed before anything is sent, then started.
//!
//! It must never let a load begin whose faults could not take place: the experiment that was asked for would be another.

use std::sync::{Arc, Mutex, PoisonError};

use load::Live;
use model::plan::SettingPlan;
use record::{FaultLog, TrialFolder};
use sut::Deployment;
use testbed::{FaultRunner, FaultSetup, ResourceSampler, Testbed};

/// Faults that are being injected, and their record.
pub(super) struct Faults {
    runner: FaultRunner,
    log: Arc<Mutex<FaultLog>>,
}

/// Starts the injection, if there is anything to inject. What is done is in the trial's folder as it happens.
///
/// # Errors
/// When a fault names what is not there, or asks what the system cannot do, for people.
pub(super) fn start(
    setting: &SettingPlan,
    folder: &TrialFolder,
    bed: &Testbed,
    deployment: &Deployment,
    (live, sampler): (&Arc<Live>, &ResourceSampler),
) -> Result<Option<Faults>, String> {
    if setting.faults.is_empty() {
        return Ok(None);
    }
    let setup = FaultSetup {
        faults: setting.faults.clone(),
        warmup: setting.load.warmup,
        links: setting.links.clone(),
        care: deployment.care.clone(),
        watcher: Some(sampler.watcher()),
    };
    setup.check(&bed.control(), &setting.system.kind)?;
    let log = Arc::new(Mutex::new(folder.fault_log().map_err(|error| error.to_string())?));
    let (of_sink, live) = (Arc::clone(&log), Arc::clone(live));
    let runner = FaultRunner::start(
        bed.clock(),
        setup,
        bed.control(),
        move || live.started(),
        // A panic with the lock leaves whole lines, and one more can be added.
        Box::new(move |event| {
            of_sink.lock().unwrap_or_else(PoisonError::into_inner).append(&event);
        }),
    );
    runner.map(|runner| Some(Faults { runner, log })).map_err(|error| error.to_string())
}

impl Faults {
    /// Ends the injection.
    ///
    /// # Errors
    /// When not everything that was done could be kept, for people. What was kept can be read.
    pub(super) fn finish(self) -> Result<(), String> {
        self.runner.finish();
        let log = Arc::into_inner(self.log).expect("the injection has ended, and its sink with it");
        let log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
        log.close().map_err(|error| error.to_string())
    }
}
