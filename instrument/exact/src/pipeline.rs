//! From an experiment's text to a run folder with its result and page, in virtual time: what the command line does with a
//! system that is deployed, done with one that is a script. It decides nothing.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use clock::Instant;
use load::{Control, RowSink, Setup, scripted};
use model::facts::{
    Calibration, DeclaredFacts, Event, LedgerEntry, LedgerFacts, PreflightFinding, TrialFacts,
};
use model::names::DeclaredNames;
use model::plan::{Plan, SettingPlan};
use model::result::RunResult;
use model::{Observations, Row, Seed, Stamp};
use plan::{Input, Mistake, Outside, Source};
use record::{RowLogWriter, RunFolder, TrialFolder};
use search::Search;
use sut::{Deployment, System as _};

use crate::beside::{Beside, FAULT_KINDS, STARTED};
use crate::script::Script;
use crate::stages;
use crate::toy::{Client, KIND, Stored, Toy};

/// A run that has ended.
pub struct Ran {
    /// The run folder, with summary.json and the reports.
    pub folder: RunFolder,
    /// The result.
    pub result: RunResult,
    /// The page.
    pub page: String,
}

impl Ran {
    /// The rows of a trial (its place among the run's, from 0), by transaction.
    ///
    /// # Errors
    /// When there is no such trial, or it cannot be read.
    pub fn rows(&self, trial: usize) -> Result<Vec<Row>, String> {
        let trials = self.folder.trials().map_err(words)?;
        let trial = trials.get(trial).ok_or("there is no such trial")?;
        let mut rows = Vec::new();
        trial.for_each_batch(|batch| rows.extend_from_slice(batch)).map_err(words)?;
        rows.sort_by_key(|row| row.tx);
        Ok(rows)
    }

    /// The facts of a trial.
    ///
    /// # Errors
    /// As [`Ran::rows`].
    pub fn facts(&self, trial: usize) -> Result<TrialFacts, String> {
        let trials = self.folder.trials().map_err(words)?;
        trials.get(trial).ok_or("there is no such trial")?.facts().map_err(words)
    }
}

/// Runs an experiment whose `system.kind` is `script` into a new folder under `runs`. `script` makes the server of a
/// setting's trial (from 0), and `client` says how it is spoken to.
///
/// # Errors
/// The reason that it stopped, for people.
pub fn run(
    experiment: &str,
    client: Client,
    script: &dyn Fn(&SettingPlan, u32) -> Script,
    runs: &Path,
) -> Result<Ran, String> {
    run_beside(experiment, client, script, &Beside::default(), runs)
}

/// The same, with something beside the load.
///
/// # Errors
/// As [`run`].
pub fn run_beside(
    experiment: &str,
    client: Client,
    script: &dyn Fn(&SettingPlan, u32) -> Script,
    beside: &Beside,
    runs: &Path,
) -> Result<Ran, String> {
    let mut plan = resolve(experiment, client)?;
    let folder = RunFolder::create(runs, &plan.name, STARTED).map_err(words)?;
    folder.write_text("experiment.toml", experiment).map_err(words)?;
    folder.write_plan(&plan).map_err(words)?;
    folder.write_environment(&beside.environment).map_err(words)?;
    let none = |_: &str| -> &'static [model::check::Check] { &[] };
    let mut search = plan.search.as_ref().map(Search::new);
    for position in 0.. {
        if let Some(ask) = search.as_ref().and_then(Search::next) {
            plan::add_search_trial(&mut plan, ask.value, ask.length);
            folder.write_plan(&plan).map_err(words)?;
        }
        let Some((at, index)) = plan.order.get(position).copied() else { break };
        let setting = &plan.settings[at];
        let trial = folder.trial(&setting.key, index).map_err(words)?;
        let seed = plan::trial_seed(plan.seed, setting, index);
        let of = Of { setting, index, seed, client };
        let facts = carry_out(&trial, of, script(setting, index), beside)?;
        if !facts.interrupted().is_empty() {
            break;
        }
        if let Some(search) = &mut search {
            let result = analysis::analyse_trial(&folder, &plan, (at, index), &none);
            let result = result.map_err(words)?.ok_or("the trial left no record")?;
            search.observe(analysis::seen(&result));
        }
    }
    let (result, picture) =
        analysis::analyse_with_picture(&folder, &none, Vec::new()).map_err(words)?;
    folder.write_result(&result).map_err(words)?;
    folder.write_text("report.md", &report::markdown(&result)).map_err(words)?;
    let page = report::html(&[(result.clone(), picture)], &report::Assets::built());
    let page = page.map_err(words)?;
    folder.write_text("report.html", &page).map_err(words)?;
    Ok(Ran { folder, result, page })
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn resolve(experiment: &str, client: Client) -> Result<Plan, String> {
    // What a script may stamp; whether it does is known when it is made.
    let node_stages = stages::node_stages().into_iter().map(|stage| stage.name).collect();
    let stages = client.stages();
    let names = Rc::new(DeclaredNames { stages, node_stages, ..Default::default() });
    let check_threshold = |expr: &str, names: Option<&DeclaredNames>| {
        analysis::check_threshold(expr, names).map_err(|e| Mistake::from_sentence(expr, &e))
    };
    let check_metric = |name: &str, names: Option<&DeclaredNames>| {
        analysis::check_metric(name, names).map_err(|e| Mistake::from_sentence(name, &e))
    };
    let resolved = plan::resolve(&Input {
        file: Source { name: "experiment.toml".to_owned(), text: experiment.to_owned() },
        outside: Outside {
            kinds: &[KIND],
            faults: FAULT_KINDS,
            names: &|_| Some(Rc::clone(&names)),
            check_threshold: &check_threshold,
            check_metric: &check_metric,
            ..Outside::default()
        },
        ..Input::default()
    });
    resolved.map(|resolved| resolved.plan).map_err(words)
}

/// A generator that costs nothing: no time passes while it works.
fn calibration() -> Calibration {
    Calibration { rate_max: 1e9, floor_p50_ns: 0, lag_p99_ns: 0, cpu_ns_per_request: 0.0 }
}

/// Which trial it is.
#[derive(Clone, Copy)]
struct Of<'a> {
    setting: &'a SettingPlan,
    index: u32,
    seed: Seed,
    client: Client,
}

fn carry_out(
    folder: &TrialFolder,
    of: Of<'_>,
    script: Script,
    beside: &Beside,
) -> Result<TrialFacts, String> {
    let Of { setting, seed, client, .. } = of;
    let (clock, hand) = scripted::clock(STARTED);
    let (stalls, dates) = (script.stamps().map(<[_]>::to_vec), script.dates());
    let mut declared = declared(of);
    declared.series.clone_from(&beside.series);
    declared.durability = (beside.durability)(setting);
    if let Some(answer) = &beside.refusal {
        let kinds = client.kinds().into_iter();
        declared.preflight =
            kinds.map(|kind| PreflightFinding::new(kind.name, false, answer)).collect();
    }
    if stalls.is_some() {
        declared.node_stages = stages::node_stages();
    }
    let mut facts = TrialFacts { declared, ..TrialFacts::default() };
    folder.write_facts(&facts).map_err(words)?;
    if facts.declared.is_hopeless() {
        facts.load.is_withheld = true;
        folder.row_log().and_then(RowLogWriter::close).map_err(words)?;
        facts.complete = true;
        folder.write_facts(&facts).map_err(words)?;
        folder.seal().map_err(words)?;
        return Ok(facts);
    }
    let control = Arc::<Control>::default();
    let setup = Setup {
        part: None,
        plan: setting,
        stages: client.stages(),
        final_stages: setting.final_stages(&client.stages()),
        system: &client,
        deployment: &Deployment::new(clock),
        seed,
        control: Arc::clone(&control),
        live: Arc::default(),
    };
    let stored = Stored::default();
    let ending = beside.ended_after.map(|after| (Instant::ZERO.plus(after), control));
    let server = Box::new(Toy::new(script, stored.clone(), ending));
    let mut sink = Sink { log: folder.row_log().map_err(words)?, events: Vec::new() };
    facts.load = scripted::run(setup, &mut sink, hand, server).map_err(words)?.facts;
    sink.log.close().map_err(words)?;
    folder.write_events(&sink.events).map_err(words)?;
    folder.write_metrics(&beside.metrics).map_err(words)?;
    facts.after.nodes = beside.nodes();
    if !beside.faults.is_empty() {
        let mut log = folder.fault_log().map_err(words)?;
        beside.faults.iter().for_each(|event| log.append(event));
        log.close().map_err(words)?;
    }
    let started = facts.load.started;
    let dated = dates.then_some(|at| stages::wall_at(started, at));
    facts.after.ledger = keep_ledger(folder, setting, &stored.entries(dated))?;
    if let Some(stalls) = stalls {
        let kept = stages::keep(folder, started, &stored.served(), &stalls)?;
        facts.after.node_events = Some(kept);
    }
    facts.complete = true;
    folder.write_facts(&facts).map_err(words)?;
    folder.seal().map_err(words)?;
    Ok(facts)
}

fn declared(of: Of<'_>) -> DeclaredFacts {
    let Of { setting, index, seed, client } = of;
    let ns = |length: std::time::Duration| -> Stamp {
        i64::try_from(length.as_nanos()).expect("a test is shorter than 292 years")
    };
    let ends = setting.final_stages(&client.stages());
    let (warmup, end) = (setting.load.warmup, setting.load.warmup + setting.load.duration);
    let found =
        |kind: sut::Kind| PreflightFinding::new(kind.name, true, "a script takes everything");
    DeclaredFacts {
        setting: setting.key.clone(),
        trial: index,
        seed,
        final_stage: ends.load,
        probe_final_stage: setting.probe.is_some().then_some(ends.probe),
        stages: client.stages(),
        kinds: client.kinds(),
        measure_start: ns(warmup),
        measure_end: ns(end),
        preflight: client.kinds().into_iter().map(found).collect(),
        calibration: Some(calibration()),
        ..DeclaredFacts::default()
    }
}

fn keep_ledger(
    folder: &TrialFolder,
    setting: &SettingPlan,
    entries: &[LedgerEntry],
) -> Result<LedgerFacts, String> {
    if !setting.measure.ledger {
        let detail = "the experiment does not ask for it".to_owned();
        return Ok(LedgerFacts { detail, ..LedgerFacts::default() });
    }
    let mut writer = folder.ledger_writer().map_err(words)?;
    for entry in entries {
        writer.push(*entry, None).map_err(words)?;
    }
    writer.close().map_err(words)?;
    let entries = entries.len() as u64;
    let detail = "what the script stored".to_owned();
    Ok(LedgerFacts { read: true, entries, detail, ..LedgerFacts::default() })
}

/// Rows go to the row log, events to memory until the load is over.
struct Sink {
    log: RowLogWriter,
    events: Vec<Event>,
}

impl RowSink for Sink {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.log.append(rows).and_then(|()| self.log.flush()).map_err(words)
    }

    fn observations(&mut self, _observations: &Observations) -> Result<(), String> {
        Err("a script returns nothing to observe".to_owned())
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}
