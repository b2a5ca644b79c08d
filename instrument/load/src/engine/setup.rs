//! The start of a worker: its share of the plan's clients, connections and due times.

use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use model::plan::{Affinity, Arrivals, LoadPlan, ProbePlan, ProbeSchedule};
use model::{PROBE_BASE, Stamp};
use sut::{Link, Role, Session};

use super::settle::Rows;
use super::{Backlog, Batching, Engine, FollowUps, Receipts, Resends, Routes, Stream};
use crate::connection::{Connection, OBSERVER};
use crate::demand::{Demand, Presence, Think};
use crate::links::{observer_index, odd_one, probe_index};
use crate::pending::{NONE, Pending};
use crate::place::Place;
use crate::run_queue::RunQueue;
use crate::schedule::{DueTimes, Window, is_saturating};
use crate::source::{Numbers, Source, Whose};
use crate::trial::{Trial, whole_ns};
use crate::{LoadError, Setup};

/// Bound on the transactions of a stream that has none of its own: ids of the main load stay below the probe's.
const NUMBERS_MAX: u64 = PROBE_BASE;
/// Transactions that wait for a connection of the probe.
pub(crate) const PROBE_BACKLOG_MAX: usize = 100_000;

impl<'t> Engine<'t> {
    /// A worker with its connections made and not yet opened.
    pub(super) fn new(
        trial: &'t Trial<'t>,
        worker: u32,
        rows: Rows,
        routes: Routes,
    ) -> Result<Self, LoadError> {
        let mut engine = Self {
            trial,
            worker,
            origin: trial.setup.deployment.clock.now(),
            now: 0,
            streams: vec![main_stream(trial, worker)],
            connections: Vec::new(),
            dirty: Vec::new(),
            to_open: VecDeque::new(),
            opening: 0,
            watches: worker == 0 && trial.setup.system.observers() > 0,
            to_close: Vec::new(),
            timers: BinaryHeap::new(),
            marks: sut::Marks::default(),
            plain: Vec::new(),
            rows,
            routes,
            facts: Default::default(),
            texts: trial.texts.known(),
            is_loading: false,
            is_starting: true,
            prepare_ns: 200,
            unmeasured: u32::MAX,
            is_spinning: false,
            answers_are_alone: false,
            wake_ups: Default::default(),
            received_bytes: 0,
            receipts: Receipts::new(trial),
            run_queue: RunQueue::of_this_thread(),
            heard_on: NONE,
            last_failure: None,
            live: Default::default(),
        };
        let load = &trial.setup.plan.load;
        if !trial.links.is_main_called {
            for index in share(load.connections, worker, trial.workers) {
                engine.make_connection(0, Role::Submit, index, index)?;
            }
            let pool = &mut engine.facts.pool;
            pool.first = engine.streams[0].connections;
            pool.carries = engine.connections.first().map_or(0, Connection::carries);
        }
        if worker == 0 {
            for index in 0..trial.setup.system.observers() {
                engine.make_connection(
                    OBSERVER,
                    Role::Observe,
                    index,
                    observer_index(load, index),
                )?;
            }
            if let Some(probe) =
                trial.setup.plan.probe.as_ref().filter(|_| trial.links.is_probe_wired)
            {
                engine.streams.push(probe_stream(trial, probe));
                for n in 0..probe.connections.max(1) {
                    let index = probe_index(load, trial.setup.system.observers(), n);
                    engine.make_connection(1, Role::Probe, index, index)?;
                }
            }
        }
        engine.prepare_first();
        Ok(engine)
    }

    /// In-flight bound of the plan for each connection; 0 = the session's.
    pub(super) fn window(&self) -> u32 {
        match self.trial.setup.plan.load.arrivals {
            Arrivals::Closed { window, .. } => window,
            Arrivals::Open { .. } => 0,
        }
    }

    /// Whether the next connection of a stream is one of those that the kernel stamps.
    pub(super) fn wants_stamps(&self, stream: u8) -> bool {
        let nth = self.streams.get(usize::from(stream)).map_or(0, |stream| stream.connections);
        self.receipts.wants_stamps(stream, nth)
    }

    fn make_connection(
        &mut self,
        stream: u8,
        role: Role,
        index: u32,
        recorded_index: u32,
    ) -> Result<(), LoadError> {
        let (place, session) = link_of(&self.trial.setup, role, index)?;
        let role = (role, index);
        let window = if stream == 0 { self.window() } else { 0 };
        let mut connection = Connection::new(recorded_index, stream, role, place, session, window);
        connection.is_stamped = connection.place.is_stampable() && self.wants_stamps(stream);
        self.connections.push(connection);
        if stream != OBSERVER {
            self.streams[usize::from(stream)].connections += 1;
        }
        self.want_open(u32::try_from(self.connections.len() - 1).expect("connections are u32"));
        Ok(())
    }
}

/// Where a connection goes, and what is spoken on it.
pub(super) fn link_of(
    setup: &Setup<'_>,
    role: Role,
    index: u32,
) -> Result<(Place, Box<dyn Session>), LoadError> {
    match setup.system.connect(setup.deployment, role, index) {
        Ok(Link::Wire(endpoint, session)) => Ok((Place::Address(endpoint), session)),
        Ok(Link::Channel(channel, session)) => Ok((Place::Channel(channel), session)),
        Ok(Link::Call(_)) => Err(odd_one(index, "a client library", "a wire")),
        Err(source) => Err(LoadError::System { index, source }),
    }
}

fn main_stream(trial: &Trial<'_>, worker: u32) -> Stream {
    let workers = trial.workers;
    let load = &trial.setup.plan.load;
    let connections_max = trial.connections_max;
    if trial.links.is_main_called {
        // Callers have it; what is left is the place of the main load among the streams.
        let numbers = Numbers { first_id: u64::from(worker), stride: 1, count_max: 0 };
        let whose = Whose::Anybodys { ahead_max: 1 };
        let none = Source::new(workload(trial, worker), whose, numbers);
        return stream(0, none, u64::from(worker), u64::from(workers), load.timeout);
    }
    let connections = share_count(load.connections, worker, workers);
    let (connections_max, backlog) = match load.affinity {
        Affinity::Any => (share_count(connections_max, worker, workers), Backlog::shared()),
        // A client's connection is always the same, so that there are never more of them.
        Affinity::Client => (connections, Backlog::own(connections)),
    };
    let slack = clients(load)
        .map_or(ahead_of_follow_ups(trial), |count| share_count(count, worker, workers));
    Stream {
        demand: main_demand(trial, worker),
        pending: Pending::new(slack),
        backlog,
        resends: load.resend.as_ref().map(|plan| Box::new(Resends::new(plan))),
        connections_max,
        next_index: share(u32::MAX, worker, workers)
            .find(|index| *index >= load.connections)
            .expect("there are more indices than connections"),
        backlog_max: usize::try_from(load.backlog_max / u64::from(workers))
            .unwrap_or(usize::MAX)
            .max(1),
        batching: load.batch.as_ref().map(|batch| {
            Box::new(Batching::new(batch, share_count(load.connections, worker, workers)))
        }),
        ..stream(0, main_source(trial, worker), u64::from(worker), u64::from(workers), load.timeout)
    }
}

/// The transactions of one worker's main load.
pub(crate) fn main_source(trial: &Trial<'_>, worker: u32) -> Source {
    let (load, workers) = (&trial.setup.plan.load, trial.workers);
    let whose = match clients(load) {
        None => Whose::Anybodys { ahead_max: load.lookahead },
        Some(clients) => Whose::Clients {
            count: share_count(clients, worker, workers),
            first: worker,
            stride: workers,
        },
    };
    let (first_id, stride) = (u64::from(worker), u64::from(workers));
    let numbers = Numbers { first_id, stride, count_max: numbers_max(trial, worker) };
    Source::new(workload(trial, worker), whose, numbers)
}

/// How far the numbers of transactions that follow answers are beyond those that are prepared ahead.
fn ahead_of_follow_ups(trial: &Trial<'_>) -> u32 {
    let has_flows = trial.setup.system.kinds().iter().any(|kind| kind.step.is_some());
    if has_flows { trial.setup.plan.load.lookahead } else { 0 }
}

/// How many clients bring the main load, if clients do.
fn clients(load: &LoadPlan) -> Option<u32> {
    match load.arrivals {
        Arrivals::Closed { clients, .. } => Some(clients),
        Arrivals::Open { .. } => None,
    }
}

fn workload(trial: &Trial<'_>, worker: u32) -> Box<dyn sut::Workload> {
    let setup = &trial.setup;
    setup.system.workload(setup.seed.split("workload"), worker, trial.workers)
}

fn numbers_max(trial: &Trial<'_>, worker: u32) -> u64 {
    let workers = u64::from(trial.workers);
    match trial.setup.plan.load.transactions_max {
        0 => NUMBERS_MAX / workers,
        max => max.saturating_sub(u64::from(worker)).div_ceil(workers),
    }
}

/// One worker's share of the main load.
pub(crate) fn main_demand(trial: &Trial<'_>, worker: u32) -> Demand {
    let (setup, workers) = (&trial.setup, trial.workers);
    let numbers_max = numbers_max(trial, worker);
    let load = &setup.plan.load;
    let end = trial.window.measure_end;
    match &load.arrivals {
        Arrivals::Open { schedule } if is_saturating(schedule) => {
            Demand::Saturating { left: numbers_max, end }
        }
        Arrivals::Open { schedule } => {
            let events_max =
                if load.transactions_max == 0 { NUMBERS_MAX } else { load.transactions_max };
            let window = Window { warmup: load.warmup, duration: load.duration, events_max };
            Demand::timed(DueTimes::new(schedule, window, setup.seed, worker, workers))
        }
        Arrivals::Closed { clients, think, steps, .. } => {
            let presence = match steps.is_empty() {
                true => Presence::constant(*clients, 0),
                false => Presence::stepwise(steps, load.warmup),
            };
            let clients = share(*clients, worker, workers);
            let think = Think::about(*think, setup.seed, worker);
            Demand::clients(clients, think, presence, numbers_max, end)
        }
    }
}

fn probe_stream(trial: &Trial<'_>, probe: &ProbePlan) -> Stream {
    Stream {
        demand: probe_demand(trial, probe),
        connections_max: probe.connections.max(1),
        backlog_max: PROBE_BACKLOG_MAX,
        ..stream(1, probe_source(trial, probe), PROBE_BASE, 1, probe.timeout)
    }
}

/// The transactions of the probe.
pub(crate) fn probe_source(trial: &Trial<'_>, probe: &ProbePlan) -> Source {
    let setup = &trial.setup;
    let workload = setup.system.workload(setup.seed.split("probe"), 0, 1);
    let whose = match probe.schedule {
        ProbeSchedule::Open => Whose::Anybodys {
            ahead_max: u32::try_from(probe.trials.min(1_000)).expect("at most a thousand"),
        },
        ProbeSchedule::Sequential => Whose::Clients { count: 1, first: 0, stride: 1 },
    };
    let numbers = Numbers { first_id: PROBE_BASE, stride: 1, count_max: probe.trials };
    Source::new(workload, whose, numbers)
}

/// The probe begins with the measured window: in the warm-up there is nothing to find out.
pub(crate) fn probe_demand(trial: &Trial<'_>, probe: &ProbePlan) -> Demand {
    let load = &trial.setup.plan.load;
    let timing = trial.window;
    match probe.schedule {
        ProbeSchedule::Open => {
            let window =
                Window { warmup: load.warmup, duration: load.duration, events_max: probe.trials };
            Demand::timed(DueTimes::every(probe.interval, window))
        }
        ProbeSchedule::Sequential => Demand::clients(
            std::iter::once(0),
            Think::exactly(probe.interval),
            Presence::constant(1, timing.measure_start),
            probe.trials,
            timing.measure_end,
        ),
    }
}

fn stream(index: u8, source: Source, first_id: u64, stride: u64, timeout: Duration) -> Stream {
    Stream {
        index,
        demand: Demand::Over,
        source,
        pending: Pending::new(0),
        backlog: Backlog::shared(),
        backlog_max: 0,
        batching: None,
        resends: None,
        follow_ups: FollowUps::default(),
        idle: VecDeque::new(),
        timeout_ns: whole_ns(timeout).max(1),
        open: 0,
        opening: 0,
        failing: 0,
        connections: 0,
        connections_max: 0,
        next_index: u32::MAX,
        first_id,
        stride,
        last_due: Stamp::MIN,
    }
}

/// The indices below `count` that belong to a worker.
fn share(count: u32, worker: u32, workers: u32) -> impl Iterator<Item = u32> {
    (worker..count).step_by(workers as usize)
}

fn share_count(count: u32, worker: u32, workers: u32) -> u32 {
    count.saturating_sub(worker).div_ceil(workers)
}
