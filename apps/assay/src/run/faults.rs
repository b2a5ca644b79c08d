//! The planned faults of a trial: checked against what was deployed before anything is sent, then started.
//!
//! It must never let a load begin whose faults could not take place: the experiment that was asked for would be another.

use std::sync::Arc;

use load::Live;
use model::plan::{CLIENT, FaultKind, FaultPlan, is_meant};
use sut::Deployment;
use testbed::{FaultRunner, FaultSetup, ResourceSampler, Testbed};

use super::trial::Trial;

/// Starts the injection, if there is anything to inject.
///
/// # Errors
/// When a fault names what is not there, or asks what the system cannot do, for people.
pub(super) fn start(
    trial: &Trial<'_>,
    bed: &Testbed,
    deployment: &Deployment,
    (live, sampler): (&Arc<Live>, &ResourceSampler),
) -> Result<Option<FaultRunner>, String> {
    let faults = &trial.setting.faults;
    if faults.is_empty() {
        return Ok(None);
    }
    for fault in faults {
        check(fault, trial, bed, deployment)?;
    }
    let live = Arc::clone(live);
    let warmup = trial.setting.load.warmup;
    // The measured window begins when the load has begun and the warm-up is over.
    let measure_start = move || live.started().map(|started| started.plus(warmup));
    let setup = FaultSetup {
        faults: faults.clone(),
        links: trial.setting.links.clone(),
        care: deployment.care.clone(),
        watcher: Some(sampler.watcher()),
    };
    let runner = FaultRunner::start(bed.clock(), setup, bed.control(), measure_start);
    runner.map(Some).map_err(|error| error.to_string())
}

fn check(
    fault: &FaultPlan,
    trial: &Trial<'_>,
    bed: &Testbed,
    deployment: &Deployment,
) -> Result<(), String> {
    let word = fault.kind.word();
    let names: Vec<String> = if fault.kind.is_of_links() {
        let links = bed.control().links().ok_or_else(|| {
            format!("a {word} is planned, and the trial has no network of its own; add [links]")
        })?;
        links.nodes()
    } else {
        bed.nodes().into_iter().map(|node| node.name).collect()
    };
    for pattern in fault.kind.patterns() {
        let is_client = fault.kind.is_of_links() && pattern == CLIENT;
        if !is_client && !names.iter().any(|name| is_meant(pattern, name)) {
            let nodes = if names.is_empty() {
                "this system has no node processes of ours".to_owned()
            } else {
                format!("the nodes are: {}", names.join(", "))
            };
            return Err(format!(
                "a {word} is planned for the node `{pattern}`, and there is none of that name; {nodes}"
            ));
        }
    }
    if matches!(fault.kind, FaultKind::Rotate { .. }) && deployment.care.is_none() {
        return Err(format!(
            "a rotation is planned, and the system `{}` as it is deployed here does not say how its nodes are wiped and \
             when they have caught up; write restart in place of rotate",
            trial.setting.system.kind
        ));
    }
    Ok(())
}
