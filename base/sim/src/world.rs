//! The world: processes, the wires between them, and the events that are still to come.

mod disks;
mod events;
mod faults;
mod steps;
mod wires;

use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use clock::Instant;
use process::{Connection, Node, Outputs, Stored};

use crate::coverage::Coverage;
use crate::disk::{Disk, DiskTimes};
use crate::network::{Delays, WireId, Wires};
use crate::random::Random;
use crate::trace::Trace;
use crate::weather::Weather;
use events::Event;

/// Where a dialler goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which process.
    pub process: usize,
    /// Which of its machines.
    pub machine: usize,
    /// Which of that machine's listeners.
    pub listener: usize,
}

/// What one machine of a process has.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Whom it may dial, in the order of its peers.
    pub peers: Vec<Target>,
    /// How many logs it keeps.
    pub logs: usize,
    /// How many cells it keeps.
    pub cells: usize,
}

/// A process, before it is started.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name in what is printed.
    pub name: String,
    /// Its machines; most have one.
    pub machines: Vec<Machine>,
}

/// What a process is started with: each time anew, after a crash as well.
#[derive(Debug)]
pub struct Start<'a> {
    /// Which process.
    pub process: usize,
    /// How often it was started before.
    pub life: u64,
    /// When.
    pub now: Instant,
    /// What each of its machines finds on its disk.
    pub stored: &'a [Stored],
}

/// How the world is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The network.
    pub delays: Delays,
    /// The disks.
    pub disks: DiskTimes,
    /// What waits on a connection beyond this is too much: its end is told with [`process::Input::Drained`].
    pub unsent_bytes: usize,
    /// Messages that a queue between machines takes.
    pub queue: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delays: Delays::default(),
            disks: DiskTimes::default(),
            unsent_bytes: 256 << 10,
            queue: 64,
        }
    }
}

/// A run that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The seed that repeats it.
    pub seed: u64,
    /// After which step.
    pub step: u64,
    /// When, in virtual time.
    pub at: Instant,
    /// What does not hold.
    pub what: String,
    /// The last steps, a line each.
    pub trace: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, at, what, trace } = self;
        let ms = at.as_ns() / 1_000_000;
        write!(f, "seed {seed}, step {step}, {ms} ms: {what}\nthe last steps:\n{trace}")
    }
}

/// Makes the machines of a process, at its start and after each crash.
pub type Make<N> = Box<dyn FnMut(Start<'_>) -> Vec<N>>;

/// Nodes, network, disks and what goes wrong with them, in virtual time.
pub struct World<N, M = Infallible> {
    seed: u64,
    now: Instant,
    settings: Settings,
    random: Random,
    weather: Option<Weather>,
    processes: Vec<Running<N, M>>,
    make: Vec<Make<N>>,
    wires: Wires,
    events: BinaryHeap<Event>,
    sequence: u64,
    /// Until when nothing gets from one process to another: a row for each that sends.
    blocked: Vec<Vec<Instant>>,
    coverage: Coverage,
    trace: Trace,
    /// Lists that are used again.
    touched: Vec<Connection>,
    stores: Vec<process::host::Store>,
    records: Vec<u8>,
    begun: Vec<usize>,
}

/// A process that may be up or down.
struct Running<N, M> {
    name: String,
    specs: Vec<Machine>,
    /// None while it is down.
    machines: Vec<Stepped<N, M>>,
    disks: Vec<Disk>,
    life: u64,
    is_up: bool,
    paused_until: Instant,
    /// It loses its power in the middle of its next write, and is down for so long.
    power_in_write: Option<Duration>,
}

/// A machine of a process that is up.
struct Stepped<N, M> {
    node: N,
    out: Outputs<M>,
    lines: Vec<Option<Line>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    inbox: VecDeque<(usize, M)>,
    /// The wake-up for which there is an event.
    wake: Option<Instant>,
    /// It has asked for its turn's end, for which there is an event.
    is_turn_open: bool,
    is_told_full: bool,
}

/// A connection as a machine has it.
struct Line {
    connection: Connection,
    wire: WireId,
    side: usize,
    unread: Vec<u8>,
}

impl<N: Node<M>, M> World<N, M> {
    /// An empty world.
    #[must_use]
    pub fn new(seed: u64, settings: Settings) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            settings,
            random: Random::new(seed),
            weather: None,
            processes: Vec::new(),
            make: Vec::new(),
            wires: Wires::default(),
            events: BinaryHeap::new(),
            sequence: 0,
            blocked: Vec::new(),
            coverage: Coverage::default(),
            trace: Trace::default(),
            touched: Vec::new(),
            stores: Vec::new(),
            records: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Adds a process, which starts at once; `make` makes its machines, now and after each crash. Each machine
    /// begins with [`process::Input::Wake`]. Gives its number: the first is 0.
    pub fn add(&mut self, process: Process, make: Make<N>) -> usize {
        let index = self.processes.len();
        let disks = process.machines.iter().map(|it| Disk::new(it.logs, it.cells)).collect();
        self.processes.push(Running {
            name: process.name,
            specs: process.machines,
            machines: Vec::new(),
            disks,
            life: 0,
            is_up: false,
            paused_until: Instant::ZERO,
            power_in_write: None,
        });
        self.make.push(make);
        for row in &mut self.blocked {
            row.push(Instant::ZERO);
        }
        self.blocked.push(vec![Instant::ZERO; index + 1]);
        self.start(index);
        index
    }

    /// From now on things go wrong as `weather` says.
    pub fn begin_weather(&mut self, weather: Weather) {
        self.weather = Some(weather);
        self.plan_fault();
    }

    /// From now on nothing goes wrong any more; what has gone wrong ends when it would have.
    pub fn end_weather(&mut self) {
        self.weather = None;
    }

    /// Now, in virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Steps of machines so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.trace.steps
    }

    /// A number that is the same for two runs that took the same steps.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.trace.hash()
    }

    /// A machine of a process, if it is up.
    #[must_use]
    pub fn node(&self, process: usize, machine: usize) -> Option<&N> {
        self.processes[process].machines.get(machine).map(|machine| &machine.node)
    }

    /// A machine of a process, to be changed from outside, if it is up. What it does is seen at its next step.
    pub fn node_mut(&mut self, process: usize, machine: usize) -> Option<&mut N> {
        self.processes[process].machines.get_mut(machine).map(|machine| &mut machine.node)
    }

    /// Whether a process is up, and how often it was started.
    #[must_use]
    pub fn life(&self, process: usize) -> Option<u64> {
        let process = &self.processes[process];
        process.is_up.then_some(process.life)
    }

    /// What happened so far.
    #[must_use]
    pub const fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// For counting what only the system knows, such as changes of a leader.
    pub const fn coverage_mut(&mut self) -> &mut Coverage {
        &mut self.coverage
    }

    /// Lets things happen until `to`, and looks at `invariant` after every step of a machine: it is given the
    /// world and the process whose step it was.
    ///
    /// # Errors
    /// The first thing that does not hold, with what repeats it.
    pub fn run(
        &mut self,
        to: Instant,
        mut invariant: impl FnMut(&mut Self, usize) -> Result<(), String>,
    ) -> Result<(), Wrong> {
        while let Some(event) = self.next(to) {
            let before = self.trace.steps;
            let process = self.happen(event);
            if self.trace.steps != before
                && let Some(process) = process
            {
                invariant(self, process).map_err(|what| self.wrong(what))?;
            }
        }
        self.now = self.now.max(to);
        Ok(())
    }

    /// A run that went wrong now.
    #[must_use]
    pub fn wrong(&self, what: String) -> Wrong {
        let names: Vec<String> = self.processes.iter().map(|it| it.name.clone()).collect();
        Wrong {
            seed: self.seed,
            step: self.trace.steps,
            at: self.now,
            what,
            trace: self.trace.words(&names),
        }
    }
}

impl<N, M> fmt::Debug for World<N, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("seed", &self.seed)
            .field("now", &self.now)
            .field("processes", &self.processes.len())
            .finish_non_exhaustive()
    }
}
