//! Aligned tables as text, and the same tables for Markdown.
//!
//! A table that is too wide is not squeezed: its columns are dealt out to bands, one below the other, each of
//! which repeats the pinned columns. No figure is ever cut; only text of others is clipped.

use crate::paint::{Paint, Style, clip, columns_of, wrap};

/// Blanks between columns.
const GAP: usize = 2;
/// Blanks before every row.
pub(crate) const INDENT: usize = 2;
/// A column of prose that would get less room beside the others stands in a band of its own.
const PROSE_MIN: usize = 28;

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A line to be read with a table.
pub(crate) struct Line {
    /// In words.
    pub(crate) text: String,
    /// Whether it is something that was found, and no explanation.
    pub(crate) is_finding: bool,
}

impl Line {
    /// An explanation.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_finding: false }
    }
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) align: Align,
    /// Columns of one group stay together where the width allows.
    group: u8,
    /// Whether its cells are sentences of others, which take several lines instead of being clipped.
    pub(crate) is_prose: bool,
}

/// Where the number of a cell stands in the result document, as JSON pointers: the page says so, and a test reads
/// the page and compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// There.
    At(String),
    /// Between these two: the ends of an interval.
    Between(String, String),
    /// The sum of these counts.
    Sum(Vec<String>),
    /// The sum of the first over the second.
    Share(Vec<String>, String),
    /// The first (a count) a second of the second (nanoseconds).
    PerSecond(String, String),
}

/// A cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// As shown, clean.
    pub(crate) text: String,
    /// Its paint.
    pub(crate) paint: Paint,
    /// Where its number stands, if it is one.
    pub(crate) source: Option<Source>,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::painted(text, Paint::Plain)
    }

    pub(crate) fn painted(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: text.into(), paint, source: None }
    }

    /// With the place of its number.
    pub(crate) fn at(self, pointer: impl Into<String>) -> Self {
        self.of(Source::At(pointer.into()))
    }

    /// With what its number is made of.
    pub(crate) fn of(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// So many columns at the left are repeated in each band.
    pinned: usize,
}

impl Grid {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a column that every band repeats; all of them come before the others.
    pub(crate) fn pin(mut self, head: &str) -> Self {
        self = self.column(0, head, Align::Left);
        self.pinned = self.columns.len();
        self
    }

    /// Adds a column of sentences: a quotation that is clipped says something else.
    pub(crate) fn prose(mut self, group: u8, head: &str) -> Self {
        self = self.column(group, head, Align::Left);
        self.columns.last_mut().expect("it was added").is_prose = true;
        self
    }

    /// Adds a column of numbers.
    pub(crate) fn number(self, group: u8, head: &str) -> Self {
        self.column(group, head, Align::Right)
    }

    /// Adds a column of words.
    pub(crate) fn words(self, group: u8, head: &str) -> Self {
        self.column(group, head, Align::Left)
    }

    fn column(mut self, group: u8, head: &str, align: Align) -> Self {
        self.columns.push(Column { head: head.to_owned(), align, group, is_prose: false });
        self
    }

    /// Adds a row, which must have a cell for every column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for every column");
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, each line ended, in as many bands as the width asks for.
    pub(crate) fn render(&self, style: Style) -> String {
        let room = style.columns() - INDENT;
        let widths = self.widths(room);
        let mut text = String::new();
        for (number, band) in self.bands(&widths, room).into_iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            self.render_band(&band, &widths, style, &mut text);
        }
        text
    }

    /// As wide as the widest cell; words of others are bounded so that pinned columns and one more always fit, and prose
    /// takes the room that is left beside the others.
    fn widths(&self, room: usize) -> Vec<usize> {
        let pinned_max = room * 2 / 5 / self.pinned.max(1);
        let mut widths: Vec<usize> =
            (0..self.pinned).map(|index| self.width(index).min(pinned_max)).collect();
        let left = room - widths.iter().map(|width| width + GAP).sum::<usize>().min(room);
        widths.extend((self.pinned..self.columns.len()).map(|index| {
            let is_number = self.columns[index].align == Align::Right;
            if is_number { self.width(index) } else { self.width(index).min(left) }
        }));
        let prose = || (0..self.columns.len()).filter(|&index| self.columns[index].is_prose);
        let others = (0..self.columns.len()).filter(|&index| !self.columns[index].is_prose);
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let mut rest = room.saturating_sub(others.map(|index| widths[index]).sum::<usize>() + gaps);
        if rest >= PROSE_MIN * prose().count() {
            let mut by_width: Vec<usize> = prose().collect();
            by_width.sort_by_key(|&index| widths[index]);
            for (place, &index) in by_width.iter().enumerate() {
                widths[index] = widths[index].min(rest / (by_width.len() - place));
                rest -= widths[index];
            }
        }
        widths
    }

    fn width(&self, index: usize) -> usize {
        let cells = self.rows.iter().map(|row| columns_of(&row[index].text));
        cells.max().unwrap_or(0).max(columns_of(&self.columns[index].head))
    }

    /// Which columns stand in which band: whole groups where they fit, single columns where a group does not.
    fn bands(&self, widths: &[usize], room: usize) -> Vec<Vec<usize>> {
        let pinned: Vec<usize> = (0..self.pinned).collect();
        let wide = |band: &[usize]| -> usize {
            band.iter().map(|&index| widths[index] + GAP).sum::<usize>().saturating_sub(GAP)
        };
        let mut bands: Vec<Vec<usize>> = vec![pinned.clone()];
        for group in self.groups() {
            let current = bands.last_mut().expect("starts with one band");
            let joined = [current.as_slice(), &group].concat();
            if wide(&joined) <= room {
                *current = joined;
                continue;
            }
            if current.len() > self.pinned {
                bands.push(pinned.clone());
            }
            for index in group {
                let current = bands.last_mut().expect("starts with one band");
                let joined = [current.as_slice(), &[index]].concat();
                if wide(&joined) <= room || current.len() == self.pinned {
                    *current = joined;
                } else {
                    bands.push([pinned.as_slice(), &[index]].concat());
                }
            }
        }
        bands
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in self.pinned..self.columns.len() {
            match groups.last_mut() {
                Some(group) if self.columns[group[0]].group == self.columns[index].group => {
                    group.push(index);
                }
                _ => groups.push(vec![index]),
            }
        }
        groups
    }

    fn render_band(&self, band: &[usize], widths: &[usize], style: Style, text: &mut String) {
        let heads: Vec<Cell> = self
            .columns
            .iter()
            .map(|column| Cell::painted(column.head.as_str(), Paint::Dim))
            .collect();
        let has_heads = band.iter().any(|&index| !self.columns[index].head.is_empty());
        for row in has_heads.then_some(&heads).into_iter().chain(&self.rows) {
            let of_the_band = |index: &&usize| **index >= self.pinned;
            if band.len() > self.pinned
                && band.iter().filter(of_the_band).all(|&index| row[index].text.is_empty())
                && !std::ptr::eq(row, &raw const heads)
            {
                continue;
            }
            let pieces: Vec<Vec<String>> =
                band.iter().map(|&index| self.lines(&row[index], index, widths[index])).collect();
            for line in 0..pieces.iter().map(Vec::len).max().unwrap_or(0) {
                text.push_str(&" ".repeat(INDENT));
                for (place, &index) in band.iter().enumerate() {
                    if place > 0 {
                        text.push_str(&" ".repeat(GAP));
                    }
                    let shown = pieces[place].get(line).map_or("", String::as_str);
                    self.push_cell(shown, row[index].paint, index, widths[index], style, text);
                }
                while text.ends_with(' ') {
                    text.pop();
                }
                text.push('\n');
            }
        }
    }

    /// A cell as lines of this width: of prose as many as it takes, of anything else one.
    fn lines(&self, cell: &Cell, index: usize, width: usize) -> Vec<String> {
        match self.columns[index].is_prose {
            true => wrap(&cell.text, width),
            false => vec![clip(&cell.text, width)],
        }
    }

    fn push_cell(
        &self,
        shown: &str,
        paint: Paint,
        index: usize,
        width: usize,
        style: Style,
        text: &mut String,
    ) {
        let blanks = " ".repeat(width.saturating_sub(columns_of(shown)));
        let painted = style.paint(paint, shown);
        match self.columns[index].align {
            Align::Left => {
                text.push_str(&painted);
                text.push_str(&blanks);
            }
            Align::Right => {
                text.push_str(&blanks);
                text.push_str(&painted);
            }
        }
    }

    /// The table as GitHub reads it.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text.push_str(&line(self.columns.iter().map(|column| escape(&column.head)).collect()));
        let rules = self.columns.iter().map(|column| match column.align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        text.push_str(&line(rules.collect()));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(|cell| escape(&cell.text)).collect()));
        }
        text
    }
}

/// Text that means nothing to Markdown or HTML: it comes from the system under test.
#[must_use]
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '@' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide_table() -> Grid {
        let mut grid = Grid::new().pin("setting").number(1, "one").number(1, "two");
        grid = grid.number(2, "three").number(2, "four").words(3, "words");
        for index in 0..3 {
            let number = |n: u64| Cell::new((n * 111_111).to_string());
            let cells = vec![
                Cell::new(format!("rate={index}/s")),
                number(1),
                number(2),
                number(3),
                number(4),
                Cell::new("漢字 and more"),
            ];
            grid.row(cells);
        }
        grid
    }

    /// Claim: no line is wider than the terminal, every figure is there once, and the key in every band.
    #[test]
    fn bands_keep_the_width_and_every_figure() {
        for width in [40, 50, 60, 80, 120] {
            let text = wide_table().render(Style { width, ..Style::default() });
            assert!(text.lines().all(|line| columns_of(line) <= width), "{width}:\n{text}");
            for figure in ["111111", "222222", "333333", "444444"] {
                assert_eq!(text.matches(figure).count(), 3, "{width}:\n{text}");
            }
            let bands = text.split("\n\n").count();
            assert_eq!(text.matches("rate=1/s").count(), bands, "{width}:\n{text}");
        }
    }

    /// Claim: prose is never clipped: it takes lines beside the other columns, and where these leave too little room a band of
    /// its own; no line is wider than the terminal.
    #[test]
    fn prose_is_whole() {
        let sentence = "there can be a delay between when success is reported and when it is safe";
        let mut grid = Grid::new().pin("setting").words(0, "value").prose(1, "promise");
        grid.row(vec![Cell::new("sync"), Cell::new("off"), Cell::new(sentence)]);
        grid.row(vec![Cell::new("a_long_name_of_one"), Cell::new("on"), Cell::new("none")]);
        for width in [40, 50, 60, 80, 120] {
            let text = grid.render(Style { width, ..Style::default() });
            assert!(text.lines().all(|line| columns_of(line) <= width), "{width}:\n{text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut found = words.into_iter();
            assert!(
                sentence.split(' ').all(|word| found.any(|it| it == word)),
                "{width}: each word after the other:\n{text}"
            );
            assert_eq!(text.contains("\n\n"), width < 60, "{width}:\n{text}");
        }
    }

    /// Claim: paint adds nothing that is visible and moves no column.
    #[test]
    fn paint_changes_no_column() {
        let plain = wide_table().render(Style::default());
        let painted = wide_table().render(Style { colour: true, ..Style::default() });
        let bare = painted.replace("\x1b[2m", "").replace("\x1b[0m", "");
        assert_ne!(painted, plain);
        assert_eq!(bare, plain);
    }

    /// Claim: what others wrote cannot leave its cell in Markdown.
    #[test]
    fn markdown_cells_are_escaped() {
        let mut grid = Grid::new().words(1, "text");
        grid.row(vec![Cell::new("a|b <img src=x> `c` @you")]);
        assert!(grid.markdown().ends_with("| a\\|b &lt;img src=x&gt; \\`c\\` \\@you |\n"));
    }
}
