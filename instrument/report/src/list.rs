//! The output of `assay list`: the runs on disk, newest first as the caller orders them, and the words that have a meaning
//! here (numbers, audits, kinds of faults, sections of the page).
//!
//! It must never read a folder: the caller hands over what it found.

use model::result::{RunResult, Verdict};

use crate::answer::unsent_words;
use crate::figures::rate;
use crate::grid::{Cell, Grid, INDENT};
use crate::paint::{Paint, Style, clean, columns_of, verdict_mark, wrap};
use crate::tables;

/// One run on disk.
#[derive(Clone, Debug, Default)]
pub struct ListEntry {
    /// The run folder's name.
    pub folder: String,
    /// When it started, as people read it.
    pub started: String,
    /// The experiment's name.
    pub name: String,
    /// Its verdict; `None` = it has no result yet.
    pub verdict: Option<Verdict>,
    /// The status where there is no verdict: `running`, `cut off`, `cannot be read: …`.
    pub state: String,
    /// How many settings it has.
    pub settings: usize,
    /// The few numbers that tell it from others, printed: head and value, such as `p99` and `1.24 ms`.
    pub headline: Vec<(String, String)>,
    /// Baseline names that point to it.
    pub marks: Vec<String>,
}

/// The numbers that tell a run from others: of its first trial, response times of all that were due, as on the first
/// screen.
#[must_use]
pub fn list_headline(run: &RunResult) -> Vec<(String, String)> {
    let shown = tables::shown(run);
    let Some(first) = shown.first() else { return Vec::new() };
    let goodput = match unsent_words(first.trial) {
        Some([load, _]) => load.to_owned(),
        None => format!("{}/s", rate(first.trial.rates.goodput_per_s)),
    };
    let quantiles = ["p50", "p99"].map(|name| (name, tables::quantile_named(first, name).text));
    let all = std::iter::once(("goodput", goodput)).chain(quantiles);
    all.map(|(head, value)| (head.to_owned(), value)).collect()
}

/// The table; a sentence if there are none.
#[must_use]
pub fn list_table(entries: &[ListEntry], style: Style) -> String {
    if entries.is_empty() {
        return style.finish("No runs here yet. Start one: assay run demo");
    }
    let mut heads: Vec<&str> = Vec::new();
    for (head, _) in entries.iter().flat_map(|entry| &entry.headline) {
        if !heads.contains(&head.as_str()) {
            heads.push(head);
        }
    }
    let mut grid = Grid::new().pin("run").words(1, "verdict").number(1, "settings");
    for head in &heads {
        grid = grid.number(1, head);
    }
    // The folder's name begins with the time; people's form of it is shown where there is room to spare.
    let has_room = style.columns() >= 110;
    let has_marks = entries.iter().any(|entry| !entry.marks.is_empty());
    if has_marks {
        grid = grid.words(1, "baseline");
    }
    if has_room {
        grid = grid.words(2, "started");
    }
    for entry in entries {
        let mut cells = vec![
            Cell::new(clean(&entry.folder)),
            state_cell(entry),
            Cell::new(entry.settings.to_string()),
        ];
        for head in &heads {
            let value = entry.headline.iter().find(|(known, _)| known == head);
            cells.push(Cell::new(value.map(|(_, value)| clean(value)).unwrap_or_default()));
        }
        if has_marks {
            cells.push(Cell::new(clean(&entry.marks.join(", "))));
        }
        if has_room {
            cells.push(Cell::painted(clean(&entry.started), Paint::Dim));
        }
        grid.row(cells);
    }
    style.finish(&grid.render(style))
}

/// A word with its meaning.
#[derive(Clone, Debug, Default)]
pub struct WordListed {
    /// As it is written.
    pub word: String,
    /// Its sort, in a word or two; empty = all of the list are of one sort.
    pub sort: String,
    /// Its meaning.
    pub meaning: String,
    /// Whether it belongs to the word before it.
    pub is_part: bool,
}

/// The widest words that meanings stand beside; longer ones have a line of their own.
const WORD_COLUMNS_MAX: usize = 32;

/// Words with their meanings; a sentence if there are none.
#[must_use]
pub fn word_list(entries: &[WordListed], style: Style) -> String {
    if entries.is_empty() {
        return style.finish("There is no such word here.");
    }
    let indent = |entry: &WordListed| if entry.is_part { 2 * INDENT } else { INDENT };
    let width = |entry: &WordListed| indent(entry) + columns_of(&entry.word);
    let words =
        entries.iter().map(width).filter(|it| *it <= WORD_COLUMNS_MAX).max().unwrap_or(INDENT);
    let sorts = entries.iter().map(|entry| columns_of(&entry.sort)).max().unwrap_or(0);
    let start = words + INDENT + if sorts > 0 { sorts + INDENT } else { 0 };
    let room = style.columns().saturating_sub(start);
    let mut text = String::new();
    for entry in entries {
        let gap = (words + INDENT).saturating_sub(width(entry)).max(INDENT);
        let word = style.paint(Paint::Bold, &entry.word);
        let sort = style.paint(Paint::Dim, &entry.sort);
        text += &format!("{}{word}{}{sort}", " ".repeat(indent(entry)), " ".repeat(gap));
        let mut column = width(entry) + gap + columns_of(&entry.sort);
        for line in wrap(&entry.meaning, room) {
            if column > start {
                text.push('\n');
                column = 0;
            }
            text += &format!("{}{line}", " ".repeat(start - column));
            column = usize::MAX;
        }
        text.push('\n');
    }
    style.finish(&text)
}

fn state_cell(entry: &ListEntry) -> Cell {
    match entry.verdict {
        Some(verdict) => {
            let (mark, paint) = verdict_mark(verdict);
            Cell::painted(format!("{mark} {}", verdict.word()), paint)
        }
        None => Cell::painted(format!("– {}", clean(&entry.state)), Paint::Dim),
    }
}
