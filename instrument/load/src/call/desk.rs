//! State that the dispatcher and the callers share: streams, callers and what each of them is calling for. One lock guards
//! it. It starts no thread and calls nothing.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use clock::Instant;
use model::facts::{Event, PoolFacts, WorkerFacts};
use model::plan::{LoadPlan, ProbePlan};
use model::{NO_STAMP, Outcome, Row, Stamp, secret};
use sut::Returned;

use crate::demand::Demand;
use crate::engine::setup::PROBE_BACKLOG_MAX;
use crate::engine::{Rows, fresh_row};
use crate::source::{Prepared, Source};
use crate::texts::Known;
use crate::trial::{Trial, whole_ns};

/// Why what was given up has no answer.
const NO_ANSWER_IN_TIME: &str = "no answer within the timeout";
/// The most bytes of a library's error text that are kept: a sentence. The texts of a trial have a bound, too.
const TEXT_BYTES_MAX: usize = 200;

/// The streams, the callers and the ways to wake them.
pub(super) struct Desk<'t> {
    pub(super) trial: &'t Trial<'t>,
    state: Mutex<State<'t>>,
    /// There is something to call, or the load is over.
    pub(super) work: Condvar,
    /// A call has ended.
    pub(super) back: Condvar,
}

pub(super) struct State<'t> {
    /// Texts of errors, as far as they have been met.
    texts: Known<'t>,
    /// Its number among the threads of the load.
    seat: u32,
    pub(super) origin: Instant,
    pub(super) streams: Vec<Stream>,
    pub(super) callers: Vec<Caller>,
    pub(super) rows: Rows,
    pub(super) facts: WorkerFacts,
    pub(super) is_over: bool,
}

/// A stream of load that is called.
pub(super) struct Stream {
    /// 0 the main load, 1 the probe.
    index: u8,
    demand: Demand,
    pub(super) source: Source,
    pub(super) backlog: VecDeque<(Prepared, Stamp)>,
    backlog_max: usize,
    timeout_ns: i64,
    last_due: Stamp,
}

impl Stream {
    pub(super) fn main(demand: Demand, source: Source, load: &LoadPlan) -> Self {
        let backlog_max = usize::try_from(load.backlog_max).unwrap_or(usize::MAX).max(1);
        Self::new(0, demand, source, backlog_max, whole_ns(load.timeout))
    }

    pub(super) fn probe(demand: Demand, source: Source, probe: &ProbePlan) -> Self {
        Self::new(1, demand, source, PROBE_BACKLOG_MAX, whole_ns(probe.timeout))
    }

    fn new(
        index: u8,
        demand: Demand,
        mut source: Source,
        backlog_max: usize,
        timeout_ns: i64,
    ) -> Self {
        let (missing, _) = source.missing();
        source.fill(missing);
        let timeout_ns = timeout_ns.max(1);
        let backlog = VecDeque::new();
        Self { index, demand, source, backlog, backlog_max, timeout_ns, last_due: Stamp::MIN }
    }
}

/// One thread that calls.
pub(super) struct Caller {
    /// Its place among the streams that are called.
    pub(super) stream: usize,
    index: u32,
    freed_at: Stamp,
    /// The transaction that it is calling for; none once that has ended.
    row: Option<Row>,
    is_busy: bool,
}

impl Caller {
    pub(super) const fn new(stream: usize, index: u32) -> Self {
        Self { stream, index, freed_at: 0, row: None, is_busy: false }
    }
}

impl<'t> Desk<'t> {
    pub(super) fn new(trial: &'t Trial<'t>, state: State<'t>) -> Self {
        Self { trial, state: Mutex::new(state), work: Condvar::new(), back: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<'t>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stamp(&self, origin: Instant) -> Stamp {
        self.trial.setup.deployment.clock.now().ns_since(origin)
    }

    /// A caller whose thread could not be started.
    pub(super) fn retire(&self, caller: usize, reason: &str) {
        let mut state = self.lock();
        state.callers[caller].is_busy = true;
        state.facts.connect_failures += 1;
        state.event(self.trial, 0, "connect_failure", None, reason);
    }
}

impl<'t> State<'t> {
    pub(super) fn new(
        trial: &'t Trial<'t>,
        seat: u32,
        streams: Vec<Stream>,
        callers: Vec<Caller>,
        rows: Rows,
    ) -> Self {
        let calls_main = |caller: &&Caller| streams[caller.stream].index == 0;
        let first = u32::try_from(callers.iter().filter(calls_main).count()).expect("a few");
        // A library's callers are threads: there are as many as the plan says from the start.
        let pool = PoolFacts { first, bound: first, carries: 1, ..PoolFacts::default() };
        let facts = WorkerFacts { connects: callers.len() as u64, pool, ..Default::default() };
        let origin = trial.setup.deployment.clock.now();
        let texts = trial.texts.known();
        Self { texts, seat, origin, streams, callers, rows, facts, is_over: false }
    }

    pub(super) fn take_due(&mut self, now: Stamp) {
        for index in 0..self.streams.len() {
            self.saturate(index, now);
            let is_idle = |caller: &&Caller| caller.stream == index && !caller.is_busy;
            let idle = self.callers.iter().filter(is_idle).count();
            while let Some((due, client)) = self.streams[index].demand.take_due(now) {
                self.facts.due += 1;
                let stream = &mut self.streams[index];
                stream.last_due = due;
                let prepared = stream.source.take(client);
                if stream.index == 0 && stream.backlog.len() >= idle {
                    self.facts.pool.blocked += 1;
                }
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
            let prepared = stream.source.take(None);
            stream.backlog.push_back((prepared, due));
        }
    }

    pub(super) fn begin(&mut self, caller: usize, prepared: &Prepared, due: Stamp, now: Stamp) {
        let at = &mut self.callers[caller];
        let stream = self.streams[at.stream].index;
        let mut row = fresh_row(self.seat, stream, prepared.id, prepared.made, due);
        row.ready = due.max(at.freed_at);
        row.sent = now;
        row.attempts = 1;
        row.connection = at.index;
        row.bytes_out = u32::try_from(prepared.payload.len()).unwrap_or(u32::MAX);
        at.row = Some(row);
        at.is_busy = true;
        self.facts.sent += 1;
    }

    pub(super) fn reached(
        &mut self,
        trial: &Trial<'_>,
        caller: usize,
        stage: u8,
        tx: u64,
        at: Stamp,
    ) {
        let timeout_ns = self.streams[self.callers[caller].stream].timeout_ns;
        let Some(row) = &mut self.callers[caller].row else { return };
        if at - row.due >= timeout_ns {
            return;
        }
        let mark = &mut row.marks[usize::from(stage)];
        if *mark == NO_STAMP {
            *mark = at;
        } else {
            self.facts.duplicate_answers += 1;
            self.event(trial, at, "duplicate_answer", Some(tx), "reached a stage again");
        }
    }

    pub(super) fn returned(
        &mut self,
        trial: &Trial<'_>,
        caller: usize,
        tx: u64,
        call: &Returned<'_>,
        at: Stamp,
    ) {
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
        let timeout_ns = self.streams[self.callers[caller].stream].timeout_ns;
        let is_late = at - row.due >= timeout_ns;
        let last = trial.setup.final_stages.of(row.stream);
        let final_mark = &mut row.marks[last];
        if is_late && *final_mark == NO_STAMP {
            self.facts.late_answers += 1;
            self.event(trial, at, "late_answer", Some(tx), "returned after its time");
            row.error = self.texts.index(NO_ANSWER_IN_TIME);
            return self.finish(self.callers[caller].stream, row, Outcome::Unknown, at);
        }
        let final_mark = &mut row.marks[last];
        if call.outcome == Outcome::Committed && *final_mark == NO_STAMP {
            *final_mark = at;
        }
        row.code = call.code;
        row.bytes_in = call.bytes_in;
        // Reaching the final stage is what ends a transaction, whatever the call does after it.
        let reached_at = row.marks[last];
        let (outcome, end) = match reached_at {
            NO_STAMP => (call.outcome, at),
            reached_at => (Outcome::Committed, reached_at),
        };
        if outcome != Outcome::Committed {
            row.error = match call.text {
                "" => self.texts.index(&format!("the client library said: {outcome}")),
                text => self.texts.index(&beginning(text)),
            };
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
        self.streams[stream].demand.client_is_back(row.client, row.end);
        self.rows.push(row, &mut self.facts);
    }

    /// Ends what has had no answer within the timeout since it was due. What has reached the final stage has had one: it
    /// ends when its call returns.
    pub(super) fn expire(&mut self, trial: &Trial<'_>, now: Stamp) {
        let ends = trial.setup.final_stages;
        for caller in 0..self.callers.len() {
            let timeout_ns = self.streams[self.callers[caller].stream].timeout_ns;
            let is_over = |row: Row| {
                row.marks[ends.of(row.stream)] == NO_STAMP && now - row.due >= timeout_ns
            };
            if self.callers[caller].row.is_some_and(is_over) {
                self.give_up(trial, caller, NO_ANSWER_IN_TIME, now);
            }
        }
    }

    fn give_up(&mut self, trial: &Trial<'_>, caller: usize, text: &str, now: Stamp) {
        let Some(mut row) = self.callers[caller].row.take() else { return };
        let reached_at = row.marks[trial.setup.final_stages.of(row.stream)];
        if reached_at != NO_STAMP {
            return self.finish(self.callers[caller].stream, row, Outcome::Committed, reached_at);
        }
        row.error = self.texts.index(text);
        self.finish(self.callers[caller].stream, row, Outcome::Unknown, now);
    }

    /// Sheds what has waited for longer than the timeout, or all that waits.
    pub(super) fn shed_waiting(&mut self, now: Stamp, all: bool) -> u64 {
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
        let number = self.streams[stream].index;
        let mut row = fresh_row(self.seat, number, prepared.id, prepared.made, due);
        row.end = now;
        row.outcome = Outcome::Shed;
        self.facts.shed += 1;
        self.streams[stream].demand.client_is_back(row.client, now);
        self.streams[stream].source.recycle(prepared.payload);
        self.rows.push(row, &mut self.facts);
    }

    pub(super) fn end_everything(&mut self, trial: &Trial<'_>, now: Stamp) -> u64 {
        let mut count = self.shed_waiting(now, true);
        for caller in 0..self.callers.len() {
            if self.callers[caller].row.is_some() {
                self.give_up(trial, caller, "still outstanding when the drain ended", now);
                count += 1;
            }
        }
        let facts = &self.facts;
        assert_eq!(facts.due, self.rows.count, "one row for each transaction that fell due");
        assert_eq!(facts.due, facts.sent + facts.shed, "sent or shed");
        assert_eq!(facts.sent, facts.answered + facts.unanswered, "answered or not");
        count
    }

    pub(super) fn is_over(&self, now: Stamp) -> bool {
        self.streams.iter().all(|stream| stream.demand.is_over(now))
    }

    pub(super) fn is_through(&self) -> bool {
        self.callers.iter().all(|caller| caller.row.is_none())
            && self.streams.iter().all(|stream| stream.backlog.is_empty())
    }

    pub(super) fn next_due(&self) -> Option<Stamp> {
        self.streams.iter().filter_map(|stream| stream.demand.next_due()).min()
    }

    pub(super) fn note_cut(&self, trial: &Trial<'_>, now: Stamp) {
        let main = &self.streams[0];
        let is_bounded = main.index == 0 && trial.setup.plan.load.transactions_max > 0;
        if is_bounded && main.source.is_used_up() {
            trial.note_cut(main.last_due.saturating_add(1));
        } else if !self.is_over(now) {
            trial.note_cut(now.max(0));
        }
    }

    pub(super) fn show(&self, trial: &Trial<'_>, shown: &mut [u64; 4]) {
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

/// The beginning of an error text, cut between two characters. Half a secret would not be known for one later.
fn beginning(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let text = secret::scrub(text);
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end));
    Cow::Owned(text[..end.unwrap_or(0)].to_owned())
}
