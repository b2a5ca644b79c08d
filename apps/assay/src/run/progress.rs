//! Progress on standard error while a trial runs: a block that is redrawn in place on a terminal, a plain line
//! every ten seconds elsewhere. It reads counters and never touches the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Live, LiveSnapshot, Phase};
use model::quantity::show_duration;
use report::{LiveLatency, LiveView};

use crate::cli::{ColorChoice, ProgressChoice};
use crate::live_display::Display;

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
    ended: AtomicBool,
    trial: Mutex<Option<(Title, Arc<Live>)>>,
}

impl Progress {
    /// Starts the display, unless none is wanted.
    pub fn start(choice: ProgressChoice, colour: ColorChoice) -> Self {
        let display = Display::new(choice, colour);
        let shared = Arc::new(Shared {
            ended: AtomicBool::new(choice == ProgressChoice::None),
            trial: Mutex::new(None),
        });
        let thread = (choice != ProgressChoice::None).then(|| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("progress".to_owned())
                .spawn(move || show(&shared, display))
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

fn show(shared: &Shared, mut display: Display) {
    let mut histories = Histories::default();
    let mut turn = 0_u32;
    while !shared.ended.load(Ordering::SeqCst) {
        std::thread::sleep(REDRAW);
        turn = turn.wrapping_add(1);
        let trial = shared.trial.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((title, live)) = trial else {
            display.erase();
            histories = Histories::default();
            continue;
        };
        let snapshot = live.snapshot();
        histories.add(&snapshot, turn.is_multiple_of(HISTORY_EVERY));
        let view = view(&title, &snapshot, &histories);
        display.show(&view, turn.is_multiple_of(LINE_EVERY));
    }
    display.erase();
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
        ..LiveView::default()
    }
}
