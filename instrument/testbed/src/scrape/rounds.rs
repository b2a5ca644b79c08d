//! The rounds: who is asked when, who is waited for, and what that may cost.
//!
//! It must never wait for one node alone: every wait is for all connections, the next round and the end at once.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clock::{Clock, CpuTime, Instant};
use model::facts::MetricSample;
use model::quantity::show_count;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::http1::{Asked, Limits, write_request};

use super::followed::Followed;
use super::{Scrape, Scraped};
use crate::ask::{AskError, Dialogue, Turn};
use crate::sampler::SampleSink;

/// How long a node may take for an answer. Longer than a round, so that a node under load is late and not absent.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// The longest answer: a node of a network of hundreds serves some hundred kilobytes.
const ANSWER_BYTES_MAX: u32 = 4 << 20;
const LIMITS: Limits = Limits::keeping(ANSWER_BYTES_MAX as usize);
/// The asking takes at most one part in this many of a core, on average.
const COST: u32 = 100;
/// The most samples kept of all series together: 16 bytes each, so 32 MB. Beyond, neighbours are merged and rounds
/// come half as often.
const SAMPLES_MAX: usize = 2_000_000;
/// A last, short round is taken at the end if at least this much has passed since the one before.
const LAST_ROUND_MIN: Duration = Duration::from_millis(200);
/// How long the last round waits for answers: no trial waits for a sample.
const LAST_WAIT_MAX: Duration = Duration::from_millis(250);
/// Shorter than this a wait is not worth a timer.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// Nodes that are named with what went wrong.
const NAMED_MAX: usize = 4;

/// A node, its connection and its series.
struct Node {
    peer: Dialogue,
    request: Vec<u8>,
    followed: Followed,
    asked: u64,
    answered: u64,
    /// What went wrong, with how often.
    failed: BTreeMap<String, u64>,
}

/// The thread's state.
pub(super) struct Rounds {
    clock: Clock,
    /// What was asked for, doubled with each thinning.
    interval: Duration,
    /// What is in force, and the longest that was.
    paced: Duration,
    paced_max: Duration,
    /// Processor time of a round, lately.
    cost: Option<Duration>,
    last_round: Option<Instant>,
    nodes: Vec<Node>,
    samples: usize,
    samples_max: usize,
    told: SampleSink,
}

/// No `Accept-Encoding`: what comes is the text itself.
fn request(of: &Scrape) -> Vec<u8> {
    let host = of.address.to_string();
    let headers: [(&str, &[u8]); 2] =
        [("Host", host.as_bytes()), ("Accept", b"text/plain;version=0.0.4")];
    let mut request = Vec::new();
    write_request(&mut request, "GET", &of.path, &headers, b"");
    request
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rounds").field("paced", &self.paced).finish_non_exhaustive()
    }
}

impl Rounds {
    pub(super) fn new(
        clock: Clock,
        interval: Duration,
        nodes: &[Scrape],
        told: SampleSink,
    ) -> Self {
        let interval = interval.max(Duration::from_millis(10));
        let node = |of: &Scrape| Node {
            peer: Dialogue::new(of.address, None, LIMITS),
            request: request(of),
            followed: Followed::new(of),
            asked: 0,
            answered: 0,
            failed: BTreeMap::new(),
        };
        Self {
            clock,
            interval,
            paced: interval,
            paced_max: interval,
            cost: None,
            last_round: None,
            nodes: nodes.iter().map(node).collect(),
            samples: 0,
            samples_max: SAMPLES_MAX,
            told,
        }
    }

    /// Goes on until the other end of `stop` closes.
    pub(super) fn run(&mut self, stop: &UnixStream) {
        let mut due = self.clock.now();
        let mut cpu = CpuTime::of_this_thread();
        loop {
            let now = self.clock.now();
            if now >= due {
                let spent = CpuTime::of_this_thread();
                if self.last_round.is_some() {
                    self.pace(spent.since(cpu));
                }
                cpu = spent;
                self.ask(now);
                // Missed rounds are left out, not caught up with.
                while due <= now {
                    due = due.plus(self.paced);
                }
            }
            if self.wait(due, Some(stop)) {
                break;
            }
        }
        self.last();
    }

    /// One more sample of the end, if it is worth it and comes at once.
    fn last(&mut self) {
        let now = self.clock.now();
        if self.last_round.is_some_and(|last| now.saturating_since(last) >= LAST_ROUND_MIN) {
            self.ask(now);
        }
        let until = now.plus(LAST_WAIT_MAX);
        while self.nodes.iter().any(|node| node.peer.is_asked()) && self.clock.now() < until {
            self.wait(until, None);
        }
    }

    /// What a round has cost decides when the next ones come. The mean of some: one answer may be cheap or dear.
    fn pace(&mut self, round: Duration) {
        let cost = self.cost.map_or(round, |cost| (3 * cost + round) / 4);
        self.cost = Some(cost);
        self.paced = self.interval.max(cost * COST);
        self.paced_max = self.paced_max.max(self.paced);
    }

    /// Asks every node that does not owe an answer.
    fn ask(&mut self, now: Instant) {
        self.last_round = Some(now);
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            if !node.peer.is_asked() {
                node.asked += 1;
                let until = now.plus(ANSWER_WAIT_MAX);
                let turn = node.peer.begin(&node.request, Asked::Other, until);
                self.settle(index, turn);
            }
        }
    }

    /// Waits until something is ready, a node is given up, or it is `until`. Gives whether it is the end.
    fn wait(&mut self, until: Instant, stop: Option<&UnixStream>) -> bool {
        let now = self.clock.now();
        let deadlines = self.nodes.iter().filter_map(|node| node.peer.deadline());
        let until = deadlines.fold(until, Ord::min);
        let wait = until.saturating_since(now).max(WAIT_MIN);
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut polled = Vec::with_capacity(self.nodes.len() + 1);
        let mut whose = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some((stream, flags)) = node.peer.interest() {
                polled.push(PollFd::from_borrowed_fd(stream, flags));
                whose.push(index);
            }
        }
        let stop_at = stop.map(|stop| {
            polled.push(PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
            polled.len() - 1
        });
        // Interrupted by a signal: the next turn waits again.
        let _ = poll(&mut polled, Some(&timeout));
        let ready: Vec<bool> = polled.iter().map(|it| !it.revents().is_empty()).collect();
        for (index, _) in whose.into_iter().zip(&ready).filter(|(_, is_ready)| **is_ready) {
            let turn = self.nodes[index].peer.ready();
            self.settle(index, turn);
        }
        self.expire();
        stop_at.is_some_and(|at| ready[at])
    }

    fn expire(&mut self) {
        let now = self.clock.now();
        for index in 0..self.nodes.len() {
            let peer = &mut self.nodes[index].peer;
            if peer.deadline().is_some_and(|deadline| deadline <= now) {
                peer.give_up();
                self.settle(index, Turn::Failed(AskError::TimedOut(ANSWER_WAIT_MAX)));
            }
        }
    }

    fn settle(&mut self, index: usize, turn: Turn) {
        let node = &mut self.nodes[index];
        let failed = match turn {
            Turn::Waiting | Turn::Open => return,
            Turn::Failed(error) => Some(error.to_string()),
            Turn::Answered(response) if response.status == 200 => None,
            Turn::Answered(response) => {
                Some(format!("it answered with status {}", response.status))
            }
        };
        if let Some(words) = failed {
            *node.failed.entry(words).or_default() += 1;
            return;
        }
        node.answered += 1;
        let now = self.clock.now();
        self.samples += node.followed.take(now, node.peer.body());
        for line in &node.followed.lines {
            if let Some((_, value)) = line.points.last().filter(|(at, _)| *at == now) {
                (self.told)(now, &node.followed.source, &line.name, *value);
            }
        }
        if self.samples > self.samples_max {
            self.samples = self.nodes.iter_mut().map(|node| node.followed.thin()).sum();
            self.interval *= 2;
            self.paced = self.paced.max(self.interval);
            self.paced_max = self.paced_max.max(self.paced);
        }
    }

    /// Everything, stamped after `trial_start`.
    pub(super) fn scraped(&self, trial_start: Instant) -> Scraped {
        let mut samples = Vec::with_capacity(self.samples);
        for followed in self.nodes.iter().map(|node| &node.followed) {
            for line in &followed.lines {
                samples.extend(line.points.iter().map(|(at, value)| MetricSample {
                    at: at.ns_since(trial_start),
                    source: followed.source.clone(),
                    name: line.name.clone(),
                    value: *value,
                }));
            }
        }
        Scraped { samples, said: self.said() }
    }

    fn said(&self) -> String {
        let sum = |of: fn(&Node) -> u64| self.nodes.iter().map(of).sum::<u64>();
        let seconds = |of: Duration| format!("{:.2} s", of.as_secs_f64());
        let at_most = match self.paced_max > self.paced {
            true => format!(" (at times every {})", seconds(self.paced_max)),
            false => String::new(),
        };
        let mut said = format!(
            "{} asked every {}{at_most}; {} of {} requests answered",
            match self.nodes.len() {
                1 => "1 node".to_owned(),
                nodes => format!("{nodes} nodes"),
            },
            seconds(self.paced),
            show_count(sum(|node| node.answered)),
            show_count(sum(|node| node.asked)),
        );
        let mut failed: Vec<(u64, String)> = Vec::new();
        for node in &self.nodes {
            for (words, times) in &node.failed {
                let text =
                    format!("{}: {words} ({} times)", node.followed.source, show_count(*times));
                failed.push((*times, text));
            }
        }
        failed.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let more = failed.len().saturating_sub(NAMED_MAX);
        for (_, text) in failed.iter().take(NAMED_MAX) {
            said.push_str("; ");
            said.push_str(text);
        }
        if more > 0 {
            said.push_str(&format!("; and {more} more"));
        }
        said
    }

    #[cfg(test)]
    pub(super) fn cost(&self) -> Option<Duration> {
        self.cost
    }

    #[cfg(test)]
    pub(super) fn with_samples_max(self, samples_max: usize) -> Self {
        Self { samples_max, ..self }
    }
}
