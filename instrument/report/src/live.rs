//! Progress while a trial runs: an inline block that the caller redraws in place, and a plain line for logs.
//!
//! It must never print a line wider than the terminal or a block taller than [`BLOCK_LINES_MAX`]: a line that the
//! terminal breaks makes redrawing in place climb over what stood above it.

use std::time::Duration;

use model::fault::{FaultEvent, FaultPhase};
use model::quantity::show_count;

use crate::figures::{latency, percent, plural, rate, span, span_ns, whole_ns};
use crate::paint::{Paint, Style, clean, clip, columns_of};

/// The most lines that [`live_block`] gives.
pub const BLOCK_LINES_MAX: usize = 14;

/// A generator that sends less than this share of what is due, late by its own doing, does not keep up.
const KEPT_UP: f64 = 0.9;

/// The state of a running trial. The caller copies it from the load engine.
#[derive(Clone, Debug, Default)]
pub struct LiveView {
    /// The experiment's name.
    pub name: String,
    /// Which trial of all, from 1.
    pub position: usize,
    /// How many trials the run has.
    pub trials: usize,
    /// The setting's key.
    pub key: String,
    /// `deploy`, `warm-up`, `measure`, `drain`, …
    pub phase: String,
    /// Since the trial's start.
    pub elapsed: Duration,
    /// The trial's planned length.
    pub total: Duration,
    /// Until the whole run ends, if it can be told.
    pub eta: Option<Duration>,
    /// Due in the last second.
    pub offered_per_s: f64,
    /// Sent in the last second.
    pub sent_per_s: f64,
    /// Reached the final stage in the last second.
    pub committed_per_s: f64,
    /// Sent and not ended.
    pub in_flight: u64,
    /// Ended otherwise, since the trial's start.
    pub failed: u64,
    /// `failed` of all that have ended, a fraction of one.
    pub failed_share: f64,
    /// The instrument's own lag in the last second, p99.
    pub own_lag_p99_ns: Option<i64>,
    /// Whether that is within the instrument's bound.
    pub own_lag_is_ok: bool,
    /// Due transactions that wait for a connection.
    pub backlog: u64,
    /// Committed each second, oldest first.
    pub committed_history: Vec<f64>,
    /// p99 each second, oldest first.
    pub p99_history_ns: Vec<Option<i64>>,
    /// Latency since the start of the measured window.
    pub latency: LiveLatency,
    /// Figures in the place of `sent`, `in flight` and `backlog` where the view is made of the record; absent: the
    /// engine itself is asked.
    pub record: Option<LiveRecord>,
    /// The last faults that began or ended, in words.
    pub faults: Vec<String>,
    /// Thresholds as far as they can be told.
    pub thresholds: Vec<LiveThreshold>,
    /// Keys that the caller listens to, such as `q stop`; may be empty.
    pub keys_hint: String,
}

/// Figures of a record whose trial goes on. It holds what has ended; what is sent and not ended it does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveRecord {
    /// Ended in the last second.
    pub ended_per_s: f64,
    /// Ended otherwise than committed in the last second.
    pub failed_per_s: f64,
    /// Due and not ended, where the schedule alone says what is due.
    pub not_ended: Option<u64>,
}

/// Latency so far.
#[derive(Clone, Debug, Default)]
pub struct LiveLatency {
    /// Of what: `probe, verified`.
    pub of: String,
    /// Samples.
    pub count: u64,
    /// Without an answer.
    pub inf: u64,
    /// Name and value of each quantile that is shown.
    pub quantiles: Vec<(String, Option<i64>)>,
}

/// A threshold while the trial runs.
#[derive(Clone, Debug, Default)]
pub struct LiveThreshold {
    /// As written.
    pub expr: String,
    /// The value so far, printed.
    pub actual: String,
    /// Whether it holds so far; `None` = cannot be told yet.
    pub holds: Option<bool>,
}

/// The block, at most [`BLOCK_LINES_MAX`] lines, each ended, none wider than the terminal.
#[must_use]
pub fn live_block(view: &LiveView, style: Style) -> String {
    let width = style.columns();
    let mut lines = vec![bar_line(view, width)];
    lines.extend(flow(&rates(view), width));
    lines.push(Line::plain(String::new()));
    lines.extend(histories(view, width));
    lines.extend(flow(&latency_so_far(&view.latency), width));
    let faults = view.faults.iter().map(|fault| clean(fault));
    lines.extend(faults.map(|text| Line { text, paint: Paint::Caution }));
    let room = BLOCK_LINES_MAX.saturating_sub(lines.len());
    lines.extend(thresholds(&view.thresholds, room));
    lines.truncate(BLOCK_LINES_MAX);
    let text: String = lines
        .iter()
        .map(|line| format!("{}\n", style.paint(line.paint, &clip(&line.text, width))))
        .collect();
    style.finish(&text)
}

/// One plain line for a log, without a line end.
#[must_use]
pub fn live_line(view: &LiveView) -> String {
    let mut parts = vec![format!(
        "{} {}/{} {} {} {} of {}",
        clean(&view.name),
        view.position,
        view.trials,
        clean(&view.key),
        clean(&view.phase),
        span(view.elapsed),
        span(view.total),
    )];
    parts.extend(rates(view));
    if let Some((name, value)) = view.latency.quantiles.last() {
        parts.push(format!("{} {}", clean(name), latency(*value)));
    }
    if let Some(eta) = view.eta {
        parts.push(format!("eta {}", span(eta)));
    }
    parts.join("  ")
}

/// One fault that began, ended or did not take place, for a log and for the block.
#[must_use]
pub fn live_fault(event: &FaultEvent) -> String {
    let what = match event.phase {
        FaultPhase::Start => "began",
        FaultPhase::End => "ended",
        FaultPhase::Failed => "did not take place",
    };
    let detail = match event.detail.in_words() {
        words if words.is_empty() => words,
        words => format!(": {words}"),
    };
    clean(&format!("{}  fault {} {} {what}{detail}", span_ns(event.at_ns), event.kind, event.node))
}

struct Line {
    text: String,
    paint: Paint,
}

impl Line {
    const fn plain(text: String) -> Self {
        Self { text, paint: Paint::Plain }
    }
}

/// Name, place, key, bar, times, keys.
fn bar_line(view: &LiveView, width: usize) -> Line {
    let left = format!(
        "{}  {}/{}  {}  {}",
        clean(&view.name),
        view.position,
        view.trials,
        clean(&view.key),
        clean(&view.phase)
    );
    let mut right = format!("{} / {}", span(view.elapsed), span(view.total));
    if let Some(eta) = view.eta {
        right.push_str(&format!("  eta {}", span(eta)));
    }
    if !view.keys_hint.is_empty() {
        right.push_str(&format!("  {}", clean(&view.keys_hint)));
    }
    let left = clip(&left, width.saturating_sub(columns_of(&right) + 4));
    let room = width.saturating_sub(columns_of(&left) + columns_of(&right) + 4).min(24);
    let bar = bar(view.elapsed, view.total, room);
    Line { text: format!("{left}  {bar}  {right}"), paint: Paint::Bold }
}

fn bar(elapsed: Duration, total: Duration, width: usize) -> String {
    let done = if total.is_zero() { 0.0 } else { elapsed.as_secs_f64() / total.as_secs_f64() };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between zero and the width of a terminal"
    )]
    let full = (done.clamp(0.0, 1.0) * width as f64) as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(width - full))
}

/// The current activity, in pieces that stay whole.
fn rates(view: &LiveView) -> Vec<String> {
    let committed = format!("committed {}/s", rate(view.committed_per_s));
    let failed = format!("failed {} ({})", show_count(view.failed), percent(view.failed_share));
    let offered = format!("offered {}/s", rate(view.offered_per_s));
    let mut parts = match view.record {
        None => vec![
            offered,
            format!("sent {}/s", rate(view.sent_per_s)),
            committed,
            format!("in flight {}", show_count(view.in_flight)),
            failed,
            format!("backlog {}", show_count(view.backlog)),
        ],
        Some(record) => {
            let not_ended =
                |count: u64| [offered, format!("due and not ended {}", show_count(count))];
            let [offered, not_ended] = record.not_ended.map_or_else(Default::default, not_ended);
            let ended = format!("ended {}/s", rate(record.ended_per_s));
            let failing = format!("failed {}/s", rate(record.failed_per_s));
            let all = [offered, ended, committed, failing, failed, not_ended];
            all.into_iter().filter(|part| !part.is_empty()).collect()
        }
    };
    let lag = latency(view.own_lag_p99_ns);
    let mark = match (view.own_lag_is_ok, view.sent_per_s < KEPT_UP * view.offered_per_s) {
        (true, _) => "✓",
        (false, false) => "! late",
        (false, true) => "! the rate is more than this machine can do",
    };
    parts.push(format!("own lag p99 {lag} {mark}"));
    parts
}

/// Pieces on as few lines as the width allows.
fn flow(parts: &[String], width: usize) -> Vec<Line> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if columns_of(line) + 2 + columns_of(part) <= width => {
                line.push_str("  ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines.truncate(4);
    lines.into_iter().map(Line::plain).collect()
}

/// One line for each history: its name, its scale, its bars.
fn histories(view: &LiveView, width: usize) -> Vec<Line> {
    let p99: Vec<Option<f64>> = view.p99_history_ns.iter().map(|ns| ns.map(bar_value)).collect();
    let tx: Vec<Option<f64>> = view.committed_history.iter().copied().map(Some).collect();
    let top = |values: &[Option<f64>]| {
        values.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
    };
    let scales = [rate(top(&tx)), latency(whole_ns(top(&p99)).filter(|_| !p99.is_empty()))];
    let scale_width = scales.iter().map(|scale| columns_of(scale)).max().unwrap_or(0);
    let room = width.saturating_sub(6 + scale_width + 2);
    [("tx/s", &tx), ("p99", &p99)]
        .into_iter()
        .zip(&scales)
        .map(|((name, values), scale)| {
            let blanks = " ".repeat(scale_width - columns_of(scale));
            Line::plain(format!("{name:<6}{blanks}{scale} ┤{}", sparkline(values, room)))
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "for a bar of eight heights")]
const fn bar_value(ns: i64) -> f64 {
    ns as f64
}

/// The newest `width` values as bars from zero to the largest of them; a blank where there is none.
fn sparkline(values: &[Option<f64>], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let top = shown.iter().flatten().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    shown
        .iter()
        .map(|value| match value {
            Some(value) if value.is_finite() && *value >= 0.0 && top > 0.0 => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "between zero and eight"
                )]
                let height = (value / top * 7.0).round() as usize;
                BARS[height.min(7)]
            }
            Some(_) => BARS[0],
            None => ' ',
        })
        .collect()
}

fn latency_so_far(so_far: &LiveLatency) -> Vec<String> {
    let mut parts = vec![
        format!("latency so far ({})", clean(&so_far.of)),
        format!("n {}", show_count(so_far.count)),
        format!("inf {}", show_count(so_far.inf)),
    ];
    let quantiles = so_far.quantiles.iter();
    parts.extend(quantiles.map(|(name, value)| format!("{} {}", clean(name), latency(*value))));
    parts
}

/// As many thresholds as there is room for, those that are broken first.
fn thresholds(all: &[LiveThreshold], room: usize) -> Vec<Line> {
    let mut ordered: Vec<&LiveThreshold> = all.iter().collect();
    ordered.sort_by_key(|threshold| threshold.holds != Some(false));
    let shown = if ordered.len() > room { room.saturating_sub(1) } else { ordered.len() };
    let mut lines: Vec<Line> = ordered[..shown]
        .iter()
        .map(|threshold| {
            let (mark, paint) = match threshold.holds {
                Some(true) => ("✓", Paint::Good),
                Some(false) => ("✗", Paint::Bad),
                None => ("·", Paint::Dim),
            };
            let text = format!("{mark} {}  {}", clean(&threshold.expr), clean(&threshold.actual));
            Line { text, paint }
        })
        .collect();
    if ordered.len() > shown && room > 0 {
        let text = format!("  … and {} more", plural_of(ordered.len() - shown));
        lines.push(Line { text, paint: Paint::Dim });
    }
    lines
}

fn plural_of(count: usize) -> String {
    plural(u64::try_from(count).unwrap_or(u64::MAX), "threshold")
}
