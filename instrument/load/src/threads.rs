//! One trial's threads: workers with an event loop each, one that dispatches calls where a stream goes through a
//! client library, the recorder on the caller's. Chooses the driver, fixes the start, and
//! puts together what the workers report. It takes no part in the load.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use clock::Instant;
use model::NO_STAMP;
use model::facts::LoadFacts;
use model::plan::LoadPlan;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::driver::epoll::Epoll;
use crate::driver::ring::Ring;
use crate::driver::{Driver, KernelDriver, socket};
use crate::engine::{Routes, Seat, run as run_worker};
use crate::links::Links;
use crate::live::Phase;
use crate::recorder::{BATCHES_MAX, Recorder};
use crate::trial::{Trial, WORKERS_MAX};
use crate::{LoadError, Loaded, Part, RowSink, Setup, call};

/// Descriptors that the process needs beside its connections.
const FILES_BESIDE: u64 = 256;
/// From the moment that all connections are open to stamp 0: long enough for every worker to have woken up.
pub(crate) const START_DELAY: Duration = Duration::from_millis(2);
/// The variable that forces a driver.
const DRIVER_VARIABLE: &str = "ASSAY_DRIVER";

/// Which event loop runs where something goes over a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Ring,
    Epoll,
}

/// The workers' loop where something goes over a wire.
pub(crate) struct Wires<F> {
    /// The name of the driver.
    pub name: &'static str,
    /// Runs one worker, on its own thread, until its last row.
    pub work: F,
}

/// Over the kernel.
fn wires(choice: Choice) -> Wires<impl Fn(&Trial<'_>, Seat) + Sync> {
    let name = match choice {
        Choice::Ring => Ring::NAME,
        Choice::Epoll => Epoll::NAME,
    };
    let work = move |trial: &Trial<'_>, seat: Seat| match choice {
        Choice::Ring => run_worker(trial, seat, Ring::new),
        Choice::Epoll => run_worker(trial, seat, Epoll::new),
    };
    Wires { name, work }
}

/// Carries out one trial.
pub(crate) fn run(setup: Setup<'_>, sink: &mut dyn RowSink) -> Result<Loaded, LoadError> {
    let asked = std::env::var(DRIVER_VARIABLE).ok();
    carry_out(setup, sink, || choose(asked.as_deref()).map(wires))
}

/// Carries out one trial with a given driver.
#[cfg(test)]
pub(crate) fn run_with(
    setup: Setup<'_>,
    sink: &mut dyn RowSink,
    choice: Choice,
) -> Result<Loaded, LoadError> {
    carry_out(setup, sink, || Ok(wires(choice)))
}

/// `choose` is asked only if something goes over a wire.
pub(crate) fn carry_out<F: Fn(&Trial<'_>, Seat) + Sync>(
    setup: Setup<'_>,
    sink: &mut dyn RowSink,
    choose: impl FnOnce() -> Result<Wires<F>, LoadError>,
) -> Result<Loaded, LoadError> {
    check(&setup)?;
    let links = Links::of(&setup)?;
    let wires = if links.has_wires() { Some(choose()?) } else { None };
    let connections_max = within_file_limit(&setup.plan.load);
    let workers = match links.is_main_called {
        // Callers have one dispatcher; their threads are the connections. A probe's wires take one worker.
        true => 1,
        false => {
            let (load, parts) = (&setup.plan.load, setup.part.map_or(1, |part| part.of));
            Part::workers(load.threads, load.connections, parts)
        }
    };
    let trial = Trial::new(setup, links, workers, connections_max);
    trial.setup.live.set_phase(Phase::Opening);
    let seats = trial.seats();
    let (to, from) = sync_channel(seats as usize * (BATCHES_MAX + 8));
    let (returns, spares): (Vec<_>, Vec<_>) = (0..seats).map(|_| sync_channel(BATCHES_MAX)).unzip();
    let mut recorder = Recorder::new(&trial, sink, returns);
    let mut spares = spares.into_iter().zip(0..);
    let started = std::thread::scope(|scope| {
        let outcome: std::io::Result<()> = (|| {
            if let Some(Wires { work, .. }) = &wires {
                for (routes, (spare, worker)) in
                    Routes::between(workers).into_iter().zip(&mut spares)
                {
                    let worker = trial.here.start + worker;
                    let seat = Seat { worker, to: to.clone(), spare, routes };
                    let trial = &trial;
                    begin(scope, format!("load-{worker}"), move || work(trial, seat))?;
                }
            }
            for (spare, seat) in &mut spares {
                let (trial, to) = (&trial, to.clone());
                let work = move || call::run(trial, seat, &to, spare);
                begin(scope, "calls".to_owned(), work)?;
            }
            Ok(())
        })();
        if let Err(error) = outcome {
            trial.begin(None);
            let attempt = "starting an engine thread";
            return Err(LoadError::Host { attempt, reason: error.to_string() });
        }
        drop(to);
        if let Err(error) = recorder.await_ready(&from) {
            trial.begin(None);
            return Err(error);
        }
        let start = match trial.setup.part {
            None => Some(trial.setup.deployment.clock.now().plus(START_DELAY)),
            Some(part) => (part.start)(),
        };
        trial.begin(start);
        let Some(start) = start else {
            return Err(LoadError::Plan("the trial was called off before its start".to_owned()));
        };
        trial.setup.live.set_started(start);
        recorder.run(&from, start);
        Ok(start)
    });
    let start = started?;
    let Recorder { reports, refused, lost_rows, wall_step_ns, .. } = recorder;
    let calls = links.has_calls().then_some(call::NAME);
    let drivers: Vec<&str> = wires.map(|wires| wires.name).into_iter().chain(calls).collect();
    let mut facts = facts(&trial, start, &drivers.join(" and "), reports);
    facts.congestion_control = links.wire.map(socket::congestion_control).unwrap_or_default();
    facts.wall_step_ns = wall_step_ns;
    if let Some(reason) = refused {
        facts.interrupted =
            format!("the record could not be written: {reason} ({lost_rows} rows were lost)");
    }
    Ok(Loaded { facts, start })
}

fn begin<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() + Send + 'scope,
) -> std::io::Result<()> {
    std::thread::Builder::new().name(name).spawn_scoped(scope, work).map(drop)
}

/// The conditions on a plan for a load to make sense.
fn check(setup: &Setup<'_>) -> Result<(), LoadError> {
    let stages = setup.stages.len();
    let last = setup.final_stages.load.max(setup.final_stages.probe);
    if stages == 0 || stages > model::STAGES_MAX || last >= stages {
        return Err(LoadError::Plan(format!(
            "the system has {stages} stages and a final one is number {last}; there must be 1 to {}",
            model::STAGES_MAX
        )));
    }
    if let Some(part) = setup.part.filter(|part| part.of > 1) {
        check_part(setup, part)?;
    }
    if setup.plan.load.connections == 0 {
        return Err(LoadError::Plan("a load needs at least one connection".to_owned()));
    }
    Ok(())
}

/// The conditions on a plan for a part of it to make sense.
fn check_part(setup: &Setup<'_>, part: Part<'_>) -> Result<(), LoadError> {
    let (of, connections) = (part.of, setup.plan.load.connections);
    if part.index >= of || of > WORKERS_MAX {
        let index = part.index;
        return Err(LoadError::Plan(format!("part {index} of {of}: there are 1 to {WORKERS_MAX}")));
    }
    if connections < of {
        return Err(LoadError::Plan(format!(
            "expected a connection for each of {of} agents at least, got load.connections = {connections}"
        )));
    }
    let why = if setup.system.observers() > 0 {
        "its observers see the transactions of all connections"
    } else if Links::of(setup)?.has_calls() {
        "it is loaded through a client library"
    } else {
        return Ok(());
    };
    Err(LoadError::Plan(format!(
        "the sessions of this system cannot be spread over agents ({why}); run it without --agents"
    )))
}

/// The driver to use: the one that is asked for, or io_uring where the kernel allows it.
pub(crate) fn choose(asked: Option<&str>) -> Result<Choice, LoadError> {
    let failed = |error: rustix::io::Errno| LoadError::Driver {
        driver: Ring::NAME,
        reason: error.to_string(),
    };
    match asked {
        Some("epoll") => Ok(Choice::Epoll),
        Some("io_uring") => Ring::new(1).map(|_| Choice::Ring).map_err(failed),
        None | Some("") => Ok(Ring::new(1).map_or(Choice::Epoll, |_| Choice::Ring)),
        Some(other) => Err(LoadError::Plan(format!(
            "{DRIVER_VARIABLE}={other}: write epoll or io_uring, or leave it out"
        ))),
    }
}

/// The most connections that there may be. As many descriptors as the host allows, if they need more than the soft
/// limit; what it does not allow is not opened because others are busy. Those that are opened before the load are not
/// fewer for that: what is missing for them shows as failures of class `client`.
fn within_file_limit(load: &LoadPlan) -> u32 {
    let connections_max = load.connections.max(load.connections_max);
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(connections_max) + FILES_BESIDE;
    let Some(mut current) = limit.current.filter(|current| *current < wanted) else {
        return connections_max;
    };
    let raised = limit.maximum.map_or(wanted, |maximum| wanted.min(maximum));
    if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() {
        current = raised;
    }
    let left = u32::try_from(current.saturating_sub(FILES_BESIDE)).unwrap_or(u32::MAX);
    connections_max.min(left).max(load.connections)
}

fn facts(
    trial: &Trial<'_>,
    start: Instant,
    driver: &str,
    mut reports: Vec<crate::recorder::WorkerReport>,
) -> LoadFacts {
    reports.sort_by_key(|report| report.worker);
    let setup = &trial.setup;
    let was_cut = reports.iter().any(|report| report.cut);
    let drain_end = reports.iter().map(|report| report.drain_end).max().unwrap_or(NO_STAMP);
    let failure =
        reports.iter().map(|report| report.failure.as_str()).find(|text| !text.is_empty());
    let interrupted = match failure {
        Some(failure) => failure,
        None if was_cut && setup.control.is_stopped() => "stopped by request, the drain was cut",
        None if setup.control.is_stopped() => "stopped by request",
        None => "",
    };
    LoadFacts {
        started: setup.deployment.clock.wall_now_at(start),
        errors: trial.texts.list(),
        cut_at: trial.cut_at(),
        drain_end: if was_cut { NO_STAMP } else { drain_end },
        drain_left: reports.iter().map(|report| report.drain_left).sum(),
        interrupted: interrupted.to_owned(),
        transport: trial.transport.get().cloned().unwrap_or_else(|| "plain".to_owned()),
        driver: driver.to_owned(),
        workers: reports.into_iter().map(|report| report.facts).collect(),
        ..LoadFacts::default()
    }
}
