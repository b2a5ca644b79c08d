//! A page of text for a terminal: headings, indented lines that wrap, and tables.
//!
//! It must never let a line pass the width of the terminal.

use crate::grid::{Grid, INDENT};
use crate::paint::{Paint, Style, clip, columns_of, wrap};

/// Blanks between pieces that stay whole.
const FLOW_GAP: usize = 3;

/// A page while it is written.
pub(crate) struct Page {
    text: String,
    style: Style,
}

impl Page {
    pub(crate) const fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    /// The page, dressed.
    pub(crate) fn finish(self) -> String {
        self.style.finish(&self.text)
    }

    /// A line as it stands, wrapped.
    pub(crate) fn line(&mut self, paint: Paint, text: &str) {
        self.hanging(0, "", Paint::Plain, paint, text);
    }

    /// An indented line, wrapped.
    pub(crate) fn indented(&mut self, paint: Paint, text: &str) {
        self.hanging(INDENT, "", Paint::Plain, paint, text);
    }

    /// Pieces that stay whole, on as few indented lines as the width allows.
    pub(crate) fn flow(&mut self, paint: Paint, pieces: &[String]) {
        let room = self.style.columns().saturating_sub(INDENT);
        let mut line = String::new();
        for piece in pieces {
            let is_full = columns_of(&line) + FLOW_GAP + columns_of(piece) > room;
            if !line.is_empty() && is_full {
                self.push_indented(paint, &line);
                line.clear();
            }
            if !line.is_empty() {
                line.push_str(&" ".repeat(FLOW_GAP));
            }
            line.push_str(piece);
        }
        self.push_indented(paint, &clip(&line, room));
    }

    fn push_indented(&mut self, paint: Paint, line: &str) {
        self.text.push_str(&" ".repeat(INDENT));
        self.text.push_str(&self.style.paint(paint, line));
        self.text.push('\n');
    }

    /// A blank line and the head of a section, with a remark after it.
    pub(crate) fn heading(&mut self, title: &str, remark: &str) {
        self.text.push('\n');
        let room = self.style.columns();
        if remark.is_empty() || columns_of(title) + 2 + columns_of(remark) > room {
            self.line(Paint::Bold, title);
            if !remark.is_empty() {
                self.indented(Paint::Dim, remark);
            }
            return;
        }
        let (title, remark) =
            (self.style.paint(Paint::Bold, title), self.style.paint(Paint::Dim, remark));
        self.text.push_str(&format!("{title}  {remark}\n"));
    }

    /// A table; nothing if it has no rows.
    pub(crate) fn grid(&mut self, grid: &Grid) {
        if !grid.is_empty() {
            self.text.push_str(&grid.render(self.style));
        }
    }

    /// `head` in its paint and then `text`, whose further lines stand below its first.
    pub(crate) fn hanging(
        &mut self,
        indent: usize,
        head: &str,
        head_paint: Paint,
        paint: Paint,
        text: &str,
    ) {
        let hang = indent + columns_of(head);
        let room = self.style.columns().saturating_sub(hang);
        for (number, line) in wrap(text, room).iter().enumerate() {
            if number == 0 {
                self.text.push_str(&" ".repeat(indent));
                self.text.push_str(&self.style.paint(head_paint, head));
            } else {
                self.text.push_str(&" ".repeat(hang));
            }
            self.text.push_str(&self.style.paint(paint, line));
            self.text.push('\n');
        }
    }

    /// Lines with a mark and a head that are aligned with each other, then text that hangs.
    pub(crate) fn marked(&mut self, lines: &[Marked]) {
        // Heads that take more than a third of the line would squeeze the text: those get a line of their own.
        let head_max = self.style.columns() / 3;
        let widths = lines.iter().map(|line| columns_of(&line.head));
        let width = widths.filter(|&width| width <= head_max).max().unwrap_or(0);
        for line in lines {
            let mark = format!("{} ", line.mark);
            let used = columns_of(&line.head);
            if used > width && !line.text.is_empty() {
                self.hanging(INDENT, &mark, line.paint, Paint::Plain, &line.head);
                self.hanging(INDENT + 4, "", Paint::Plain, line.text_paint, &line.text);
                continue;
            }
            let head = format!("{mark}{}{}  ", line.head, " ".repeat(width.saturating_sub(used)));
            let head = if line.text.is_empty() { head.trim_end() } else { &head };
            self.hanging(INDENT, head, line.paint, line.text_paint, &line.text);
        }
    }
}

/// A line for [`Page::marked`].
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) mark: &'static str,
    pub(crate) paint: Paint,
    pub(crate) head: String,
    pub(crate) text: String,
    pub(crate) text_paint: Paint,
}
