//! Primary, backup and clients.

use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs, Stored};
use sim::{Machine, Process, Settings, Target, World};

pub const CLIENTS: usize = 3;
const WISHES: u64 = 2_000;
const PATIENCE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    AcksBeforeSync,
    DialsOnce,
}

#[derive(Debug)]
pub enum Toy {
    Primary(Primary),
    Backup(Backup),
    Client(Client),
}

impl Node for Toy {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match self {
            Self::Primary(it) => it.step(now, input, out),
            Self::Backup(it) => it.step(input, out),
            Self::Client(it) => it.step(now, input, out),
        }
    }
}

/// Reads whole words of eight bytes.
fn words(bytes: &[u8], out: &mut Outputs) -> Vec<u64> {
    let whole = bytes.len() / 8 * 8;
    out.used(whole);
    bytes[..whole]
        .chunks_exact(8)
        .map(|it| u64::from_le_bytes(it.try_into().expect("eight")))
        .collect()
}

fn kept(stored: &Stored) -> Vec<u64> {
    stored.logs[0].iter().map(|(_, it)| u64::from_le_bytes(it.try_into().expect("eight"))).collect()
}

/// Keeps what clients send, in one order.
#[derive(Debug)]
pub struct Primary {
    broken: Broken,
    log: Vec<u64>,
    durable: usize,
    backup: Option<Connection>,
    /// How many the backup has on its disk, once it has said.
    backed: Option<usize>,
    /// Who waits for which place in the log.
    waiting: Vec<(usize, Connection)>,
    /// What the backup had said at the last wake-up.
    heard: Option<Option<usize>>,
    lives: u32,
}

impl Primary {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Wake => {
                out.wake_at(now.plus(PATIENCE));
                // A backup that has lost its power does not say so: it is silent.
                let is_silent = self.heard.replace(self.backed) == Some(self.backed);
                if is_silent && (self.broken != Broken::DialsOnce || self.lives == 0) {
                    if let Some(connection) = self.backup.take() {
                        out.close(connection);
                    }
                    self.lives += 1;
                    self.backed = None;
                    out.dial(0);
                }
            }
            Input::Dialled { connection, .. } => {
                if let Some(before) = self.backup.replace(connection) {
                    out.close(before);
                }
                self.backed = None;
            }
            Input::Bytes(connection, bytes) if self.backup == Some(connection) => {
                for word in words(bytes, out) {
                    let count = usize::try_from(word).expect("small");
                    if self.backed.is_none() {
                        for number in &self.log[count..self.durable] {
                            out.send(connection).extend_from_slice(&number.to_le_bytes());
                        }
                    }
                    self.backed = Some(count);
                }
                self.answer(out);
            }
            Input::Bytes(connection, bytes) => {
                for number in words(bytes, out) {
                    let place = self.log.iter().position(|it| *it == number).unwrap_or_else(|| {
                        self.log.push(number);
                        out.append(0, &number.to_le_bytes());
                        self.log.len() - 1
                    });
                    self.waiting.push((place, connection));
                }
                self.answer(out);
            }
            Input::Persisted { below, .. } => {
                let below = usize::try_from(below).expect("small");
                // Not before: a backup that has more than its primary is another mistake.
                if let Some(backup) = self.backup.filter(|_| self.backed.is_some()) {
                    for number in &self.log[self.durable..below] {
                        out.send(backup).extend_from_slice(&number.to_le_bytes());
                    }
                }
                self.durable = below;
                self.answer(out);
            }
            Input::Closed(connection) if self.backup == Some(connection) => {
                (self.backup, self.backed) = (None, None);
            }
            Input::Closed(connection) => self.waiting.retain(|(_, it)| *it != connection),
            _ => {}
        }
    }

    fn answer(&mut self, out: &mut Outputs) {
        let both = match self.broken {
            Broken::AcksBeforeSync => self.log.len(),
            _ => self.durable.min(self.backed.unwrap_or(0)),
        };
        self.waiting.retain(|(place, connection)| {
            let is_safe = *place < both;
            if is_safe {
                out.send(*connection).extend_from_slice(&self.log[*place].to_le_bytes());
            }
            !is_safe
        });
    }
}

/// Keeps what the primary sends.
#[derive(Debug)]
pub struct Backup {
    count: u64,
    primary: Option<Connection>,
    durable: u64,
}

impl Backup {
    fn step(&mut self, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, .. } => {
                // The one before it is dead, or will be: what it still brings would come twice.
                if let Some(before) = self.primary.replace(connection) {
                    out.close(before);
                }
                out.send(connection).extend_from_slice(&self.count.to_le_bytes());
            }
            Input::Bytes(connection, bytes) => {
                for number in words(bytes, out) {
                    if self.primary == Some(connection) {
                        out.append(0, &number.to_le_bytes());
                        self.count += 1;
                    }
                }
            }
            Input::Persisted { below, .. } => {
                self.durable = below;
                if let Some(primary) = self.primary {
                    out.send(primary).extend_from_slice(&below.to_le_bytes());
                }
            }
            Input::Closed(connection) if self.primary == Some(connection) => self.primary = None,
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Number(u64),
    Done,
}

/// Wants one number after another to be kept.
#[derive(Debug)]
pub struct Client {
    first: u64,
    pub wish: Wish,
    pub acknowledged: Vec<u64>,
    connection: Option<Connection>,
    since: Instant,
}

impl Client {
    fn ask(&mut self, now: Instant, out: &mut Outputs) {
        self.since = now;
        out.wake_at(now.plus(PATIENCE));
        match (self.wish, self.connection) {
            (Wish::Number(number), Some(connection)) => {
                out.send(connection).extend_from_slice(&number.to_le_bytes());
            }
            (Wish::Number(_), None) => out.dial(0),
            (Wish::Done, _) => {}
        }
    }

    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Wake => {
                if let Some(connection) = self.connection.take() {
                    out.close(connection);
                }
                self.ask(now, out);
            }
            Input::Dialled { connection, .. } => {
                if let Some(before) = self.connection.replace(connection) {
                    out.close(before);
                }
                self.ask(now, out);
            }
            Input::Bytes(_, bytes) => {
                for number in words(bytes, out) {
                    if self.wish == Wish::Number(number) {
                        self.acknowledged.push(number);
                        let next = number + 1;
                        let is_last = next == self.first + WISHES;
                        self.wish = if is_last { Wish::Done } else { Wish::Number(next) };
                        self.ask(now, out);
                    }
                }
            }
            Input::Closed(connection) if self.connection == Some(connection) => {
                self.connection = None
            }
            _ => {}
        }
    }
}

/// A primary, its backup, and clients.
pub fn world(seed: u64, broken: Broken) -> World<Toy> {
    let mut world = World::new(seed, Settings::default());
    let machine = |peers: Vec<Target>, logs| Machine { peers, logs, cells: 0 };
    let target = |process| Target { process, machine: 0, listener: 0 };
    let process = |name: String, machine| Process { name, machines: vec![machine] };
    world.add(
        process("primary".to_owned(), machine(vec![target(1)], 1)),
        Box::new(move |start| {
            let log = kept(&start.stored[0]);
            vec![Toy::Primary(Primary {
                broken,
                durable: log.len(),
                log,
                backup: None,
                backed: None,
                waiting: Vec::new(),
                heard: Some(None),
                lives: 0,
            })]
        }),
    );
    world.add(
        process("backup".to_owned(), machine(Vec::new(), 1)),
        Box::new(|start| {
            let count = u64::try_from(kept(&start.stored[0]).len()).expect("small");
            vec![Toy::Backup(Backup { count, primary: None, durable: count })]
        }),
    );
    for client in 0..CLIENTS {
        let first = u64::try_from(client).expect("small") * 1_000_000;
        world.add(
            process(format!("client{client}"), machine(vec![target(0)], 0)),
            Box::new(move |start| {
                vec![Toy::Client(Client {
                    first,
                    wish: Wish::Number(first),
                    acknowledged: Vec::new(),
                    connection: None,
                    since: start.now,
                })]
            }),
        );
    }
    world
}

/// What was acknowledged is in the primary's log, on its disk, whenever it is up.
pub fn invariant(world: &mut World<Toy>, process: usize) -> Result<(), String> {
    if process < 2 {
        return Ok(());
    }
    let Some(Toy::Client(client)) = world.node(process, 0) else { return Ok(()) };
    let Some(last) = client.acknowledged.last().copied() else { return Ok(()) };
    match world.node(0, 0) {
        Some(Toy::Primary(primary)) => {
            let durable = &primary.log[..primary.durable];
            if durable.contains(&last) {
                return Ok(());
            }
            Err(format!("{last} is acknowledged and not on the disk of the primary"))
        }
        _ => Ok(()),
    }
}

pub fn acknowledged(world: &World<Toy>) -> u64 {
    (2..2 + CLIENTS)
        .map(|process| match world.node(process, 0) {
            Some(Toy::Client(client)) => u64::try_from(client.acknowledged.len()).expect("small"),
            _ => 0,
        })
        .sum()
}
