//! One trial: deploy, preflight, load, drain, read the ledger, seal. Here the parts meet; none of them knows another.

use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use clock::{Clock, CpuTime};
use load::{Control, Live, Loaded, Setup};
use model::facts::{
    AfterFacts, DeclaredFacts, Event, KindFacts, LoadFacts, MetricSample, PreflightFinding,
    TrialFacts,
};
use model::series::{self, SeriesFacts};
use record::{ObservationLogWriter, RowLogWriter, TrialFolder};
use sut::Deployment;
use testbed::{Entered, EnteredDisks, MetricScraper, ResourceSampler, SampleSink, Testbed};

use super::faults::{self, Faults};
use super::inputs::Trial;
use super::ledger::{self, Acknowledged};
use super::node_events;
use super::rest::Rests;
use super::settled::Settled;
use super::sink::{self, Events, FolderSink};
use super::spread::Agents;
use super::watch::{Watched, Watchman};
use crate::terminal::say;

/// Host, generator and nodes are sampled once a second.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// A preflight pass that takes longer is told of on the terminal.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Nodes that do not end within this after they were asked to are killed.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The same where somebody waits for the run to end.
const STOPPED_GRACE: Duration = Duration::from_millis(300);

/// A system that was started, or attached to.
pub struct Deployed {
    // The first to go: threads leave the network and the disks before these are taken down.
    _inside: (Entered, EnteredDisks),
    deployment: Deployment,
    bed: Testbed,
    // The last to go: no node writes any more.
    _kept: OfNodes,
}

impl Deployed {
    /// Starts the trial's system, whose nodes keep their files in `folder`.
    ///
    /// # Errors
    /// When it cannot be started or reached, for people.
    pub fn start(trial: &Trial<'_>, folder: PathBuf) -> Result<Self, String> {
        let kept = OfNodes(folder);
        // The one clock of the trial: nodes, faults, metrics and transactions are stamped by it.
        let mut bed = Testbed::new(&kept.0, Clock::start());
        bed.set_seed(trial.seed);
        bed.stop_on(trial.interrupt.flag());
        // This thread and those that it starts, the engine's above all, are on the trial's own network, if it has one,
        // and where the files on its nodes' own disks are, if they have any.
        let inside = (enter_links(trial, &mut bed)?, enter_disks(trial, &mut bed)?);
        let deployed = trial.system.deploy(&mut bed);
        check_links(trial, &bed, deployed.as_ref().err().map(ToString::to_string))?;
        let mut deployment = deployed.map_err(|e| e.to_string())?;
        deployment.stop = trial.interrupt.flag();
        deployment.nodes.extend(trial.beside.nodes.iter().cloned());
        deployment.scrape.extend(trial.beside.scrape.iter().cloned());
        Ok(Self { _inside: inside, deployment, bed, _kept: kept })
    }

    /// Ends its nodes.
    ///
    /// # Errors
    /// When one does not end.
    pub fn stop(mut self, trial: &Trial<'_>) -> Result<(), String> {
        let grace = if trial.interrupt.is_set() { STOPPED_GRACE } else { STOP_GRACE };
        self.bed.stop_all(grace).map_err(|e| e.to_string())
    }
}

/// Carries out one trial, its load by `agents`; absent: by this process. What was recorded stays, whatever fails.
///
/// # Errors
/// When the trial could not be carried out or kept, for people.
pub fn run(trial: &Trial<'_>, agents: Option<&Agents>) -> Result<(), String> {
    run_rested(trial, agents, None)
}

/// The same on a system that was there before: with `rests` it rests before the load until it is calm.
///
/// # Errors
/// As [`run`].
pub fn run_rested(
    trial: &Trial<'_>,
    agents: Option<&Agents>,
    rests: Option<&mut Rests>,
) -> Result<(), String> {
    let folder = trial.run.trial(&trial.setting.key, trial.index).map_err(|e| e.to_string())?;
    let mut deployed = Deployed::start(trial, folder.path().join("nodes"))?;
    measure(trial, agents, &folder, &mut deployed, rests)?;
    deployed.stop(trial)?;
    folder.seal().map_err(|e| e.to_string())
}

/// The same on a system that goes on running after it.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    trial: &Trial<'_>,
    agents: Option<&Agents>,
    deployed: &mut Deployed,
    rests: Option<&mut Rests>,
) -> Result<(), String> {
    let folder = trial.run.trial(&trial.setting.key, trial.index).map_err(|e| e.to_string())?;
    deployed.bed.set_seed(trial.seed);
    measure(trial, agents, &folder, deployed, rests)?;
    folder.seal().map_err(|e| e.to_string())
}

/// The trial on a system that is there.
fn measure(
    trial: &Trial<'_>,
    agents: Option<&Agents>,
    folder: &TrialFolder,
    deployed: &mut Deployed,
    rests: Option<&mut Rests>,
) -> Result<(), String> {
    let Deployed { deployment, bed, .. } = deployed;
    let rest = rests.and_then(|rests| rests.rest(trial, deployment));
    // The folder holds what is known from the first moment, so that a crash leaves one that can be read.
    let declared = DeclaredFacts { rest, ..declare(trial, deployment)? };
    if trial.interrupt.is_set() {
        return Err("stopped by request before the load".to_owned());
    }
    let mut facts = TrialFacts { declared, ..TrialFacts::default() };
    folder.write_facts(&facts).map_err(|e| e.to_string())?;

    if facts.declared.is_hopeless() {
        facts.load.is_withheld = true;
        folder.row_log().and_then(RowLogWriter::close).map_err(|e| e.to_string())?;
    } else {
        trial.control.await_start(trial.interrupt)?;
        let acknowledged;
        (facts.load, facts.after, acknowledged) =
            load_it(trial, agents, folder, &facts.declared, deployment, bed)?;
        facts.after.ledger = ledger::read(trial, folder, deployment, &facts.declared, acknowledged);
        if trial.setting.measure.ledger {
            facts.after.states = trial.system.states(deployment);
        }
        let (declared, started) = (&facts.declared, facts.load.started);
        facts.after.node_events =
            node_events::read(trial.system, deployment, folder, declared, started);
    }
    trial.system.finished(deployment);
    facts.after.nodes = bed.nodes();
    facts.after.nodes.append(&mut trial.beside.after());
    facts.after.network = bed.network_report();
    facts.after.disks = bed.disk_report();
    facts.complete = true;
    folder.write_facts(&facts).map_err(|e| e.to_string())
}

/// Files that nodes write themselves; they lose their secrets when the last node has ended, whatever the trial came to: keys
/// that were made for the trial, and what is known as secret.
struct OfNodes(PathBuf);

impl Drop for OfNodes {
    fn drop(&mut self) {
        if let Err(error) = record::remove_private_keys(&self.0) {
            say!("assay: removing private keys from {}: {error}", self.0.display());
        }
        if let Err(error) = record::mask_secrets(&self.0) {
            say!("assay: looking for secrets in {}: {error}", self.0.display());
        }
    }
}

/// Makes the network of the plan's links, if it has any, and goes there.
fn enter_links(trial: &Trial<'_>, bed: &mut Testbed) -> Result<Entered, String> {
    if let Some(links) = &trial.setting.links {
        bed.with_network(links).map_err(|e| e.to_string())?;
    }
    bed.enter_network().map_err(|e| e.to_string())
}

/// Gives nodes the disks of the plan, if it has any, and goes to where their files can be seen.
fn enter_disks(trial: &Trial<'_>, bed: &mut Testbed) -> Result<EnteredDisks, String> {
    if let Some(disks) = &trial.setting.disks {
        bed.with_disks(disks).map_err(|e| e.to_string())?;
    }
    bed.enter_disks().map_err(|e| e.to_string())
}

/// Links on which there is no node would do nothing, and their figures would be read as those of a network.
fn check_links(trial: &Trial<'_>, bed: &Testbed, failed: Option<String>) -> Result<(), String> {
    let Some(links) = bed.control().links().filter(|links| links.nodes().is_empty()) else {
        return Ok(());
    };
    drop(links);
    let failed = failed.map(|why| format!(" ({why})")).unwrap_or_default();
    Err(format!(
        "the plan has [links], and the system `{}` as it is deployed here puts no node on them{failed}; leave [links] \
         out, or let Assay start nodes that can be put there (cometbft, echo)",
        trial.setting.system.kind
    ))
}

/// Facts that are known before the load, the preflight pass included.
fn declare(trial: &Trial<'_>, deployment: &Deployment) -> Result<DeclaredFacts, String> {
    let stages = trial.system.stages();
    let ends = trial.setting.final_stages(&stages);
    let warmup = i64::try_from(trial.setting.load.warmup.as_nanos()).unwrap_or(i64::MAX);
    let duration = i64::try_from(trial.setting.load.duration.as_nanos()).unwrap_or(i64::MAX);
    Ok(DeclaredFacts {
        setting: trial.setting.key.clone(),
        trial: trial.index,
        seed: trial.seed,
        final_stage: ends.load,
        probe_final_stage: trial.setting.probe.is_some().then_some(ends.probe),
        stages,
        node_stages: trial.system.node_stages(),
        kinds: trial.system.kinds(),
        measure_start: warmup,
        measure_end: warmup.saturating_add(duration),
        preflight: preflight(trial, deployment)?,
        code_remarks: trial.system.code_remarks(),
        calibration: trial.calibration.clone(),
        fidelity: trial.system.fidelity(),
        targets: trial.targets.clone(),
        system: deployment.facts.clone(),
        durability: deployment.durability.clone(),
        clocks: deployment.clocks,
        series: series_of(deployment)?,
        rest: None,
    })
}

/// The pass before the load. One that takes longer than a moment is told of: nothing else is seen of the run meanwhile.
fn preflight(trial: &Trial<'_>, deployment: &Deployment) -> Result<Vec<PreflightFinding>, String> {
    if !trial.has_preflight {
        return Ok(Vec::new());
    }
    let mut found = std::thread::scope(|scope| {
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            if is_over.recv_timeout(TOLD_AFTER) == Err(RecvTimeoutError::Timeout) {
                say!(
                    "assay: preflight: asking for each kind before the load; Ctrl-C ends the run here"
                );
            }
        });
        let found = trial.system.preflight(deployment).map_err(|e| e.to_string());
        drop(over);
        found
    })?;
    for finding in &mut found {
        let place = finding.span.and_then(|span| plan::file_and_line(trial.sources, span));
        place.into_iter().for_each(|place| finding.detail.push_str(&format!(" ({place})")));
    }
    let failed: Vec<_> = found.iter().filter(|it| !it.ok).collect();
    if let Some(first) = failed.first().filter(|_| failed.len() < found.len()) {
        let more = match failed.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        say!(
            "assay: preflight: {} → {}{more}; the load runs, and these fail in it at any rate",
            first.kind,
            first.detail
        );
    }
    Ok(found)
}

/// Declarations of all series that this trial may record: those of the testbed's sampler, then those that nodes serve.
fn series_of(deployment: &Deployment) -> Result<Vec<SeriesFacts>, String> {
    let mut all = testbed::own_series();
    for node in &deployment.scrape {
        series::declare(&mut all, node.series.iter().map(|it| &it.series))
            .map_err(|why| format!("what the metrics of `{}` are: {why}", node.source))?;
    }
    Ok(all)
}

/// The load, with everything that is watched meanwhile.
fn load_it(
    trial: &Trial<'_>,
    agents: Option<&Agents>,
    folder: &TrialFolder,
    declared: &DeclaredFacts,
    deployment: &Deployment,
    bed: &Testbed,
) -> Result<(LoadFacts, AfterFacts, Acknowledged), String> {
    let control = Arc::new(Control::default());
    let live = Arc::new(Live::default());
    trial.interrupt.attach(Arc::clone(&control));
    trial.progress.trial(trial.title.clone(), Arc::clone(&live));
    let watched = Watched::new(Arc::clone(&live));
    watched.settle(Settled::of(&trial.settled, trial.setting));
    if let Some(metrics) = trial.metrics {
        let kinds = KindFacts::names(&declared.kinds);
        metrics.trial(trial.title.clone(), kinds, watched.clone());
    }

    let clock = bed.clock();
    let nodes = deployment.nodes.iter().map(|node| (node.name.clone(), node.pid)).collect();
    let told = sink::samples(folder, &live);
    let sampler = ResourceSampler::start(clock, SAMPLE_EVERY, nodes, told());
    let sampler = sampler.map_err(|e| e.to_string())?;
    let scraper = start_scraper(clock, deployment, told())?;
    drop(told);
    let faults = faults::start(trial.setting, folder, bed, deployment, (&live, &sampler))?;
    let stages = trial.system.stages();
    let final_stages = trial.setting.final_stages(&stages);
    let watchman =
        Watchman::start(watched.clone(), Arc::clone(&control), trial.setting, trial.aborts.clone());
    let setup = Setup {
        plan: trial.setting,
        final_stages,
        stages,
        system: trial.system,
        deployment,
        seed: trial.seed,
        control,
        live,
        part: None,
    };
    let log = folder.row_log().map_err(|e| e.to_string())?;
    let events = Events::of(folder);
    trial.control.enter(clock, &setup.live, &events);
    let mut sink = FolderSink {
        folder,
        log,
        observations: None,
        events: Arc::clone(&events),
        acknowledged: Acknowledged::default(),
        declared: trial.setting.measure.ledger.then_some(declared),
        watched: agents.is_none().then(|| watched.clone()),
        ends: final_stages,
    };
    // The links' switch and the disks are threads of this process, and no part of the generator.
    let testbed_cpu = || bed.network_cpu() + bed.disk_cpu();
    let (cpu_before, testbed_before) = (CpuTime::of_this_process(), testbed_cpu());
    let loaded = match agents {
        None => load::run(setup, &mut sink).map_err(|error| error.to_string()),
        Some(agents) => agents.load(trial, trial.plan, &setup, &watched, &mut sink),
    };
    let ended_early = watchman.finish().filter(|_| !trial.interrupt.is_set());
    let testbed = testbed_cpu().saturating_sub(testbed_before);
    let cpu = CpuTime::of_this_process().since(cpu_before).saturating_sub(testbed);
    trial.progress.pause();
    trial.control.leave();
    let FolderSink { log, observations, acknowledged, .. } = sink;
    let events = events.lock().unwrap_or_else(PoisonError::into_inner).finish();
    let closed =
        log.close().and_then(|()| observations.map_or(Ok(()), ObservationLogWriter::close));
    let closed = closed.map_err(|e| e.to_string());
    let Loaded { mut facts, start } = loaded?;
    if let Some(ended) = &ended_early {
        facts.interrupted = format!("ended early: {}", ended.why);
        say!("assay: the load was ended early: {}", ended.why);
    }
    facts.ended_early = ended_early;
    trial.interrupt.say_what_was_left(facts.drain_left);
    let mut after = AfterFacts {
        generator_cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
        ..AfterFacts::default()
    };
    // The rows' line begins where the load did, a moment after the clock's origin.
    let mut samples = sampler.finish(start);
    if let Some(scraper) = scraper {
        let mut scraped = scraper.finish(start);
        samples.append(&mut scraped.samples);
        after.scraped = scraped.said;
    }
    let of_faults = faults.map_or(Ok(()), Faults::finish);
    let kept = keep(folder, &samples, &events);
    after.not_kept = closed.and(of_faults).and(kept).err().unwrap_or_default();
    Ok((facts, after, acknowledged))
}

/// Metrics and events are worth keeping and not worth losing a trial for: a full disk is said, and goes on.
fn keep(folder: &TrialFolder, samples: &[MetricSample], events: &[Event]) -> Result<(), String> {
    let kept = folder.write_metrics(samples).and_then(|()| folder.write_events(events));
    kept.map_err(|error| error.to_string())
}

/// Asks nodes for the metrics that they serve, where the adapter says that they do.
fn start_scraper(
    clock: Clock,
    of: &Deployment,
    told: SampleSink,
) -> Result<Option<MetricScraper>, String> {
    if of.scrape.is_empty() {
        return Ok(None);
    }
    let scraper = MetricScraper::start(clock, SAMPLE_EVERY, &of.scrape, told);
    scraper.map(Some).map_err(|error| error.to_string())
}
