//! The page of `assay check`: what would be run, how long it would take, and whether this host is fit for it.
//!
//! It must never send anything or look anything up: the caller hands over the outline of the plan and what it
//! found out about the host.

use std::time::Duration;

use model::result::AuditOutcome;

use crate::figures::{plural, span};
use crate::grid::{Cell, Grid};
use crate::page::{Marked, Page};
use crate::paint::{Paint, Style, clean, outcome_mark};

/// An experiment as outlined by its plan.
#[derive(Clone, Debug, Default)]
pub struct CheckView {
    /// Its name.
    pub name: String,
    /// Its question.
    pub question: String,
    /// How many trials in all.
    pub trials: u64,
    /// About how long it takes.
    pub wall: Duration,
    /// The most that is offered, printed: `2,000 tx/s`; empty = it depends on the system (closed loop, `max`).
    pub offered_max: String,
    /// The target, with the adapter's word: `http http://127.0.0.1:8080/`.
    pub target: String,
    /// Settings in the order of the plan.
    pub settings: Vec<CheckSetting>,
    /// Thresholds as written, with their levels' words.
    pub thresholds: Vec<(String, String)>,
    /// Findings about the host and the target.
    pub findings: Vec<CheckFinding>,
    /// Every effective value with its origin (`--explain`); empty = not asked for.
    pub effective: Vec<CheckEffective>,
    /// The command that would run it.
    pub command: String,
}

/// One setting.
#[derive(Clone, Debug, Default)]
pub struct CheckSetting {
    /// Its key.
    pub key: String,
    /// The load in words: `constant 50/s`, `closed 64 clients`.
    pub load: String,
    /// Load that is not counted.
    pub warmup: Duration,
    /// The measured window.
    pub measure: Duration,
    /// How many trials.
    pub trials: u32,
    /// The probe in words, or empty.
    pub probe: String,
}

/// Something that was found out before the load.
#[derive(Clone, Debug)]
pub struct CheckFinding {
    /// `host`, `files`, `cpu`, `target`, …
    pub topic: String,
    /// In words, with what to do about it.
    pub text: String,
    /// Ok, a warning, or a reason why it cannot run.
    pub outcome: AuditOutcome,
}

/// One effective value.
#[derive(Clone, Debug, Default)]
pub struct CheckEffective {
    /// `load.rate`.
    pub path: String,
    /// As it will be used.
    pub value: String,
    /// Where it came from.
    pub origin: String,
}

/// The page.
#[must_use]
pub fn check_text(view: &CheckView, style: Style) -> String {
    let mut page = Page::new(style);
    heading(&mut page, view);
    let settings = settings(view);
    if !settings.is_empty() {
        page.line(Paint::Plain, "");
        page.grid(&settings);
    }
    for (title, grid) in [("Thresholds", thresholds(view)), ("Effective values", effective(view))] {
        if !grid.is_empty() {
            page.heading(title, "");
            page.grid(&grid);
        }
    }
    findings(&mut page, view);
    page.line(Paint::Plain, "");
    let is_blocked = view.findings.iter().any(|it| it.outcome == AuditOutcome::Failed);
    let first = if is_blocked { " First fix what is marked ✗, then run:" } else { " Run:" };
    page.line(Paint::Plain, &format!("Nothing was sent.{first} {}", clean(&view.command)));
    page.finish()
}

fn heading(page: &mut Page, view: &CheckView) {
    let settings = u64::try_from(view.settings.len()).unwrap_or(u64::MAX);
    let mut parts = vec![plural(settings, "setting")];
    if view.trials != settings {
        parts.push(plural(view.trials, "trial"));
    }
    parts.push(format!("about {}", span(view.wall)));
    if !view.offered_max.is_empty() {
        parts.push(format!("up to {} offered", clean(&view.offered_max)));
    }
    let text = format!("· {}", parts.join(" · "));
    page.hanging(0, &format!("{} ", clean(&view.name)), Paint::Bold, Paint::Plain, &text);
    for line in [&view.question, &view.target].into_iter().filter(|line| !line.is_empty()) {
        page.indented(Paint::Dim, &clean(line));
    }
}

fn settings(view: &CheckView) -> Grid {
    let has_probe = view.settings.iter().any(|setting| !setting.probe.is_empty());
    let has_trials = view.settings.iter().any(|setting| setting.trials > 1);
    let mut grid =
        Grid::new().pin("setting").words(1, "load").number(1, "warm-up").number(1, "measure");
    if has_trials {
        grid = grid.number(1, "trials");
    }
    if has_probe {
        grid = grid.words(2, "probe");
    }
    for setting in &view.settings {
        let mut cells = vec![
            Cell::new(clean(&setting.key)),
            Cell::new(clean(&setting.load)),
            Cell::new(span(setting.warmup)),
            Cell::new(span(setting.measure)),
        ];
        if has_trials {
            cells.push(Cell::new(setting.trials.to_string()));
        }
        if has_probe {
            cells.push(Cell::new(clean(&setting.probe)));
        }
        grid.row(cells);
    }
    grid
}

fn thresholds(view: &CheckView) -> Grid {
    let mut grid = Grid::new().words(1, "").words(1, "");
    for (expr, level) in &view.thresholds {
        grid.row(vec![Cell::new(clean(expr)), Cell::painted(clean(level), Paint::Dim)]);
    }
    grid
}

fn effective(view: &CheckView) -> Grid {
    let mut grid = Grid::new().pin("path").words(1, "value").words(2, "from");
    for line in &view.effective {
        grid.row(vec![
            Cell::new(clean(&line.path)),
            Cell::new(clean(&line.value)),
            Cell::painted(clean(&line.origin), Paint::Dim),
        ]);
    }
    grid
}

/// One line a finding; a topic that has several is written once.
fn findings(page: &mut Page, view: &CheckView) {
    let mut last_topic = "";
    let mut lines: Vec<Marked> = Vec::new();
    for finding in &view.findings {
        let (mark, paint) = outcome_mark(finding.outcome);
        let is_same = finding.topic == last_topic;
        last_topic = &finding.topic;
        let head = if is_same { String::new() } else { clean(&finding.topic) };
        let text = clean(&finding.text);
        lines.push(Marked { mark, paint, head, text, text_paint: Paint::Plain });
    }
    if !lines.is_empty() {
        page.heading("Host and target", "");
        page.marked(&lines);
    }
}
