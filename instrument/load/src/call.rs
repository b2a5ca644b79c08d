//! Systems that are reachable only through a client library: one thread a connection, one blocking call a
//! transaction. For low rates; the rows mean the same as those of the event loops.
//!
//! One lock guards what the callers share, because a call takes milliseconds and the lock a microsecond. A call
//! cannot be interrupted: at its timeout the transaction ends as unknown, the caller stays busy until the
//! library returns, and what it then says is late.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::{CpuTime, Instant};
use model::facts::{Event, WorkerFacts};
use model::{NO_STAMP, Outcome, Row, Stamp};
use sut::{Answer, Client, Link, Role, Transaction};

use crate::LoadError;
use crate::demand::Demand;
use crate::engine::setup::{
    PROBE_BACKLOG_MAX, main_demand, main_source, probe_demand, probe_index, probe_source,
};
use crate::engine::{Rows, fresh_row};
use crate::recorder::{Message, WorkerReport};
use crate::source::{Prepared, Source};
use crate::trial::{Trial, whole_ns};

/// The word for the driver in the facts.
pub(crate) const NAME: &str = "call";
/// Threads that call: more is not a low rate any more.
const CALLERS_MAX: u32 = 1_024;
/// Control, timeouts and rows are looked after this often.
const LOOK_AROUND_NS: i64 = 5_000_000;

/// What the dispatcher and the callers share.
struct Desk<'t> {
    trial: &'t Trial<'t>,
    state: Mutex<State>,
    /// There is something to call, or the load is over.
    work: Condvar,
    /// A call has ended.
    back: Condvar,
}

struct State {
    origin: Instant,
    streams: Vec<Stream>,
    callers: Vec<Caller>,
    rows: Rows,
    facts: WorkerFacts,
    is_over: bool,
}

struct Stream {
    demand: Demand,
    source: Source,
    backlog: VecDeque<(Prepared, Stamp)>,
    backlog_max: usize,
    timeout_ns: i64,
    last_due: Stamp,
}

/// One thread that calls.
struct Caller {
    stream: usize,
    index: u32,
    freed_at: Stamp,
    /// What it is calling for; none once the transaction has ended.
    row: Option<Row>,
    is_busy: bool,
}

/// Runs the trial's calls: this thread dispatches, one more for each connection calls.
pub(crate) fn run(trial: &Trial<'_>, to: &SyncSender<Message>, spare: Receiver<Vec<Row>>) {
    let rows = Rows::new(0, to.clone(), spare);
    let (desk, clients) = match open(trial, rows) {
        Ok(opened) => opened,
        Err(error) => {
            to.send(Message::Ready(Err(error))).expect("the recorder outlives the workers");
            return;
        }
    };
    to.send(Message::Ready(Ok(()))).expect("the recorder outlives the workers");
    let Some(start) = trial.await_start() else { return };
    desk.lock().origin = start;
    let cpu = CpuTime::of_this_process();
    let report = std::thread::scope(|scope| {
        for (caller, client) in clients.into_iter().enumerate() {
            let desk = &desk;
            let thread = std::thread::Builder::new().name(format!("call-{caller}"));
            let spawned = thread.spawn_scoped(scope, move || call(desk, caller, client));
            if let Err(error) = spawned {
                desk.retire(caller, &error.to_string());
            }
        }
        let report = dispatch(&desk);
        desk.lock().is_over = true;
        desk.work.notify_all();
        report
    });
    let mut state = desk.lock();
    let State { rows, facts, .. } = &mut *state;
    rows.hand_over(facts);
    facts.cpu_ns = u64::try_from(CpuTime::of_this_process().since(cpu).as_nanos()).unwrap_or(0);
    let facts = std::mem::take(facts);
    let report = WorkerReport { facts, ..report };
    to.send(Message::Done(Box::new(report))).expect("the recorder outlives the workers");
}

fn open<'t>(
    trial: &'t Trial<'t>,
    rows: Rows,
) -> Result<(Desk<'t>, Vec<Box<dyn Client>>), LoadError> {
    let plan = trial.setup.plan;
    let load = &plan.load;
    let mut streams = vec![Stream {
        demand: main_demand(trial, 0),
        source: main_source(trial, 0),
        backlog: VecDeque::new(),
        backlog_max: usize::try_from(load.backlog_max).unwrap_or(usize::MAX).max(1),
        timeout_ns: whole_ns(load.timeout).max(1),
        last_due: Stamp::MIN,
    }];
    let mut wanted: Vec<_> = (0..load.connections.min(CALLERS_MAX)).map(|n| (0, n)).collect();
    if let Some(probe) = &plan.probe {
        streams.push(Stream {
            demand: probe_demand(trial, probe),
            source: probe_source(trial, probe),
            backlog: VecDeque::new(),
            backlog_max: PROBE_BACKLOG_MAX,
            timeout_ns: whole_ns(probe.timeout).max(1),
            last_due: Stamp::MIN,
        });
        wanted.extend((0..probe.connections.max(1)).map(|n| (1, probe_index(load, 0, n))));
    }
    let (mut callers, mut clients) = (Vec::new(), Vec::new());
    for (stream, index) in wanted {
        match trial.setup.system.connect(trial.setup.deployment, Role::Submit, index) {
            Ok(Link::Call(client)) => clients.push(client),
            Ok(Link::Wire(..)) => {
                return Err(LoadError::Plan(format!(
                    "connection {index} is a wire and connection 0 is not; a system has one kind"
                )));
            }
            Err(source) => return Err(LoadError::System { index, source }),
        }
        callers.push(Caller { stream, index, freed_at: 0, row: None, is_busy: false });
    }
    for stream in &mut streams {
        let (missing, _) = stream.source.missing();
        stream.source.fill(missing);
    }
    let facts = WorkerFacts { connects: clients.len() as u64, ..WorkerFacts::default() };
    let origin = trial.setup.deployment.clock.now();
    let state = State { origin, streams, callers, rows, facts, is_over: false };
    let desk = Desk { trial, state: Mutex::new(state), work: Condvar::new(), back: Condvar::new() };
    Ok((desk, clients))
}

impl Desk<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self, origin: Instant) -> Stamp {
        self.trial.setup.deployment.clock.now().ns_since(origin)
    }

    /// A caller whose thread could not be started.
    fn retire(&self, caller: usize, reason: &str) {
        let mut state = self.lock();
        state.callers[caller].is_busy = true;
        state.facts.connect_failures += 1;
        state.event(self.trial, 0, "connect_failure", None, reason);
    }
}

/// Takes due times and timeouts, until nothing is left to wait for.
fn dispatch(desk: &Desk<'_>) -> WorkerReport {
    let trial = desk.trial;
    let mut drain_until = None;
    let mut shown = [0_u64; 4];
    let mut state = desk.lock();
    let origin = state.origin;
    loop {
        let now = desk.stamp(origin);
        if drain_until.is_none() {
            state.take_due(now);
            desk.work.notify_all();
        }
        state.expire(trial, now);
        state.shed_waiting(now, false);
        let State { rows, facts, .. } = &mut *state;
        rows.hand_over_aged(now, facts);
        state.show(trial, &mut shown);
        let control = &trial.setup.control;
        let is_cut = control.is_quit() || trial.is_aborted();
        if drain_until.is_none() && (is_cut || control.is_stopped() || state.is_over(now)) {
            state.note_cut(trial, now);
            drain_until = Some(now.saturating_add(trial.window.drain_max_ns));
        }
        let is_through = drain_until.is_some() && state.is_through();
        if is_through || is_cut || drain_until.is_some_and(|until| now >= until) {
            let left = state.end_everything(trial, now);
            state.show(trial, &mut shown);
            return WorkerReport {
                drain_end: now,
                cut: is_cut,
                drain_left: left,
                ..WorkerReport::default()
            };
        }
        let next = state.next_due().filter(|_| drain_until.is_none());
        let until = next.map_or(now + LOOK_AROUND_NS, |due| due.min(now + LOOK_AROUND_NS));
        let wait = Duration::from_nanos(u64::try_from(until - now).unwrap_or(0));
        if !wait.is_zero() {
            let waited = desk.back.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// One caller: takes what waits for its stream, calls, and says how it ended.
fn call(desk: &Desk<'_>, caller: usize, mut client: Box<dyn Client>) {
    let mut state = desk.lock();
    let (origin, stream) = (state.origin, state.callers[caller].stream);
    loop {
        if state.is_over {
            return;
        }
        let Some((prepared, due)) = state.streams[stream].backlog.pop_front() else {
            state = desk.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let now = desk.stamp(origin);
        state.begin(caller, &prepared, due, now);
        drop(state);
        let wall = |stamp| {
            desk.trial.setup.deployment.clock.wall_at(Instant::from_ns(origin.as_ns() + stamp))
        };
        let transaction = Transaction {
            id: prepared.id,
            client: prepared.made.client,
            kind: prepared.made.kind,
            payload: &prepared.payload,
            due: wall(due),
            given: wall(now),
            attempt: 1,
        };
        let answer = client.execute(&transaction, &mut |stage| {
            let at = desk.stamp(origin);
            desk.lock().reached(desk.trial, caller, stage, prepared.id, at);
        });
        let at = desk.stamp(origin);
        state = desk.lock();
        state.returned(desk.trial, caller, prepared.id, answer, at);
        state.streams[stream].source.recycle(prepared.payload);
        desk.back.notify_one();
    }
}

impl State {
    fn take_due(&mut self, now: Stamp) {
        for index in 0..self.streams.len() {
            self.saturate(index, now);
            while let Some(due) = self.streams[index].demand.take_due(now) {
                self.facts.due += 1;
                let stream = &mut self.streams[index];
                stream.last_due = due;
                let prepared = stream.source.take();
                if stream.backlog.len() < stream.backlog_max || stream.demand.is_clients() {
                    stream.backlog.push_back((prepared, due));
                    let waiting = stream.backlog.len() as u64;
                    self.facts.backlog_max = self.facts.backlog_max.max(waiting);
                } else {
                    self.facts.backlog_full += 1;
                    self.shed(index, prepared, due, now);
                }
            }
            let stream = &mut self.streams[index];
            let (missing, taken) = stream.source.missing();
            stream.source.fill(missing.min(taken + 8));
        }
    }

    /// As much as the callers take.
    fn saturate(&mut self, index: usize, now: Stamp) {
        let idle = |caller: &&Caller| caller.stream == index && !caller.is_busy;
        let free: Vec<_> = self.callers.iter().filter(idle).map(|at| at.freed_at).collect();
        for freed_at in free.into_iter().skip(self.streams[index].backlog.len()) {
            let stream = &mut self.streams[index];
            let Some(due) = stream.demand.take_for_free_connection(freed_at, now) else { break };
            self.facts.due += 1;
            stream.last_due = stream.last_due.max(due);
            let prepared = stream.source.take();
            stream.backlog.push_back((prepared, due));
        }
    }

    fn begin(&mut self, caller: usize, prepared: &Prepared, due: Stamp, now: Stamp) {
        let at = &mut self.callers[caller];
        let stream = u8::try_from(at.stream).expect("two streams");
        let mut row = fresh_row(0, stream, prepared.id, prepared.made, due);
        row.ready = due.max(at.freed_at);
        row.sent = now;
        row.attempts = 1;
        row.connection = at.index;
        row.bytes_out = u32::try_from(prepared.payload.len()).unwrap_or(u32::MAX);
        at.row = Some(row);
        at.is_busy = true;
        self.facts.sent += 1;
    }

    fn reached(&mut self, trial: &Trial<'_>, caller: usize, stage: u8, tx: u64, at: Stamp) {
        let Some(row) = &mut self.callers[caller].row else { return };
        let mark = &mut row.marks[usize::from(stage)];
        if *mark == NO_STAMP {
            *mark = at;
        } else {
            self.facts.duplicate_answers += 1;
            self.event(trial, at, "duplicate_answer", Some(tx), "reached a stage again");
        }
    }

    fn returned(&mut self, trial: &Trial<'_>, caller: usize, tx: u64, answer: Answer, at: Stamp) {
        self.callers[caller].is_busy = false;
        self.callers[caller].freed_at = at;
        let Some(mut row) = self.callers[caller].row.take() else {
            self.facts.late_answers += 1;
            return self.event(
                trial,
                at,
                "late_answer",
                Some(tx),
                "returned after it was given up",
            );
        };
        let final_mark = &mut row.marks[trial.setup.final_stage];
        if answer.outcome == Outcome::Committed && *final_mark == NO_STAMP {
            *final_mark = at;
        }
        row.code = answer.code;
        row.bytes_in = answer.bytes_in;
        // Reaching the final stage is what ends a transaction, whatever the call does after it.
        let reached_at = row.marks[trial.setup.final_stage];
        let (outcome, end) = match reached_at {
            NO_STAMP => (answer.outcome, at),
            reached_at => (Outcome::Committed, reached_at),
        };
        if outcome != Outcome::Committed {
            row.error = trial.error(&format!("the client library said: {outcome}"));
        }
        self.finish(self.callers[caller].stream, row, outcome, end);
    }

    fn finish(&mut self, stream: usize, mut row: Row, outcome: Outcome, end: Stamp) {
        row.end = row.marks.iter().fold(end, |end, mark| end.max(*mark));
        row.outcome = outcome;
        match outcome {
            Outcome::Unknown => self.facts.unanswered += 1,
            _ => self.facts.answered += 1,
        }
        self.streams[stream].demand.client_is_back(row.end);
        self.rows.push(row, &mut self.facts);
    }

    /// Ends what has been called for longer than the timeout.
    fn expire(&mut self, trial: &Trial<'_>, now: Stamp) {
        for caller in 0..self.callers.len() {
            let stream = self.callers[caller].stream;
            let timeout_ns = self.streams[stream].timeout_ns;
            if self.callers[caller].row.is_some_and(|row| now - row.sent >= timeout_ns) {
                self.give_up(caller, trial.error("no answer within the timeout"), now);
            }
        }
    }

    fn give_up(&mut self, caller: usize, error: u16, now: Stamp) {
        let Some(mut row) = self.callers[caller].row.take() else { return };
        row.error = error;
        self.finish(self.callers[caller].stream, row, Outcome::Unknown, now);
    }

    /// Sheds what has waited for longer than the timeout, or all that waits.
    fn shed_waiting(&mut self, now: Stamp, all: bool) -> u64 {
        let mut count = 0;
        for index in 0..self.streams.len() {
            let timeout_ns = self.streams[index].timeout_ns;
            while self.streams[index]
                .backlog
                .front()
                .is_some_and(|(_, due)| all || now - due >= timeout_ns)
            {
                let first = self.streams[index].backlog.pop_front();
                let (prepared, due) = first.expect("looked at above");
                self.shed(index, prepared, due, now);
                count += 1;
            }
        }
        count
    }

    fn shed(&mut self, stream: usize, prepared: Prepared, due: Stamp, now: Stamp) {
        let number = u8::try_from(stream).expect("two streams");
        let mut row = fresh_row(0, number, prepared.id, prepared.made, due);
        row.end = now;
        row.outcome = Outcome::Shed;
        self.facts.shed += 1;
        self.streams[stream].demand.client_is_back(now);
        self.streams[stream].source.recycle(prepared.payload);
        self.rows.push(row, &mut self.facts);
    }

    fn end_everything(&mut self, trial: &Trial<'_>, now: Stamp) -> u64 {
        let mut count = self.shed_waiting(now, true);
        for caller in 0..self.callers.len() {
            if self.callers[caller].row.is_some() {
                let error = trial.error("still outstanding when the drain ended");
                self.give_up(caller, error, now);
                count += 1;
            }
        }
        let facts = &self.facts;
        assert_eq!(facts.due, self.rows.count, "one row for each transaction that fell due");
        assert_eq!(facts.due, facts.sent + facts.shed, "sent or shed");
        assert_eq!(facts.sent, facts.answered + facts.unanswered, "answered or not");
        count
    }

    fn is_over(&self, now: Stamp) -> bool {
        self.streams.iter().all(|stream| stream.demand.is_over(now))
    }

    fn is_through(&self) -> bool {
        self.callers.iter().all(|caller| caller.row.is_none())
            && self.streams.iter().all(|stream| stream.backlog.is_empty())
    }

    fn next_due(&self) -> Option<Stamp> {
        self.streams.iter().filter_map(|stream| stream.demand.next_due()).min()
    }

    fn note_cut(&self, trial: &Trial<'_>, now: Stamp) {
        let main = &self.streams[0];
        if trial.setup.plan.load.transactions_max > 0 && main.source.is_used_up() {
            trial.note_cut(main.last_due.saturating_add(1));
        } else if !self.is_over(now) {
            trial.note_cut(now.max(0));
        }
    }

    fn show(&self, trial: &Trial<'_>, shown: &mut [u64; 4]) {
        let outstanding = self.callers.iter().filter(|caller| caller.row.is_some()).count() as u64;
        let backlog = self.streams.iter().map(|stream| stream.backlog.len() as u64).sum();
        let now = [self.facts.due, self.facts.sent, outstanding, backlog];
        let live = &trial.setup.live;
        let counters = [&live.offered, &live.sent, &live.outstanding, &live.backlog];
        for (counter, (now, before)) in counters.into_iter().zip(now.into_iter().zip(*shown)) {
            counter.fetch_add(now.wrapping_sub(before), Relaxed);
        }
        *shown = now;
    }

    fn event(&self, trial: &Trial<'_>, at: Stamp, name: &str, tx: Option<u64>, detail: &str) {
        if trial.admits_event() {
            let (name, detail) = (name.to_owned(), detail.to_owned());
            self.rows.event(Event { at, name, tx, detail });
        }
    }
}
