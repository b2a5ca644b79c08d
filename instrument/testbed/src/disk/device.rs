//! One disk: what it keeps, what is wrong with it now, and what it has cost. The kernel asks it by `service.rs`, a
//! fault changes it by `mod.rs`.
//!
//! It must never count as its own cost what it was asked for (a delay), nor leave out what it was not.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::{Clock, CpuTime, Instant, WallTime};
use model::Seed;
use model::facts::{DiskFacts, DiskOperations};
use model::plan::{DiskChange, DiskPlan};
use model::seed::Rng;

use super::Loss;
use super::content::PAGE;
use super::pace::{Pacer, Work};
use super::tree::{Attributes, Lost, Tree};
use crate::lateness::Lateness;

/// What the kernel asks a disk for, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Sync,
    /// Everything else: names and attributes.
    Name,
}

/// How many operations there are.
const OPERATIONS: usize = 4;
/// A turn that took longer than this may have been interrupted; then the kernel is asked once more how long the thread
/// was kept waiting, so that nothing is counted twice.
const LONG_TURN: Duration = Duration::from_micros(50);

/// The disk.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) clock: Clock,
    plan: DiskPlan,
    state: Mutex<State>,
    pacer: Pacer,
}

/// What threads share of a disk.
#[derive(Debug)]
pub(super) struct State {
    pub(super) tree: Tree,
    /// What is wrong with it now, all together …
    change: DiskChange,
    /// … and by whom, in the order begun.
    changes: Vec<(u32, DiskChange)>,
    rng: Rng,
    seed: Seed,
    operations: [Counted; OPERATIONS],
    bytes_written: u64,
    refused_full: u64,
    power_losses: u64,
    lost: Lost,
    /// Its power is cut: it does nothing, and says of everything that it failed.
    pub(super) is_dark: bool,
    /// The testbed itself is at work on it: nothing is delayed, and nothing fails.
    is_spared: bool,
    /// Before the load: its delays are not asked for, and nothing counts.
    is_trying: bool,
    /// Processor time of threads that have answered the kernel: of those that ended, and of the present one.
    cpu: (Duration, Duration),
}

#[derive(Clone, Debug)]
struct Counted {
    calls: u64,
    errors: u64,
    own: Lateness,
}

/// When a request was read, and for how long the thread could have read it before and was not let.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    at: Instant,
    waited: Duration,
}

impl Device {
    pub(super) fn new(plan: &DiskPlan, clock: Clock, seed: Seed) -> std::io::Result<Self> {
        let state = State {
            tree: empty(plan),
            change: DiskChange::default(),
            changes: Vec::new(),
            rng: seed.split("errors").rng(),
            seed,
            operations: std::array::from_fn(|_| Counted::new()),
            bytes_written: 0,
            refused_full: 0,
            power_losses: 0,
            lost: Lost::default(),
            is_dark: false,
            is_spared: false,
            is_trying: true,
            cpu: (Duration::ZERO, Duration::ZERO),
        };
        let pacer = Pacer::start(clock)?;
        Ok(Self { clock, plan: plan.clone(), state: Mutex::new(state), pacer })
    }

    /// A thread that panicked leaves what it kept; its end is reported.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has been tried, and is empty again.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        state.tree.sync_all();
        state.is_trying = false;
        state.operations = std::array::from_fn(|_| Counted::new());
        state.bytes_written = 0;
    }

    /// What is wrong with it from now on by this fault, beside what others do; `None`: nothing any more. Of what two
    /// say, the later begun holds.
    pub(super) fn set_change(&self, by: u32, change: Option<DiskChange>) {
        let mut state = self.state();
        state.changes.retain(|(known, _)| *known != by);
        state.changes.extend(change.map(|change| (by, change)));
        let change =
            state.changes.iter().fold(DiskChange::default(), |all, (_, one)| one.over(all));
        state.change = change;
        state.tree.set_size(change.full_at.unwrap_or(self.plan.size).min(self.plan.size));
    }

    /// The power goes: from now on nothing becomes durable. Calls that wait have failed, and are told so
    /// at once: a process does not end before its calls do.
    pub(super) fn go_dark(&self) {
        self.state().is_dark = true;
        self.pacer.hurry(true);
    }

    /// The power is back, and nothing was lost but what failed meanwhile.
    pub(super) fn go_on(&self) {
        self.state().is_dark = false;
        self.pacer.hurry(false);
    }

    /// Says whether the testbed itself is at work on it, which no fault is to meet.
    pub(super) fn spare(&self, is_spared: bool) {
        self.state().is_spared = is_spared;
    }

    /// What was not durable is gone, and the power is back. The kernel must have let go of it.
    pub(super) fn lose(&self, loss: Loss) -> Lost {
        self.go_on();
        let mut state = self.state();
        let seed = state.seed.split_index("power", state.power_losses);
        state.power_losses += 1;
        let lost = state.tree.lose(loss, seed);
        state.lost.bytes += lost.bytes;
        state.lost.kept_bytes += lost.kept_bytes;
        state.lost.names += lost.names;
        state.cpu = (state.cpu.0 + state.cpu.1, Duration::ZERO);
        lost
    }

    /// Whether this operation is one of those that fail now.
    pub(super) fn fails(&self, operation: Operation) -> bool {
        let mut state = self.state();
        let one_in = match operation {
            Operation::Read => state.change.read_errors,
            Operation::Write => state.change.write_errors,
            Operation::Sync => state.change.sync_errors,
            Operation::Name => None,
        };
        let one_in = one_in.filter(|_| !state.is_spared);
        let fails =
            state.is_dark || one_in.is_some_and(|one_in| state.rng.below(one_in.max(1)) == 0);
        state.operations[operation as usize].errors += u64::from(fails);
        fails
    }

    pub(super) fn note_written(&self, bytes: u64) {
        self.state().bytes_written += bytes;
    }

    pub(super) fn note_full(&self) {
        self.state().refused_full += 1;
    }

    /// Does what is left of a request, an answer at its end: now, or when the delay that is asked for is over.
    pub(super) fn end(
        self: &Arc<Self>,
        begun: Begun,
        operation: Operation,
        work: impl FnOnce() + Send + 'static,
    ) {
        let delay = self.delay(operation);
        if delay.is_zero() {
            work();
            self.count(operation, begun.waited + self.clock.now().saturating_since(begun.at));
            return;
        }
        let due = begun.at.plus(delay);
        let device = Arc::clone(self);
        let late: Work = Box::new(move || {
            work();
            device.count(operation, begun.waited + device.clock.now().saturating_since(due));
        });
        self.pacer.at(due, late);
    }

    fn delay(&self, operation: Operation) -> Duration {
        let state = self.state();
        if state.is_trying || state.is_spared {
            return Duration::ZERO;
        }
        match operation {
            Operation::Read => state.change.read_delay.unwrap_or(self.plan.read_delay),
            Operation::Write => state.change.write_delay.unwrap_or(self.plan.write_delay),
            Operation::Sync => state.change.sync_delay.unwrap_or(self.plan.sync_delay),
            Operation::Name => Duration::ZERO,
        }
    }

    fn count(&self, operation: Operation, own: Duration) {
        let counted = &mut self.state().operations[operation as usize];
        counted.calls += 1;
        counted.own.add(u64::try_from(own.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn cpu(&self) -> Duration {
        let cpu = self.state().cpu;
        cpu.0 + cpu.1 + self.pacer.cpu()
    }

    /// The thread that answers the kernel has used so much.
    pub(super) fn note_cpu(&self, used: Duration) {
        self.state().cpu.1 = used;
    }

    /// Answers what waits.
    pub(super) fn close(&self) {
        self.pacer.stop();
    }

    pub(super) fn facts(&self) -> DiskFacts {
        let cpu_ns = u64::try_from(self.cpu().as_nanos()).unwrap_or(u64::MAX);
        let state = self.state();
        let of = |operation: Operation| state.operations[operation as usize].facts();
        let delays = [self.plan.read_delay, self.plan.write_delay, self.plan.sync_delay];
        let asked = delays.into_iter().filter(|delay| !delay.is_zero()).min();
        let mut all = Counted::new();
        state.operations.iter().for_each(|counted| all.merge(counted));
        DiskFacts {
            size: self.plan.size,
            used: state.tree.usage().0 * PAGE,
            delay_ns_min: asked
                .map_or(0, |delay| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)),
            all: all.facts(),
            reads: of(Operation::Read),
            writes: of(Operation::Write),
            syncs: of(Operation::Sync),
            names: of(Operation::Name),
            bytes_written: state.bytes_written,
            refused_full: state.refused_full,
            power_losses: state.power_losses,
            lost_bytes: state.lost.bytes,
            kept_bytes: state.lost.kept_bytes,
            lost_names: state.lost.names,
            written_back: state.tree.written_back,
            cpu_ns,
            ..DiskFacts::default()
        }
    }
}

impl Counted {
    fn new() -> Self {
        Self { calls: 0, errors: 0, own: Lateness::new() }
    }

    fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.own.merge(&other.own);
    }

    fn facts(&self) -> DiskOperations {
        DiskOperations {
            calls: self.calls,
            errors: self.errors,
            own_p50_ns: self.own.quantile(500),
            own_p99_ns: self.own.quantile(990),
            own_max_ns: self.own.most(),
        }
    }
}

/// A folder that anybody may write to, as a temporary one: who a node runs as is the system's affair.
fn empty(plan: &DiskPlan) -> Tree {
    let now = WallTime::now();
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let root = Attributes {
        mode: 0o40_755,
        uid: uid.as_raw(),
        gid: gid.as_raw(),
        device: 0,
        modified: now,
        changed: now,
    };
    Tree::new(plan.size, plan.names, root)
}

/// How long the thread that answers the kernel could have run and was not let: what it adds to a request before it
/// reads it.
#[derive(Debug)]
pub(super) struct Watch {
    clock: Clock,
    began: CpuTime,
    scheduling: Option<File>,
    kept_waiting: u64,
}

impl Watch {
    /// Of the calling thread.
    pub(super) fn of_this_thread(clock: Clock) -> Self {
        let scheduling = File::open("/proc/thread-self/schedstat").ok();
        let kept_waiting = kept_waiting_ns(scheduling.as_ref());
        Self { clock, began: CpuTime::of_this_thread(), scheduling, kept_waiting }
    }

    /// A request has been read.
    pub(super) fn begin(&mut self) -> Begun {
        let at = self.clock.now();
        let now = kept_waiting_ns(self.scheduling.as_ref());
        let waited = Duration::from_nanos(now.saturating_sub(self.kept_waiting));
        self.kept_waiting = now;
        Begun { at, waited }
    }

    /// It is done with. Gives the thread's processor time so far.
    pub(super) fn end(&mut self, begun: Begun) -> Duration {
        if self.clock.now().saturating_since(begun.at) > LONG_TURN {
            self.kept_waiting = kept_waiting_ns(self.scheduling.as_ref());
        }
        CpuTime::of_this_thread().since(self.began)
    }
}

/// Nanoseconds; 0 if the kernel does not say.
fn kept_waiting_ns(scheduling: Option<&File>) -> u64 {
    let mut text = [0; 64];
    let read = scheduling.and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
    let text = std::str::from_utf8(&text[..read]).unwrap_or("");
    text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
