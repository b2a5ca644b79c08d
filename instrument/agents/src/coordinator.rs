//! The side of a coordinator: one trial over several agents, from the call to the last piece of their row logs. An agent that
//! falls silent is named and counted, never left out in silence.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::ClockExchange;

use crate::messages::{Counts, Finished, Incoming, Job, Order, Said, decode, encode};
use crate::nats::{Nats, Publisher, Server};
use crate::{AgentsError, Exchange, agent_subject, call_subject, run_subject};

/// How long agents may take to answer a call.
const GATHER_MAX: Duration = Duration::from_secs(10);
/// How long they may take to open their connections.
const READY_MAX: Duration = Duration::from_secs(90);
/// Questions of clocks before the load; the one with the smallest error counts.
const ASK_COUNT: u64 = 16;
/// Between two of them, and between two attempts to be heard.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// During the load.
const ASK_LATER: Duration = Duration::from_secs(1);
/// From the decision to start to the start: long enough for the message to reach every agent several times.
const START_AHEAD: Duration = Duration::from_millis(500);
/// An agent that is silent for so long is told of.
const SILENT_AFTER: Duration = Duration::from_secs(5);
/// After the end of the load, agents that are silent for so long are lost once no other is waited for; after the longest
/// drain, also those that speak and deliver nothing for so long.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// The same after a request to stop.
const LOST_AFTER_STOP: Duration = Duration::from_secs(3);
/// After the end of the plan, a NATS that is gone for so long does not come back.
const NATS_BACK_MAX: Duration = Duration::from_secs(120);
/// The longest wait for a message.
const WAIT: Duration = Duration::from_millis(10);
/// Questions under way, which may be answered late.
const ASKED_MAX: usize = 4_096;

/// Why a piece of a row log was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untaken {
    /// It holds what no row log can, in words: its agent is lost, and the others go on.
    Wrong(String),
    /// It cannot be kept, in words: the load is stopped.
    NotKept(String),
}

/// The side of the app: where pieces go, and who stops the run.
pub trait Follower {
    /// Takes a piece of a part's row log; pieces of a part come in order, without gaps.
    ///
    /// # Errors
    /// Those of [`Untaken`].
    fn rows(&mut self, part: u32, bytes: &[u8]) -> Result<(), Untaken>;
    /// The line of the trial begins then.
    fn started(&mut self, at: Instant);
    /// The sum of all counters.
    fn counts(&mut self, all: &Counts);
    /// Tells people.
    fn say(&mut self, words: &str);
    /// Whether the load is to stop, and whether at once.
    fn stopped(&self) -> Option<bool>;
}

/// One trial over agents.
pub struct Spread<'a> {
    /// The server.
    pub server: Server,
    /// The group.
    pub group: &'a str,
    /// The trial's own name among all runs.
    pub run: &'a str,
    /// How many agents.
    pub count: u32,
    /// The trial's clock.
    pub clock: Clock,
    /// From the start to the end of the load.
    pub load: Duration,
    /// The longest drain after it.
    pub drain_max: Duration,
}

/// The end of a part.
#[derive(Debug)]
pub struct Ended {
    /// The agent.
    pub name: String,
    /// Its results; absent: it was lost.
    pub finished: Option<Finished>,
    /// Why it was lost, in words.
    pub lost: String,
    /// How far the beginning of its line may be from the coordinator's.
    pub start_error_ns: i64,
    /// Exchanges of clocks: before, the best during, after.
    pub clocks: Vec<ClockExchange>,
}

impl Spread<'_> {
    /// Carries out one trial. The answer is its start and the ends of the parts, in their order.
    ///
    /// # Errors
    /// When NATS cannot be used, there are too few agents, one of them speaks another version, or one cannot begin.
    pub fn carry_out(
        &self,
        job: &dyn Fn(u32) -> Job,
        follower: &mut dyn Follower,
    ) -> Result<(Instant, Vec<Ended>), AgentsError> {
        crate::check_name(self.group)?;
        let subjects = [run_subject(self.group, self.run)];
        let nats = Nats::connect(self.server.clone(), &subjects, self.clock)?;
        let names = self.gather(&nats, follower)?;
        let mut all = Following::new(self, &nats, names);
        let outcome = all.prepare(job, follower).map(|()| {
            let start = all.start(follower);
            all.follow(start, follower);
            start
        });
        // However it ended, no agent works for this trial any more.
        for name in all.places.keys() {
            all.order(name, &Order::Bye);
        }
        let start = outcome?;
        let ended = all.members.into_iter().map(|member| Ended {
            name: member.name,
            start_error_ns: member.before.error_ns,
            clocks: [Some(member.before), member.during, member.after]
                .into_iter()
                .flatten()
                .collect(),
            lost: member.lost,
            finished: member.finished,
        });
        Ok((start, ended.collect()))
    }

    /// Calls until enough agents have answered.
    fn gather(&self, nats: &Nats, follower: &dyn Follower) -> Result<Vec<String>, AgentsError> {
        let publisher = nats.publisher();
        let call = encode("coordinator", self.run, &Order::Call, &[]);
        let begun = self.clock.now();
        let mut called_at = None;
        let mut found = BTreeSet::new();
        let count = usize::try_from(self.count).expect("few agents");
        while found.len() < count {
            if follower.stopped().is_some() {
                return Err(AgentsError::Stopped);
            }
            let now = self.clock.now();
            if now.saturating_since(begun) > GATHER_MAX {
                let found = found.into_iter().collect();
                let group = self.group.to_owned();
                return Err(AgentsError::TooFew { group, expected: self.count, found });
            }
            if called_at.is_none_or(|at| now.saturating_since(at) >= ASK_EVERY * 10) {
                called_at = Some(now);
                publisher.publish(&call_subject(self.group), &call);
            }
            let Some(message) = nats.next(WAIT) else { continue };
            if let Some(Incoming { from, content: Said::Hello, .. }) =
                decode::<Said>(&message.payload, message.at)?
            {
                crate::check_name(&from)?;
                found.insert(from);
            }
        }
        Ok(found.into_iter().take(count).collect())
    }
}

/// An agent as its coordinator sees it.
struct Member {
    name: String,
    is_there: bool,
    is_ready: bool,
    counts: Counts,
    heard_at: Instant,
    /// When it last delivered something of its part: rows, results, or the clock after them.
    progressed_at: Instant,
    is_silent: bool,
    bytes: u64,
    before: ClockExchange,
    during: Option<ClockExchange>,
    after: Option<ClockExchange>,
    finished: Option<Finished>,
    lost: String,
}

impl Member {
    fn is_over(&self) -> bool {
        !self.lost.is_empty() || (self.finished.is_some() && self.after.is_some())
    }
}

struct Following<'a> {
    spread: &'a Spread<'a>,
    nats: &'a Nats,
    publisher: Publisher,
    members: Vec<Member>,
    places: BTreeMap<String, usize>,
    /// The member to which each question went, and when.
    asked: HashMap<u64, (usize, Instant)>,
    next_question: u64,
    start: Option<Instant>,
    refused: Option<AgentsError>,
    record_fails: bool,
}

impl<'a> Following<'a> {
    fn new(spread: &'a Spread<'a>, nats: &'a Nats, names: Vec<String>) -> Self {
        let now = spread.clock.now();
        let member = |name: &String| Member {
            name: name.clone(),
            is_there: false,
            is_ready: false,
            counts: Counts::default(),
            heard_at: now,
            progressed_at: now,
            is_silent: false,
            bytes: 0,
            before: ClockExchange { error_ns: i64::MAX, ..ClockExchange::default() },
            during: None,
            after: None,
            finished: None,
            lost: String::new(),
        };
        let members = names.iter().map(member).collect();
        let places = names.into_iter().zip(0..).collect();
        Self {
            spread,
            nats,
            publisher: nats.publisher(),
            members,
            places,
            asked: HashMap::new(),
            next_question: 0,
            start: None,
            refused: None,
            record_fails: false,
        }
    }

    fn now(&self) -> Instant {
        self.spread.clock.now()
    }

    fn order(&self, name: &str, order: &Order) {
        let message = encode("coordinator", self.spread.run, order, &[]);
        self.publisher.publish(&agent_subject(self.spread.group, name), &message);
    }

    fn ask(&mut self, place: usize) {
        if self.asked.len() >= ASKED_MAX {
            self.asked.clear();
        }
        let number = self.next_question;
        self.next_question += 1;
        self.asked.insert(number, (place, self.now()));
        self.order(&self.members[place].name, &Order::Ask { number });
    }

    /// Gives out the parts, waits until every agent is ready, and compares clocks.
    fn prepare(
        &mut self,
        job: &dyn Fn(u32) -> Job,
        follower: &mut dyn Follower,
    ) -> Result<(), AgentsError> {
        let begun = self.now();
        let mut given_at = None;
        while !self.members.iter().all(|member| member.is_ready) {
            let now = self.now();
            if follower.stopped().is_some() {
                return Err(AgentsError::Stopped);
            }
            if given_at.is_none_or(|at| now.saturating_since(at) >= ASK_LATER) {
                given_at = Some(now);
                for (place, part) in (0..self.members.len()).zip(0..) {
                    if !self.members[place].is_there {
                        self.order(&self.members[place].name, &Order::Job(Box::new(job(part))));
                    }
                    self.ask(place);
                }
            }
            self.hear(follower);
            if let Some(refused) = self.refused.take() {
                return Err(refused);
            }
            let late = now.saturating_since(begun) > READY_MAX;
            let gone = |it: &&Member| late || now.saturating_since(it.heard_at) > LOST_AFTER;
            let mut waited_for = self.members.iter().filter(|member| !member.is_ready);
            if let Some(member) = waited_for.find(gone) {
                let why = match late {
                    true => "expected open connections within 90 s, got none",
                    false => "silent for 10 s before the load began",
                };
                let (name, why) = (member.name.clone(), why.to_owned());
                return Err(AgentsError::Refused { name, why });
            }
        }
        for _ in 0..ASK_COUNT {
            (0..self.members.len()).for_each(|place| self.ask(place));
            let until = self.now().plus(ASK_EVERY);
            while self.now() < until {
                self.hear(follower);
            }
            if let Some(refused) = self.refused.take() {
                return Err(refused);
            }
        }
        match self.members.iter().find(|member| member.before.error_ns == i64::MAX) {
            None => Ok(()),
            Some(member) => Err(AgentsError::Refused {
                name: member.name.clone(),
                why: "no answer when its clock was asked for".to_owned(),
            }),
        }
    }

    /// Says when to start, each agent on its own clock.
    fn start(&mut self, follower: &mut dyn Follower) -> Instant {
        let start = self.now().plus(START_AHEAD);
        self.start = Some(start);
        self.say_start(start);
        follower.started(start);
        start
    }

    fn say_start(&self, start: Instant) {
        for member in self.members.iter().filter(|member| !member.counts.has_started) {
            let at_ns = start.as_ns() + member.before.offset_ns;
            self.order(&member.name, &Order::Start { at_ns });
        }
    }

    /// Follows all parts to their ends.
    fn follow(&mut self, start: Instant, follower: &mut dyn Follower) {
        let load_end = start.plus(self.spread.load);
        let end = load_end.plus(self.spread.drain_max);
        let (mut asked_at, mut said_at, mut up_since) = (start, start.minus(START_AHEAD), start);
        let (mut down_since, mut stopped, mut stopped_at) = (None, None, start);
        while !self.members.iter().all(Member::is_over) {
            self.hear(follower);
            let now = self.now();
            let wanted = match self.record_fails {
                true => Some(true),
                false => follower.stopped(),
            };
            if wanted != stopped {
                (stopped, stopped_at) = (wanted, now);
            }
            if now.saturating_since(said_at) >= ASK_EVERY * 5 {
                said_at = now;
                self.say_start(start);
                self.count(follower);
            }
            if now.saturating_since(asked_at) >= ASK_LATER {
                asked_at = now;
                for place in 0..self.members.len() {
                    if !self.members[place].is_over() {
                        self.ask(place);
                        if let Some(at_once) = stopped {
                            let order = if at_once { Order::Quit } else { Order::Stop };
                            self.order(&self.members[place].name, &order);
                        }
                    }
                }
            }
            match (self.nats.is_up(), down_since) {
                (true, Some(_)) => {
                    (up_since, down_since) = (now, None);
                    follower.say("NATS is back; agents deliver what they have");
                }
                (false, None) => {
                    down_since = Some(now);
                    follower.say("NATS is gone; agents go on and deliver when it is back");
                }
                _ => {}
            }
            let patience = if stopped.is_some() { LOST_AFTER_STOP } else { LOST_AFTER };
            let silence = |it: &Member| now.saturating_since(it.heard_at.max(up_since));
            // Nothing of a part falls due any more: those that are silent are waited for only with others that are not.
            let mut waited_for = self.members.iter().filter(|member| !member.is_over());
            let is_alone = now >= load_end && waited_for.all(|it| silence(it) > patience);
            // From then on an agent that speaks owes rows or its results, too.
            let owed_from = match stopped {
                None => end,
                Some(false) => end.min(stopped_at.plus(self.spread.drain_max)),
                Some(true) => end.min(stopped_at),
            };
            let is_past = now >= end || is_alone || stopped.is_some();
            for member in self.members.iter_mut().filter(|member| !member.is_over()) {
                let silent = silence(member);
                let seconds = now.saturating_since(member.heard_at).as_secs();
                let owes_since = member.progressed_at.max(owed_from).max(up_since);
                let idle = now.saturating_since(owes_since);
                let gone =
                    down_since.is_some_and(|at| now.saturating_since(at.max(end)) > NATS_BACK_MAX);
                if gone || (down_since.is_none() && is_past && silent > patience) {
                    let whose = if gone { "NATS was gone" } else { "silent" };
                    member.lost = format!("{whose} for {seconds} s until the end of the run");
                } else if down_since.is_none() && idle > LOST_AFTER {
                    let seconds = idle.as_secs();
                    member.lost =
                        format!("alive, but without progress for {seconds} s after the load");
                } else if down_since.is_none() && silent > SILENT_AFTER && !member.is_silent {
                    member.is_silent = true;
                    follower.say(&format!("agent {}: silent for {seconds} s", member.name));
                }
            }
        }
        self.count(follower);
    }

    fn count(&self, follower: &mut dyn Follower) {
        let mut all = Counts { has_started: true, ..Counts::default() };
        for Counts {
            offered,
            sent,
            committed,
            failed,
            outstanding,
            backlog,
            own_lag_p99_ns,
            latency_p50_ns,
            latency_p99_ns,
            ..
        } in self.members.iter().map(|member| member.counts)
        {
            all.offered = all.offered.saturating_add(offered);
            all.sent = all.sent.saturating_add(sent);
            all.committed = all.committed.saturating_add(committed);
            all.failed = all.failed.saturating_add(failed);
            all.outstanding = all.outstanding.saturating_add(outstanding);
            all.backlog = all.backlog.saturating_add(backlog);
            // Quantiles do not add up: the worst agent's is shown, and only shown.
            all.own_lag_p99_ns = all.own_lag_p99_ns.max(own_lag_p99_ns);
            all.latency_p50_ns = all.latency_p50_ns.max(latency_p50_ns);
            all.latency_p99_ns = all.latency_p99_ns.max(latency_p99_ns);
        }
        follower.counts(&all);
    }

    /// An agent is of no use: before the load there is none without it, later the others go on.
    fn give_up(&mut self, place: usize, why: String) {
        let member = &mut self.members[place];
        let name = member.name.clone();
        match self.start {
            None => self.refused = Some(AgentsError::Refused { name, why }),
            Some(_) => {
                member.lost = why;
                self.order(&name, &Order::Bye);
            }
        }
    }

    /// Takes the next message, if one comes soon.
    fn hear(&mut self, follower: &mut dyn Follower) {
        let Some(message) = self.nats.next(WAIT) else { return };
        let said = match decode::<Said>(&message.payload, message.at) {
            Ok(Some(said)) => said,
            Ok(None) => return,
            Err(error) => {
                self.refused = Some(error);
                return;
            }
        };
        let Some(place) = self.places.get(&said.from).copied() else { return };
        let member = &mut self.members[place];
        if !member.lost.is_empty() {
            return;
        }
        member.heard_at = message.at;
        if member.is_silent {
            member.is_silent = false;
            follower.say(&format!("agent {} is back", member.name));
        }
        match said.content {
            Said::Hello => return,
            Said::Ready => member.is_ready = true,
            Said::Live(counts) => member.counts = counts,
            Said::Refused { why } => self.give_up(place, why),
            Said::Clock { number, heard_ns, answered_ns } => {
                // An answer to the question of another takes nothing from that one.
                let Some((of, asked)) = self.asked.get(&number).copied() else { return };
                if of != place {
                    return;
                }
                self.asked.remove(&number);
                let (asked_ns, back_ns) = (asked.as_ns(), message.at.as_ns());
                let found = Exchange { asked_ns, heard_ns, answered_ns, back_ns }.result();
                let within = |ns: i64| ns.unsigned_abs() < model::STAMP_MAX_NS;
                if !within(found.offset_ns) || !within(found.error_ns) {
                    let why = format!(
                        "expected its clock within 36 years of this one, got {heard_ns} and {answered_ns} ns"
                    );
                    return self.give_up(place, why);
                }
                let member = &mut self.members[place];
                let better = |best: &Option<ClockExchange>| {
                    best.is_none_or(|best| found.error_ns < best.error_ns)
                };
                if self.start.is_none_or(|start| asked < start) {
                    if found.error_ns < member.before.error_ns {
                        member.before = found;
                    }
                } else if member.finished.is_some() {
                    member.progressed_at = message.at;
                    member.after = Some(found);
                } else if better(&member.during) {
                    member.during = Some(found);
                }
            }
            Said::Rows { offset } => {
                if offset == member.bytes && member.finished.is_none() {
                    let part = u32::try_from(place).expect("few agents");
                    match follower.rows(part, &said.bytes) {
                        Ok(()) if said.bytes.is_empty() => {}
                        Ok(()) => {
                            member.bytes += said.bytes.len() as u64;
                            member.progressed_at = message.at;
                        }
                        Err(Untaken::NotKept(why)) => {
                            member.lost = format!("its rows could not be kept: {why}");
                            self.record_fails = true;
                        }
                        Err(Untaken::Wrong(why)) => {
                            return self.give_up(place, format!("its rows are wrong: {why}"));
                        }
                    }
                }
                let member = &self.members[place];
                self.order(&member.name, &Order::Kept { bytes: member.bytes });
            }
            Said::Done(finished) => {
                if !finished.is_plausible() {
                    let why =
                        "expected results with stamps within 36 years of the start, got others";
                    return self.give_up(place, why.to_owned());
                }
                if member.finished.is_none() && finished.row_bytes == member.bytes {
                    member.progressed_at = message.at;
                    member.finished = Some(*finished);
                    self.ask(place);
                }
            }
        }
        self.members[place].is_there = true;
    }
}
