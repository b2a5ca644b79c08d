//! A client: appends numbers to a list of its own, one after the other, and reads it back.

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

/// A client.
pub struct Client {
    /// Its name to the database.
    pub name: u64,
    /// The last number whose append was acknowledged.
    pub acknowledged: u64,
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
    /// The next is a read.
    reads_next: bool,
    /// The next append has been sent before, and its fate is not known.
    is_open: bool,
}

impl Client {
    pub fn new(name: u64, at: usize, replicas: usize) -> Self {
        Self {
            name,
            acknowledged: 0,
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
            reads_next: false,
            is_open: false,
        }
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
                protocol::write_hello(out.send(connection));
                out.wake_at(now.plus(PATIENCE));
            }
            Input::Unreachable { .. } => {
                self.leave(self.at + 1, out);
                out.wake_at(now.plus(PAUSE));
            }
            Input::Bytes(connection, bytes) => self.read(now, connection, bytes, out),
            Input::Closed(connection) if self.connection == Some(connection) => {
                self.connection = None;
                self.at = (self.at + 1) % self.replicas;
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
            Reply::Welcome(welcome) => self.go_to(now, welcome.leader, out),
            Reply::Refused { why: Why::NotLeader, leader, .. } => self.go_to(now, *leader, out),
            Reply::Refused { .. } => out.wake_at(now.plus(PAUSE)),
            Reply::Results { number, results, .. } if *number == self.request => {
                let bytes = results.iter().next().expect("a result for what was asked");
                let result = ResultReader::read(bytes).expect("a result");
                if self.reads_next {
                    self.has_read(result)
                } else {
                    self.has_appended(&result)
                }
                self.ask(now, out);
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
                self.acknowledged += 1;
                self.is_open = false;
                self.reads_next = self.acknowledged.is_multiple_of(READ_EVERY);
            }
            status => {
                self.wrong = Some(format!("an append of client {} ended as {status:?}", self.name))
            }
        }
    }

    fn has_read(&mut self, mut result: ResultReader<'_>) {
        self.reads += 1;
        self.reads_next = false;
        let count = match result.next() {
            Ok(Some(Given::Value(_, GivenValue::List(count, _)))) => u64::from(count),
            _ => 0,
        };
        if count != self.acknowledged {
            self.wrong = Some(format!(
                "client {} has {} acknowledged and reads {count}",
                self.name, self.acknowledged
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
        self.request += 1;
        let table = self.table();
        let mut bytes = Vec::new();
        if self.reads_next {
            let mut transaction = Vec::new();
            Composer::begin(&mut transaction, &[&table]).get(0, &[b"list"]);
            let length = u32::try_from(transaction.len()).expect("short");
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&transaction);
            protocol::write_read(out.send(connection), self.request, 1, &bytes);
        } else {
            let sequence = self.acknowledged + 1;
            self.is_open = true;
            group::begin(&mut bytes, self.since.unwrap_or(0));
            group::push(&mut bytes, 0, self.name, sequence, |out| {
                let mut composer = Composer::begin(out, &[&table]);
                if sequence == 1 {
                    composer.put(0, &[b"list"], Literal::List);
                }
                composer.append(0, &[b"list"], Literal::Integer(sequence.cast_signed()));
            });
            protocol::write_submit(out.send(connection), self.request, &bytes);
        }
        out.wake_at(now.plus(PATIENCE));
    }
}
