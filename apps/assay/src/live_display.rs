//! The live view of a trial on standard error: a block that is redrawn in place on a terminal, plain lines elsewhere. It must
//! never leave a part of an old block on the screen.

use std::io::{IsTerminal as _, Write as _};

use report::{LiveView, Style, live_block, live_line};

use crate::cli::{ColorChoice, ProgressChoice};
use crate::terminal;

/// Where views are drawn.
pub struct Display {
    style: Style,
    is_block: bool,
    /// The cells of the lines that stand there.
    drawn: Vec<usize>,
}

impl Display {
    pub fn new(choice: ProgressChoice, colour: ColorChoice) -> Self {
        let stderr = std::io::stderr();
        let is_terminal = stderr.is_terminal();
        let is_block = match choice {
            ProgressChoice::Auto => is_terminal,
            ProgressChoice::Tui => true,
            ProgressChoice::Line | ProgressChoice::None => false,
        };
        let style = Style {
            colour: terminal::colour(colour, is_terminal),
            width: terminal::columns(&stderr),
            ..Style::default()
        };
        Self { style, is_block, drawn: Vec::new() }
    }

    /// Draws a view: the block, or a plain line where one is due.
    pub fn show(&mut self, view: &LiveView, is_line_due: bool) {
        if self.is_block {
            self.erase();
            let width = terminal::columns(std::io::stderr());
            let block = live_block(view, Style { width, ..self.style });
            self.drawn = block.lines().map(cells).collect();
            put(&block);
        } else if is_line_due {
            put(&format!("{}\n", live_line(view).trim_end()));
        }
    }

    /// Says something that a block says in its own way: a plain line where there is none.
    pub fn say(&self, line: &str) {
        if !self.is_block {
            put(&format!("{line}\n"));
        }
    }

    /// Moves up over the block and clears it. A terminal that has become narrower since has broken its lines into more.
    pub fn erase(&mut self) {
        if !self.drawn.is_empty() {
            let rows = rows(&self.drawn, terminal::width(std::io::stderr()));
            put(&format!("\x1b[{rows}A\r\x1b[J"));
            self.drawn.clear();
        }
    }
}

/// Rows of the terminal that lines of so many cells take; `None`: unknown width.
fn rows(cells: &[usize], width: Option<usize>) -> usize {
    let width = width.unwrap_or(usize::MAX);
    cells.iter().map(|cells| cells.div_ceil(width).max(1)).sum()
}

/// Cells that a line takes: its characters, without what only colours it.
fn cells(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().map_or(0, |text| text.chars().count());
    let behind = |part: &str| part.split_once('m').map_or(0, |(_, text)| text.chars().count());
    first + parts.map(behind).sum::<usize>()
}

fn put(text: &str) {
    let text = model::secret::scrub(text);
    // A view that cannot be written is no reason to stop what it is of.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a block of lines is as high as the terminal that it stands in now makes it.
    #[test]
    fn a_narrower_terminal() {
        let drawn: Vec<usize> = ["\x1b[32m✓\x1b[0m ab", "", "0123456789"].map(cells).to_vec();
        assert_eq!(drawn, [4, 0, 10]);
        assert_eq!(rows(&drawn, Some(80)), 3);
        assert_eq!(rows(&drawn, Some(10)), 3);
        assert_eq!(rows(&drawn, Some(4)), 1 + 1 + 3);
        assert_eq!(rows(&drawn, None), 3);
    }
}
