//! The terminal's abilities: colour, width, whether it is one.

use std::io::IsTerminal as _;
use std::path::Path;

use model::{secret, visible_lines};

use crate::cli::ColorChoice;

/// Columns where their number is unknown.
const COLUMNS_DEFAULT: usize = 100;
/// The fewest columns that are written to.
const COLUMNS_MIN: usize = 40;

/// Whether output to `stream` is coloured.
pub fn colour(choice: ColorChoice, is_terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !set("NO_COLOR") && !dumb
        }
    }
}

/// Style of what goes to standard output.
pub fn stdout_style(choice: ColorChoice, verbose: bool) -> report::Style {
    let is_terminal = std::io::stdout().is_terminal();
    report::Style {
        colour: colour(choice, is_terminal),
        width: columns(std::io::stdout()),
        verbose,
        ..report::Style::default()
    }
}

/// Columns that are written to for `stream`: those of its terminal, else as many as the variable `COLUMNS` says, and never so
/// few that nothing fits.
pub fn columns(stream: impl std::os::fd::AsFd) -> usize {
    let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    width(stream).or_else(said).unwrap_or(COLUMNS_DEFAULT).max(COLUMNS_MIN)
}

/// Columns of the terminal behind `stream`, if it is one that knows.
pub fn width(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Writes a line to standard error, without the secrets that are known.
macro_rules! say {
    ($($words:tt)*) => { $crate::terminal::say_line(&format!($($words)*)) };
}
pub(crate) use say;

/// See [`say`]. Whatever it quotes, it drives no terminal.
pub fn say_line(line: &str) {
    eprintln!("{}", visible_lines(&secret::scrub(line)));
}

/// Writes to a file, or with `-` to standard output.
pub fn write(output: &Path, text: &str) -> Result<(), String> {
    if output == Path::new("-") {
        return print(text);
    }
    std::fs::write(output, text).map_err(|error| format!("writing {}: {error}", output.display()))
}

/// Writes to standard output, without the secrets that are known; a closed pipe is quiet, because the reader has had enough.
pub fn print(text: &str) -> Result<(), String> {
    use std::io::Write as _;
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(secret::scrub(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("writing to standard output: {error}"))
        }
        _ => Ok(()),
    }
}
