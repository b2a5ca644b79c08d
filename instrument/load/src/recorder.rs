//! Rows from the workers to the sink, on the caller's thread, in batches whose buffers go back to be filled
//! again; and what the progress display shows. It never decides anything about a transaction.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use clock::Instant;
use model::facts::{Event, WorkerFacts};
use model::{FinalStages, NO_STAMP, Observations, Outcome, Row, Stamp};

use crate::buckets::Buckets;
use crate::live::{Live, Phase};
use crate::trial::Trial;
use crate::{LoadError, RowSink};

/// Rows that a worker hands over at once.
pub(crate) const BATCH_ROWS: usize = 1_024;
/// Batches that a worker may have under way.
pub(crate) const BATCHES_MAX: usize = 16;
/// The display's numbers are of this long.
const LIVE_NS: i64 = 1_000_000_000;
/// Eight buckets to a power of two: 12 % wide, enough for a display and nothing else.
const EIGHTHS: u32 = 3;
/// As often as the display is redrawn.
const TICK: Duration = Duration::from_millis(250);

/// Messages from workers to the recorder.
pub(crate) enum Message {
    /// All connections of a worker are open, or they cannot be.
    Ready(Result<(), LoadError>),
    Rows {
        worker: u32,
        rows: Vec<Row>,
    },
    /// With the way back for the buffer.
    Observations {
        observations: Observations,
        back: SyncSender<Observations>,
    },
    Event(Event),
    /// A worker is done.
    Done(Box<WorkerReport>),
}

/// The results of a worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerReport {
    pub worker: u32,
    pub facts: WorkerFacts,
    /// When its last transaction had ended.
    pub drain_end: Stamp,
    /// Whether its drain was cut.
    pub cut: bool,
    /// Transactions that were outstanding when the drain's time was up.
    pub drain_left: u64,
    /// Why its event loop broke down, if it did.
    pub failure: String,
}

pub(crate) struct Recorder<'a> {
    trial: &'a Trial<'a>,
    sink: &'a mut dyn RowSink,
    spare: Vec<SyncSender<Vec<Row>>>,
    window: LiveWindow,
    wall_drift_ns: i64,
    /// The largest jump of the wall clock between two looks.
    pub wall_step_ns: i64,
    /// Why the sink took no more, and how many rows that cost.
    pub refused: Option<String>,
    pub lost_rows: u64,
    pub reports: Vec<WorkerReport>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        trial: &'a Trial<'a>,
        sink: &'a mut dyn RowSink,
        spare: Vec<SyncSender<Vec<Row>>>,
    ) -> Self {
        Self {
            trial,
            sink,
            spare,
            window: LiveWindow::default(),
            wall_drift_ns: trial.setup.deployment.clock.wall_drift_ns(),
            wall_step_ns: 0,
            refused: None,
            lost_rows: 0,
            reports: Vec::new(),
        }
    }

    /// Waits until every worker has its connections. The first failure is the answer.
    pub(crate) fn await_ready(&mut self, from: &Receiver<Message>) -> Result<(), LoadError> {
        let mut outcome = Ok(());
        for _ in 0..self.trial.seats() {
            loop {
                match from.recv() {
                    Ok(Message::Ready(Ok(()))) => break,
                    Ok(Message::Ready(Err(error))) => {
                        outcome = outcome.and(Err(error));
                        break;
                    }
                    Ok(other) => self.take(other),
                    // A worker that panicked says so when it is joined.
                    Err(_) => return outcome,
                }
            }
        }
        outcome
    }

    /// Takes what comes until the last worker is gone.
    pub(crate) fn run(&mut self, from: &Receiver<Message>, start: Instant) {
        loop {
            match from.recv_timeout(TICK) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.tick(start);
        }
        self.trial.setup.live.set_phase(Phase::Done);
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Ready(_) => {}
            Message::Event(event) => self.sink.event(event),
            Message::Done(report) => self.reports.push(*report),
            Message::Observations { mut observations, back } => {
                if self.refused.is_none()
                    && let Err(reason) = self.sink.observations(&observations)
                {
                    self.refused = Some(reason);
                    self.trial.abort();
                }
                observations.clear();
                // A worker that is gone needs no buffers.
                let _ = back.try_send(observations);
            }
            Message::Rows { worker, mut rows } => {
                self.window.count(&rows, self.trial.setup.final_stages, &self.trial.setup.live);
                if self.refused.is_none()
                    && let Err(reason) = self.sink.rows(&rows)
                {
                    self.refused = Some(reason);
                    self.trial.abort();
                }
                if self.refused.is_some() {
                    self.lost_rows += rows.len() as u64;
                }
                rows.clear();
                // A worker that is gone needs no buffers.
                let seat = worker.saturating_sub(self.trial.here.start);
                let _ = self.spare[seat as usize].try_send(rows);
            }
        }
    }

    fn tick(&mut self, start: Instant) {
        let live = &self.trial.setup.live;
        let now = self.trial.setup.deployment.clock.now().ns_since(start);
        if now - self.window.shown_at < 100_000_000 {
            return;
        }
        let drift = self.trial.setup.deployment.clock.wall_drift_ns();
        let step = drift - self.wall_drift_ns;
        self.wall_drift_ns = drift;
        if step.abs() > self.wall_step_ns.abs() {
            self.wall_step_ns = step;
        }
        let timing = &self.trial.window;
        live.elapsed_ns.store(now.max(0), Relaxed);
        live.set_phase(match now {
            now if now < timing.measure_start => Phase::Warmup,
            now if now < timing.measure_end => Phase::Measure,
            _ => Phase::Drain,
        });
        self.window.show(now, live);
    }
}

/// The last second, for the display.
#[derive(Default)]
struct LiveWindow {
    shown_at: Stamp,
    began_at: Stamp,
    latency: Buckets<EIGHTHS>,
    own_lag: Buckets<EIGHTHS>,
}

impl LiveWindow {
    fn count(&mut self, rows: &[Row], final_stages: FinalStages, live: &Live) {
        let mut committed = 0;
        for row in rows {
            if row.outcome == Outcome::Committed {
                committed += 1;
                if let Some(ns) = row.response_ns(final_stages.of(row.stream)) {
                    self.latency.add(ns);
                }
            }
            if row.sent != NO_STAMP {
                self.own_lag.add(row.sent - row.ready);
            }
        }
        live.committed.fetch_add(committed, Relaxed);
        live.failed.fetch_add(rows.len() as u64 - committed, Relaxed);
    }

    fn show(&mut self, now: Stamp, live: &Live) {
        self.shown_at = now;
        live.latency_p50_ns.store(self.latency.quantile(50), Relaxed);
        live.latency_p99_ns.store(self.latency.quantile(99), Relaxed);
        live.own_lag_p99_ns.store(self.own_lag.quantile(99), Relaxed);
        if now - self.began_at >= LIVE_NS {
            self.began_at = now;
            self.latency.clear();
            self.own_lag.clear();
        }
    }
}
