//! A comparison and a history as text: for the terminal, for a pull request, for build servers and as JSON.
//!
//! It must never show a change without its interval, nor hide what the runs cannot show.

use std::fmt::Write as _;

use model::comparison::{
    Change, ComparedNumber, ComparedUnit, Comparison, Difference, Trend, TrendNumber,
};

use crate::grid::{Cell, Grid, escape};
use crate::page::Page;
use crate::paint::{Paint, Style, clean};
use crate::svg::escape as escape_xml;

/// Rows of numbers in Markdown, so that a comment on a pull request stays within 25 lines.
const MARKDOWN_ROWS_MAX: usize = 12;
/// Differences that Markdown names.
const MARKDOWN_DIFFERENCES_MAX: usize = 4;
/// Rows of a history on a terminal.
const TREND_ROWS_MAX: usize = 40;

/// The mark and paint of a change.
#[must_use]
pub(crate) const fn change_mark(change: Change) -> (&'static str, Paint) {
    match change {
        Change::Worse => ("✗", Paint::Bad),
        Change::Better => ("✓", Paint::Good),
        Change::Inconclusive => ("?", Paint::Caution),
        Change::Equivalent => ("=", Paint::Plain),
    }
}

/// `candidate against baseline`, with how many trials each has.
pub(crate) fn subject(of: &Comparison) -> String {
    let side = |side: &model::comparison::ComparedSide| {
        let runs = match side.started.len() {
            0 | 1 => String::new(),
            runs => format!("{runs} runs, "),
        };
        let trials = if side.trials == 1 { "trial" } else { "trials" };
        format!("{} ({runs}{} {trials})", clean(&side.label), side.trials)
    };
    let how = if of.is_paired { ", by turns and compared pair by pair" } else { "" };
    format!("{} against {}{how}", side(&of.candidate), side(&of.baseline))
}

/// How the answers are found, in one sentence.
pub(crate) fn method(of: &Comparison) -> String {
    format!(
        "Ratios are candidate ÷ baseline. Equivalent: the interval lies within {} (two one-sided tests). Better or worse: it \
         lies beyond 1. Each interval is {:.2}% sure, so that all {} hold together in 95 of 100 comparisons. A side shows \
         its middle trial; ratios are over all trials.",
        margin(of),
        of.confidence * 100.0,
        of.numbers.len()
    )
}

fn margin(of: &Comparison) -> String {
    format!("±{}%", (of.margin * 1000.0).round() / 10.0)
}

/// A difference in words.
pub(crate) fn difference(of: &Difference) -> String {
    let side = |text: &str| if text.is_empty() { "–".to_owned() } else { clean(text) };
    format!("{}: {} → {}", clean(&of.of), side(&of.baseline), side(&of.candidate))
}

/// The effect of a number, and its ends.
pub(crate) fn effect(of: &ComparedNumber) -> [String; 3] {
    let shown = |value: Option<f64>, none: &str| match (value, of.unit) {
        (None, _) => none.to_owned(),
        (Some(value), ComparedUnit::FailedShare) => format!("{:+.2} pp", value * 100.0),
        (Some(value), _) => format!("{value:.3}"),
    };
    let has = of.effect.is_some();
    let open = if has { "open" } else { "–" };
    [shown(of.effect, "–"), shown(of.low, open), shown(of.high, open)]
}

/// The table of numbers; at most so many rows.
fn numbers(of: &Comparison, rows_max: usize) -> Grid {
    let has_settings = of.numbers.iter().any(|it| !it.setting.is_empty());
    let mut grid = Grid::new().pin("number");
    if has_settings {
        grid = grid.pin("setting");
    }
    grid = grid.words(1, "answer").number(1, "ratio").number(1, "from").number(1, "to");
    grid = grid.number(1, "baseline").number(1, "candidate");
    for number in of.numbers.iter().take(rows_max) {
        let (mark, paint) = change_mark(number.change);
        let mut cells = vec![Cell::new(clean(&number.name))];
        if has_settings {
            cells.push(Cell::new(clean(&number.setting)));
        }
        cells.push(Cell::painted(format!("{mark} {}", number.change.word()), paint));
        cells.extend(effect(number).map(Cell::new));
        let sides = [number.baseline, number.candidate];
        cells.extend(sides.map(|side| Cell::new(number.show(side))));
        grid.row(cells);
    }
    grid
}

/// The comparison for a terminal.
#[must_use]
pub fn comparison_text(of: &Comparison, style: Style) -> String {
    let exit = format!("exit code {}: {}", of.exit() as i32, exit_meaning(of));
    let mut last = Page::new(style);
    last.line(Paint::Dim, &exit);
    format!("{}\n{}", comparison_body(of, style), last.finish())
}

/// The same without its last line, for what is shown after a run.
#[must_use]
pub fn comparison_body(of: &Comparison, style: Style) -> String {
    let mut page = Page::new(style);
    let (mark, paint) = change_mark(of.change);
    let word = of.change.word().to_uppercase();
    page.line(paint, &format!("{mark} {} · {word} · {}", clean(&of.name), subject(of)));
    page.indented(Paint::Plain, &clean(&of.words));
    if !of.unknown.is_empty() {
        page.indented(Paint::Caution, &format!("! {}", of.unknown));
    }
    page.heading("Numbers", "those that changed most first");
    page.grid(&numbers(of, usize::MAX));
    page.indented(Paint::Dim, &method(of));
    if !of.differences.is_empty() {
        page.heading("Differences", "between plans, hosts and builds");
        for it in &of.differences {
            let (head, paint) =
                if it.matters { ("! ", Paint::Caution) } else { ("· ", Paint::Dim) };
            page.hanging(2, head, paint, Paint::Plain, &difference(it));
        }
    }
    page.finish()
}

/// The meaning of the exit code of a comparison.
pub(crate) const fn exit_meaning(of: &Comparison) -> &'static str {
    match of.change {
        Change::Worse => "worse than the baseline",
        Change::Inconclusive => "most numbers cannot be told: run more or longer trials",
        Change::Better | Change::Equivalent => "no number is told to be worse",
    }
}

/// The comparison for a pull request, in at most 25 lines.
#[must_use]
pub fn comparison_markdown(of: &Comparison) -> String {
    let safe = |text: &str| escape(&clean(text));
    let (mark, _) = change_mark(of.change);
    let word = of.change.word();
    let mut text = format!("### {mark} {} · {word}\n\n{}\n", safe(&of.name), safe(&of.words));
    if !of.unknown.is_empty() {
        let _ = write!(text, "\n! {}\n", safe(&of.unknown));
    }
    text.push('\n');
    text.push_str(&numbers(of, MARKDOWN_ROWS_MAX).markdown());
    let mut below = vec![safe(&subject(of))];
    let left_out = of.numbers.len().saturating_sub(MARKDOWN_ROWS_MAX);
    if left_out > 0 {
        below.push(format!("{left_out} more numbers changed less"));
    }
    below.push(format!("margin {}, each interval {:.2}% sure", margin(of), of.confidence * 100.0));
    let named = of.differences.iter().take(MARKDOWN_DIFFERENCES_MAX);
    below.extend(named.map(|it| safe(&difference(it))));
    let more = of.differences.len().saturating_sub(MARKDOWN_DIFFERENCES_MAX);
    if more > 0 {
        below.push(format!("{more} more differences"));
    }
    let _ = write!(text, "\n<sub>{}</sub>\n", below.join(" · "));
    text
}

/// The comparison as one document.
#[must_use]
pub fn comparison_json(of: &Comparison) -> String {
    ended(serde_json::to_string_pretty(of))
}

/// A history as one document.
#[must_use]
pub fn trend_json(of: &Trend) -> String {
    ended(serde_json::to_string_pretty(of))
}

fn ended(text: serde_json::Result<String>) -> String {
    let mut text = text.expect("all keys are texts, and writing to memory cannot fail");
    text.push('\n');
    text
}

/// The comparison as JUnit XML: a case a number. There is a failure or an error exactly if the exit code is not 0.
#[must_use]
pub fn comparison_junit(of: &Comparison) -> String {
    let is_untold = of.change == Change::Inconclusive;
    let count = |change: Change| of.numbers.iter().filter(|it| it.change == change).count();
    let (failures, untold) = (count(Change::Worse), count(Change::Inconclusive));
    let (errors, skipped) = if is_untold { (untold.max(1), 0) } else { (0, untold) };
    let tests = of.numbers.len().max(1);
    let name = escape_xml(&of.name);
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"{name}\" {counts}>");
    let _ = writeln!(
        text,
        "  <testsuite name=\"{name} against the baseline\" id=\"0\" {counts} skipped=\"{skipped}\">"
    );
    for number in &of.numbers {
        let (case, words) = (escape_xml(&number.name), escape_xml(&number.words));
        let setting = if number.setting.is_empty() { &of.name } else { &number.setting };
        let _ =
            write!(text, "    <testcase classname=\"{}\" name=\"{case}\">", escape_xml(setting));
        let _ = match number.change {
            Change::Worse => {
                write!(text, "<failure type=\"worse\" message=\"{words}\">{words}</failure>")
            }
            Change::Inconclusive if is_untold => {
                write!(text, "<error type=\"inconclusive\" message=\"{words}\">{words}</error>")
            }
            Change::Inconclusive => write!(text, "<skipped message=\"{words}\"/>"),
            Change::Better | Change::Equivalent => {
                write!(text, "<system-out>{words}</system-out>")
            }
        };
        text.push_str("</testcase>\n");
    }
    if of.numbers.is_empty() {
        let words = escape_xml(&of.words);
        let _ = writeln!(
            text,
            "    <testcase classname=\"{name}\" name=\"numbers\"><error type=\"inconclusive\" message=\"{words}\">{words}</error></testcase>"
        );
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// The changes of a number of a history in words, oldest first.
pub(crate) fn changes(of: &TrendNumber, trend: &Trend) -> Vec<String> {
    let line = |it: &model::comparison::TrendChange| {
        let run = trend.runs.get(it.run);
        let started = run.map_or("", |run| run.started.as_str());
        let [from, to] = [it.from, it.to].map(|value| show(of, value));
        let ratio = it.to / it.from;
        format!("{} from {} on: {from} → {to}, ×{ratio:.2}", called(of), clean(started))
    };
    of.changes.iter().map(line).collect()
}

/// A number's name with its setting.
pub(crate) fn called(of: &TrendNumber) -> String {
    match of.setting.as_str() {
        "" => clean(&of.name),
        setting => format!("{} at {}", clean(&of.name), clean(setting)),
    }
}

/// A value of a number of a history.
pub(crate) fn show(of: &TrendNumber, value: f64) -> String {
    let number = ComparedNumber {
        setting: String::new(),
        name: String::new(),
        unit: of.unit,
        baseline: None,
        candidate: None,
        effect: None,
        low: None,
        high: None,
        change: Change::Inconclusive,
        words: String::new(),
    };
    number.show(Some(value))
}

/// All changes of level of a history in one sentence each; one that says so where there is none.
pub(crate) fn trend_lines(of: &Trend) -> Vec<String> {
    let lines: Vec<String> = of.numbers.iter().flat_map(|it| changes(it, of)).collect();
    match lines.is_empty() {
        true => vec![format!("no change of level in {} runs", of.runs.len())],
        false => lines,
    }
}

/// The history for a terminal: changes of level, then the newest runs.
#[must_use]
pub fn trend_text(of: &Trend, style: Style) -> String {
    let mut page = Page::new(style);
    page.line(Paint::Bold, &format!("{} · {} runs", clean(&of.name), of.runs.len()));
    trend_lines(of).iter().for_each(|line| page.indented(Paint::Plain, line));
    let mut grid = Grid::new().pin("run");
    for number in &of.numbers {
        grid = grid.number(1, &called(number));
    }
    grid = grid.words(2, "baseline");
    let from = of.runs.len().saturating_sub(TREND_ROWS_MAX);
    for (place, run) in of.runs.iter().enumerate().skip(from) {
        let mut cells = vec![Cell::new(clean(&run.folder))];
        for number in &of.numbers {
            let value = number.values.get(place).copied().flatten();
            let shown = value.map_or("–".to_owned(), |value| show(number, value));
            let is_new = number.changes.iter().any(|it| it.run == place);
            cells.push(match is_new {
                true => Cell::painted(format!("▸ {shown}"), Paint::Bold),
                false => Cell::new(shown),
            });
        }
        cells.push(Cell::new(clean(&run.baseline_names.join(", "))));
        grid.row(cells);
    }
    let left_out = if from == 0 { String::new() } else { format!("the newest {TREND_ROWS_MAX}") };
    page.heading("Runs", &left_out);
    page.grid(&grid);
    let differs = of.runs.iter().filter(|it| !it.differs.is_empty());
    for run in differs.rev().take(TREND_ROWS_MAX) {
        let what = run.differs.iter().map(|it| clean(it)).collect::<Vec<_>>().join("; ");
        page.hanging(
            2,
            "! ",
            Paint::Caution,
            Paint::Plain,
            &format!("{}: {what}", clean(&run.folder)),
        );
    }
    page.indented(Paint::Dim, &format!("▸ first run of a new level: {}.", of.method));
    page.finish()
}
