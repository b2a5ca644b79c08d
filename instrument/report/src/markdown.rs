//! The result for a pull request.

use model::result::RunResult;

/// The page.
#[must_use]
pub fn markdown(run: &RunResult) -> String {
    format!("## {} · {}\n\n{}\n", run.name, run.verdict.word(), run.reason)
}
