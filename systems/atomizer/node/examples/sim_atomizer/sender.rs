//! A sender: it makes transactions, vouches for their inputs truthfully, follows the blocks, and sends again what no block
//! has while it may still be in one. Each input of a transaction has a shard that vouches for it and knows nothing of the other
//! input; the second is later than the first. Now and then it breaks the protocol.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use atomizer_node::protocol::block::{Part, Stream};
use atomizer_node::protocol::request::{self, NOBODY, read_standing};
use atomizer_node::protocol::transaction::Transaction;
use atomizer_node::protocol::{Hash, next_frame, write_frame};
use clock::Instant;
use process::{Connection, Input, Outputs};

/// The atomizers of a world, and the blocks for which its transactions stay valid.
pub const ATOMIZERS: usize = 3;
pub const DEPTH: u64 = 2;
/// How often it looks what is to be done.
const LOOK: Duration = Duration::from_millis(10);
/// After this without a word it asks who leads.
const PATIENCE: Duration = Duration::from_millis(250);
/// Transactions that are in no block yet, at most.
const PENDING_MAX: usize = 24;

/// A transaction that is in no block.
struct Pending {
    inputs: Vec<Hash>,
    /// At this height its inputs were unspent.
    height: u64,
    /// It is not sent before.
    send_at: Instant,
    /// The second input's shard says nothing before.
    second_at: Instant,
    /// How many of the two shards have vouched.
    vouched: usize,
}

/// A block that was heard of: the names and inputs of its transactions.
#[derive(Clone, Default)]
struct Heard {
    transactions: Vec<(Hash, Vec<Hash>)>,
    hash: u64,
}

/// A sender.
pub struct Sender {
    pub name: u8,
    /// Every block up to here was seen.
    pub height: u64,
    /// A number for each of them that says what is in it.
    pub chain: Vec<u64>,
    /// Its own transactions in blocks.
    pub committed: u64,
    /// Its own transactions that lost an input to another.
    pub spent: u64,
    pub stops: bool,
    pub wrong: Option<String>,
    next: u64,
    pending: BTreeMap<Hash, Pending>,
    /// Transactions that have lost their first input after its shard has vouched: the other shard does not know.
    orphans: Vec<(Hash, Vec<Hash>)>,
    /// Breaks the protocol: the leader gets a transaction of which half is vouched for.
    halves: Vec<(Hash, Vec<Hash>)>,
    says_prune: bool,
    spent_inputs: HashSet<Hash>,
    /// Where it sends, and over what.
    at: usize,
    to: Option<Connection>,
    said_at: Instant,
    /// By connection: blocks that are read there.
    readings: BTreeMap<Connection, (Stream, Heard)>,
    /// The connection to the archiver.
    archiver: Option<Connection>,
    early: BTreeMap<u64, Heard>,
    dial_at: [Instant; 2 * ATOMIZERS + 1],
    dialling: [bool; 2 * ATOMIZERS + 1],
    asked_at: Instant,
    /// When something was said to those that it only listens to.
    alive_at: Instant,
}

impl Sender {
    pub fn new(name: u8) -> Self {
        Self {
            name,
            height: 0,
            chain: Vec::new(),
            committed: 0,
            spent: 0,
            stops: false,
            wrong: None,
            next: 0,
            pending: BTreeMap::new(),
            orphans: Vec::new(),
            halves: Vec::new(),
            says_prune: false,
            spent_inputs: HashSet::new(),
            at: usize::from(name) % ATOMIZERS,
            to: None,
            said_at: Instant::ZERO,
            readings: BTreeMap::new(),
            archiver: None,
            early: BTreeMap::new(),
            dial_at: [Instant::ZERO; 2 * ATOMIZERS + 1],
            dialling: [false; 2 * ATOMIZERS + 1],
            asked_at: Instant::ZERO,
            alive_at: Instant::ZERO,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.stops && self.pending.is_empty()
    }

    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    pub fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Wake => self.look(now, out),
            Input::Dialled { connection, peer } => self.dialled(now, connection, peer, out),
            Input::Unreachable { peer } => {
                self.dialling[peer] = false;
                self.dial_at[peer] = now.plus(PATIENCE / 8);
                if peer < ATOMIZERS {
                    self.at = (self.at + 1) % ATOMIZERS;
                }
            }
            Input::Bytes(connection, bytes) => self.read(now, connection, bytes, out),
            Input::Closed(connection) => self.closed(now, connection),
            _ => {}
        }
    }

    fn dialled(&mut self, now: Instant, connection: Connection, peer: usize, out: &mut Outputs) {
        self.dialling[peer] = false;
        if peer < ATOMIZERS {
            if let Some(before) = self.to.replace(connection) {
                out.close(before);
            }
            self.said_at = now;
            request::write_standing_request(out.send(connection));
            // What was sent elsewhere may be lost.
            self.pending.values_mut().for_each(|it| it.vouched = 0);
        } else if peer < 2 * ATOMIZERS {
            self.dial_at[peer] = Instant::FAR_FUTURE;
            self.readings.insert(connection, (Stream::default(), Heard::default()));
        } else {
            self.dial_at[peer] = Instant::FAR_FUTURE;
            self.archiver = Some(connection);
        }
    }

    fn closed(&mut self, now: Instant, connection: Connection) {
        if self.to == Some(connection) {
            self.to = None;
            self.at = (self.at + 1) % ATOMIZERS;
        } else if self.archiver == Some(connection) {
            self.archiver = None;
            self.dial_at[2 * ATOMIZERS] = now.plus(LOOK);
        } else if self.readings.remove(&connection).is_some() {
            // Whose it was it does not know: all that are there may be dialled again, and say the same twice.
            for peer in ATOMIZERS..2 * ATOMIZERS {
                self.dial_at[peer] = self.dial_at[peer].min(now.plus(LOOK));
            }
        }
    }

    fn look(&mut self, now: Instant, out: &mut Outputs) {
        out.wake_at(now.plus(LOOK));
        if self.to.is_none() && !self.dialling[..ATOMIZERS].contains(&true) {
            self.dialling[self.at] = true;
            out.dial(self.at);
        }
        for peer in ATOMIZERS..=2 * ATOMIZERS {
            if self.dial_at[peer] <= now && !self.dialling[peer] {
                self.dialling[peer] = true;
                out.dial(peer);
            }
        }
        self.ask_for_missing(now, out);
        if now.saturating_since(self.alive_at) > PATIENCE {
            self.alive_at = now;
            // One that only listens never learns that the other side has lost its power.
            for listening in self.readings.keys() {
                request::write_alive(out.send(*listening));
            }
        }
        let Some(to) = self.to else { return };
        if now.saturating_since(self.said_at) > PATIENCE {
            self.said_at = now;
            request::write_standing_request(out.send(to));
        }
        while !self.stops && self.pending.len() < PENDING_MAX {
            self.make(now);
        }
        self.send(now, to, out);
    }

    fn ask_for_missing(&mut self, now: Instant, out: &mut Outputs) {
        let is_missing = self.early.keys().next().is_some_and(|first| *first > self.height + 1);
        if let Some(archiver) = self.archiver
            && (is_missing || self.stops)
            && now.saturating_since(self.asked_at) > 4 * LOOK
        {
            self.asked_at = now;
            for height in self.height + 1..=self.height + 4 {
                let out = out.send(archiver);
                write_frame(out, |out| out.extend_from_slice(&height.to_le_bytes()));
            }
        }
    }

    /// A transaction of two inputs; each eighth comes with another one that spends one of them.
    fn make(&mut self, now: Instant) {
        let number = self.next;
        self.next += 1;
        let inputs = vec![self.hash(1, number), self.hash(2, number)];
        let pending = |inputs, delay| Pending {
            inputs,
            height: self.height,
            send_at: now.plus(delay),
            second_at: now.plus(delay + LOOK * u32::try_from(number % 7).expect("a few")),
            vouched: 0,
        };
        let first = pending(inputs.clone(), Duration::ZERO);
        let second = pending(vec![inputs[1], self.hash(3, number)], Duration::from_millis(45));
        self.pending.insert(self.hash(0, number), first);
        if number.is_multiple_of(8) {
            self.pending.insert(self.hash(9, number), second);
        }
        let old = self.hash(1, number.saturating_sub(200));
        if number.is_multiple_of(16) && self.spent_inputs.contains(&old) {
            self.halves.push((self.hash(5, number), vec![self.hash(4, number), old]));
        }
        self.says_prune |= number % 256 == 255;
    }

    fn hash(&self, kind: u8, number: u64) -> Hash {
        let mut hash = [self.name; 32];
        hash[0] = kind;
        hash[8..16].copy_from_slice(&number.to_le_bytes());
        hash
    }

    fn send(&mut self, now: Instant, to: Connection, out: &mut Outputs) {
        let height = self.height;
        for (id, it) in &mut self.pending {
            if it.height + DEPTH < height {
                // None of its inputs is spent at the height that was seen: else it would not be here any more.
                it.height = height;
                (it.vouched, it.second_at) = (0, now);
            }
            if it.vouched == 0 && it.send_at <= now {
                it.vouched = 1;
                write_half(out.send(to), it.height, id, &it.inputs, 0);
            }
            if it.vouched == 1 && it.second_at <= now {
                it.vouched = 2;
                write_half(out.send(to), height, id, &it.inputs, 1);
            }
        }
        for (id, inputs) in self.orphans.drain(..) {
            write_half(out.send(to), height, &id, &inputs, 1);
        }
        for (id, inputs) in self.halves.drain(..) {
            write_half(out.send(to), height, &id, &inputs, 0);
        }
        if std::mem::take(&mut self.says_prune)
            && let Some(listening) = self.readings.keys().min()
        {
            // By turns it says that it is an archiver, of which it has to know the key.
            let listening = out.send(*listening);
            if self.next % 512 > 255 {
                request::write_archiver(listening, 0, &[0; 32]);
            }
            request::write_prune(listening, 1 << 63);
        }
    }

    fn read(&mut self, now: Instant, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        if let Some((mut stream, mut heard)) = self.readings.remove(&connection) {
            let used = stream.read(bytes, |part| self.part(&mut heard, &part));
            out.used(used.expect("atomizers speak the protocol"));
            self.readings.insert(connection, (stream, heard));
        } else if self.archiver == Some(connection) {
            self.read_archived(bytes, out);
        } else {
            let mut used = 0;
            while let Ok(Some(frame)) = next_frame(&bytes[used..], 64) {
                used += frame.used;
                if self.to == Some(connection) {
                    self.said_at = now;
                    let standing = read_standing(frame.payload).expect("a standing");
                    if standing.leader != standing.replica {
                        self.to = None;
                        out.close(connection);
                        let is_known = standing.leader != NOBODY;
                        self.at = if is_known { standing.leader.into() } else { self.at + 1 };
                        self.at %= ATOMIZERS;
                    }
                }
            }
            out.used(used);
        }
        self.follow();
    }

    fn read_archived(&mut self, bytes: &[u8], out: &mut Outputs) {
        let mut used = 0;
        while let Ok(Some(frame)) = next_frame(&bytes[used..], 1 << 20) {
            used += frame.used;
            if let Some((1, block)) = frame.payload.split_first() {
                let mut framed = Vec::new();
                write_frame(&mut framed, |out| out.extend_from_slice(block));
                let mut heard = Heard::default();
                let each = |part: Part<'_>| self.part(&mut heard, &part);
                Stream::default().read(&framed, each).expect("the archiver stores blocks");
            }
        }
        out.used(used);
    }

    fn part(&mut self, heard: &mut Heard, part: &Part<'_>) {
        match part {
            Part::Pruned { .. } => {}
            Part::Begin { height, .. } => *heard = Heard { hash: *height, ..Heard::default() },
            Part::Transaction(it) => {
                for byte in it.id {
                    heard.hash = (heard.hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
                }
                heard.transactions.push((*it.id, it.inputs.to_vec()));
            }
            Part::End { height } => {
                let heard = std::mem::take(heard);
                let known = match self.chain.get((height - 1) as usize) {
                    Some(hash) => *hash == heard.hash,
                    None => self.early.get(height).is_none_or(|it| it.hash == heard.hash),
                };
                if !known {
                    self.wrong = Some(format!("block {height} is said in two ways"));
                }
                self.early.insert(*height, heard);
            }
        }
    }

    /// Goes on with the blocks that come next.
    fn follow(&mut self) {
        self.early.retain(|height, _| *height > self.height);
        while let Some(block) = self.early.remove(&(self.height + 1)) {
            self.height += 1;
            self.chain.push(block.hash);
            for (id, inputs) in &block.transactions {
                for input in inputs {
                    if !self.spent_inputs.insert(*input) {
                        let height = self.height;
                        self.wrong = Some(format!("an input is spent twice, in block {height}"));
                    }
                }
                self.committed += u64::from(self.pending.remove(id).is_some());
            }
            let before = self.pending.len();
            let spent = &self.spent_inputs;
            let orphans = &mut self.orphans;
            self.pending.retain(|id, it| {
                let is_spent = |place: usize| spent.contains(&it.inputs[place]);
                if it.vouched == 1 && is_spent(0) && !is_spent(1) {
                    orphans.push((*id, it.inputs.clone()));
                }
                !is_spent(0) && !is_spent(1)
            });
            self.spent += (before - self.pending.len()) as u64;
        }
    }
}

/// The shard of one input vouches for it.
fn write_half(out: &mut Vec<u8>, height: u64, id: &Hash, inputs: &[Hash], place: u64) {
    let transaction = Transaction { id, inputs, outputs: &[*id] };
    request::write_notify(out, height, &transaction, &[place]);
}
