//! The side of an agent: it answers a coordinator's call, carries out one part of a plan at a time, and hands its row log over
//! in pieces, each of which is sent again until the coordinator has said that it is kept. The load itself goes on whether
//! NATS is there or not.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};

use crate::messages::{Counts, Finished, Incoming, Job, Order, Said, decode, encode};
use crate::nats::{Delivered, Nats, Publisher, Server};
use crate::{AGENTS_MAX, AgentsError, agent_subject, call_subject, run_subject};

/// Bytes of the row log in one message, less than NATS takes by default (1 MiB).
const PIECE_BYTES_MAX: u64 = 256 << 10;
/// Bytes that are under way before the coordinator has said that they are kept.
const UNDER_WAY_BYTES_MAX: u64 = 1 << 20;
/// A piece that is not said to be kept by then is sent again.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Counters, and what waits for an answer, are sent this often.
const SAY_EVERY: Duration = Duration::from_millis(250);
/// A coordinator that is silent for so long while NATS is there has gone.
const GONE_AFTER: Duration = Duration::from_secs(30);
/// A finished part waits so long for a NATS that does not come back.
const DELIVER_MAX: Duration = Duration::from_secs(600);
/// A start that is farther from now is no coordinator's that has heard this agent's clock.
const START_AWAY_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The longest wait for a message.
const WAIT: Duration = Duration::from_millis(10);

type Control = Box<dyn Fn(bool) + Send>;
type Counter = Box<dyn Fn() -> Counts + Send>;

/// The state that an agent and the load that it carries out share.
#[derive(Default)]
pub struct Part {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_ready: bool,
    /// The start of the line, or (`Some(None)`) that there will be none.
    start: Option<Option<Instant>>,
    stopped: Option<bool>,
    control: Option<Control>,
    counter: Option<Counter>,
    log: Option<PathBuf>,
    /// Ends of whole frames of the log that were not all sent, ascending, few to a piece.
    ends: VecDeque<u64>,
}

impl Part {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what stops the load (`true`: at once) and what counts it.
    pub fn follow(&self, control: Control, counter: Counter) {
        let mut state = self.state();
        if let Some(at_once) = state.stopped {
            control(at_once);
        }
        (state.control, state.counter) = (Some(control), Some(counter));
    }

    /// The connections are open: waits until the coordinator has said when to start; `None`: it was called off.
    #[must_use]
    pub fn await_start(&self) -> Option<Instant> {
        let mut state = self.state();
        state.is_ready = true;
        let state = self.changed.wait_while(state, |state| state.start.is_none());
        state.unwrap_or_else(PoisonError::into_inner).start.flatten()
    }

    /// The row log holds so many bytes, which end a frame.
    pub fn written(&self, log: &std::path::Path, bytes: u64) {
        let mut state = self.state();
        if state.log.is_none() {
            state.log = Some(log.to_owned());
        }
        // Two ends that fit into a piece together are one, so that a long absence of NATS costs little memory.
        if let [.., before, _] = state.ends.make_contiguous()
            && bytes - *before <= PIECE_BYTES_MAX
        {
            state.ends.pop_back();
        }
        if state.ends.back() != Some(&bytes) {
            state.ends.push_back(bytes);
        }
    }

    fn begin(&self, at: Option<Instant>) {
        let mut state = self.state();
        if state.start.is_none() {
            state.start = Some(at);
        }
        self.changed.notify_all();
    }

    fn stop(&self, at_once: bool) {
        let mut state = self.state();
        let before = state.stopped;
        if before != Some(true) && before != Some(at_once) {
            state.stopped = Some(at_once);
            if let Some(control) = &state.control {
                control(at_once);
            }
        }
        drop(state);
        self.begin(None);
    }
}

/// Carries out a part of a plan.
pub type Work = Arc<dyn Fn(Job, Arc<Part>) -> Result<Finished, String> + Send + Sync>;

/// An agent.
pub struct Agent {
    /// The server.
    pub server: Server,
    /// The group whose coordinator it obeys.
    pub group: String,
    /// Its own name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// The load.
    pub work: Work,
}

impl Agent {
    /// Obeys coordinators until `is_over`. `say` tells people.
    ///
    /// # Errors
    /// When NATS refuses it. One that is not there yet is waited for, since hosts start in any order.
    pub fn serve(&self, is_over: &AtomicBool, say: &dyn Fn(&str)) -> Result<(), AgentsError> {
        let subjects = [call_subject(&self.group), agent_subject(&self.group, &self.name)];
        let Some(nats) = self.connect(&subjects, is_over, say)? else { return Ok(()) };
        let publisher = nats.publisher();
        say(&format!("agent {} waits for runs of group {}", self.name, self.group));
        let mut busy: Option<Busy> = None;
        while !is_over.load(SeqCst) {
            if let Some(message) = nats.next(WAIT) {
                self.hear(&message, &publisher, &mut busy, say);
            }
            if let Some(part) = &mut busy
                && part.step(self, &publisher, nats.is_up())
            {
                busy = None;
            }
        }
        if let Some(busy) = busy {
            busy.part.stop(true);
            let _ = busy.load.map(JoinHandle::join);
        }
        Ok(())
    }

    /// The connection, as soon as there is a server; `None`: it is over before.
    fn connect(
        &self,
        subjects: &[String],
        is_over: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<Option<Nats>, AgentsError> {
        let mut has_said = false;
        while !is_over.load(SeqCst) {
            match Nats::connect(self.server.clone(), subjects, self.clock) {
                Err(away @ AgentsError::Away { .. }) => {
                    if !std::mem::replace(&mut has_said, true) {
                        say(&format!("{away} Agent {} waits for it", self.name));
                    }
                    std::thread::sleep(crate::nats::AGAIN_AFTER);
                }
                connected => return connected.map(Some),
            }
        }
        Ok(None)
    }

    fn hear(
        &self,
        message: &Delivered,
        publisher: &Publisher,
        busy: &mut Option<Busy>,
        say: &dyn Fn(&str),
    ) {
        let order = match decode::<Order>(&message.payload, message.at) {
            Ok(Some(order)) => order,
            Ok(None) => return,
            Err(error) => {
                say(&error.to_string());
                // So that the coordinator can name this agent's version.
                if let AgentsError::OtherVersion { run, .. } = &error
                    && crate::check_name(run).is_ok()
                {
                    self.say(publisher, run, &Said::Hello, &[]);
                }
                return;
            }
        };
        let Incoming { run, content, at, .. } = order;
        if crate::check_name(&run).is_err() {
            return;
        }
        match content {
            Order::Call if busy.is_none() => self.say(publisher, &run, &Said::Hello, &[]),
            Order::Call => {}
            Order::Job(job) if busy.is_none() && (job.part >= job.of || job.of > AGENTS_MAX) => {
                let (part, of) = (job.part, job.of);
                let why = format!(
                    "expected a part, from 0, of at most {AGENTS_MAX}, got part {part} of {of}"
                );
                say(&why);
                self.say(publisher, &run, &Said::Refused { why }, &[]);
            }
            Order::Job(job) if busy.is_none() => {
                say(&format!("part {} of {}: {}", job.part + 1, job.of, job.setting.key));
                *busy = Some(Busy::begin(self, run, *job));
            }
            of_a_run => {
                if let Some(busy) = busy.as_mut().filter(|busy| busy.run == run) {
                    busy.obey(self, publisher, &of_a_run, at);
                }
            }
        }
    }

    fn say(&self, publisher: &Publisher, run: &str, said: &Said, bytes: &[u8]) {
        let message = encode(&self.name, run, said, bytes);
        publisher.publish(&run_subject(&self.group, run), &message);
    }
}

/// A part under way.
struct Busy {
    run: String,
    part: Arc<Part>,
    load: Option<JoinHandle<Result<Finished, String>>>,
    result: Option<Result<Finished, String>>,
    log: Option<File>,
    sent: u64,
    kept: u64,
    kept_at: Instant,
    said_at: Instant,
    heard_at: Instant,
    is_dismissed: bool,
}

impl Busy {
    fn begin(agent: &Agent, run: String, job: Job) -> Self {
        let part = Arc::new(Part::default());
        let (work, of) = (Arc::clone(&agent.work), Arc::clone(&part));
        let thread = std::thread::Builder::new().name("part".to_owned());
        let (load, result) = match thread.spawn(move || work(job, of)) {
            Ok(load) => (Some(load), None),
            Err(error) => (None, Some(Err(format!("starting its thread: {error}")))),
        };
        let now = agent.clock.now();
        Self {
            run,
            part,
            load,
            result,
            log: None,
            sent: 0,
            kept: 0,
            kept_at: now,
            said_at: now,
            heard_at: now,
            is_dismissed: false,
        }
    }

    fn obey(&mut self, agent: &Agent, publisher: &Publisher, order: &Order, at: Instant) {
        self.heard_at = at;
        match order {
            Order::Ask { number } => {
                let (number, heard_ns) = (*number, at.as_ns());
                let answered_ns = agent.clock.now().as_ns();
                let said = Said::Clock { number, heard_ns, answered_ns };
                agent.say(publisher, &self.run, &said, &[]);
            }
            Order::Start { at_ns } => {
                let away = Duration::from_nanos(at_ns.abs_diff(at.as_ns()));
                if away > START_AWAY_MAX {
                    let seconds = away.as_secs();
                    let why = format!(
                        "expected a start within a day by its own clock, got one {seconds} s away"
                    );
                    self.result = Some(Err(why));
                    self.part.stop(true);
                } else {
                    self.part.begin(Some(Instant::from_ns(*at_ns)));
                }
            }
            Order::Stop => self.part.stop(false),
            Order::Quit => self.part.stop(true),
            Order::Kept { bytes } => {
                if *bytes > self.kept {
                    (self.kept, self.kept_at) = (*bytes, at);
                }
                self.sent = self.sent.max(self.kept);
            }
            Order::Bye => {
                self.is_dismissed = true;
                self.part.stop(true);
            }
            Order::Call | Order::Job(_) => {}
        }
    }

    /// Looks at everything once; whether the part is over.
    fn step(&mut self, agent: &Agent, publisher: &Publisher, is_up: bool) -> bool {
        if self.load.as_ref().is_some_and(JoinHandle::is_finished) {
            let joined = self.load.take().map(JoinHandle::join);
            let result = match joined {
                Some(Ok(result)) => result,
                _ => Err("its load panicked".to_owned()),
            };
            // A reason that came before says more than what followed from it.
            self.result.get_or_insert(result);
        }
        let now = agent.clock.now();
        let silent = now.saturating_since(self.heard_at);
        if (is_up && silent > GONE_AFTER) || silent > DELIVER_MAX {
            self.is_dismissed = true;
            self.part.stop(true);
        }
        if self.is_dismissed {
            return self.load.is_none();
        }
        if let Err(error) = self.hand_over(agent, publisher, now) {
            self.result = Some(Err(format!("reading its own row log: {error}")));
        }
        if now.saturating_since(self.said_at) >= SAY_EVERY {
            self.said_at = now;
            agent.say(publisher, &self.run, &self.news(), &[]);
        }
        false
    }

    /// The state of the part in one message; each is repeated until something follows from it.
    fn news(&self) -> Said {
        let counts = |state: &State| {
            let counter = state.counter.as_ref();
            let has_started = state.start.is_some_and(|start| start.is_some());
            Counts { has_started, ..counter.map(|counter| counter()).unwrap_or_default() }
        };
        match &self.result {
            Some(Err(why)) => Said::Refused { why: why.clone() },
            Some(Ok(finished)) if self.kept >= finished.row_bytes => {
                Said::Done(Box::new(finished.clone()))
            }
            _ => {
                let state = self.part.state();
                match state.is_ready && state.start.is_none() {
                    true => Said::Ready,
                    false => Said::Live(counts(&state)),
                }
            }
        }
    }

    /// Sends pieces of the row log as far as there is room under way.
    fn hand_over(&mut self, agent: &Agent, publisher: &Publisher, now: Instant) -> io::Result<()> {
        if self.sent > self.kept && now.saturating_since(self.kept_at) > AGAIN_AFTER {
            (self.sent, self.kept_at) = (self.kept, now);
        }
        loop {
            let (sent, kept) = (self.sent, self.kept);
            let mut state = self.part.state();
            while state.ends.front().is_some_and(|end| *end <= kept) {
                state.ends.pop_front();
            }
            // The farthest end within a piece; a frame that is larger is a piece of its own.
            let later = state.ends.iter().filter(|end| **end > sent);
            let Some(first) = later.clone().next().copied() else { return Ok(()) };
            let end = later.take_while(|end| **end - sent <= PIECE_BYTES_MAX).last();
            let end = end.copied().unwrap_or(first);
            let path = state.log.clone();
            drop(state);
            if sent - kept > UNDER_WAY_BYTES_MAX {
                return Ok(());
            }
            if self.log.is_none() {
                self.log = path.map(File::open).transpose()?;
            }
            let Some(log) = &self.log else { return Ok(()) };
            let length = usize::try_from(end - sent).map_err(io::Error::other)?;
            let mut bytes = vec![0; length];
            log.read_exact_at(&mut bytes, sent)?;
            if sent == kept {
                self.kept_at = now;
            }
            agent.say(publisher, &self.run, &Said::Rows { offset: sent }, &bytes);
            self.sent = end;
        }
    }
}
