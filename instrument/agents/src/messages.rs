//! The messages between coordinator and agents: a line of JSON, and after it bytes of a row log where there are any. Every
//! one names the version of the messages, which is read before anything else of it.

use std::time::Duration;

use clock::Instant;
use model::facts::{Event, LoadFacts};
use model::plan::SettingPlan;
use model::{NO_STAMP, Seed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::AgentsError;

/// The version of these messages; another one is refused by name.
pub const VERSION: &str = "assay.agents/1";

/// A message of a coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Which agents are idle?
    Call,
    /// Carry out this part of a plan.
    Job(Box<Job>),
    /// The question for the time of the agent's clock. Also the sign that the coordinator is there.
    Ask {
        /// The question's number.
        number: u64,
    },
    /// Start when your clock says this.
    Start {
        /// Nanoseconds of the agent's clock.
        at_ns: i64,
    },
    /// Nothing more falls due.
    Stop,
    /// Wait for no answers.
    Quit,
    /// So many bytes of the row log are kept.
    Kept {
        /// From its beginning.
        bytes: u64,
    },
    /// The coordinator has everything, or wants nothing more.
    Bye,
}

/// A part of a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Which part, from 0.
    pub part: u32,
    /// The number of parts.
    pub of: u32,
    /// The setting, with references in place of secrets: an agent reads them from its own environment.
    pub setting: SettingPlan,
    /// The trial's seed.
    pub seed: Seed,
    /// The mark that the transactions carry.
    pub run_mark: u64,
    /// Addresses of the deployment, by name.
    pub endpoints: Vec<(String, std::net::SocketAddr)>,
}

/// A message of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// It is idle.
    Hello,
    /// Its connections are open.
    Ready,
    /// It cannot carry out its part.
    Refused {
        /// In words.
        why: String,
    },
    /// An answer to [`Order::Ask`].
    Clock {
        /// The question's number.
        number: u64,
        /// When the question came, on the agent's clock.
        heard_ns: i64,
        /// When the answer left.
        answered_ns: i64,
    },
    /// Its counters, several times a second.
    Live(Counts),
    /// A piece of its row log, whole frames.
    Rows {
        /// Where it begins.
        offset: u64,
    },
    /// The load is over.
    Done(Box<Finished>),
}

/// Counters of a running part, for eyes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Whether the line of the trial has begun.
    pub has_started: bool,
    /// Fallen due.
    pub offered: u64,
    /// Sent.
    pub sent: u64,
    /// Committed.
    pub committed: u64,
    /// Ended otherwise.
    pub failed: u64,
    /// Sent and not ended.
    pub outstanding: u64,
    /// Due and not sent.
    pub backlog: u64,
    /// p99 of its own lag in the last second.
    pub own_lag_p99_ns: i64,
    /// Response time p50 in the last second.
    pub latency_p50_ns: i64,
    /// p99.
    pub latency_p99_ns: i64,
}

/// The results of a part beside its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// The engine's facts.
    pub facts: LoadFacts,
    /// Events.
    pub events: Vec<Event>,
    /// Processor time of the agent's process during the load.
    #[serde(with = "model::quantity::duration_text")]
    pub cpu: Duration,
    /// Length of its row log.
    pub row_bytes: u64,
}

impl Finished {
    /// Every moment is one that a trial can have.
    pub(crate) fn is_plausible(&self) -> bool {
        let within = |ns: i64| ns.unsigned_abs() < model::STAMP_MAX_NS;
        let LoadFacts { cut_at, drain_end, wall_step_ns, .. } = &self.facts;
        cut_at.is_none_or(within)
            && (*drain_end == NO_STAMP || within(*drain_end))
            && within(*wall_step_ns)
            && self.events.iter().all(|event| within(event.at))
    }
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    version: &'static str,
    from: &'a str,
    run: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    version: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    run: String,
}

/// A message as it came.
#[derive(Debug)]
pub struct Incoming<T> {
    /// The sender.
    pub from: String,
    /// The trial that it belongs to.
    pub run: String,
    /// Its content.
    pub content: T,
    /// The bytes after its line.
    pub bytes: Vec<u8>,
    /// When it came, on the receiver's clock.
    pub at: Instant,
}

/// The bytes of a message.
#[must_use]
pub fn encode<T: Serialize>(from: &str, run: &str, content: &T, bytes: &[u8]) -> Vec<u8> {
    let message = Outgoing { version: VERSION, from, run, content };
    let mut out = serde_json::to_vec(&message).expect("messages have string keys alone");
    out.push(b'\n');
    out.extend_from_slice(bytes);
    out
}

/// Reads a message; `None`: the bytes are none of Assay's.
///
/// # Errors
/// When it is of another version.
pub fn decode<T: DeserializeOwned>(
    payload: &[u8],
    at: Instant,
) -> Result<Option<Incoming<T>>, AgentsError> {
    let Some(end) = payload.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let (line, bytes) = (&payload[..end], &payload[end + 1..]);
    let Ok(head) = serde_json::from_slice::<Head>(line) else { return Ok(None) };
    if head.version != VERSION {
        let from = if head.from.is_empty() { "without a name" } else { &head.from };
        let found = if head.version.is_empty() { "no version" } else { &head.version };
        return Err(AgentsError::OtherVersion {
            from: from.to_owned(),
            expected: VERSION,
            found: found.to_owned(),
            run: head.run,
        });
    }
    let Ok(content) = serde_json::from_slice(line) else { return Ok(None) };
    Ok(Some(Incoming { from: head.from, run: head.run, content, bytes: bytes.to_vec(), at }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a message comes as it was sent, with its bytes; one of another version is refused with its sender and both
    /// versions; what is no message is none.
    #[test]
    fn messages_name_their_version() {
        let sent = encode("a-1", "r", &Said::Rows { offset: 7 }, b"x\ny");
        let read: Incoming<Said> = decode(&sent, Instant::ZERO).unwrap().unwrap();
        assert!(matches!(read.content, Said::Rows { offset: 7 }));
        assert_eq!(
            (read.from.as_str(), read.run.as_str(), read.bytes.as_slice()),
            ("a-1", "r", &b"x\ny"[..])
        );
        let other = String::from_utf8(sent).unwrap().replace(VERSION, "assay.agents/9");
        let error = decode::<Said>(other.as_bytes(), Instant::ZERO).unwrap_err().to_string();
        assert!(
            error.contains("a-1") && error.contains(VERSION) && error.contains("assay.agents/9"),
            "{error}"
        );
        for none in [&b""[..], b"\n", b"{}", b"[1]\n", b"\xff\xfe\n"] {
            assert!(decode::<Said>(none, Instant::ZERO).is_ok_and(|read| read.is_none()));
        }
        let nameless = decode::<Said>(b"{}\n", Instant::ZERO).unwrap_err().to_string();
        assert!(nameless.contains("no version"), "{nameless}");
    }
}
