//! `assay compare`, `assay mark`, and the comparison after a run: which folders are the sides, and where it is written.
//!
//! It computes no figure: that is the crate `compare`.

use std::path::{Path, PathBuf};

use ::compare::{Recorded, Side, Sides, Subject, differences};
use model::comparison::{Comparison, Difference, Trend};
use model::facts::Environment;
use model::plan::Plan;
use model::quantity::parse_percent;
use model::result::{Exit, RunResult};
use record::RunFolder;

use crate::cli::{ColorChoice, CompareArguments, MarkArguments};
use crate::terminal::say;
use crate::{conclude, terminal};

/// A run on disk.
pub struct Opened {
    path: PathBuf,
    plan: Plan,
    environment: Environment,
    result: RunResult,
}

/// The conditions of a comparison, as the user sets them.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The ratio that makes no difference, less one.
    pub margin: f64,
    /// Whether sides that differ in what matters are compared all the same.
    pub anyway: bool,
}

impl Asked {
    /// From the command line.
    pub fn of(margin: Option<&str>, anyway: bool) -> Result<Self, String> {
        let Some(text) = margin else { return Ok(Self { margin: ::compare::MARGIN, anyway }) };
        let margin = parse_percent(text).ok().filter(|margin| *margin > 0.0 && *margin <= 1.0);
        let margin = margin.ok_or_else(|| {
            format!("--margin {text}: expected more than 0% and at most 100%, such as 5%")
        })?;
        Ok(Self { margin, anyway })
    }
}

impl Opened {
    /// Opens a run folder; its result is computed anew, from the folder alone.
    pub fn open(path: &Path) -> Result<Self, String> {
        Self::with(path, conclude::analyse)
    }

    /// The same with the result that the run left, if it is there and of this version: for many runs.
    fn as_left(path: &Path) -> Result<Self, String> {
        Self::with(path, |run| run.result().or_else(|_| conclude::analyse(run)))
    }

    fn with(
        path: &Path,
        result: impl Fn(&RunFolder) -> Result<RunResult, String>,
    ) -> Result<Self, String> {
        let words = |error: record::RecordError| error.to_string();
        let run = RunFolder::open(path).map_err(words)?;
        Ok(Self {
            path: path.to_owned(),
            plan: run.plan().map_err(words)?,
            environment: run.environment().map_err(words)?,
            result: result(&run)?,
        })
    }

    fn subject(&self) -> Subject<'_> {
        Subject { plan: &self.plan, environment: &self.environment, result: Some(&self.result) }
    }

    fn name(&self) -> String {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| self.path.display().to_string())
    }
}

/// `assay compare`.
pub fn compare(arguments: &CompareArguments, colour: ColorChoice) -> Exit {
    let compared = Asked::of(arguments.compared.margin.as_deref(), arguments.compared.anyway)
        .map_err(|message| (Exit::Usage, message))
        .and_then(|asked| made(arguments, asked).map_err(|message| (Exit::CouldNotRun, message)))
        .and_then(|compared| {
            let form = arguments.format.of_comparison.expect("others are refused");
            let text = form(&compared, terminal::stdout_style(colour, false));
            let written = terminal::write(&arguments.output, &text);
            written.map_err(|message| (Exit::CouldNotRun, message))?;
            Ok(compared.exit())
        });
    compared.unwrap_or_else(|(exit, message)| {
        say!("assay compare: {message}");
        exit
    })
}

fn made(arguments: &CompareArguments, asked: Asked) -> Result<Comparison, String> {
    let one = |word: &str| side(word, &arguments.runs, None);
    match arguments.sides.as_slice() {
        [run] => {
            let (label, mut runs) = one(run)?;
            let run = runs.pop().filter(|_| runs.is_empty());
            let run =
                run.ok_or_else(|| format!("`{label}` names several runs: name a second side"))?;
            along(&arguments.by, &run.plan, &run.result, asked)
                .ok_or_else(|| no_axis(&arguments.by, &run.plan))
        }
        [baseline, candidate] => between(&one(baseline)?, &one(candidate)?, asked),
        _ => Err("expected a baseline and a candidate".to_owned()),
    }
}

fn no_axis(axis: &str, plan: &Plan) -> String {
    let names: Vec<&str> = plan.axes.iter().map(|it| it.name.as_str()).collect();
    let has = match names.as_slice() {
        [] => "it has no matrix: name a second run".to_owned(),
        names => format!("it has {}: say --by {}", names.join(", "), names[0]),
    };
    format!("the run has no axis `{axis}` with two labels; {has}")
}

/// The comparison along an axis of one run; `None` where it has none.
pub fn along(axis: &str, plan: &Plan, result: &RunResult, asked: Asked) -> Option<Comparison> {
    let sides = Sides::along(axis, plan, result)?;
    Some(::compare::compare(&result.name, &sides, asked.margin, Vec::new()))
}

/// A side: its name and its runs.
pub type Named = (String, Vec<Opened>);

/// The runs that a word names: a run folder, or those that have it as a baseline name.
pub fn side(word: &str, runs: &Path, experiment: Option<&str>) -> Result<Named, String> {
    let path = Path::new(word);
    if path.is_dir() {
        let opened = Opened::open(path)?;
        return Ok((opened.name(), vec![opened]));
    }
    let bears = |path: &PathBuf| {
        RunFolder::open(path).is_ok_and(|run| run.baseline_names().iter().any(|name| name == word))
    };
    let folders: Vec<PathBuf> = conclude::folders(runs)?.into_iter().filter(bears).collect();
    let mut found = folders.iter().map(|path| Opened::open(path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(experiment) = experiment {
        found.retain(|run| run.plan.name == experiment);
    }
    if found.is_empty() {
        let runs = runs.display();
        let of = experiment.map_or(String::new(), |name| format!(" of `{name}`"));
        return Err(format!(
            "`{word}` is no run folder, and no run{of} in {runs} has that baseline name; give it one: assay mark FOLDER {word}"
        ));
    }
    Ok((word.to_owned(), found))
}

/// The comparison of two sides of runs.
pub fn between(baseline: &Named, candidate: &Named, asked: Asked) -> Result<Comparison, String> {
    let mut found: Vec<Difference> = Vec::new();
    let first = candidate.1.first().ok_or("the candidate has no run")?;
    let others = baseline.1.iter().chain(candidate.1.iter().skip(1));
    for difference in others.flat_map(|run| differences(&run.subject(), &first.subject())) {
        if !found.contains(&difference) {
            found.push(difference);
        }
    }
    refuse(&found, asked)?;
    let sides = Sides::of_runs(results(baseline), results(candidate));
    Ok(::compare::compare(&first.result.name, &sides, asked.margin, found))
}

fn results(of: &Named) -> Side<'_> {
    let all: Vec<&RunResult> = of.1.iter().map(|it| &it.result).collect();
    Side::of_runs(&of.0, &all)
}

/// Refuses sides that differ in what matters.
fn refuse(found: &[Difference], asked: Asked) -> Result<(), String> {
    let matter: Vec<String> = found
        .iter()
        .filter(|it| it.matters)
        .map(|it| {
            format!("\n  {}: `{}` in the baseline, `{}` now", it.of, it.baseline, it.candidate)
        })
        .collect();
    if matter.is_empty() || asked.anyway {
        return Ok(());
    }
    Err(format!(
        "the sides differ in what matters, so a difference between them would say nothing of the system:{}\n\
         make these alike, or say --anyway",
        matter.concat()
    ))
}

/// Refuses a run whose baseline differs from it in what matters, before it is run.
pub fn check(
    baseline: &Named,
    plan: &Plan,
    environment: &Environment,
    asked: Asked,
) -> Result<(), String> {
    let now = Subject { plan, environment, result: None };
    let before = |run: &Opened| {
        let before = Subject { result: None, ..run.subject() };
        differences(&before, &now)
    };
    refuse(&baseline.1.iter().flat_map(before).collect::<Vec<_>>(), asked)
}

/// The run that has just ended against its baseline.
pub fn against_baseline(
    baseline: &Named,
    run: &RunFolder,
    result: &RunResult,
    asked: Asked,
) -> Result<Comparison, String> {
    let opened = Opened::with(run.path(), |_| Ok(result.clone()))?;
    between(baseline, &(opened.name(), vec![opened]), asked)
}

/// Writes it beside the result: a page, Markdown and JSON. Says where the page is.
pub fn keep(run: &RunFolder, of: &Comparison) -> Result<PathBuf, String> {
    let page = report::comparison_page(of, &report::Assets::built());
    let texts = [
        ("comparison.html", page),
        ("comparison.md", report::comparison_markdown(of)),
        ("comparison.json", report::comparison_json(of)),
    ];
    for (name, text) in texts {
        run.write_text(name, &text).map_err(|error| error.to_string())?;
    }
    Ok(run.path().join("comparison.html"))
}

/// `assay mark`.
pub fn mark(arguments: &MarkArguments) -> Exit {
    let marked = RunFolder::open(&arguments.folder)
        .and_then(|run| run.plan().map(|_| run))
        .and_then(|run| run.set_baseline_name(&arguments.name, !arguments.remove).map(|()| run));
    match marked {
        Ok(run) => {
            let names = run.baseline_names().join(", ");
            let names = if names.is_empty() { "no baseline name".to_owned() } else { names };
            say!("assay: {}: {names}", run.path().display());
            Exit::Ok
        }
        Err(error) => {
            say!("assay mark: {error}");
            Exit::CouldNotRun
        }
    }
}

/// The history of an experiment: the newest `last` of its runs under `runs`.
pub fn history(name: &str, runs: &Path, last: usize, margin: f64) -> Result<Trend, String> {
    let mut paths = conclude::folders(runs)?;
    let is_it = |path: &PathBuf| {
        RunFolder::open(path).and_then(|run| run.plan()).is_ok_and(|plan| plan.name == name)
    };
    paths.retain(is_it);
    let skipped = paths.len().saturating_sub(last);
    let opened: Vec<Opened> = paths
        .iter()
        .skip(skipped)
        .filter_map(|path| match Opened::as_left(path) {
            Ok(run) if !run.result.interrupted => Some(run),
            Ok(_) => None,
            Err(message) => {
                say!("assay: left out of the history: {message}");
                None
            }
        })
        .collect();
    if opened.is_empty() {
        return Err(format!(
            "no run of an experiment `{name}` in {}; `assay list` shows what there is",
            runs.display()
        ));
    }
    let recorded: Vec<Recorded<'_>> = opened
        .iter()
        .map(|run| Recorded {
            folder: run.name(),
            baseline_names: RunFolder::open(&run.path)
                .map(|it| it.baseline_names())
                .unwrap_or_default(),
            subject: run.subject(),
            result: &run.result,
        })
        .collect();
    Ok(::compare::trend(name, &recorded, margin))
}
