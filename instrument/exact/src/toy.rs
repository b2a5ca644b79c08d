//! A system that is a script: nine bytes out (number, kind), nine bytes back (number, word).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use clock::{Instant, WallTime};
use load::Control;
use load::scripted::{Agenda, Happening, Peer, Server};
use model::facts::LedgerEntry;
use model::{Class, Outcome, Seed, TxId};
use sut::{
    Abandon, Deployment, Endpoint, Kind, Link, Made, Marks, ProtocolError, Received, Role, Session,
    SutError, System, Testbed, Transaction, Workload,
};

use crate::script::{Reply, Script, Word};

/// Bytes of a request and of an answer.
const FRAME: usize = 9;

/// The kind of system in `system.kind`.
pub(crate) const KIND: &str = "script";

/// How the toy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The most transactions outstanding on a connection.
    pub in_flight_max: u32,
    /// Whether a connection is of no more use after a timeout on it, as with HTTP/1.1.
    pub closes_after_timeout: bool,
    /// Whether it hears of requests that they were accepted ([`Script::accepting_after`]) before it hears what became of
    /// them: a ladder of two stages, and not of one.
    pub hears_accepted: bool,
}

impl Default for Client {
    /// As HTTP/1.1 is spoken.
    fn default() -> Self {
        Self { in_flight_max: 1, closes_after_timeout: true, hears_accepted: false }
    }
}

impl System for Client {
    fn stages(&self) -> Vec<String> {
        let accepted = self.hears_accepted.then_some("accepted");
        accepted.into_iter().chain(["committed"]).map(str::to_owned).collect()
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("tx")]
    }

    fn deploy(&self, _bed: &mut Testbed) -> Result<Deployment, SutError> {
        Err(SutError::Deploy("a script is no process".to_owned()))
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Numbers)
    }

    fn connect(&self, _to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let address = ([127, 0, 0, 1], 1).into();
        Ok(Link::Wire(Endpoint { address, tls: None }, Box::new(Frames(*self))))
    }
}

struct Numbers;

impl Workload for Numbers {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.extend_from_slice(&id.to_le_bytes());
        Made::of(0, client)
    }
}

struct Frames(Client);

impl Session for Frames {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(tx.payload);
        out.push(0);
        8
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        for answer in bytes.chunks_exact(FRAME) {
            let (tx, word) = (number(answer), answer[FRAME - 1]);
            let mut refused =
                |class, why| marks.ended(tx, Outcome::Rejected(class), word.into(), 0, why);
            match word {
                word if word == Word::Committed as u8 => {
                    marks.reached(tx, self.0.hears_accepted.into(), word.into(), 1);
                }
                word if word == Word::Accepted as u8 && self.0.hears_accepted => {
                    marks.reached(tx, 0, word.into(), 0);
                }
                word if word == Word::Limited as u8 => refused(Class::Limited, "rate limited"),
                word if word == Word::Overloaded as u8 => refused(Class::Overloaded, "queue full"),
                _ => return Err(ProtocolError("no such word".to_owned())),
            }
        }
        Ok(bytes.len() / FRAME * FRAME)
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        if self.0.closes_after_timeout { Abandon::Close } else { Abandon::Keep }
    }

    fn in_flight_max(&self) -> u32 {
        self.0.in_flight_max
    }

    fn reset(&mut self) {}
}

fn number(frame: &[u8]) -> TxId {
    TxId::from_le_bytes(frame[..8].try_into().expect("a frame begins with eight bytes"))
}

/// A request that was done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub tx: TxId,
    pub arrived: Instant,
    pub ended: Instant,
    /// How often it stands in the ledger.
    pub entries: u32,
}

/// The server's work, in the order of requests.
#[derive(Clone, Default)]
pub(crate) struct Stored(Arc<Mutex<Vec<Served>>>);

impl Stored {
    fn add(&self, served: Served) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(served);
    }

    /// All of it, in the order in which things were done.
    pub(crate) fn served(&self) -> Vec<Served> {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        served.sort_by_key(|it| it.ended);
        served
    }

    /// The ledger, in the order in which things were recorded; with their dates, if `dated` gives them.
    pub(crate) fn entries(&self, dated: Option<impl Fn(Instant) -> WallTime>) -> Vec<LedgerEntry> {
        let each = |it: Served| std::iter::repeat_n(it, it.entries as usize);
        let entry = |(position, it): (u64, Served)| LedgerEntry {
            submitted: dated.as_ref().map(|wall| wall(it.arrived)),
            recorded: dated.as_ref().map(|wall| wall(it.ended)),
            ..LedgerEntry::new(position, it.tx, true)
        };
        (0..).zip(self.served().into_iter().flat_map(each)).map(entry).collect()
    }
}

/// The server: the script behind frames.
pub(crate) struct Toy {
    script: Script,
    stored: Stored,
    /// Who ends the trial, and when.
    ending: Option<(Instant, Arc<Control>)>,
    /// Connections that are open, and what of a request came on each.
    rests: BTreeMap<Peer, Vec<u8>>,
    is_awake: bool,
}

impl Toy {
    pub(crate) fn new(
        script: Script,
        stored: Stored,
        ending: Option<(Instant, Arc<Control>)>,
    ) -> Self {
        Self { script, stored, ending, rests: BTreeMap::new(), is_awake: false }
    }

    fn request(&mut self, now: Instant, peer: Peer, tx: TxId, agenda: &mut Agenda) {
        let served = |ended, entries| Served { tx, arrived: now, ended, entries };
        let mut say = |script: &Script, at: Instant, word: Word| {
            let mut answer = [word as u8; FRAME];
            answer[..8].copy_from_slice(&tx.to_le_bytes());
            agenda.send_late(peer, at, script.read_at(at), &answer);
        };
        let reply = self.script.serve(now);
        let done = match reply {
            Reply::Answer { at, word: Word::Committed, .. } | Reply::Silence { at } => Some(at),
            Reply::Answer { .. } | Reply::Reset => None,
        };
        if let (Some(done), Some(after)) = (done, self.script.accepts_after()) {
            say(&self.script, done.min(now.plus(after)), Word::Accepted);
        }
        match reply {
            Reply::Answer { at, word, entries } => {
                if word == Word::Committed {
                    self.stored.add(served(at, entries));
                }
                say(&self.script, at, word);
            }
            Reply::Silence { at } => self.stored.add(served(at, 1)),
            Reply::Reset => agenda.reset(peer, now),
        }
    }

    /// All moments at which something happens whatever is asked.
    fn wake_at(&self, agenda: &mut Agenda) {
        self.script.outages().iter().for_each(|(from, _)| agenda.wake(*from));
        self.ending.iter().for_each(|(at, _)| agenda.wake(*at));
    }
}

impl Server for Toy {
    fn accepts(&mut self, now: Instant) -> Option<Instant> {
        Some(now).filter(|now| !self.script.is_down(*now))
    }

    fn client_runs_at(&self, now: Instant) -> Instant {
        self.script.client_runs_at(now)
    }

    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        match what {
            Happening::Opened(peer) => {
                self.rests.insert(peer, Vec::new());
                if !self.is_awake {
                    self.is_awake = true;
                    self.wake_at(agenda);
                }
            }
            Happening::Bytes(peer, bytes) => {
                let Some(mut rest) = self.rests.remove(&peer) else { return };
                rest.extend_from_slice(bytes);
                let whole = rest.len() / FRAME * FRAME;
                for request in rest[..whole].chunks_exact(FRAME) {
                    self.request(now, peer, number(request), agenda);
                }
                rest.drain(..whole);
                self.rests.insert(peer, rest);
            }
            Happening::Closed(peer) => {
                self.rests.remove(&peer);
            }
            Happening::Woken => {
                if let Some((at, control)) = &self.ending
                    && *at <= now
                {
                    control.stop();
                }
                // An outage begins.
                if self.script.is_down(now) {
                    let peers = std::mem::take(&mut self.rests);
                    peers.keys().for_each(|peer| agenda.reset(*peer, now));
                }
            }
        }
    }
}
