//! `assay report`: the report of runs on disk, from their folders alone.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use model::comparison::Comparison;
use model::picture::RunPicture;
use model::result::{Exit, RunResult, TrialResult};
use record::{Counted, RunFolder, Share};
use report::{Form, OfRuns};

use crate::cli::{ColorChoice, ReportArguments, VERSION};
use crate::terminal::say;
use crate::{check_secrets, compare, conclude, seal, terminal};

/// Said where shares are of several runs.
const ONE_RUN: &str = "expected one run, whose rows are shared; name it";

/// Writes the report. It exits with 0 when it has written what was asked, or, where that is asked for, with the worst code of
/// the runs'.
pub fn report(arguments: &ReportArguments, colour: ColorChoice) -> Exit {
    if let Some(message) = usage(arguments) {
        say!("assay report: {message}");
        return Exit::Usage;
    }
    // A record may be a stranger's, with values that no run leaves: arithmetic that stops over one is an error of the record's.
    let written = std::panic::catch_unwind(|| write(arguments, colour)).unwrap_or_else(|_| {
        Err("expected the record of a run, got values that no run leaves (see above); restore the folder from a copy".to_owned())
    });
    match written {
        Ok(worst) if arguments.verdict || arguments.check_secrets => worst,
        Ok(_) => Exit::Ok,
        Err(message) => {
            say!("assay report: {message}");
            Exit::CouldNotRun
        }
    }
}

/// The mistake in the arguments, if there is one; told before a run is read.
fn usage(arguments: &ReportArguments) -> Option<String> {
    let Form { name, of_runs, .. } = arguments.format;
    if arguments.output != Path::new("-") {
        return None;
    }
    match of_runs {
        _ if arguments.part.is_some() => {
            Some("--part writes a file for --merge: name it, such as -o part-1".to_owned())
        }
        OfRuns::Figures => Some(format!(
            "--format {name} writes a file for each figure: name a folder for them, such as -o figures"
        )),
        OfRuns::Page if std::io::stdout().is_terminal() => {
            Some("a page is nothing to read in a terminal: add -o report.html".to_owned())
        }
        _ => None,
    }
}

fn write(arguments: &ReportArguments, colour: ColorChoice) -> Result<Exit, String> {
    let mut paths = arguments.runs.clone();
    if paths.is_empty() {
        paths.push(conclude::newest(Path::new("runs"))?);
    }
    if arguments.check_secrets {
        let (is_clean, text) = check_secrets::check(&paths)?;
        terminal::print(&text)?;
        return Ok(if is_clean { Exit::Ok } else { Exit::CouldNotRun });
    }
    if let Some(share) = arguments.part {
        return count(&paths, share, &arguments.output);
    }
    if !arguments.merge.is_empty() && paths.len() != 1 {
        return Err(ONE_RUN.to_owned());
    }
    let seals = seals(&paths);
    let exit = write_form(&paths, arguments, colour)?;
    // Other forms are for other programs, whose standard error is to be empty where nothing is wrong.
    if matches!(arguments.format.of_runs, OfRuns::Terminal) {
        seals.iter().for_each(|line| say!("assay: {line}"));
    }
    Ok(exit)
}

/// Counts a share of the rows.
fn count(paths: &[PathBuf], share: Share, output: &Path) -> Result<Exit, String> {
    let [path] = paths else { return Err(ONE_RUN.to_owned()) };
    let run = RunFolder::open(path).map_err(|error| error.to_string())?;
    let counted = conclude::count(&run, share)?;
    counted.write(output, VERSION).map_err(|error| error.to_string())?;
    let all = run.trials().map_err(|error| error.to_string())?.len();
    let left = all.saturating_sub(counted.trials.len());
    if left > 0 {
        say!("assay report: {left} of {all} trials cannot be shared; --merge reads them whole");
    }
    Ok(Exit::Ok)
}

/// A run with what readers of shares have counted of it.
fn with_parts(path: &Path, parts: &[PathBuf]) -> Result<(RunResult, RunPicture), String> {
    let run = RunFolder::open(path).map_err(|error| error.to_string())?;
    let parts: Result<Vec<Counted>, _> =
        parts.iter().map(|part| Counted::read(part, VERSION)).collect();
    conclude::merged(&run, parts.map_err(|error| error.to_string())?)
}

/// The report in the form that was asked for.
fn write_form(
    paths: &[PathBuf],
    arguments: &ReportArguments,
    colour: ColorChoice,
) -> Result<Exit, String> {
    let style = terminal::stdout_style(colour, arguments.verbose);
    if let ([baseline, candidate], Some(form)) = (paths, arguments.format.of_comparison)
        && let Some(compared) = compared(baseline, candidate)?
    {
        terminal::write(&arguments.output, &form(&compared, style))?;
        return Ok(compared.exit());
    }
    let mut worst = Exit::Ok;
    let mut read = |path: &PathBuf| {
        let run = with_parts(path, &arguments.merge)?;
        worst = worst.or(Exit::of(run.0.exit_code));
        Ok::<_, String>(run)
    };
    let text: String = match arguments.format.of_runs {
        OfRuns::Terminal => {
            let form = |path| Ok(report::terminal(&read(path)?.0, style));
            paths.iter().map(form).collect::<Result<_, String>>()?
        }
        OfRuns::Each(form) => {
            paths.iter().map(|path| Ok(form(&read(path)?.0))).collect::<Result<_, String>>()?
        }
        OfRuns::Trials(form) => {
            let form = |path| Ok(by_trial(&read(path)?.0, form));
            paths.iter().map(form).collect::<Result<_, String>>()?
        }
        OfRuns::All(form) => {
            let runs = paths.iter().map(|path| Ok(read(path)?.0));
            form(&runs.collect::<Result<Vec<_>, String>>()?)
        }
        OfRuns::Page => {
            let runs = paths.iter().map(read).collect::<Result<Vec<_>, String>>()?;
            let page = report::html(&runs, &report::Assets::built());
            page.map_err(|error| error.to_string())?
        }
        OfRuns::Figures => {
            for (index, path) in paths.iter().enumerate() {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                let own = format!("{index}-{}", name.unwrap_or_default());
                let is_only = paths.len() == 1;
                let into = arguments.output.join(if is_only { "" } else { own.as_str() });
                figures(&read(path)?, &into)?;
            }
            return Ok(worst);
        }
    };
    terminal::write(&arguments.output, &text)?;
    Ok(worst)
}

/// A form of trials, each of several under its path.
fn by_trial(result: &RunResult, form: fn(&TrialResult) -> String) -> String {
    let trials: Vec<_> = result.settings.iter().flat_map(|setting| &setting.trials).collect();
    let head = |trial: &TrialResult| match trials.len() {
        1 => String::new(),
        _ => format!("{}\n", trial.path),
    };
    trials.iter().map(|trial| head(trial) + &form(trial)).collect()
}

/// Writes a file for each figure into `folder`, which is made.
fn figures((result, picture): &(RunResult, RunPicture), folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("making the folder {}: {error}", folder.display()))?;
    for figure in report::svg_figures(result, picture, report::Detail::Full) {
        let file = folder.join(format!("{}.svg", figure.name));
        terminal::write(&file, &figure.svg())?;
        say!("{}  {}", file.display(), figure.title);
    }
    Ok(())
}

/// Says of each run whose files are not those that were sealed that it is so, before anything is made of them. Gives what is
/// to be said of the others once there is a report.
fn seals(paths: &[PathBuf]) -> Vec<String> {
    let mut others = Vec::new();
    for run in paths.iter().filter_map(|path| RunFolder::open(path).ok()) {
        let name =
            if paths.len() > 1 { format!("{}: ", run.path().display()) } else { String::new() };
        match seal::line(&run) {
            seal::Line::Holds(line) | seal::Line::Absent(line) => others.push(name + &line),
            seal::Line::Broken(line) => say!("assay: {name}{line}"),
        }
    }
    others
}

/// The comparison of two runs; `None` where they differ in what matters, which is said.
fn compared(baseline: &Path, candidate: &Path) -> Result<Option<Comparison>, String> {
    let side = |path: &Path| compare::side(&path.display().to_string(), Path::new("runs"), None);
    let (baseline, candidate) = (side(baseline)?, side(candidate)?);
    let asked = compare::Asked::of(None, false)?;
    match compare::between(&baseline, &candidate, asked) {
        Ok(compared) => Ok(Some(compared)),
        Err(why) => {
            say!("assay report: not compared: {why} with assay compare");
            Ok(None)
        }
    }
}
