//! One trial: deploy, preflight, load, drain, read the ledger, seal. Here the parts meet; none of them knows another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, CpuTime, Instant};
use load::{Control, Live, RowSink, Setup};
use model::facts::{Calibration, Event, LedgerFacts, MetricSample, TrialFacts};
use model::plan::SettingPlan;
use model::{Row, Seed};
use record::{RowLogWriter, RunFolder, TrialFolder};
use sut::{Deployment, System};
use testbed::{Entered, MetricScraper, ResourceSampler, Testbed};

use super::faults;
use super::progress::{Progress, Title};
use crate::interrupt::Interrupt;

/// The most events that a trial keeps; the engine's counters go on.
const EVENTS_MAX: usize = 100_000;

/// Host, generator and nodes are sampled once a second.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Nodes that do not end within this after they were asked to are killed.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// What a trial needs from the run.
pub struct Trial<'a> {
    /// The run folder.
    pub run: &'a RunFolder,
    /// What to do.
    pub setting: &'a SettingPlan,
    /// Which execution of it, from 0.
    pub index: u32,
    /// The trial's seed.
    pub seed: Seed,
    /// The system, built for this trial.
    pub system: &'a dyn System,
    /// What the calibration gave.
    pub calibration: Option<Calibration>,
    /// Signals.
    pub interrupt: &'a Interrupt,
    /// The display.
    pub progress: &'a Progress,
    /// What the display says of it.
    pub title: Title,
}

/// Carries out one trial. What was recorded stays, whatever fails.
///
/// # Errors
/// When the trial could not be carried out or kept, for people.
pub fn run(trial: &Trial<'_>) -> Result<(), String> {
    let folder = trial.run.trial(&trial.setting.key, trial.index).map_err(|e| e.to_string())?;
    let mut bed = Testbed::new(&folder.path().join("nodes"), Clock::start());
    // This thread and those that it starts, the engine's above all, are on the trial's own network, if it has one.
    let _inside = enter_links(trial, &mut bed)?;
    let deployed = trial.system.deploy(&mut bed);
    check_links(trial, &bed, deployed.as_ref().err().map(ToString::to_string))?;
    let deployment = deployed.map_err(|e| e.to_string())?;
    let mut facts = first_facts(trial, &deployment);
    facts.preflight = trial.system.preflight(&deployment).map_err(|e| e.to_string())?;
    folder.write_facts(&facts).map_err(|e| e.to_string())?;

    let loaded = load_it(trial, &folder, &deployment, &bed)?;
    merge(&mut facts, loaded);
    facts.ledger = read_ledger(trial, &folder, &deployment);
    facts.nodes = bed.nodes();
    facts.network = bed.network_report();
    facts.complete = true;
    folder.write_facts(&facts).map_err(|e| e.to_string())?;
    bed.stop_all(STOP_GRACE).map_err(|e| e.to_string())?;
    folder.seal().map_err(|e| e.to_string())
}

/// Makes the network of the plan's links, if it has any, and goes there.
fn enter_links(trial: &Trial<'_>, bed: &mut Testbed) -> Result<Entered, String> {
    if let Some(links) = &trial.setting.links {
        bed.set_seed(trial.seed);
        bed.with_network(links).map_err(|e| e.to_string())?;
    }
    bed.enter_network().map_err(|e| e.to_string())
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

/// What is known before the load. The folder holds it from the first moment, so that a crash leaves a
/// folder that can be read.
fn first_facts(trial: &Trial<'_>, deployment: &Deployment) -> TrialFacts {
    let stages = trial.system.stages();
    let last = stages.len() - 1;
    let until = &trial.setting.measure.until;
    let final_stage = stages.iter().position(|stage| stage == until).unwrap_or(last);
    let warmup = i64::try_from(trial.setting.load.warmup.as_nanos()).unwrap_or(i64::MAX);
    let duration = i64::try_from(trial.setting.load.duration.as_nanos()).unwrap_or(i64::MAX);
    TrialFacts {
        schema: "assay.trial/1".to_owned(),
        setting: trial.setting.key.clone(),
        trial: trial.index,
        seed: trial.seed,
        stages,
        final_stage,
        kinds: trial.system.kinds(),
        errors: vec![String::new()],
        measure_start: warmup,
        measure_end: warmup.saturating_add(duration),
        drain_end: model::NO_STAMP,
        calibration: trial.calibration.clone(),
        fidelity: trial.system.fidelity(),
        system: deployment.facts.clone(),
        nodes: deployment.nodes.clone(),
        ..TrialFacts::default()
    }
}

/// Puts what the engine knows over what was known before; what the app knows stays.
fn merge(facts: &mut TrialFacts, engine: TrialFacts) {
    let before = std::mem::replace(facts, engine);
    facts.schema = before.schema;
    facts.setting = before.setting;
    facts.trial = before.trial;
    facts.seed = before.seed;
    facts.stages = before.stages;
    facts.final_stage = before.final_stage;
    facts.kinds = before.kinds;
    facts.preflight = before.preflight;
    facts.calibration = before.calibration;
    facts.fidelity = before.fidelity;
    facts.nodes = before.nodes;
    let mut system: BTreeMap<String, String> = before.system;
    system.append(&mut facts.system);
    facts.system = system;
}

/// The load, with everything that is watched meanwhile.
fn load_it(
    trial: &Trial<'_>,
    folder: &TrialFolder,
    deployment: &Deployment,
    bed: &Testbed,
) -> Result<TrialFacts, String> {
    let control = Arc::new(Control::default());
    let live = Arc::new(Live::default());
    trial.interrupt.attach(Arc::clone(&control));
    trial.progress.trial(trial.title.clone(), Arc::clone(&live));

    let clock = Clock::start();
    let nodes = deployment.nodes.iter().map(|node| (node.name.clone(), node.pid)).collect();
    let sampler = ResourceSampler::start(clock, SAMPLE_EVERY, nodes).map_err(|e| e.to_string())?;
    let scraper = start_scraper(clock, deployment)?;
    let faults = faults::start(trial, bed, deployment, clock, (&live, &sampler))?;
    let stages = trial.system.stages();
    let setup = Setup {
        plan: trial.setting,
        final_stage: first_facts(trial, deployment).final_stage,
        stages,
        system: trial.system,
        deployment,
        seed: trial.seed,
        clock,
        control,
        live,
    };
    let mut sink =
        FolderSink { log: folder.row_log().map_err(|e| e.to_string())?, events: Vec::new() };
    let (cpu_before, network_before) = (CpuTime::of_this_process(), bed.network_cpu());
    let loaded = load::run(setup, &mut sink);
    // The links' switch is a thread of this process, and no part of the generator.
    let network = bed.network_cpu().saturating_sub(network_before);
    let cpu = CpuTime::of_this_process().since(cpu_before).saturating_sub(network);
    trial.progress.pause();
    let FolderSink { log, mut events } = sink;
    let closed = log.close().map_err(|e| e.to_string());
    let mut facts = loaded.map_err(|e| e.to_string())?;
    facts.generator_cpu_ns = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
    // The rows' line begins where the load did, a moment after the clock's origin.
    let trial_start = Instant::from_ns(facts.started_unix_ns - clock.origin_wall().unix_ns());
    let mut samples = sampler.finish(trial_start);
    if let Some(scraper) = scraper {
        let mut scraped = scraper.finish(trial_start);
        samples.append(&mut scraped.samples);
        facts.system.insert("metrics of nodes".to_owned(), scraped.said);
    }
    if let Some(faults) = faults {
        let (mut done, lines) = faults.finish(trial_start);
        events.append(&mut done);
        for line in &lines {
            folder.append_fault_line(line).map_err(|e| e.to_string())?;
        }
    }
    events.sort_by_key(|event| event.at);
    if let Err(error) = closed {
        facts.interrupted = error;
    }
    keep(folder, &samples, &events, &mut facts);
    Ok(facts)
}

/// Metrics and events are worth keeping and not worth losing a trial for: a full disk is said, and goes on.
fn keep(folder: &TrialFolder, samples: &[MetricSample], events: &[Event], facts: &mut TrialFacts) {
    let kept = folder.write_metrics(samples).and_then(|()| folder.write_events(events));
    if let Err(error) = kept
        && facts.interrupted.is_empty()
    {
        facts.interrupted = error.to_string();
    }
}

/// Asks nodes for the metrics that they serve, where the adapter says that they do.
fn start_scraper(clock: Clock, of: &Deployment) -> Result<Option<MetricScraper>, String> {
    if of.scrape.is_empty() {
        return Ok(None);
    }
    let scraper = MetricScraper::start(clock, SAMPLE_EVERY, &of.scrape);
    scraper.map(Some).map_err(|error| error.to_string())
}

/// Reads the ledger by its own way and keeps every entry.
fn read_ledger(trial: &Trial<'_>, folder: &TrialFolder, deployment: &Deployment) -> LedgerFacts {
    if !trial.setting.measure.ledger {
        return LedgerFacts {
            detail: "the experiment does not ask for it".to_owned(),
            ..LedgerFacts::default()
        };
    }
    let mut facts = LedgerFacts::default();
    let result = (|| -> Result<(), String> {
        let Some(mut ledger) = trial.system.ledger(deployment).map_err(|e| e.to_string())? else {
            facts.detail = "the system keeps nothing that can be read".to_owned();
            return Ok(());
        };
        facts.detail = ledger.way();
        let mut writer = folder.ledger_writer().map_err(|e| e.to_string())?;
        while let Some(entry) = ledger.next().map_err(|e| e.to_string())? {
            writer.push(entry).map_err(|e| e.to_string())?;
            facts.entries += 1;
        }
        writer.close().map_err(|e| e.to_string())?;
        facts.read = true;
        Ok(())
    })();
    if let Err(error) = result {
        facts.detail = format!("could not be read: {error}");
    }
    facts
}

/// Rows go to the row log, events to memory until the load is over.
struct FolderSink {
    log: RowLogWriter,
    events: Vec<Event>,
}

impl RowSink for FolderSink {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.log.append(rows).and_then(|()| self.log.flush()).map_err(|error| error.to_string())
    }

    fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}
