//! `assay report`: the report of runs on disk, from their folders alone.

use std::path::{Path, PathBuf};

use model::result::{Exit, RunResult};
use record::RunFolder;

use crate::cli::{ColorChoice, Format, ReportArguments};
use crate::{conclude, list, terminal};

/// Writes the report. The exit code is the worst of the runs'.
pub fn report(arguments: &ReportArguments, colour: ColorChoice) -> Exit {
    match write(arguments, colour) {
        Ok(exit) => exit,
        Err(message) => {
            eprintln!("assay report: {message}");
            Exit::CouldNotRun
        }
    }
}

fn write(arguments: &ReportArguments, colour: ColorChoice) -> Result<Exit, String> {
    let mut paths = arguments.runs.clone();
    if paths.is_empty() {
        paths.push(newest()?);
    }
    let mut text = String::new();
    let mut worst = Exit::Ok;
    for path in &paths {
        let result = read(path)?;
        text.push_str(&form(&result, arguments, colour));
        let exit = conclude::exit_of(result.exit_code);
        if rank(exit) > rank(worst) {
            worst = exit;
        }
    }
    if arguments.output == Path::new("-") {
        terminal::print(&text)?;
    } else {
        std::fs::write(&arguments.output, text)
            .map_err(|error| format!("writing {}: {error}", arguments.output.display()))?;
    }
    Ok(worst)
}

/// Opens a run folder and analyses it, from the row log where a crash left one. It only reads.
pub fn read(path: &Path) -> Result<RunResult, String> {
    let run = RunFolder::open(path).map_err(|error| error.to_string())?;
    conclude::analyse(&run)
}

fn newest() -> Result<PathBuf, String> {
    let runs = Path::new("runs");
    list::folders(runs)?.pop().ok_or_else(|| {
        "there is no run under `runs`; name one, or start one: assay run demo".to_owned()
    })
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
        Format::Vegeta => each(report::vegeta),
        Format::Vegeta127 => each(report::vegeta_12_7),
        Format::VegetaJson => each(report::vegeta_json),
    }
}

/// Precedence of exit codes: could not run, invalid, threshold, regression.
fn rank(exit: Exit) -> u8 {
    match exit {
        Exit::Ok => 0,
        Exit::Regression => 1,
        Exit::Failed => 2,
        Exit::Interrupted => 3,
        Exit::Invalid => 4,
        Exit::CouldNotRun => 5,
        Exit::Usage => 6,
    }
}
