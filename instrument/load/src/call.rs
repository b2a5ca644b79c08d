//! Streams that go through a client library: one thread a connection, one blocking call a transaction. For low
//! rates; the rows mean the same as those of the event loops, beside which callers run where only one of main load
//! and probe is called. [`desk`] is what they share.
//!
//! One lock guards what the callers share, because a call takes milliseconds and the lock a microsecond. A call
//! cannot be interrupted: at its timeout the transaction ends as unknown, the caller stays busy until the
//! library returns, and what it then says is late. At the end of the drain clients are asked to return
//! (`Deployment::over`), and the trial waits until they have.

mod desk;

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use clock::CpuTime;
use model::Row;
use model::plan::Affinity;
use sut::{Client, Link, Role, Transaction};

use crate::LoadError;
use crate::drain::Drain;
use crate::engine::Rows;
use crate::engine::setup::{main_demand, main_source, probe_demand, probe_source};
use crate::links::{odd_one, probe_index};
use crate::recorder::{Message, WorkerReport};
use crate::trial::Trial;
use desk::{Caller, Desk, State, Stream};

/// The word for the driver in the facts.
pub(crate) const NAME: &str = "call";
/// Threads that call: more is not a low rate any more.
const CALLERS_MAX: u32 = 1_024;
/// Control, timeouts and rows are looked after this often.
const LOOK_AROUND_NS: i64 = 5_000_000;

/// Runs the trial's calls: this thread dispatches, one more for each connection calls. `seat` is its number among
/// the threads of the load.
pub(crate) fn run(
    trial: &Trial<'_>,
    seat: u32,
    to: &SyncSender<Message>,
    spare: Receiver<Vec<Row>>,
) {
    let rows = Rows::new(seat, to.clone(), spare);
    let (desk, clients) = match open(trial, seat, rows) {
        Ok(opened) => opened,
        Err(error) => {
            to.send(Message::Ready(Err(error))).expect("the recorder outlives the workers");
            return;
        }
    };
    to.send(Message::Ready(Ok(()))).expect("the recorder outlives the workers");
    let Some(start) = trial.await_start() else { return };
    desk.lock().origin = start;
    let (here, all) = (CpuTime::of_this_thread(), CpuTime::of_this_process());
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
        trial.setup.deployment.over.store(true, Relaxed);
        desk.work.notify_all();
        report
    });
    let mut state = desk.lock();
    let State { rows, facts, .. } = &mut *state;
    rows.hand_over_all(facts);
    let as_ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if trial.links.is_mixed() {
        // Callers have added theirs; threads of the library's own cannot be told from those of the workers.
        facts.cpu_ns += as_ns(CpuTime::of_this_thread().since(here));
    } else {
        facts.cpu_ns = as_ns(CpuTime::of_this_process().since(all));
    }
    let facts = std::mem::take(facts);
    let report = WorkerReport { worker: seat, facts, ..report };
    to.send(Message::Done(Box::new(report))).expect("the recorder outlives the workers");
}

/// The streams that are called, and a client for each of their connections.
fn open<'t>(
    trial: &'t Trial<'t>,
    seat: u32,
    rows: Rows,
) -> Result<(Desk<'t>, Vec<Box<dyn Client>>), LoadError> {
    let plan = trial.setup.plan;
    let load = &plan.load;
    let (mut streams, mut wanted) = (Vec::new(), Vec::new());
    if trial.links.is_main_called {
        if load.batch.is_some() || load.resend.is_some() || load.affinity == Affinity::Client {
            let reason = "load.batch, load.resend and load.affinity need connections of the engine's own, and the main \
                          load goes through a client library, one call a transaction; remove them";
            return Err(LoadError::Plan(reason.to_owned()));
        }
        let stream = streams.len();
        wanted.extend((0..load.connections.min(CALLERS_MAX)).map(|n| (stream, Role::Submit, n)));
        streams.push(Stream::main(main_demand(trial, 0), main_source(trial, 0), load));
    }
    if let Some(probe) = plan.probe.as_ref().filter(|_| trial.links.is_probe_called) {
        let stream = streams.len();
        let index = |n| probe_index(load, trial.setup.system.observers(), n);
        wanted.extend((0..probe.connections.max(1)).map(|n| (stream, Role::Probe, index(n))));
        streams.push(Stream::probe(probe_demand(trial, probe), probe_source(trial, probe), probe));
    }
    let (mut callers, mut clients) = (Vec::new(), Vec::new());
    for (stream, role, index) in wanted {
        match trial.setup.system.connect(trial.setup.deployment, role, index) {
            Ok(Link::Call(client)) => clients.push(client),
            Ok(Link::Wire(..) | Link::Channel(..)) => {
                return Err(odd_one(index, "a wire", "a client library"));
            }
            Err(source) => return Err(LoadError::System { index, source }),
        }
        callers.push(Caller::new(stream, index));
    }
    Ok((Desk::new(trial, State::new(trial, seat, streams, callers, rows)), clients))
}

/// Takes due times and timeouts, until nothing is left to wait for.
fn dispatch(desk: &Desk<'_>) -> WorkerReport {
    let trial = desk.trial;
    let mut drain = Drain::default();
    let mut shown = [0_u64; 4];
    let mut state = desk.lock();
    let origin = state.origin;
    loop {
        let now = desk.stamp(origin);
        if !drain.has_begun() {
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
        if !drain.has_begun() && (is_cut || control.is_stopped() || state.is_over(now)) {
            state.note_cut(trial, now);
            drain.begin(now, trial.window.drain_max_ns);
        }
        let is_through = drain.has_begun() && state.is_through();
        if is_through || is_cut || drain.is_over(now, control) {
            let left = state.end_everything(trial, now);
            state.show(trial, &mut shown);
            return WorkerReport {
                drain_end: now,
                cut: is_cut || !is_through && drain.is_hastened(),
                drain_left: left,
                ..WorkerReport::default()
            };
        }
        let next = state.next_due().filter(|_| !drain.has_begun());
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
    let began = CpuTime::of_this_thread();
    let mut state = desk.lock();
    let (origin, stream) = (state.origin, state.callers[caller].stream);
    loop {
        if state.is_over {
            let cpu = CpuTime::of_this_thread().since(began).as_nanos();
            state.facts.cpu_ns += u64::try_from(cpu).unwrap_or(u64::MAX);
            return;
        }
        let Some((prepared, due)) = state.streams[stream].backlog.pop_front() else {
            state = desk.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let now = desk.stamp(origin);
        state.begin(caller, &prepared, due, now);
        drop(state);
        let wall = |stamp| desk.trial.wall_at(origin, stamp);
        let transaction = Transaction {
            id: prepared.id,
            client: prepared.made.client,
            kind: prepared.made.kind,
            payload: &prepared.payload,
            due: wall(due),
            given: wall(now),
            attempt: 1,
        };
        let mut reached = |stage| {
            let at = desk.stamp(origin);
            desk.lock().reached(desk.trial, caller, stage, prepared.id, at);
        };
        let mut seen = |bytes: &[u8]| {
            let at = desk.stamp(origin);
            let State { rows, facts, .. } = &mut *desk.lock();
            rows.seen.take_one(prepared.id, bytes, at, facts);
        };
        let returned = client.execute(&transaction, &mut reached, &mut seen);
        let at = desk.stamp(origin);
        state = desk.lock();
        state.returned(desk.trial, caller, prepared.id, &returned, at);
        state.streams[stream].source.recycle(prepared.payload);
        desk.back.notify_one();
    }
}
