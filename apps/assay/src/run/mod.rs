//! `assay run`: the experiment from file to verdict. The trial itself is in [`trial`].

mod beside;
mod faults;
mod ledger;
mod metrics;
mod node_events;
mod progress;
mod safety;
mod search;
mod trial;
mod watch;

use std::path::Path;
use std::time::Duration;

use clock::{Clock, WallTime};
use model::facts::{Calibration, Environment};
use model::options::Problems;
use model::plan::{AbortPlan, Arrivals, LoadPlan, Plan, SettingPlan};
use model::quantity::show_count;
use model::result::{Exit, RunResult};
use model::secret;
use record::RunFolder;

use crate::cli::{ColorChoice, RunArguments};
use crate::experiment::{self, Experiment, Refusal};
use crate::interrupt::Interrupt;
use crate::terminal::say;
use crate::{conclude, terminal};
use beside::Beside;
use metrics::Metrics;
use progress::{Progress, Title};
use trial::Trial;

/// Runs it and says how it ended.
pub fn run(arguments: &RunArguments, colour: ColorChoice) -> Exit {
    let experiment = match experiment::load(&arguments.what, &arguments.layers, &arguments.quick) {
        Ok(experiment) => experiment,
        Err(refusal) => return conclude::refused(refusal, colour),
    };
    if let Err(message) = safety::check(&experiment, arguments.i_own_this_target) {
        return conclude::refused(Refusal::Usage(message), colour);
    }
    match carry_out(arguments, colour, &experiment) {
        Ok(exit) => exit,
        Err(message) => {
            say!("assay: {message}");
            Exit::CouldNotRun
        }
    }
}

fn carry_out(
    arguments: &RunArguments,
    colour: ColorChoice,
    experiment: &Experiment,
) -> Result<Exit, String> {
    // Nobody else may read what a system answers, nor what its nodes write.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    tell_of_secrets();
    let interrupt = Interrupt::listen()?;
    let metrics = serve_metrics(arguments)?;
    let beside = Beside::find(&arguments.pids, &arguments.scrape, Clock::start())?;
    testbed::raise_file_limit().map_err(|error| error.to_string())?;
    let plan = &experiment.plan;
    let run = RunFolder::create(&arguments.runs, &plan.name, WallTime::now())
        .map_err(|e| e.to_string())?;
    // Once more: since it was read, the systems have said what else is secret.
    let text = plan::redact(&experiment.text);
    run.write_text("experiment.toml", &text).map_err(|e| e.to_string())?;
    run.write_plan(&plan::redact_plan(plan)).map_err(|e| e.to_string())?;
    let environment = environment();
    run.write_environment(&environment).map_err(|e| e.to_string())?;

    let calibration = if arguments.no_calibration { None } else { calibrate() };
    if let Some(words) = calibration.as_ref().and_then(|it| beyond_this_machine(plan, it)) {
        say!("assay: {words}");
    }
    let progress = Progress::start(arguments.progress, colour);
    let (folder, interrupt) = (&run, &interrupt);
    let all =
        Run { arguments, experiment, folder, interrupt, progress, metrics, beside, calibration };
    if let Err(error) = trials(&all) {
        let error = format!("{error}{}", what_is_kept(&run));
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
    show(arguments, colour, experiment, &run, &result, page.as_deref().ok())?;
    if let Err(message) = page {
        say!(
            "assay: the report could not be written: {message}\nassay: try again: assay report --format html -o report.html {}",
            run.path().display()
        );
    }
    Ok(Exit::of(result.exit_code))
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
    progress: Progress,
    metrics: Option<Metrics>,
    beside: Beside,
    calibration: Option<Calibration>,
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
        one(run, plan, position, lengths[position + 1..].iter().sum())?;
    }
    Ok(())
}

/// The trial at a place of the plan's order; `after` is the length of those that follow.
fn one(run: &Run<'_>, plan: &Plan, position: usize, after: Duration) -> Result<(), String> {
    let (setting_index, index) = plan.order[position];
    let setting = &plan.settings[setting_index];
    let seed = plan.seed.split(&setting.key).split_index("trial", u64::from(index));
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
    trial::run(&Trial {
        run: run.folder,
        setting,
        index,
        seed,
        system: system.as_ref(),
        targets: safety::targets(run.experiment, setting),
        calibration: run.calibration.clone(),
        interrupt: run.interrupt,
        progress: &run.progress,
        metrics: run.metrics.as_ref(),
        beside: &run.beside,
        aborts: aborts(plan, setting),
        title,
        has_preflight: !run.arguments.no_preflight,
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

/// Serves the run's metrics, where they are asked for.
fn serve_metrics(arguments: &RunArguments) -> Result<Option<Metrics>, String> {
    let Some(address) = arguments.metrics else { return Ok(None) };
    let metrics = Metrics::default();
    let bound = metrics.serve(address)?;
    say!("assay: metrics of this run: http://{bound}/metrics");
    Ok(Some(metrics))
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
    page: Option<&Path>,
) -> Result<(), String> {
    let style = terminal::stdout_style(colour, arguments.verbose);
    if arguments.json {
        terminal::print(&report::json(result))?;
    } else {
        terminal::print(&report::terminal_body(result, style))?;
        let folder = run.path().display();
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
