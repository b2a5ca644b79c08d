//! What a user sees on standard output after a run: the answer first, then the promises, the numbers, and what
//! the instrument distrusts about them.

use model::result::RunResult;

use crate::paint::{Style, clean, verdict_mark};

/// The whole page.
#[must_use]
pub fn terminal(run: &RunResult, style: Style) -> String {
    format!("{}\n{}", terminal_body(run, style), exit_line(run, style))
}

/// The page without its last line, for callers that add paths before it.
#[must_use]
pub fn terminal_body(run: &RunResult, style: Style) -> String {
    let (mark, paint) = verdict_mark(run.verdict);
    let head = format!("{mark} {} · {}", clean(&run.name), run.verdict.word());
    style.finish(&format!("{}\n{}\n", style.paint(paint, &head), clean(&run.reason)))
}

/// The last line: what the exit code means.
#[must_use]
pub fn exit_line(run: &RunResult, style: Style) -> String {
    style.finish(&format!("exit {}: {}\n", run.exit_code, clean(&run.exit_meaning)))
}
