//! What the terminal can do: colour, width, whether it is one.

use std::io::IsTerminal as _;

use crate::cli::ColorChoice;

/// Columns where nobody says how many there are.
const COLUMNS_DEFAULT: usize = 100;

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
        width: if is_terminal { columns(std::io::stdout()) } else { COLUMNS_DEFAULT },
        verbose,
        ..report::Style::default()
    }
}

/// Columns of the terminal behind `stream`.
pub fn columns(stream: impl std::os::fd::AsFd) -> usize {
    rustix::termios::tcgetwinsize(stream)
        .map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|columns| *columns >= 40)
        .unwrap_or(COLUMNS_DEFAULT)
}

/// Writes to standard output; a closed pipe is quiet, because the reader has had enough.
pub fn print(text: &str) -> Result<(), String> {
    use std::io::Write as _;
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("writing to standard output: {error}"))
        }
        _ => Ok(()),
    }
}
