//! The event loop: look at what came, end what is over, take what is due, send, wait. One turn is one stamp, but for
//! what a driver receives by one system call each.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use clock::{CpuTime, Instant};
use model::{NO_STAMP, Row, Stamp};
use rustix::io::Errno;

use super::settle::Rows;
use super::{Engine, Routes};
use crate::LoadError;
use crate::connection::{Connection, OBSERVER, Phase};
use crate::drain::Drain;
use crate::driver::{Driver, Event, Wait};
use crate::pending::NONE;
use crate::place::Place;
use crate::recorder::{Message, WorkerReport};
use crate::trial::Trial;

/// Connections must be open within this, or the load does not begin.
const OPENING_NS_MAX: i64 = 30_000_000_000;
/// So often is a connection tried before the load where its stream has no other: a second in all, with the pauses between.
const OPENING_TRIES_MAX: u32 = 8;
/// The display is told of a worker this often.
const SHOW_NS: i64 = 20_000_000;
/// Kernel slots beyond a worker's connections: those that are being closed while they are opened anew.
const SPARE_CONNECTIONS: u32 = 64;

/// A worker's place: its number and its ways to the others.
pub(crate) struct Seat {
    pub worker: u32,
    pub to: SyncSender<Message>,
    pub spare: Receiver<Vec<Row>>,
    pub routes: Routes,
}

/// Counters last told to the display.
#[derive(Default)]
pub(super) struct Shown {
    at: Stamp,
    due: u64,
    sent: u64,
    outstanding: u64,
    backlog: u64,
}

/// Runs one worker, from opening its connections to its last row. Reports through the seat's channel. `make` gives its
/// driver, for so many connections at most.
pub(crate) fn run<D: Driver>(
    trial: &Trial<'_>,
    seat: Seat,
    make: impl FnOnce(u32) -> Result<D, Errno>,
) {
    // A timer is otherwise up to 50 µs late on purpose (prctl(2), PR_SET_TIMERSLACK). Without it `balanced`
    // is less exact, which the lag shows.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let nice = take_precedence(trial.here.end - trial.here.start);
    let Seat { worker, to, spare, routes } = seat;
    let promise = ReadyPromise(&to);
    let rows = Rows::new(worker, to.clone(), spare);
    let opened = Engine::new(trial, worker, rows, routes).and_then(|engine| open(engine, make));
    let (outcome, ready) = match opened {
        Ok(ready) => (Ok(()), Some(ready)),
        Err(error) => (Err(error), None),
    };
    promise.keep(outcome);
    let Some(start) = trial.await_start() else { return };
    let Some((mut engine, mut driver)) = ready else { return };
    engine.begin(start);
    let mut report = engine.work(&mut driver);
    report.facts.nice = nice;
    drop(driver);
    to.send(Message::Done(Box::new(report))).expect("the recorder outlives the workers");
}

/// Asks the scheduler to run this thread before others, so that other work does not make sends late:
/// lateness is the instrument's error bar. Only where processors are left for the system under test, and only
/// where the host allows it (root, or a limit on nice); the facts say what was given, and the lag what it bought.
fn take_precedence(workers: u32) -> i32 {
    /// Well before ordinary work (0), well behind the kernel's own threads.
    const NICE: i32 = -10;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors <= workers as usize {
        return 0;
    }
    // On Linux a thread's number is a process id to setpriority(2), and the priority is the thread's own.
    let thread = rustix::thread::gettid();
    rustix::process::setpriority_process(Some(thread), NICE).map_or(0, |()| NICE)
}

/// The recorder waits for each worker to be ready; a worker that panics before must not keep it waiting.
struct ReadyPromise<'a>(&'a SyncSender<Message>);

impl ReadyPromise<'_> {
    fn keep(self, outcome: Result<(), LoadError>) {
        self.0.send(Message::Ready(outcome)).expect("the recorder outlives the workers");
        std::mem::forget(self);
    }
}

impl Drop for ReadyPromise<'_> {
    fn drop(&mut self) {
        let attempt = "setting up an engine thread";
        let reason = "it panicked".to_owned();
        let _ = self.0.send(Message::Ready(Err(LoadError::Host { attempt, reason })));
    }
}

/// Opens a worker's connections. It is ready when each of them is open or has failed, and of each stream one at least is
/// open: until then those that failed are tried again, so that a leader that was deposed just now is found.
fn open<'t, D: Driver>(
    mut engine: Engine<'t>,
    make: impl FnOnce(u32) -> Result<D, Errno>,
) -> Result<(Engine<'t>, D), LoadError> {
    let failed = |error: Errno| LoadError::Driver { driver: D::NAME, reason: error.to_string() };
    let connections_max: u32 = engine.streams.iter().map(|stream| stream.connections_max).sum();
    let mut driver = make(connections_max + SPARE_CONNECTIONS).map_err(failed)?;
    while engine.opening > 0 || engine.tries_again() {
        engine.handle_events(&mut driver);
        if engine.trial.setup.control.is_stopped() || engine.now > OPENING_NS_MAX {
            break;
        }
        if engine.opening == 0 {
            engine.run_timers();
        }
        engine.open_and_close(&mut driver);
        engine.flush(&mut driver);
        if engine.opening > 0 || engine.tries_again() {
            driver.wait(Wait::at_most(Some(Duration::from_millis(10)))).map_err(failed)?;
        }
    }
    engine.open_and_close(&mut driver);
    match engine.unopened() {
        None => Ok((engine, driver)),
        Some((place, reason)) => Err(LoadError::Connect { place: place.to_string(), reason }),
    }
}

impl Engine<'_> {
    /// Why the load cannot begin: a stream without a connection, or an observer that is not there.
    fn unopened(&self) -> Option<(Place, String)> {
        let without = |stream: &super::Stream| stream.connections > 0 && stream.open == 0;
        let blind =
            self.connections.iter().any(|at| at.stream == OBSERVER && at.phase != Phase::Open);
        if !blind && !self.streams.iter().any(without) {
            return None;
        }
        let place = self.connections[0].place.clone();
        let failure = self.last_failure();
        Some(failure.unwrap_or((place, "no answer to the greeting in time".to_owned())))
    }

    /// Whether connections that failed are still tried, for the load cannot begin without one of them.
    fn tries_again(&self) -> bool {
        self.unopened().is_some()
            && self
                .connections
                .iter()
                .any(|at| at.phase == Phase::Down && at.failures < OPENING_TRIES_MAX)
    }

    /// Moves everything from the worker's own line to the trial's.
    fn begin(&mut self, start: Instant) {
        let shift = start.ns_since(self.origin);
        self.origin = start;
        for at in &mut self.connections {
            at.freed_at -= shift;
        }
        for stream in &mut self.streams {
            if let Some(batching) = &mut stream.batching {
                batching.shift(shift);
            }
        }
        self.timers = self
            .timers
            .drain()
            .map(|timer| super::Timer { at: timer.at - shift, ..timer })
            .collect();
        let takes_one = |at: &Connection| at.stream != OBSERVER && at.room_max() == 1;
        self.answers_are_alone = self.final_stage(0) == 0 && self.connections.iter().all(takes_one);
        self.is_starting = false;
        self.is_loading = true;
        self.live.at = Stamp::MIN / 2;
    }

    /// The load, the drain and the last rows.
    fn work<D: Driver>(mut self, driver: &mut D) -> WorkerReport {
        let (cpu, queued) = (CpuTime::of_this_thread(), self.run_queue.waited_ns());
        let began = self.read_clock();
        let mut report =
            WorkerReport { worker: self.worker, drain_end: NO_STAMP, ..Default::default() };
        let mut end = End::default();
        loop {
            let turn_began = self.now;
            let something_came = self.handle_events(driver);
            self.wake_ups.woke(self.now, something_came);
            if something_came && self.wake_ups.is_undisturbed() {
                // Answers were read first, and a send leaves so much later.
                let woke = self.now;
                let reading_ns = self.read_clock() - woke;
                self.wake_ups.has_read(reading_ns);
            }
            let was_idle_spin = !something_came && self.is_spinning;
            if was_idle_spin {
                self.facts.spin_ns += u64::try_from(self.now - turn_began).unwrap_or(0);
            }
            self.step(driver);
            if self.is_finished(&mut end) {
                break;
            }
            let wait = self.pace::<D>();
            self.is_spinning = wait.timeout == Some(Duration::ZERO);
            if let Err(error) = driver.wait(wait) {
                report.failure = format!("the {} event loop failed: {error}", D::NAME);
                end.is_cut = true;
                break;
            }
        }
        self.read_clock();
        report.drain_left = self.end_everything();
        self.lives_over();
        report.cut = end.is_cut;
        report.drain_end = self.now;
        self.show();
        self.rows.hand_over_all(&mut self.facts);
        self.account(driver, began, cpu, queued);
        if self.routes.has_lost {
            report.failure =
                "marks for another worker were lost: it took none for too long".to_owned();
        }
        report.facts = self.facts;
        report
    }

    /// Takes what came out of the kernel. Says whether there was anything.
    fn handle_events<D: Driver>(&mut self, driver: &mut D) -> bool {
        self.read_clock();
        self.received_bytes = 0;
        self.receipts.begin_turn();
        let mut busy = false;
        while let Some(event) = driver.next_event() {
            busy = true;
            if !D::GATHERS {
                // Each receipt was a system call of its own, after others that took their time: so is its stamp.
                self.read_clock();
            }
            match event {
                Event::Received { token, key, chunk, arrived } => {
                    self.received(token, key, driver.bytes(&chunk), arrived);
                    driver.release(chunk);
                }
                Event::Connected { token, key } => self.connected(token, key),
                Event::Ended { token, key, error } => self.ended(token, key, error),
            }
        }
        busy
    }

    /// Everything between two waits, but for what came in.
    fn step<D: Driver>(&mut self, driver: &mut D) {
        if self.is_routed() {
            self.routes.push_on();
            self.heard_on = NONE;
            while let Some(found) = self.routes.take() {
                self.settle(found);
            }
        }
        self.expire();
        self.run_timers();
        self.admit();
        if !self.to_open.is_empty() || !self.to_close.is_empty() {
            self.open_and_close(driver);
        }
        self.flush(driver);
        self.prepare_ahead(driver);
        if self.rows.are_aged(self.now) {
            // The recorder may be late, and is waited for.
            driver.hand_over();
            self.rows.hand_over_aged(self.now, &mut self.facts);
        }
        if self.now - self.live.at >= SHOW_NS {
            driver.hand_over();
            self.show();
            let waited_ns = i64::try_from(self.run_queue.waited_ns()).unwrap_or(i64::MAX);
            self.wake_ups.has_waited(self.now, waited_ns);
        }
    }

    /// Ends the load when nothing more falls due, and says whether the drain is over, too.
    fn is_finished(&mut self, end: &mut End) -> bool {
        let control = &self.trial.setup.control;
        if self.trial.is_aborted() || control.is_quit() || self.routes.has_lost {
            end.is_cut = true;
            self.note_cut();
            return true;
        }
        if self.is_loading {
            let is_over = self.streams.iter().all(|stream| stream.demand.is_over(self.now));
            if !is_over && !control.is_stopped() {
                return false;
            }
            if !is_over || self.is_used_up() {
                self.note_cut();
            }
            self.is_loading = false;
            for stream in &mut self.streams {
                if let Some(batching) = &mut stream.batching {
                    batching.drain(self.now);
                }
            }
            end.drain.begin(self.now, self.trial.window.drain_max_ns);
        }
        let is_through = self.outstanding() == 0 && self.waiting() == 0 && self.following() == 0;
        if is_through && !end.is_through {
            end.is_through = true;
            self.trial.worker_is_through();
        }
        if end.drain.is_over(self.now, &self.trial.setup.control) {
            end.is_cut = !is_through && end.drain.is_hastened();
            return true;
        }
        // Whoever watches for others watches until all are through.
        is_through && self.routes.is_idle() && (!self.watches || self.trial.all_are_through())
    }

    /// Whether the bound on transactions ended the load before its time.
    fn is_used_up(&self) -> bool {
        let main = &self.streams[0];
        let is_here = !self.trial.links.is_main_called;
        is_here && self.trial.setup.plan.load.transactions_max > 0 && main.source.is_used_up()
    }

    fn note_cut(&self) {
        if self.is_loading {
            let now = self.now.max(0);
            let last = self.streams[0].last_due.saturating_add(1);
            self.trial.note_cut(if self.is_used_up() { last } else { now });
        }
    }

    /// Whether marks may come from or go to other workers.
    pub(super) fn is_routed(&self) -> bool {
        self.trial.here.len() > 1
    }

    fn show(&mut self) {
        let outstanding = self.outstanding() as u64;
        let backlog = self.waiting() as u64;
        let live = &self.trial.setup.live;
        live.offered.fetch_add(self.facts.due - self.live.due, Relaxed);
        live.sent.fetch_add(self.facts.sent - self.live.sent, Relaxed);
        live.outstanding.fetch_add(outstanding.wrapping_sub(self.live.outstanding), Relaxed);
        live.backlog.fetch_add(u64::wrapping_sub(backlog, self.live.backlog), Relaxed);
        let (due, sent) = (self.facts.due, self.facts.sent);
        self.live = Shown { at: self.now, due, sent, outstanding, backlog };
    }

    /// The counters that are taken at the end, and the law that holds then.
    fn account<D: Driver>(&mut self, driver: &D, began: Stamp, cpu: CpuTime, queued: u64) {
        let counters = driver.counters();
        let facts = &mut self.facts;
        let as_ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        facts.enters = counters.enters;
        facts.completions = counters.completions;
        facts.cpu_ns = as_ns(CpuTime::of_this_thread().since(cpu));
        facts.run_queue_ns = self.run_queue.waited_ns().saturating_sub(queued);
        facts.wall_ns = u64::try_from(self.now - began).unwrap_or(0);
        facts.idle_ns = facts.wall_ns.saturating_sub(facts.cpu_ns + facts.run_queue_ns);
        facts.error_lookups = self.texts.lookups;
        facts.receive = self.receipts.facts();
        facts.pool.bound = self.streams[0].connections_max;
        facts.lookahead_dry = self.streams.iter().map(|stream| stream.source.dry).sum();
        assert_eq!(facts.due, self.rows.count, "one row for each transaction that fell due");
        assert_eq!(facts.due, facts.sent + facts.shed + facts.refused, "sent, shed or refused");
        assert_eq!(facts.sent, facts.answered + facts.unanswered, "answered or not");
    }
}

/// The end of the load.
#[derive(Debug, Default)]
struct End {
    drain: Drain,
    is_through: bool,
    /// Not everything was waited for as planned.
    is_cut: bool,
}
