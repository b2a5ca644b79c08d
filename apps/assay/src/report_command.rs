//! `assay report`: the report of runs on disk, from their folders alone.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use model::comparison::Comparison;
use model::picture::RunPicture;
use model::result::{Exit, RunResult};
use record::{Counted, RunFolder, Share};

use crate::cli::{ColorChoice, Format, ReportArguments, VERSION};
use crate::formats::{self, ReadRun};
use crate::terminal::say;
use crate::{check_secrets, compare, conclude, seal, terminal};

/// Said where shares are of several runs.
const ONE_RUN: &str = "expected one run, whose rows are shared; name it";

/// Writes the report. It exits with 0 when it has written what was asked, or, where that is asked for, with the worst code of
/// the runs'.
pub fn report(arguments: &ReportArguments, colour: ColorChoice) -> Exit {
    if let Some(message) = formats::usage(arguments) {
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
    if matches!(arguments.format, Format::Text) {
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
    if let [baseline, candidate] = paths
        && let Some(compared) = compared(baseline, candidate, arguments.format)?
    {
        compare::write(&compared, arguments.format, &arguments.output, colour)?;
        return Ok(compared.exit());
    }
    let read = |path: &Path| with_parts(path, &arguments.merge);
    let all_at_once = match arguments.format {
        Format::Html => return page(paths, &arguments.output, &read),
        Format::Svg => Some((formats::figures(paths, &arguments.output, &read)?, String::new())),
        Format::Csv => Some(formats::joined(paths, report::csv_of, &read)?),
        Format::Junit => Some(formats::joined(paths, report::junit_of, &read)?),
        _ => None,
    };
    if let Some((results, text)) = all_at_once {
        if arguments.format != Format::Svg {
            write_out(&arguments.output, &text)?;
        }
        return Ok(results.iter().fold(Exit::Ok, worse));
    }
    let mut text = String::new();
    let mut worst = Exit::Ok;
    for path in paths {
        let (result, _) = read(path)?;
        text.push_str(&form(&result, arguments, colour));
        worst = worse(worst, &result);
    }
    write_out(&arguments.output, &text)?;
    Ok(worst)
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

/// The comparison of two runs; `None` where they differ in what matters, which is said, or the form is that of single
/// runs.
fn compared(
    baseline: &Path,
    candidate: &Path,
    format: Format,
) -> Result<Option<Comparison>, String> {
    if !matches!(format, Format::Text | Format::Md | Format::Json | Format::Html | Format::Junit) {
        return Ok(None);
    }
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

/// One page of all runs, an article each.
fn page(paths: &[PathBuf], output: &Path, read: ReadRun<'_>) -> Result<Exit, String> {
    if output == Path::new("-") && std::io::stdout().is_terminal() {
        return Err("a page is nothing to read in a terminal: add -o report.html".to_owned());
    }
    let mut runs = Vec::with_capacity(paths.len());
    let mut worst = Exit::Ok;
    for path in paths {
        let (result, picture) = read(path)?;
        worst = worse(worst, &result);
        runs.push((result, picture));
    }
    let page = report::html(&runs, &report::Assets::built()).map_err(|error| error.to_string())?;
    write_out(output, &page)?;
    Ok(worst)
}

fn write_out(output: &Path, text: &str) -> Result<(), String> {
    if output == Path::new("-") {
        return terminal::print(text);
    }
    std::fs::write(output, text).map_err(|error| format!("writing {}: {error}", output.display()))
}

/// The worse of an exit and that of a result.
fn worse(worst: Exit, result: &RunResult) -> Exit {
    worst.or(Exit::of(result.exit_code))
}

fn form(result: &RunResult, arguments: &ReportArguments, colour: ColorChoice) -> String {
    let each = |form: fn(&model::result::TrialResult) -> String| {
        let mut text = String::new();
        let many = result.settings.iter().map(|s| s.trials.len()).sum::<usize>() > 1;
        for trial in result.settings.iter().flat_map(|setting| &setting.trials) {
            if many {
                text.push_str(&format!("{}\n", trial.path));
            }
            text.push_str(&form(trial));
        }
        text
    };
    match arguments.format {
        Format::Text => report::terminal(result, terminal::stdout_style(colour, arguments.verbose)),
        Format::Md => report::markdown(result),
        Format::Json => report::json(result),
        Format::Html | Format::Svg | Format::Csv | Format::Junit => {
            unreachable!("made of all runs at once, above")
        }
        Format::Vegeta => each(report::vegeta),
        Format::Vegeta127 => each(report::vegeta_12_7),
        Format::VegetaJson => each(report::vegeta_json),
    }
}
