//! Progress on standard error while a trial runs: a block that is redrawn in place on a terminal, a plain line
//! every ten seconds elsewhere. It reads counters and never touches the load.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Live, LiveSnapshot, Phase};
use model::quantity::show_duration;
use report::{LiveLatency, LiveView, Style, live_block, live_line};

use crate::cli::{ColorChoice, ProgressChoice};
use crate::terminal;

/// The block is redrawn four times a second.
const REDRAW: Duration = Duration::from_millis(250);
/// Redraws between two plain lines: ten seconds.
const LINE_EVERY: u32 = 40;
/// Redraws between two points of the histories: one second.
const HISTORY_EVERY: u32 = 4;
/// Points that the histories keep.
const HISTORY_MAX: usize = 60;
/// The instrument's own lag beyond which the block says so, nanoseconds.
const OWN_LAG_BOUND_NS: i64 = 1_000_000;

/// The parts of the display beside the counters.
#[derive(Clone, Default)]
pub struct Title {
    /// The experiment's name.
    pub name: String,
    /// Which trial of all, from 1.
    pub position: usize,
    /// How many.
    pub trials: usize,
    /// The setting's key.
    pub key: String,
    /// Planned length of this trial.
    pub total: Duration,
    /// Planned length of the trials after it.
    pub after: Duration,
    /// The longest wait for answers after the load.
    pub drain_max: Duration,
}

/// A running display; it ends when this is dropped.
pub struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    style: Style,
    is_block: bool,
    ended: AtomicBool,
    trial: Mutex<Option<(Title, Arc<Live>)>>,
}

impl Progress {
    /// Starts the display, unless none is wanted.
    pub fn start(choice: ProgressChoice, colour: ColorChoice) -> Self {
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
        let shared = Arc::new(Shared {
            style,
            is_block,
            ended: AtomicBool::new(choice == ProgressChoice::None),
            trial: Mutex::new(None),
        });
        let thread = (choice != ProgressChoice::None).then(|| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("progress".to_owned())
                .spawn(move || show(&shared))
                .ok()
        });
        Self { shared, thread: thread.flatten() }
    }

    /// From now on this trial is shown.
    pub fn trial(&self, title: Title, live: Arc<Live>) {
        *self.shared.trial.lock().unwrap_or_else(PoisonError::into_inner) = Some((title, live));
    }

    /// No trial is running.
    pub fn pause(&self) {
        *self.shared.trial.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // A display that panicked must not take the run with it.
            let _ = thread.join();
        }
    }
}

fn show(shared: &Shared) {
    let mut histories = Histories::default();
    let mut drawn = Vec::new();
    let mut turn = 0_u32;
    while !shared.ended.load(Ordering::SeqCst) {
        std::thread::sleep(REDRAW);
        turn = turn.wrapping_add(1);
        let trial = shared.trial.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((title, live)) = trial else {
            erase(&mut drawn);
            histories = Histories::default();
            continue;
        };
        let snapshot = live.snapshot();
        histories.add(&snapshot, turn.is_multiple_of(HISTORY_EVERY));
        let view = view(&title, &snapshot, &histories);
        if shared.is_block {
            erase(&mut drawn);
            let width = terminal::columns(std::io::stderr());
            let block = live_block(&view, Style { width, ..shared.style });
            drawn = block.lines().map(cells).collect();
            put(&block);
        } else if turn.is_multiple_of(LINE_EVERY) {
            put(&format!("{}\n", live_line(&view).trim_end()));
        }
    }
    erase(&mut drawn);
}

/// Moves up over the block and clears it. `drawn` are the cells of its lines: a terminal that has become narrower since
/// has broken them into more.
fn erase(drawn: &mut Vec<usize>) {
    if !drawn.is_empty() {
        put(&format!("\x1b[{}A\r\x1b[J", rows(drawn, terminal::width(std::io::stderr()))));
        drawn.clear();
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
    // Progress that cannot be written is no reason to stop a measurement.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Counters of the last second, and what they were each second before.
#[derive(Default)]
struct Histories {
    last: LiveSnapshot,
    offered_per_s: f64,
    sent_per_s: f64,
    committed_per_s: f64,
    committed: Vec<f64>,
    p99_ns: Vec<Option<i64>>,
}

impl Histories {
    fn add(&mut self, now: &LiveSnapshot, is_second: bool) {
        if !is_second {
            return;
        }
        let seconds = now.elapsed.saturating_sub(self.last.elapsed).as_secs_f64();
        if seconds <= 0.0 {
            self.last = *now;
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "for eyes")]
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        self.offered_per_s = rate(now.offered, self.last.offered);
        self.sent_per_s = rate(now.sent, self.last.sent);
        self.committed_per_s = rate(now.committed, self.last.committed);
        self.committed.push(self.committed_per_s);
        self.p99_ns.push(now.latency_p99_ns);
        let excess = self.committed.len().saturating_sub(HISTORY_MAX);
        self.committed.drain(..excess);
        self.p99_ns.drain(..excess);
        self.last = *now;
    }
}

fn view(title: &Title, snapshot: &LiveSnapshot, histories: &Histories) -> LiveView {
    let ended = snapshot.committed + snapshot.failed;
    #[expect(clippy::cast_precision_loss, reason = "for eyes")]
    let failed_share = if ended == 0 { 0.0 } else { snapshot.failed as f64 / ended as f64 };
    let phase = match snapshot.phase {
        Phase::Opening => "connect".to_owned(),
        Phase::Warmup => "warm-up".to_owned(),
        Phase::Measure => "measure".to_owned(),
        Phase::Drain => format!("drain (at most {})", show_duration(title.drain_max)),
        Phase::Done => "done".to_owned(),
    };
    LiveView {
        name: title.name.clone(),
        position: title.position,
        trials: title.trials,
        key: title.key.clone(),
        phase,
        elapsed: snapshot.elapsed,
        total: title.total,
        eta: Some(title.total.saturating_sub(snapshot.elapsed) + title.after),
        offered_per_s: histories.offered_per_s,
        sent_per_s: histories.sent_per_s,
        committed_per_s: histories.committed_per_s,
        in_flight: snapshot.outstanding,
        failed: snapshot.failed,
        failed_share,
        own_lag_p99_ns: snapshot.own_lag_p99_ns,
        own_lag_is_ok: snapshot.own_lag_p99_ns.is_none_or(|ns| ns <= OWN_LAG_BOUND_NS),
        backlog: snapshot.backlog,
        committed_history: histories.committed.clone(),
        p99_history_ns: histories.p99_ns.clone(),
        latency: LiveLatency {
            of: "response time, last second".to_owned(),
            count: ended,
            inf: snapshot.failed,
            quantiles: vec![
                ("p50".to_owned(), snapshot.latency_p50_ns),
                ("p99".to_owned(), snapshot.latency_p99_ns),
            ],
        },
        thresholds: Vec::new(),
        keys_hint: String::new(),
    }
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
