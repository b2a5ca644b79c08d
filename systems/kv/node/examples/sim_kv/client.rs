//! A client: appends numbers to a list of its own, one after the other, and reads it back. It takes the protocol at its word:
//! after a refusal it appends another number under the same sequence, it repeats what was answered long ago, and it asks
//! replicas for reads that do not lead.

use std::time::Duration;

use clock::Instant;
use kv_node::database::compose::Composer;
use kv_node::database::results::{Given, GivenValue, ResultReader};
use kv_node::database::transaction::Literal;
use kv_node::database::{Status, group};
use kv_node::protocol::{self, NOBODY, Reply, Why, read_reply};
use process::{Connection, Input, Outputs};
use wire::frames::next_frame;

/// After this a request counts as lost.
const PATIENCE: Duration = Duration::from_millis(700);
/// Before it tries another replica.
const PAUSE: Duration = Duration::from_millis(15);
/// A read comes after so many appends.
const READ_EVERY: u64 = 8;
/// The append before the last is sent once more after so many.
const REPEAT_EVERY: u64 = 5;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Append,
    /// An append that was acknowledged before the last one.
    Repetition,
    Read,
}

/// A client.
pub struct Client {
    /// Its name to the database.
    pub name: u64,
    /// The numbers whose appends were acknowledged.
    pub list: Vec<i64>,
    /// It asks for nothing more.
    pub stops: bool,
    /// Nothing of it is outstanding, and it has stopped.
    pub is_idle: bool,
    /// What does not hold.
    pub wrong: Option<String>,
    pub reads: u64,
    replicas: usize,
    at: usize,
    since: Option<u64>,
    connection: Option<Connection>,
    is_welcome: bool,
    request: u64,
    /// The last request.
    asked: Asked,
    /// The next is a read.
    reads_next: bool,
    /// The append before the last comes once more.
    repeats_next: bool,
    /// The number of the next append.
    next: i64,
    /// The next append has been sent, and was neither answered nor refused.
    is_open: bool,
    /// So it was, and was sent again since.
    was_lost: bool,
}

impl Client {
    pub fn new(name: u64, at: usize, replicas: usize) -> Self {
        Self {
            name,
            list: Vec::new(),
            stops: false,
            is_idle: false,
            wrong: None,
            reads: 0,
            replicas,
            at,
            since: None,
            connection: None,
            is_welcome: false,
            request: 0,
            asked: Asked::Nothing,
            reads_next: false,
            repeats_next: false,
            next: 1,
            is_open: false,
            was_lost: false,
        }
    }

    /// How many appends were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        u64::try_from(self.list.len()).expect("few")
    }

    /// The name of its table.
    pub fn table(&self) -> [u8; 8] {
        self.name.to_le_bytes()
    }

    pub fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Wake => {
                if self.connection.is_some() {
                    // Nobody answered in time.
                    self.leave(self.at + 1, out);
                }
                out.dial(self.at);
                out.wake_at(now.plus(PATIENCE));
            }
            Input::Dialled { connection, .. } => {
                if let Some(before) = self.connection.replace(connection) {
                    out.close(before);
                }
                self.is_welcome = false;
                protocol::write_hello(out.send(connection), 0);
                out.wake_at(now.plus(PATIENCE));
            }
            Input::Unreachable { .. } => {
                self.leave(self.at + 1, out);
                out.wake_at(now.plus(PAUSE));
            }
            Input::Bytes(connection, bytes) => self.read(now, connection, bytes, out),
            Input::Closed(connection) if self.connection == Some(connection) => {
                self.connection = None;
                self.leave(self.at + 1, out);
                out.wake_at(now.plus(PAUSE));
            }
            _ => {}
        }
    }

    fn leave(&mut self, to: usize, out: &mut Outputs) {
        if let Some(connection) = self.connection.take() {
            out.close(connection);
        }
        self.at = to % self.replicas;
        self.asked = Asked::Nothing;
    }

    fn read(&mut self, now: Instant, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let mut used = 0;
        while let Ok(Some(frame)) = next_frame(&bytes[used..]) {
            used += frame.used;
            if self.connection == Some(connection) {
                let reply = read_reply(frame.payload).expect("replicas speak the protocol");
                self.reply(now, &reply, out);
            }
        }
        out.used(used);
    }

    fn reply(&mut self, now: Instant, reply: &Reply<'_>, out: &mut Outputs) {
        match reply {
            Reply::Welcome(welcome) if welcome.leader == welcome.replica => {
                self.is_welcome = true;
                self.since.get_or_insert(welcome.position);
                self.ask(now, out);
            }
            // It does not lead, and must not answer a read either.
            Reply::Welcome(_) if !self.is_open && !self.list.is_empty() && !self.stops => {
                self.ask_read(now, out);
            }
            Reply::Welcome(welcome) => self.go_to(now, welcome.leader, out),
            Reply::Refused { number, why, leader, .. } => {
                if *number == self.request && self.asked == Asked::Append {
                    self.was_refused();
                }
                match why {
                    Why::NotLeader => self.go_to(now, *leader, out),
                    _ => out.wake_at(now.plus(PAUSE)),
                }
            }
            Reply::Results { number, results, .. } if *number == self.request => {
                let bytes = results.iter().next().expect("a result for what was asked");
                let result = ResultReader::read(bytes).expect("a result");
                match std::mem::replace(&mut self.asked, Asked::Nothing) {
                    Asked::Nothing => {}
                    Asked::Append => self.has_appended(&result),
                    Asked::Repetition => self.has_repeated(&result),
                    Asked::Read => self.has_read(result),
                }
                if self.is_welcome {
                    self.ask(now, out);
                } else {
                    self.go_to(now, NOBODY, out);
                }
            }
            _ => {}
        }
    }

    fn go_to(&mut self, now: Instant, leader: u8, out: &mut Outputs) {
        let next = if leader == NOBODY { self.at + 1 } else { usize::from(leader) };
        self.leave(next, out);
        out.wake_at(now.plus(PAUSE));
    }

    fn has_appended(&mut self, result: &ResultReader<'_>) {
        match result.status {
            Status::Done => {
                self.list.push(self.next);
                self.next += 1;
                (self.is_open, self.was_lost) = (false, false);
                self.reads_next = self.acknowledged().is_multiple_of(READ_EVERY);
                self.repeats_next =
                    self.acknowledged() > 1 && self.acknowledged().is_multiple_of(REPEAT_EVERY);
            }
            status => {
                self.wrong = Some(format!("an append of client {} ended as {status:?}", self.name))
            }
        }
    }

    /// Nothing of a refused append was or will be carried out. Where none of its earlier ones was lost, its sequence is free
    /// for another number.
    fn was_refused(&mut self) {
        self.asked = Asked::Nothing;
        if !self.was_lost {
            self.next += 1;
            self.is_open = false;
        }
    }

    fn has_repeated(&mut self, result: &ResultReader<'_>) {
        self.repeats_next = false;
        if result.status != Status::TooLate {
            let (name, status) = (self.name, result.status);
            self.wrong = Some(format!("a late repetition of client {name} ended as {status:?}"));
        }
    }

    fn has_read(&mut self, mut result: ResultReader<'_>) {
        self.reads += 1;
        self.reads_next = false;
        let count = match result.next() {
            Ok(Some(Given::Value(_, GivenValue::List(count, _)))) => u64::from(count),
            _ => 0,
        };
        if count != self.acknowledged() {
            self.wrong = Some(format!(
                "client {} has {} acknowledged and reads {count}",
                self.name,
                self.acknowledged()
            ));
        }
    }

    fn ask(&mut self, now: Instant, out: &mut Outputs) {
        let (Some(connection), true) = (self.connection, self.is_welcome) else { return };
        if self.stops && !self.is_open {
            self.is_idle = true;
            out.wake_at(Instant::FAR_FUTURE);
            return;
        }
        if self.reads_next {
            return self.ask_read(now, out);
        }
        self.request += 1;
        let mut bytes = Vec::new();
        group::begin(&mut bytes, self.since.unwrap_or(0));
        if self.repeats_next {
            self.asked = Asked::Repetition;
            let before = self.list.len() - 1;
            self.push_append(&mut bytes, before, self.list[before - 1]);
        } else {
            // One that was sent and neither answered nor refused may still be carried out.
            self.was_lost |= self.is_open;
            (self.asked, self.is_open) = (Asked::Append, true);
            self.push_append(&mut bytes, self.list.len() + 1, self.next);
        }
        protocol::write_submit(out.send(connection), self.request, &bytes);
        out.wake_at(now.plus(PATIENCE));
    }

    fn push_append(&self, bytes: &mut Vec<u8>, sequence: usize, number: i64) {
        let sequence = u64::try_from(sequence).expect("few");
        group::push(bytes, 0, self.name, sequence, |out| {
            let table = self.table();
            let mut composer = Composer::begin(out, &[&table]);
            if sequence == 1 {
                composer.put(0, &[b"list"], Literal::List);
            }
            composer.append(0, &[b"list"], Literal::Integer(number));
        });
    }

    fn ask_read(&mut self, now: Instant, out: &mut Outputs) {
        let Some(connection) = self.connection else { return };
        self.request += 1;
        self.asked = Asked::Read;
        let (mut bytes, mut transaction) = (Vec::new(), Vec::new());
        Composer::begin(&mut transaction, &[&self.table()]).get(0, &[b"list"]);
        let length = u32::try_from(transaction.len()).expect("short");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&transaction);
        protocol::write_read(out.send(connection), self.request, 1, &bytes);
        out.wake_at(now.plus(PATIENCE));
    }
}
