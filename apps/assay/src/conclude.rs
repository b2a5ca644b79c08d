//! From run folders to results and pages, and from a result to an exit code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use model::picture::RunPicture;
use model::result::{Exit, RunResult};
use record::{Counted, RunFolder, Share};

use crate::cli::ColorChoice;
use crate::experiment::Refusal;
use crate::systems;
use crate::terminal::say;

/// The page of a run, in its folder.
pub const PAGE: &str = "report.html";

/// Run folders under `runs`, oldest first (their names begin with the time).
///
/// # Errors
/// When the folder is there and cannot be read.
pub fn folders(runs: &Path) -> Result<Vec<PathBuf>, String> {
    if !runs.exists() {
        return Ok(Vec::new());
    }
    let entries =
        std::fs::read_dir(runs).map_err(|error| format!("reading {}: {error}", runs.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("plan.toml").is_file())
        .collect();
    found.sort();
    Ok(found)
}

/// The newest of them.
///
/// # Errors
/// When there is none.
pub fn newest(runs: &Path) -> Result<PathBuf, String> {
    folders(runs)?.pop().ok_or_else(|| {
        let runs = runs.display();
        format!("there is no run under `{runs}`; name one, or start one: assay run demo")
    })
}

/// Reads a record, which may be a stranger's: arithmetic that stops over values that no run leaves is an error of the
/// record's.
///
/// # Errors
/// As `read` has them, and when it stops, for people.
pub fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // Nothing of what was read is used when it stops.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err("expected the record of a run, got values that no run leaves (see above); restore the folder from a copy".to_owned())
    })
}

/// Analyses a run folder. The same folder gives the same result, wherever it lies.
///
/// # Errors
/// When the folder cannot be read, for people.
pub fn analyse(run: &RunFolder) -> Result<RunResult, String> {
    guarded(|| analysis::analyse(run, &systems::checks).map_err(|error| error.to_string()))
}

/// The result of a run with what only the page draws, in one pass over the rows.
///
/// # Errors
/// When the folder cannot be read, for people.
pub fn analyse_with_picture(run: &RunFolder) -> Result<(RunResult, RunPicture), String> {
    merged(run, Vec::new())
}

/// The same of what readers of shares of the rows have counted.
///
/// # Errors
/// When the folder cannot be read, or a part is missing or of another run, for people.
pub fn merged(run: &RunFolder, parts: Vec<Counted>) -> Result<(RunResult, RunPicture), String> {
    analysis::analyse_with_picture(run, &systems::checks, parts).map_err(|error| error.to_string())
}

/// The counts of a reader of a share of the rows.
///
/// # Errors
/// When the folder cannot be read, for people.
pub fn count(run: &RunFolder, share: Share) -> Result<Counted, String> {
    analysis::count(run, share, &systems::checks).map_err(|error| error.to_string())
}

/// Writes `report.html` and `report.md` beside the result and says where the page is. Neither is read again: both can be
/// made from the folder at any time.
///
/// # Errors
/// When a file cannot be written, or the picture is not of the result, for people.
pub fn write_reports(
    run: &RunFolder,
    result: &RunResult,
    picture: RunPicture,
) -> Result<PathBuf, String> {
    run.write_text("report.md", &report::markdown(result)).map_err(|error| error.to_string())?;
    let page = report::html(&[(result.clone(), picture)], &report::Assets::built())
        .map_err(|error| error.to_string())?;
    run.write_text(PAGE, &page).map_err(|error| error.to_string())?;
    Ok(run.path().join(PAGE))
}

/// Says why there was nothing to run.
pub fn refused(refusal: Refusal, colour: ColorChoice) -> Exit {
    match refusal {
        Refusal::Rejected(rejected) => {
            let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            say!("{}", rejected.render(crate::terminal::colour(colour, is_terminal)));
        }
        Refusal::Usage(message) => say!("assay: {message}"),
    }
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use model::{NO_STAMP, Row};

    use super::*;

    /// Claim: a row whose times no run leaves is an error in words, not the end of the program.
    #[test]
    fn rows_of_a_stranger() {
        let mut row = Row { due: i64::MIN + 1, ..Row::EMPTY };
        row.marks[0] = i64::MAX;
        assert!(row.due != NO_STAMP && row.marks[0] != NO_STAMP);
        let error = guarded(|| Ok(row.response_ns(0))).expect_err("it overflows");
        assert!(error.contains("values that no run leaves"), "{error}");
        assert_eq!(guarded(|| Ok(1)), Ok(1));
        assert_eq!(guarded::<()>(|| Err("no".to_owned())), Err("no".to_owned()));
    }
}
