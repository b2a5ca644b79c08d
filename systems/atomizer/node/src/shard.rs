//! The shard as a value: it vouches for inputs, and never vouches twice for one.
//!
//! An atomizer looks for an input only in the blocks above the height at which it was said to be unspent. So whoever
//! says so carries the rule that keeps the ledger right, and this is its code: a shard reads every block from the first on, as
//! archivers have stored them, and vouches for an input at the height of the last of these. It vouches for none that a block
//! has spent, and while a transaction for which it has vouched may still come into a block, for no other one with that input.
//!
//! Several shards divide the inputs by their names. Whoever asks one of them asks all: what is another's is handed on.
//!
//! A shard keeps nothing on a disk. One that is started again reads the blocks anew, and vouches for nothing before it has come
//! to the last; where the archiver has no first block in memory any more it never does, which is safe. Outputs that a ledger
//! begins with are in no block, so a shard cannot tell them from inputs that were never made.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs};

use crate::dials::Dials;
use crate::protocol::block::{Head, read_block};
use crate::protocol::errors::{Error, Why, write_errors};
use crate::protocol::request::{
    Notification, Request, Standing, read_request, read_standing, write_notify, write_standing,
    write_standing_request,
};
use crate::protocol::{
    BLOCK_BYTES_MAX, Hash, Malformed, REQUEST_BYTES_MAX, Refusals, next_frame, put_u64, write_frame,
};
use crate::spent::{Secret, Set};

/// The listener for clients.
pub const CLIENTS_LISTENER: usize = 0;
/// The listener for other shards, which hand on what is this one's.
pub const SHARDS_LISTENER: usize = 1;
/// The listener that tells what was refused.
pub const ERRORS_LISTENER: usize = 2;
/// The listener that says metrics over HTTP.
pub const METRICS_LISTENER: usize = 3;

/// The archiver among a shard's peers; the atomizers come after it, by number, and then the other shards, by number.
const ARCHIVER: usize = 0;

/// How long after an answer that there is no such block yet it is asked for again.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// How often atomizers are asked who leads.
const WHO_LEADS_EVERY: Duration = Duration::from_millis(20);

/// With more than this unsent on a connection, nothing more is handed to it.
const UNSENT_BYTES_MAX: usize = 64 << 20;

/// A way of lying: a fault of a shard, for tests of what finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It vouches for inputs that are spent, as if they were not.
    VouchesTwice,
    /// It says a height that is one higher than that of the last block that it knows, whose spends it has not seen.
    SaysTooHigh,
}

impl Lie {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 2] =
        [("vouches-twice", Self::VouchesTwice), ("says-too-high", Self::SaysTooHigh)];
}

/// Options of a shard, for its whole life.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which of the shards it is: 0, 1, …
    pub number: u8,
    /// How many there are.
    pub shards: u8,
    /// How many atomizers there are.
    pub atomizers: usize,
    /// How many blocks may lie between a height and the block of what is vouched for there: what the atomizers were told.
    pub depth: u64,
    /// Spent inputs that it remembers. With more it vouches for nothing.
    pub spent_max: usize,
    /// Mixed with names before they choose a place in a table.
    pub secret: Secret,
    /// How it lies.
    pub lie: Option<Lie>,
}

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions that a client or another shard asked to vouch for.
    pub asked: u64,
    /// Inputs that it vouched for.
    pub vouched: u64,
    /// Transactions refused because an input of theirs is spent, or was vouched for for another one.
    pub spent: u64,
    /// Transactions refused because no atomizer leads, another shard cannot be reached, or its memory is full.
    pub not_taken: u64,
    /// Connections closed for what they sent, by reason.
    pub refusals: Refusals,
}

/// For whom it has vouched with an input, and at which height last.
#[derive(Clone, Copy, Debug)]
struct Vouched {
    transaction: Hash,
    height: u64,
}

/// A shard.
pub struct Shard {
    options: Options,
    dials: Dials,
    /// By connection: which listener it came to.
    lines: Vec<usize>,
    /// Connections that are told errors.
    listeners: Vec<Connection>,
    /// The last block that was read; none: the ledger has not begun.
    last: Option<Head>,
    /// Inputs of its own that blocks have spent.
    spent: Set,
    /// Inputs of its own whose transactions may still come into a block.
    vouched: HashMap<Hash, Vouched>,
    /// The same by the height from which on they cannot.
    until: BTreeMap<u64, Vec<Hash>>,
    /// The archiver has a question that it has not answered.
    is_asked: bool,
    ask_at: Instant,
    /// Who leads, among its peers.
    leader: Option<usize>,
    who_leads_at: Instant,
    /// Errors that have still to be told, and how many.
    errors: Vec<u8>,
    errors_count: u64,
    /// A block that cannot be: it vouches for nothing any more.
    trouble: Option<&'static str>,
    counts: Counts,
}

impl Shard {
    /// One that has read nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let peers = 1 + options.atomizers + usize::from(options.shards);
        Self {
            options,
            dials: Dials::new(peers).silent_to(ARCHIVER),
            lines: Vec::new(),
            listeners: Vec::new(),
            last: None,
            spent: Set::with_room(options.spent_max.min(1 << 16)),
            vouched: HashMap::new(),
            until: BTreeMap::new(),
            is_asked: false,
            ask_at: Instant::ZERO,
            leader: None,
            who_leads_at: Instant::ZERO,
            errors: Vec::new(),
            errors_count: 0,
            trouble: None,
            counts: Counts::default(),
        }
    }

    /// Its numbers.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The height of the last block that it has read.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.last.map_or(0, |head| head.height)
    }

    /// Why it vouches for nothing any more, if that is so.
    #[must_use]
    pub const fn trouble(&self) -> Option<&'static str> {
        self.trouble
    }

    /// The shard that vouches for an input.
    fn shard_of(&self, input: &Hash) -> u8 {
        let word = input.first_chunk::<8>().expect("a name has 32 bytes");
        let shards = u64::from(self.options.shards.max(1));
        u8::try_from(u64::from_le_bytes(*word) % shards).expect("fewer than 256")
    }

    fn is_spent(&self, input: &Hash) -> bool {
        self.spent.contains(self.options.secret.place(input), input)
    }

    /// Whether it may vouch for an input of this transaction.
    fn may_vouch(&self, input: &Hash, transaction: &Hash) -> bool {
        if self.options.lie == Some(Lie::VouchesTwice) {
            return true;
        }
        let is_others = |it: &Vouched| it.transaction != *transaction;
        !self.is_spent(input) && !self.vouched.get(input).is_some_and(is_others)
    }

    fn read_requests(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let hands_on = self.lines.get(connection.index()) == Some(&CLIENTS_LISTENER);
        let read = out.read_pieces(bytes, |rest, out| {
            let Some(frame) = next_frame(rest, REQUEST_BYTES_MAX)? else { return Ok(None) };
            match read_request(frame.payload)? {
                Request::Notify(it) => self.vouch(&it, hands_on, out),
                Request::Standing => write_standing(out.send(connection), &self.standing()),
                Request::Alive => {}
                _ => return Err(Malformed::Tag),
            }
            Ok(Some(frame.used))
        });
        if let Err(why) = read {
            self.counts.refusals.count(why);
            out.close(connection);
        }
    }

    /// Clients ask it as they ask an atomizer: it says that it leads, since all of them may ask any shard.
    fn standing(&self) -> Standing {
        let number = self.options.number;
        let hash = self.last.map_or([0; 32], |head| head.hash);
        let chain = u64::from_le_bytes(*hash.first_chunk().expect("a hash has 32 bytes"));
        Standing { replica: number, leader: number, height: self.height(), chain, has_vote: true }
    }

    /// Vouches for the inputs that were asked for, as far as they are its own, and hands the others on.
    fn vouch(&mut self, asked: &Notification<'_>, hands_on: bool, out: &mut Outputs) {
        self.counts.asked += 1;
        let transaction = &asked.transaction;
        let mut own = Vec::new();
        let mut others: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for (place, input) in (0..).zip(transaction.inputs) {
            if asked.attested() >> place & 1 == 0 {
                continue;
            }
            match self.shard_of(input) {
                number if number == self.options.number => own.push(place),
                number => others.entry(number).or_default().push(place),
            }
        }
        let to: Option<Vec<(Connection, &Vec<u64>)>> = others
            .iter()
            .map(|(number, places)| Some((self.way_to(*number, out)?, places)))
            .collect();
        let leader = self.leader.and_then(|peer| self.dials.connection_of(peer));
        let leader = leader.filter(|it| out.unsent(*it) <= UNSENT_BYTES_MAX);
        let is_full = self.spent.names().len() + self.vouched.len() >= self.options.spent_max;
        let (Some(leader), Some(to)) = (leader, to.filter(|_| !is_full && self.trouble.is_none()))
        else {
            self.counts.not_taken += 1;
            return self.refuse(transaction.id, Why::NotTaken);
        };
        let input = |place: &u64| &transaction.inputs[usize::try_from(*place).expect("few")];
        let is_refused = |place: &&u64| !self.may_vouch(input(place), transaction.id);
        let refused: Vec<Hash> = own.iter().filter(is_refused).map(|it| *input(it)).collect();
        if !refused.is_empty() {
            self.counts.spent += 1;
            return self.refuse(transaction.id, Why::Spent(&refused));
        }
        if hands_on {
            for (connection, places) in to {
                write_notify(out.send(connection), 0, transaction, places);
            }
        }
        if own.is_empty() {
            return;
        }
        let height = self.height() + u64::from(self.options.lie == Some(Lie::SaysTooHigh));
        own.iter().for_each(|place| self.keep(input(place), transaction.id, height));
        self.counts.vouched += own.len() as u64;
        write_notify(out.send(leader), height, transaction, &own);
    }

    /// The way to another shard, if it can be handed something.
    fn way_to(&self, number: u8, out: &Outputs) -> Option<Connection> {
        let peer = 1 + self.options.atomizers + usize::from(number);
        let way = self.dials.connection_of(peer)?;
        (out.unsent(way) <= UNSENT_BYTES_MAX).then_some(way)
    }

    /// Remembers for whom it has vouched until that is in a block that it has read, or can be in none.
    fn keep(&mut self, input: &Hash, transaction: &Hash, height: u64) {
        let before = self.vouched.insert(*input, Vouched { transaction: *transaction, height });
        if before.is_some_and(|it| it.height == height) {
            return;
        }
        // With `depth` blocks between, it is in the one after these at the latest.
        self.until.entry(height + self.options.depth + 1).or_default().push(*input);
    }

    fn refuse(&mut self, id: &Hash, why: Why<'_>) {
        Error { id, why }.write(&mut self.errors);
        self.errors_count += 1;
    }

    /// Answers of the archiver: a flag and a block.
    fn read_archive(&mut self, now: Instant, bytes: &[u8], out: &mut Outputs) -> Option<Malformed> {
        let read = out.read_pieces(bytes, |rest, _| {
            let Some(frame) = next_frame(rest, BLOCK_BYTES_MAX + 1)? else { return Ok(None) };
            self.is_asked = false;
            match frame.payload.split_first() {
                Some((0, [])) => self.ask_at = now.plus(ASK_EVERY),
                Some((1, block)) => {
                    self.take_block(block)?;
                    self.ask_at = now;
                }
                _ => return Err(Malformed::Tag),
            }
            Ok(Some(frame.used))
        });
        read.err()
    }

    fn take_block(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let block = read_block(payload)?;
        if !block.is_as_hashed() {
            return Err(Malformed::Hash);
        }
        if !block.head.follows(self.last.as_ref()) {
            self.trouble = Some("the archiver has a block that does not follow the one before it");
            return Ok(());
        }
        self.last = Some(block.head);
        for transaction in block.transactions() {
            for input in transaction.inputs {
                if self.shard_of(input) != self.options.number {
                    continue;
                }
                let place = self.options.secret.place(input);
                if !self.spent.contains(place, input) {
                    self.spent.insert(&self.options.secret, place, input);
                }
            }
        }
        let height = block.head.height;
        while let Some(over) = self.until.first_entry().filter(|it| *it.key() <= height) {
            for input in over.remove() {
                let is_over = |it: &Vouched| it.height + self.options.depth < height;
                if self.vouched.get(&input).is_some_and(is_over) {
                    self.vouched.remove(&input);
                }
            }
        }
        Ok(())
    }

    /// An atomizer's standings: whether it leads.
    fn read_leaders(&mut self, peer: usize, bytes: &[u8], out: &mut Outputs) -> Option<Malformed> {
        let read = out.read_pieces(bytes, |rest, _| {
            let Some(frame) = next_frame(rest, REQUEST_BYTES_MAX)? else { return Ok(None) };
            let standing = read_standing(frame.payload)?;
            if standing.leader == standing.replica {
                self.leader = Some(peer);
            } else {
                self.leader.take_if(|it| *it == peer);
            }
            Ok(Some(frame.used))
        });
        read.err()
    }

    fn read_peer(
        &mut self,
        now: Instant,
        connection: Connection,
        peer: usize,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let ended = match peer {
            ARCHIVER => self.read_archive(now, bytes, out),
            peer if peer <= self.options.atomizers => self.read_leaders(peer, bytes, out),
            _ => {
                // Shards hand on, and say nothing to whoever has dialled them.
                out.used(bytes.len());
                Some(Malformed::Tag)
            }
        };
        if let Some(why) = ended {
            self.counts.refusals.count(why);
            self.closed(now, connection);
            out.close(connection);
        }
    }

    fn closed(&mut self, now: Instant, connection: Connection) {
        match self.dials.closed(now, connection) {
            Some(ARCHIVER) => self.is_asked = false,
            Some(peer) => {
                self.leader.take_if(|it| *it == peer);
            }
            None => {
                self.listeners.retain(|it| *it != connection);
            }
        }
    }

    fn ask(&mut self, now: Instant, out: &mut Outputs) {
        if !self.is_asked
            && self.trouble.is_none()
            && let Some(archiver) = self.dials.connection_of(ARCHIVER)
        {
            if self.ask_at <= now {
                self.is_asked = true;
                let next = self.height() + 1;
                write_frame(out.send(archiver), |out| put_u64(out, next));
            } else {
                wake(self.ask_at, out);
            }
        }
        if self.who_leads_at <= now {
            self.who_leads_at = now.plus(WHO_LEADS_EVERY);
            let atomizers =
                (1..=self.options.atomizers).filter_map(|it| self.dials.connection_of(it));
            atomizers.for_each(|it| write_standing_request(out.send(it)));
        }
        wake(self.who_leads_at, out);
    }

    fn tell_errors(&mut self, out: &mut Outputs) {
        if self.errors_count == 0 {
            return;
        }
        for listener in &self.listeners {
            if out.unsent(*listener) <= UNSENT_BYTES_MAX {
                write_errors(out.send(*listener), self.errors_count, &self.errors);
            }
        }
        self.errors.clear();
        self.errors_count = 0;
    }

    fn text(&self) -> String {
        let numbers: [wire::metrics::Number; 6] = [
            ("shard_height", false, "The height of the last block read.", self.height()),
            ("shard_asked_total", true, "Transactions asked to vouch for.", self.counts.asked),
            ("shard_vouched_total", true, "Inputs vouched for.", self.counts.vouched),
            ("shard_spent_total", true, "Transactions refused as spent.", self.counts.spent),
            ("shard_not_taken_total", true, "Transactions not taken.", self.counts.not_taken),
            ("shard_pending", false, "Inputs that wait for a block.", self.vouched.len() as u64),
        ];
        wire::metrics::text(&numbers) + &self.counts.refusals.text("shard_malformed_total")
    }
}

/// Wakes at this time or before.
fn wake(at: Instant, out: &mut Outputs) {
    let at = out.wake().map_or(at, |wake| wake.min(at));
    out.wake_at(at);
}

impl Node for Shard {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Dialled { connection, peer } => self.dials.up(peer, connection),
            Input::Unreachable { peer } => self.dials.unreachable(now, peer),
            Input::Opened { connection, listener } => {
                if self.lines.len() <= connection.index() {
                    self.lines.resize(connection.index() + 1, CLIENTS_LISTENER);
                }
                self.lines[connection.index()] = listener;
                if listener == ERRORS_LISTENER {
                    self.listeners.push(connection);
                }
            }
            Input::Bytes(connection, bytes) => {
                let line = self.lines.get(connection.index()).copied();
                match (self.dials.peer_of(connection), line) {
                    (Some(peer), _) => self.read_peer(now, connection, peer, bytes, out),
                    (None, Some(METRICS_LISTENER)) => {
                        let (used, is_over) =
                            wire::metrics::serve(bytes, || self.text(), out.send(connection));
                        out.used(used);
                        if is_over {
                            out.close(connection);
                        }
                    }
                    (None, Some(ERRORS_LISTENER)) => out.used(bytes.len()),
                    (None, _) => self.read_requests(connection, bytes, out),
                }
            }
            Input::Closed(connection) => self.closed(now, connection),
            _ => {}
        }
        self.tell_errors(out);
        self.ask(now, out);
        self.dials.dial(now, out);
    }
}
