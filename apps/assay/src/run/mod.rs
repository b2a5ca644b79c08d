//! `assay run`: the experiment from file to verdict. The trial itself is in [`trial`].

mod beside;
mod faults;
mod inputs;
mod ledger;
mod metrics;
mod node_events;
mod orders;
mod progress;
mod rest;
mod safety;
mod search;
mod settled;
mod sink;
mod spread;
mod store;
mod trial;
mod watch;

use std::path::Path;
use std::time::Duration;

use clock::{Clock, WallTime};
use model::comparison::Comparison;
use model::facts::{Calibration, Environment};
use model::options::Problems;
use model::plan::{AbortPlan, Arrivals, Level, LinksPlan, LoadPlan, Plan, SettingPlan, Through};
use model::quantity::show_count;
use model::result::{Exit, RunResult};
use model::secret;
use record::{RunFolder, RunHold};

use crate::cli::{ColorChoice, RunArguments};
use crate::compare::{self, Asked};
use crate::experiment::{self, Experiment, Refusal};
use crate::interrupt::Interrupt;
use crate::terminal::say;
use crate::{conclude, terminal, umask};
use beside::Beside;
use inputs::Trial;
use metrics::Metrics;
use metrics::push::Push;
use orders::Orders;
pub use orders::tell;
use progress::{Progress, Title};
use spread::{Agents, Wanted};
use store::Store;
pub use store::check as check_store;

/// Runs it and says how it ended.
pub fn run(arguments: &RunArguments, colour: ColorChoice) -> Exit {
    let (experiment, stopped) = match begun(arguments) {
        Ok(begun) => begun,
        Err(refusal) => return conclude::refused(refusal, colour),
    };
    let asked = Asked::of(arguments.compared.margin.as_deref(), arguments.compared.anyway);
    let baseline = asked.and_then(|asked| Ok((baseline(arguments, &experiment, asked)?, asked)));
    let (baseline, asked) = match baseline {
        Ok(found) => found,
        Err(message) => return conclude::refused(Refusal::Usage(message), colour),
    };
    let wanted = safety::check(&experiment, arguments.i_own_this_target);
    let wanted = match wanted.and_then(|()| Wanted::read(&arguments.spread)) {
        Ok(wanted) => wanted,
        Err(message) => return conclude::refused(Refusal::Usage(message), colour),
    };
    // Before the first thread: the kernel moves a process only while it has one.
    let (has_disks, has_links) = own_places(&experiment.plan);
    if (has_disks || has_links)
        && let Err(error) = testbed::take_own_namespaces(has_links)
    {
        say!("assay: {error}");
        return Exit::CouldNotRun;
    }
    let against = Against { baseline, asked };
    match carry_out(arguments, colour, &experiment, stopped, wanted, &against) {
        Ok(exit) => exit,
        Err(message) => {
            say!("assay: {message}");
            Exit::CouldNotRun
        }
    }
}

/// The experiment, and the folder of the run that it goes on with.
fn begun(arguments: &RunArguments) -> Result<(Experiment, Option<RunFolder>), Refusal> {
    let Some(folder) = &arguments.resume else {
        let what = arguments.what.as_deref().unwrap_or_default();
        let experiment = experiment::load(what, &arguments.layers, &arguments.quick)?;
        return Ok((experiment, None));
    };
    let run = RunFolder::open(folder).map_err(|error| Refusal::Usage(error.to_string()))?;
    Ok((experiment::resumed(&run)?, Some(run)))
}

/// The run's baseline, which must be like it in what matters; told before anything is run.
fn baseline(
    arguments: &RunArguments,
    experiment: &Experiment,
    asked: Asked,
) -> Result<Option<compare::Named>, String> {
    let Some(word) = &arguments.baseline else { return Ok(None) };
    let plan = &experiment.plan;
    let found = compare::side(word, &arguments.runs, Some(&plan.name))?;
    compare::check(&found, &plan::redact_plan(plan), &environment(), asked)?;
    Ok(Some(found))
}

/// The other side of the run.
struct Against {
    baseline: Option<compare::Named>,
    asked: Asked,
}

impl Against {
    /// The comparison of the run that has ended: with its baseline, or of its own two sides; `None` if it has neither.
    fn compared(&self, run: &RunFolder, result: &RunResult) -> Result<Option<Comparison>, String> {
        if let Some(baseline) = &self.baseline {
            return compare::against_baseline(baseline, run, result, self.asked).map(Some);
        }
        let plan = run.plan().map_err(|error| error.to_string())?;
        Ok(compare::along(plan::SIDE_AXIS, &plan, result, self.asked))
    }
}

fn carry_out(
    arguments: &RunArguments,
    colour: ColorChoice,
    experiment: &Experiment,
    stopped: Option<RunFolder>,
    wanted: Option<Wanted>,
    against: &Against,
) -> Result<Exit, String> {
    umask::only_own_files();
    tell_of_secrets();
    let interrupt = Interrupt::listen()?;
    let metrics = serve_metrics(arguments)?;
    // For questions beside the load; each trial has a clock of its own.
    let clock = Clock::start();
    let _push = push_metrics(arguments, metrics.as_ref(), clock)?;
    let beside = Beside::find(&arguments.pids, &arguments.scrape, clock)?;
    let store = arguments.rows.as_ref().map(|url| Store::open(url, &interrupt)).transpose()?;
    testbed::raise_file_limit().map_err(|error| error.to_string())?;
    let plan = &experiment.plan;
    // Until the report is written, others see by it that the run goes on.
    let (run, _hold) = match stopped {
        Some(run) => {
            let hold = run.hold().map_err(|error| error.to_string())?;
            (run, hold)
        }
        None => create(arguments, experiment)?,
    };

    let aborted = |error: String| format!("{error}{}", what_is_kept(&run));
    let orders = Orders::listen(&run, interrupt.clone(), arguments.hold).map_err(aborted)?;
    let agents = wanted.map(|it| Agents::start(it, &experiment.folder, interrupt.flag()));
    let agents = agents.transpose().map_err(aborted)?;
    let calibration = if arguments.no_calibration { None } else { calibrate() };
    if let Some(words) = calibration.as_ref().and_then(|it| beyond_this_machine(plan, it)) {
        say!("assay: {words}");
    }
    let progress = Progress::start(arguments.progress, colour);
    let (folder, interrupt) = (&run, &interrupt);
    let all = Run {
        arguments,
        experiment,
        folder,
        interrupt,
        orders: &orders,
        progress,
        metrics,
        beside,
        calibration,
        agents: agents.as_ref(),
    };
    let carried_out = trials(&all);
    orders.end();
    if let Err(error) = carried_out {
        let error = aborted(error);
        if interrupt.is_set() {
            say!("assay: {error}");
            return Ok(Exit::Interrupted);
        }
        return Err(error);
    }

    let (mut result, picture) = conclude::analyse_with_picture(&run)?;
    if interrupt.is_set() {
        result.interrupted = true;
        result.exit_code = Exit::Interrupted as i32;
        result.exit_meaning = Exit::Interrupted.meaning().to_owned();
    }
    run.write_result(&result).map_err(|e| e.to_string())?;
    // The result is written and shown whatever becomes of the page.
    let page = conclude::write_reports(&run, &result, picture);
    if let Err(error) = run.seal_files() {
        say!("assay: the files of the run could not be sealed: {error}");
    }
    let compared = match interrupt.is_set() {
        true => None,
        false => against.compared(&run, &result)?,
    };
    if let Some(compared) = &compared {
        compare::keep(&run, compared)?;
        let exit = Exit::of(result.exit_code).or(compared.exit());
        if exit as i32 != result.exit_code {
            // The stored result is of the run alone; the exit code is of both.
            result.exit_code = exit as i32;
            result.exit_meaning = exit.meaning().to_owned();
        }
    }
    let compared = compared.as_ref();
    show(arguments, colour, experiment, &run, &result, (page.as_deref().ok(), compared))?;
    if let Err(message) = page {
        say!(
            "assay: the report could not be written: {message}\nassay: try again: assay report --format html -o report.html {}",
            run.path().display()
        );
    }
    let is_copied = store.is_none_or(|store| store.keep_or_say(&run, interrupt));
    let exit = Exit::of(result.exit_code);
    Ok(if exit == Exit::Ok && !is_copied { Exit::CouldNotRun } else { exit })
}

/// Whether any trial has disks of its own, and whether any has a network of its own: what takes rights that an ordinary user
/// has only in a namespace.
fn own_places(plan: &Plan) -> (bool, bool) {
    let has_switch = |links: &LinksPlan| links.through == Through::Switch;
    let any = |has: &dyn Fn(&SettingPlan) -> bool| plan.settings.iter().any(has);
    (any(&|it| it.disks.is_some()), any(&|it| it.links.as_ref().is_some_and(has_switch)))
}

/// The folder of a new run, with all that is known before it.
fn create(
    arguments: &RunArguments,
    experiment: &Experiment,
) -> Result<(RunFolder, RunHold), String> {
    let words = |error: record::RecordError| error.to_string();
    let plan = &experiment.plan;
    let run = RunFolder::create(&arguments.runs, &plan.name, WallTime::now()).map_err(words)?;
    let hold = run.hold().map_err(words)?;
    // Once more: since it was read, the systems have said what else is secret.
    run.write_text("experiment.toml", &plan::redact(&experiment.text)).map_err(words)?;
    run.write_plan(&plan::redact_plan(plan)).map_err(words)?;
    run.write_environment(&environment()).map_err(words)?;
    Ok((run, hold))
}

/// The last line of an aborted run's message: the folder of its record, or nothing if it recorded nothing.
fn what_is_kept(run: &RunFolder) -> String {
    match run.remove_unused() {
        Ok(true) => String::new(),
        _ => {
            let path = run.path().display();
            format!("\nassay: the record up to this point is kept: assay report {path}")
        }
    }
}

/// Everything that the trials of a run share.
struct Run<'a> {
    arguments: &'a RunArguments,
    experiment: &'a Experiment,
    folder: &'a RunFolder,
    interrupt: &'a Interrupt,
    orders: &'a Orders,
    progress: Progress,
    metrics: Option<Metrics>,
    beside: Beside,
    calibration: Option<Calibration>,
    agents: Option<&'a Agents>,
}

/// All trials, in the plan's order.
fn trials(run: &Run<'_>) -> Result<(), String> {
    let plan = &run.experiment.plan;
    if let Some(wanted) = &plan.search {
        return search::trials(run, wanted);
    }
    let lengths: Vec<Duration> =
        plan.order.iter().map(|(setting, _)| planned_length(&plan.settings[*setting])).collect();
    for position in 0..plan.order.len() {
        if run.interrupt.is_set() {
            break;
        }
        if run.arguments.resume.is_some() {
            let words = |error: record::RecordError| error.to_string();
            let (setting, index) = plan.order[position];
            let key = &plan.settings[setting].key;
            if run.folder.is_whole(key, index).map_err(words)? {
                continue;
            }
            run.folder.forget_trial(key, index).map_err(words)?;
        }
        one(run, plan, position, lengths[position + 1..].iter().sum())?;
    }
    Ok(())
}

/// The trial at a place of the plan's order; `after` is the length of those that follow.
fn one(run: &Run<'_>, plan: &Plan, position: usize, after: Duration) -> Result<(), String> {
    with_trial(run, plan, position, after, |trial| trial::run(trial, run.agents))
}

/// Does something with the trial at a place of the plan's order.
fn with_trial(
    run: &Run<'_>,
    plan: &Plan,
    position: usize,
    after: Duration,
    carry_out: impl FnOnce(&Trial<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let (setting_index, index) = plan.order[position];
    let setting = &plan.settings[setting_index];
    let seed = plan::trial_seed(plan.seed, setting, index);
    // A ledger may outlive a run; the mark must differ even when the seed does not.
    let now = u64::try_from(WallTime::now().unix_ns()).unwrap_or(0);
    let run_mark = seed.split_index("mark", now).0;
    let system =
        run.experiment.build(setting, run_mark, &mut Problems::default()).ok_or_else(|| {
            format!("the options of setting {} were accepted before and are not now", setting.key)
        })?;
    let title = Title {
        name: plan.name.clone(),
        position: position + 1,
        trials: plan.order.len(),
        key: setting.key.clone(),
        total: planned_length(setting),
        after,
        drain_max: setting.load.drain_max,
    };
    carry_out(&Trial {
        run: run.folder,
        setting,
        index,
        seed,
        system: system.as_ref(),
        sources: &run.experiment.sources,
        targets: safety::targets(run.experiment, setting),
        calibration: run.calibration.clone(),
        interrupt: run.interrupt,
        control: run.orders,
        progress: &run.progress,
        metrics: run.metrics.as_ref(),
        beside: &run.beside,
        aborts: aborts(plan, setting),
        settled: settled(plan),
        title,
        has_preflight: !run.arguments.no_preflight,
        run_mark,
        plan,
    })
    .map_err(|error| format!("setting {}, trial {index}: {error}", setting.key))
}

/// The thresholds of a setting that may end its trials early.
fn aborts(plan: &Plan, setting: &SettingPlan) -> Vec<AbortPlan> {
    let is_of = |at: &std::collections::BTreeMap<String, String>| {
        at.iter().all(|(axis, label)| setting.values.get(axis) == Some(label))
    };
    let of = plan.thresholds.iter().filter(|threshold| is_of(&threshold.at));
    of.filter_map(|it| AbortPlan::parse(&it.expr, it.abort?).ok()).collect()
}

/// The thresholds that settle a trial of a search: those that it has to keep.
fn settled(plan: &Plan) -> Vec<String> {
    let of_search =
        plan.thresholds.iter().filter(|it| plan.search.is_some() && it.level == Level::Fail);
    of_search.map(|it| it.expr.clone()).collect()
}

/// Serves the run's metrics, where they are asked for.
fn serve_metrics(arguments: &RunArguments) -> Result<Option<Metrics>, String> {
    if arguments.metrics.is_none() && arguments.otlp.is_none() {
        return Ok(None);
    }
    let metrics = Metrics::default();
    if let Some(address) = arguments.metrics {
        let bound = metrics.serve(address)?;
        say!("assay: metrics of this run: http://{bound}/metrics");
    }
    Ok(Some(metrics))
}

/// Pushes the run's metrics, where that is asked for, until what this gives is dropped.
fn push_metrics(
    arguments: &RunArguments,
    metrics: Option<&Metrics>,
    clock: Clock,
) -> Result<Option<Push>, String> {
    let (Some(url), Some(metrics)) = (&arguments.otlp, metrics) else { return Ok(None) };
    Push::start(metrics, url, clock).map(Some)
}

/// Tells the user what only he can keep secret.
fn tell_of_secrets() {
    let words: Vec<String> = std::env::args().collect();
    if secret::command_spans(&words).iter().any(|spans| !spans.is_empty()) {
        say!(
            "assay: a secret on the command line can be seen in the list of processes: put it into an environment variable and \
             write '${{NAME}}' in its place"
        );
    }
    let short = secret::left_out();
    if short > 0 {
        say!(
            "assay: {short} secrets are shorter than six characters (or one too many): they are kept out of what is stored, \
             but not looked for in what the system answers"
        );
    }
}

fn planned_length(setting: &SettingPlan) -> Duration {
    setting.load.warmup + setting.load.duration
}

fn environment() -> Environment {
    let command = std::env::args().collect();
    testbed::environment(command, crate::cli::VERSION.to_owned())
}

/// What this machine can do, measured before the run; a machine where it fails is told of, not refused.
fn calibrate() -> Option<Calibration> {
    match load::calibrate(Clock::start()) {
        Ok(calibration) => Some(calibration),
        Err(error) => {
            say!("assay: calibration: {error}");
            None
        }
    }
}

/// The warning for a plan whose highest rate exceeds what this machine sends to a target that does nothing.
fn beyond_this_machine(plan: &Plan, calibration: &Calibration) -> Option<String> {
    let beyond = |load: &LoadPlan| {
        let Arrivals::Open { schedule } = &load.arrivals else { return None };
        let most = calibration.rate_max * f64::from(load.threads.max(1));
        let rate = experiment::schedule_rate_max(schedule)?;
        (most > 0.0 && rate > most).then_some((rate, most))
    };
    let all = plan.settings.iter().filter_map(|setting| beyond(&setting.load));
    let (rate, most) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole rates, for people"
    )]
    let [rate, most] = [rate, most].map(|rate| show_count(rate.round() as u64));
    Some(format!(
        "{rate}/s is more than this machine can do: it sends {most}/s to a target that does nothing; what is not sent in \
         time is counted, and answers are waited for as long as load.drain says"
    ))
}

/// The summary on standard output; where it lies, on standard error.
fn show(
    arguments: &RunArguments,
    colour: ColorChoice,
    experiment: &Experiment,
    run: &RunFolder,
    result: &RunResult,
    (page, compared): (Option<&Path>, Option<&Comparison>),
) -> Result<(), String> {
    let style = terminal::stdout_style(colour, arguments.verbose);
    if arguments.json {
        terminal::print(&report::json(result))?;
    } else {
        terminal::print(&report::terminal_body(result, style))?;
        let folder = run.path().display();
        if let Some(compared) = compared {
            terminal::print(&report::comparison_body(compared, style))?;
            terminal::print(&format!("compared     {folder}/comparison.html\n"))?;
        }
        terminal::print(&format!("run folder   {folder}\n"))?;
        if let Some(page) = page {
            terminal::print(&format!("report       {}\n", page.display()))?;
        }
        if experiment.is_quick {
            terminal::print(&format!("as a file    {folder}/experiment.toml\n"))?;
        }
        terminal::print(&report::exit_line(result, style))?;
    }
    Ok(())
}
