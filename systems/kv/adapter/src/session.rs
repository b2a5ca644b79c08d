//! The protocol on one connection: what leaves together is one group, answered in as many replies as it needs. Replies
//! carry the group's number, so an abandoned transaction leaves the connection usable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kv_node::database::Status;
use kv_node::database::group;
use kv_node::database::results::ResultReader;
use kv_node::protocol::{
    self, NOBODY, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, Reads, Reply, VERSION, Why, read_reply,
};
use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};
use wire::frames::{LENGTH_BYTES, next_frame};

use crate::observing::{Observer, Observes};

/// The only stage.
const COMMITTED: u8 = 0;

/// A request is closed before it would be longer.
const OPEN_BYTES_MAX: usize = REQUEST_BYTES_MAX - 1024;

/// Which of a trial's transactions a sequence is: sequences begin at 1.
pub(crate) const fn sequence_of(tx: TxId) -> u64 {
    tx + 1
}

/// The number under which the database knows a client of a trial.
pub(crate) const fn client_number(run_mark: u64, client: u32) -> u64 {
    #[expect(clippy::as_conversions, reason = "From is not const; 32 bits fit into 64")]
    let client = client as u64;
    run_mark << 32 | client
}

/// What all sessions of a trial have in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) run_mark: u64,
    pub(crate) in_flight_max: u32,
    /// The position that was learned before anything was sent for the trial's clients.
    pub(crate) since: u64,
    /// The number of the trial's database: another one that listens where a replica did is not spoken with.
    pub(crate) database: u64,
    /// Whether a transaction whose fate is unknown is sent again: then one that was not taken is, too.
    pub(crate) resends: bool,
    /// Which kinds only read.
    pub(crate) reads: Vec<bool>,
    /// What is kept of answers.
    pub(crate) observes: Observes,
}

/// The state of a connection.
pub(crate) struct KvSession {
    common: Common,
    /// Where the connection is told to go in its next life: the replica that leads.
    leader: Arc<AtomicU8>,
    is_ready: bool,
    /// Transactions that have not left yet: those that write, and those that read.
    writes: Open,
    reads: Open,
    next_number: u64,
    /// Requests that are not answered, in the order of their numbers.
    waiting: VecDeque<Waiting>,
    /// Lists of transactions, kept for their memory.
    spare: Vec<Members>,
    observer: Observer,
}

/// The transactions of a request, in its order.
#[derive(Default)]
struct Members {
    /// Each, and how many of `keys` are its reads.
    ids: Vec<(TxId, u8)>,
    /// What they read, where that is needed to understand the answer.
    keys: Vec<u32>,
}

/// A request that has not left.
#[derive(Default)]
struct Open {
    bytes: Vec<u8>,
    members: Members,
}

/// A request that has left.
struct Waiting {
    number: u64,
    members: Members,
    answered: usize,
    keys_answered: usize,
}

impl KvSession {
    pub(crate) fn new(common: Common, leader: Arc<AtomicU8>) -> Self {
        Self {
            observer: Observer::new(common.observes),
            common,
            leader,
            is_ready: false,
            writes: Open::default(),
            reads: Open::default(),
            next_number: 1,
            waiting: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Sends what is open of one sort.
    fn close(&mut self, is_read: bool, out: &mut Vec<u8>) {
        let open = if is_read { &mut self.reads } else { &mut self.writes };
        if open.members.ids.is_empty() {
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        if is_read {
            let count = u32::try_from(open.members.ids.len()).expect("bounded by the bytes");
            protocol::write_read(out, number, count, &open.bytes);
        } else {
            protocol::write_submit(out, number, &open.bytes);
        }
        open.bytes.clear();
        let spare = self.spare.pop().unwrap_or_default();
        let members = std::mem::replace(&mut open.members, spare);
        self.waiting.push_back(Waiting { number, members, answered: 0, keys_answered: 0 });
    }

    fn reply(&mut self, reply: Reply<'_>, marks: &mut Marks) -> Result<(), ProtocolError> {
        match reply {
            Reply::Welcome(welcome) if !self.is_ready && welcome.version == VERSION => {
                if welcome.leader == welcome.replica {
                    self.is_ready = true;
                } else {
                    self.leader.store(welcome.leader, Ordering::Relaxed);
                    marks.close();
                }
                Ok(())
            }
            Reply::Results { number, first, results } => {
                self.results(number, first, results, marks)
            }
            Reply::Refused { number, why: Why::Busy, .. } => {
                self.refused(number, Class::Overloaded, "busy: too much waits already", marks)
            }
            Reply::Refused { number, why: Why::NotLeader, leader } => {
                self.leader.store(leader, Ordering::Relaxed);
                marks.close();
                if self.common.resends {
                    // Left open, it is sent again where the connection goes next.
                    return Ok(());
                }
                self.refused(number, Class::Server, "this replica does not lead", marks)
            }
            other => {
                Err(strange(&format!("an answer to a question that was not asked: {other:?}")))
            }
        }
    }

    fn results(
        &mut self,
        number: u64,
        first: u32,
        results: Reads<'_>,
        marks: &mut Marks,
    ) -> Result<(), ProtocolError> {
        let place = self.find(number)?;
        let waiting = &mut self.waiting[place];
        if usize::try_from(first) != Ok(waiting.answered) || results.count() == 0 {
            return Err(strange("results that are not the next ones"));
        }
        for bytes in results.iter() {
            let member = waiting.members.ids.get(waiting.answered).copied();
            let (tx, reads) = member.ok_or_else(|| strange("more results than transactions"))?;
            waiting.answered += 1;
            let first = waiting.keys_answered;
            waiting.keys_answered += usize::from(reads);
            let keys = &waiting.members.keys[first..waiting.keys_answered];
            result(tx, bytes, keys, &mut self.observer, marks)?;
        }
        if waiting.answered == waiting.members.ids.len() {
            self.forget(place);
        }
        Ok(())
    }

    fn refused(
        &mut self,
        number: u64,
        class: Class,
        text: &str,
        marks: &mut Marks,
    ) -> Result<(), ProtocolError> {
        let place = self.find(number)?;
        let Waiting { members, answered, .. } = &self.waiting[place];
        for (tx, _) in &members.ids[*answered..] {
            marks.ended(*tx, Outcome::Rejected(class), 0, 0, text);
        }
        self.forget(place);
        Ok(())
    }

    /// The place of a request that waits: nearly always the first, since a log is answered in its order.
    fn find(&self, number: u64) -> Result<usize, ProtocolError> {
        let place = self.waiting.iter().position(|waiting| waiting.number == number);
        place.ok_or_else(|| strange(&format!("an answer to request {number}, which does not wait")))
    }

    fn forget(&mut self, place: usize) {
        if let Some(Waiting { mut members, .. }) = self.waiting.remove(place) {
            members.ids.clear();
            members.keys.clear();
            self.spare.push(members);
        }
    }
}

/// What one result means for its transaction.
fn result(
    tx: TxId,
    bytes: &[u8],
    keys: &[u32],
    observer: &mut Observer,
    marks: &mut Marks,
) -> Result<(), ProtocolError> {
    let read = ResultReader::read(bytes).map_err(|_| strange("a result that is none"))?;
    let length = u32::try_from(bytes.len()).expect("bounded by the frame");
    let (outcome, text) = match read.status {
        Status::Done => {
            // A commit is believed of a whole result alone.
            let mut all = read;
            while all.next().map_err(|_| strange("a result that is cut off"))?.is_some() {}
            marks.reached(tx, COMMITTED, 0, length);
            observer.done(tx, read, keys, marks);
            return Ok(());
        }
        Status::Invalid => (Outcome::Rejected(Class::BadRequest), "invalid"),
        Status::Missing => (Outcome::Rejected(Class::BadRequest), "missing"),
        Status::WrongType => (Outcome::Rejected(Class::BadRequest), "wrong type"),
        Status::ResultTooLong => (Outcome::Rejected(Class::BadRequest), "result too long"),
        Status::CheckFailed => (Outcome::Rejected(Class::Conflict), "check failed"),
        Status::OutOfRange => (Outcome::Rejected(Class::Conflict), "out of range"),
        Status::Full => (Outcome::Rejected(Class::Overloaded), "full"),
        Status::TooManySessions => (Outcome::Rejected(Class::Overloaded), "too many sessions"),
        // It may have been executed when it was sent first.
        Status::TooLate => (Outcome::Unknown, "too late"),
        Status::SessionExpired => (Outcome::Unknown, "session expired"),
    };
    marks.ended(tx, outcome, u16::from(read.status as u8), length, text);
    Ok(())
}

fn strange(why: &str) -> ProtocolError {
    ProtocolError(why.to_owned())
}

impl Session for KvSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        protocol::write_hello(out, self.common.database);
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let is_read = usize::try_from(tx.kind)
            .is_ok_and(|kind| self.common.reads.get(kind).copied().unwrap_or(false));
        let open = if is_read { &self.reads } else { &self.writes };
        if open.bytes.len() + tx.payload.len() > OPEN_BYTES_MAX {
            self.close(is_read, out);
        }
        let length = u32::try_from(tx.payload.len()).expect("bounded by the options");
        let open = if is_read { &mut self.reads } else { &mut self.writes };
        let is_first = open.members.ids.is_empty();
        let reads = self.observer.reads_of(tx.payload, &mut open.members.keys);
        open.members.ids.push((tx.id, reads));
        if is_read {
            self.reads.bytes.extend_from_slice(&length.to_le_bytes());
            self.reads.bytes.extend_from_slice(tx.payload);
        } else {
            if is_first {
                group::begin(&mut self.writes.bytes, self.common.since);
            }
            let client = client_number(self.common.run_mark, tx.client);
            let write = |out: &mut Vec<u8>| out.extend_from_slice(tx.payload);
            group::push(&mut self.writes.bytes, 0, client, sequence_of(tx.id), write);
        }
        length
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        self.close(false, out);
        self.close(true, out);
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while let Some(frame) =
            next_frame(&bytes[used..]).map_err(|error| strange(&error.to_string()))?
        {
            let reply = read_reply(frame.payload);
            self.reply(reply.map_err(|_| strange("bytes that are no reply"))?, marks)?;
            used += frame.used;
        }
        // Known before the rest has come: what announces more is not from a replica.
        if let Some(length) = bytes[used..].first_chunk::<LENGTH_BYTES>()
            && usize::try_from(u32::from_le_bytes(*length)).is_ok_and(|n| n > REPLY_BYTES_MAX)
        {
            return Err(strange("a frame announces more than any reply has"));
        }
        Ok(used)
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.common.in_flight_max
    }

    fn reset(&mut self) {
        self.is_ready = false;
        for open in [&mut self.writes, &mut self.reads] {
            open.bytes.clear();
            open.members.ids.clear();
            open.members.keys.clear();
        }
        self.observer.reset();
        self.waiting.clear();
        self.next_number = 1;
    }
}

/// Nobody is said to lead.
pub(crate) fn nobody() -> Arc<AtomicU8> {
    Arc::new(AtomicU8::new(NOBODY))
}
