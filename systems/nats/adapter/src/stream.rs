//! The stream of a trial: made, asked who leads it, and read back. It is read with a consumer that stands on another server
//! than the one that leads the stream, where there are several: what a majority has acknowledged, another one of them has
//! to have.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::TxId;
use model::facts::LedgerEntry;
use serde_json::{Value, json};
use sut::{Deployment, Ledger, SutError};

use crate::control::{Control, Refused};
use crate::servers::{Place, READY_WITHIN};
use crate::workload::told;

/// How long a stream must be missing until it is believed to be gone: a server that starts has none at first.
const MISSING_FOR: Duration = Duration::from_secs(10);

/// How often the cluster is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Consumers that are made until one stands on another server than the stream's leader: the cluster chooses.
const CONSUMERS_MAX: u32 = 30;

/// Messages of one request.
const BATCH: u32 = 500;

/// How long a consumer may deliver nothing although its stream goes on: the server that it stands on may have yet to catch up.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// JetStream's number for a stream that there is not.
const NO_SUCH_STREAM: u64 = 10_059;

/// The stream of a trial, and where its messages are published.
pub(crate) fn name(run_mark: u64) -> String {
    format!("ASSAY_{run_mark:016X}")
}

/// The subject of its messages.
pub(crate) fn subject(run_mark: u64) -> String {
    format!("assay.{run_mark:016x}")
}

/// Makes the stream, once the cluster can: until it has a leader it refuses.
pub(crate) fn make(servers: &[Place], run_mark: u64, clock: clock::Clock) -> Result<(), SutError> {
    let (name, subject) = (name(run_mark), subject(run_mark));
    let config = json!({
        "name": name, "subjects": [subject], "storage": "file", "retention": "limits", "num_replicas": servers.len(),
        // The window for duplicates is as long as a trial may be.
        "duplicate_window": 3_600_000_000_000_u64, "discard": "new",
    });
    let deadline = clock.now().plus(READY_WITHIN);
    loop {
        let asked = Control::open(servers[0].address, clock)
            .and_then(|mut it| it.api(&format!("STREAM.CREATE.{name}"), &config.to_string()));
        let why = match asked {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(refused)) => refused.to_string(),
            Err(error) => error.to_string(),
        };
        if clock.now() >= deadline {
            return Err(SutError::Deploy(format!("the stream could not be made: {why}")));
        }
        clock.sleep_until(clock.now().plus(ASK_EVERY));
    }
}

/// Who leads a stream or a consumer, by its description; empty: no server, or there is but one.
fn leader(info: &Value) -> String {
    info["cluster"]["leader"].as_str().unwrap_or_default().to_owned()
}

/// The result of looking for the stream.
enum Found {
    Consumer(Box<Consumer>),
    /// No server has it.
    Gone,
    /// Why not yet.
    NotYet(String),
}

/// The stream, to be read from its beginning; it waits for a cluster that recovers. A later reading stands where the first did
/// (`read_at`): elsewhere it would find what that server has lost.
pub(crate) fn read(
    (servers, read_at): (&[Place], &OnceLock<String>),
    run_mark: u64,
    of: &Deployment,
) -> Result<Consumer, SutError> {
    let begun = of.clock.now();
    let mut missing_since = None;
    loop {
        let now = of.clock.now();
        let found = find((servers, read_at.get()), run_mark, of.clock)
            .unwrap_or_else(|error| Found::NotYet(error.to_string()));
        let why = match found {
            Found::Consumer(consumer) => {
                read_at.get_or_init(|| consumer.stands.clone());
                return Ok(*consumer);
            }
            Found::Gone if now >= missing_since.get_or_insert(now).plus(MISSING_FOR) => {
                return Ok(Consumer::of_nothing(run_mark, of.clock));
            }
            Found::Gone => "no server knows the stream".to_owned(),
            Found::NotYet(why) => {
                missing_since = None;
                why
            }
        };
        if now >= begun.plus(READY_WITHIN) || of.stop.load(Ordering::Relaxed) {
            return Err(SutError::Ledger(format!(
                "{why}; a fault that takes servers down has to end before the load does"
            )));
        }
        of.clock.sleep_until(now.plus(ASK_EVERY));
    }
}

fn find(
    (servers, read_at): (&[Place], Option<&String>),
    run_mark: u64,
    clock: clock::Clock,
) -> io::Result<Found> {
    let stream = name(run_mark);
    let mut control = any(servers, clock)?;
    let info = match control.api(&format!("STREAM.INFO.{stream}"), "")? {
        Ok(info) => info,
        Err(Refused { code: NO_SUCH_STREAM, .. }) => return Ok(Found::Gone),
        Err(refused) => return Ok(Found::NotYet(format!("asking for the stream: {refused}"))),
    };
    let leads = leader(&info);
    // Without one, the stream is being recovered, and what it holds is not known yet.
    if servers.len() > 1 && leads.is_empty() {
        return Ok(Found::NotYet("no server leads the stream".to_owned()));
    }
    let last = info["state"]["last_seq"].as_u64().unwrap_or_default();
    for _ in 0..CONSUMERS_MAX {
        // Without a name, the server gives it one that is new: a consumer of an earlier reading would go on where that ended.
        let config = json!({
            "stream_name": stream,
            "config": {
                "deliver_policy": "all", "ack_policy": "none", "replay_policy": "instant",
                "inactive_threshold": 60_000_000_000_u64, "num_replicas": 1, "mem_storage": true,
            },
        });
        let made = match control.api(&format!("CONSUMER.CREATE.{stream}"), &config.to_string())? {
            Ok(made) => made,
            Err(refused) => return Ok(Found::NotYet(format!("making a consumer: {refused}"))),
        };
        let consumer = made["name"].as_str().unwrap_or_default();
        let stands = leader(&made);
        let is_it = read_at.is_none_or(|server| *server == stands);
        if servers.len() == 1 || is_it && is_another(&info, &stands) {
            let next = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
            return Ok(Found::Consumer(Box::new(Consumer {
                control: Some(control),
                run_mark,
                next,
                last,
                stands,
                leads,
                held: VecDeque::new(),
                is_through: false,
                clock,
            })));
        }
        let _ = control.api(&format!("CONSUMER.DELETE.{stream}.{consumer}"), "")?;
    }
    let wanted = read_at.map_or("another one", |server| server);
    Ok(Found::NotYet(format!(
        "`{leads}` leads the stream, and none of {CONSUMERS_MAX} consumers stood on {wanted} that has caught up with it"
    )))
}

/// Whether a server does not lead the stream that is described, and has caught up with the one that does.
fn is_another(stream: &Value, server: &str) -> bool {
    let mut replicas = stream["cluster"]["replicas"].as_array().into_iter().flatten();
    replicas.any(|it| it["name"] == server && it["current"] == true)
}

/// A connection to any server that answers.
fn any(servers: &[Place], clock: clock::Clock) -> io::Result<Control> {
    let addresses: Vec<SocketAddr> = servers.iter().map(|place| place.address).collect();
    let mut last = io::Error::other("there is no server");
    for address in addresses {
        match Control::open(address, clock) {
            Ok(control) => return Ok(control),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The stream being read.
pub(crate) struct Consumer {
    /// Absent: there is no stream any more.
    control: Option<Control>,
    run_mark: u64,
    /// Where the next messages are asked for.
    next: String,
    /// The place of the last message, when the reading began.
    last: u64,
    /// The server that the consumer stands on, and the one that leads the stream; empty where there is one.
    stands: String,
    leads: String,
    held: VecDeque<(u64, Vec<u8>)>,
    is_through: bool,
    clock: clock::Clock,
}

impl Consumer {
    fn of_nothing(run_mark: u64, clock: clock::Clock) -> Self {
        let (next, stands, leads) = (String::new(), String::new(), String::new());
        let (control, held) = (None, VecDeque::new());
        Self { control, run_mark, next, last: 0, stands, leads, held, is_through: true, clock }
    }

    /// Asks for more messages, until there are some or no more come.
    fn more(&mut self) -> io::Result<()> {
        let deadline = self.clock.now().plus(SILENT_FOR);
        while !self.is_through && self.held.is_empty() {
            self.batch()?;
            if self.is_through || !self.held.is_empty() {
                // Messages that came late came all the same.
                continue;
            }
            if self.clock.now() >= deadline {
                self.is_through = true;
            } else {
                self.clock.sleep_until(self.clock.now().plus(ASK_EVERY));
            }
        }
        Ok(())
    }

    /// Asks for more messages once.
    fn batch(&mut self) -> io::Result<()> {
        let Some(control) = &mut self.control else { return Ok(()) };
        self.is_through = self.last == 0;
        let wanted = json!({ "batch": BATCH, "no_wait": true }).to_string();
        control.begin(&self.next, wanted.as_bytes())?;
        for _ in 0..BATCH {
            let answer = control.answer()?;
            match answer.status {
                // No messages; or not as many as were asked for.
                Some(404 | 408) => return Ok(()),
                Some(status) => {
                    return Err(io::Error::other(format!("the consumer answers {status}")));
                }
                None => {}
            }
            let place = place(&answer.reply);
            let place = place.ok_or_else(|| io::Error::other("a message without a place"))?;
            self.held.push_back((place, answer.payload));
            if place >= self.last {
                self.is_through = true;
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The place of a message in its stream, from where it would be acknowledged:
/// `$JS.ACK.<stream>.<consumer>.<delivered>.<place>.<its place in the consumer>.<time>.<pending>`, or the same with domain
/// and account before the stream and a token at the end.
fn place(reply: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(reply).ok()?;
    let tokens: Vec<&str> = text.split('.').collect();
    let at = match tokens.len() {
        9 => 5,
        11.. => 7,
        _ => return None,
    };
    if tokens.starts_with(&["$JS", "ACK"]) { tokens[at].parse().ok() } else { None }
}

impl Ledger for Consumer {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.held.is_empty() {
            if self.is_through {
                self.control = None;
                return Ok(None);
            }
            self.more().map_err(|error| {
                SutError::Ledger(format!("reading the stream at `{}`: {error}", self.stands))
            })?;
        }
        let Some((place, held)) = self.held.pop_front() else { return Ok(None) };
        let (tx, is_ours) = told(self.run_mark, &held).unwrap_or((TxId::MAX, false));
        content.extend_from_slice(&held);
        Ok(Some(LedgerEntry::new(place, tx, is_ours)))
    }

    fn way(&self) -> String {
        match (self.stands.as_str(), self.control.is_some() || !self.next.is_empty()) {
            (_, false) => "no server knew the stream any more".to_owned(),
            ("", true) => {
                "a consumer from the first message on, over a fresh connection".to_owned()
            }
            (stands, true) => {
                format!(
                    "a consumer on `{stands}` from the first message on; `{}` leads",
                    self.leads
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use clock::{Clock, Hand, Instant, WallTime};

    use super::*;

    /// A server that delivers three messages in two batches, the first of which takes longer than a consumer may be silent.
    fn deliver(listener: &TcpListener, hand: &mut Hand) {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let message = |place| format!("MSG s 1 $JS.ACK.S.C.1.{place}.{place}.17.0 2\r\nhi\r\n");
        let no_more = "HMSG s 1 16 16\r\nNATS/1.0 408\r\n\r\n\r\n";
        let mut is_first = true;
        for line in lines.map_while(Result::ok) {
            let mut says = String::new();
            if line == "PING" {
                says.push_str("PONG\r\n");
            } else if line.starts_with("PUB next ") && is_first {
                is_first = false;
                hand.move_to(Instant::ZERO.plus(2 * SILENT_FOR));
                says = message(1) + no_more;
            } else if line.starts_with("PUB next ") {
                says = message(2) + &message(3);
            }
            stream.write_all(says.as_bytes()).unwrap();
        }
    }

    /// Claim: a batch that takes long is not the end of the stream: what follows it is read.
    #[test]
    fn a_late_batch_is_not_the_last() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (clock, mut hand) = Clock::by_hand(Instant::ZERO, WallTime::from_unix_ns(0));
        std::thread::scope(|scope| {
            scope.spawn(|| deliver(&listener, &mut hand));
            let mut consumer = Consumer {
                control: Some(Control::open(address, clock).unwrap()),
                next: "next".to_owned(),
                last: 3,
                is_through: false,
                ..Consumer::of_nothing(7, clock)
            };
            let mut places = Vec::new();
            while let Some(entry) = consumer.next(&mut Vec::new()).unwrap() {
                places.push(entry.position);
            }
            assert_eq!(places, [1, 2, 3]);
        });
    }

    /// Claim: the place of a message is read from both forms that servers write, and from nothing else.
    #[test]
    fn places() {
        assert_eq!(place(b"$JS.ACK.S.C.1.42.43.1700000000.0"), Some(42));
        assert_eq!(place(b"$JS.ACK._.hash.S.C.1.42.43.1700000000.0.token"), Some(42));
        for none in [&b""[..], b"$JS.ACK.S.C.1.x.43.17.0", b"_INBOX.S.C.1.42.43.17.0.a", b"\xff"] {
            assert_eq!(place(none), None);
        }
    }
}
