//! The database as a value: transactions in, results out, nothing else. The same transactions in the same order give the
//! same results and the same state in every replica.
//!
//! The way of a transaction: [`group`] is how it stands in the log, `sessions` says whether it has been executed before,
//! [`transaction`] reads it in place, `execute` carries out its operations on the `tables` and takes them back if one
//! fails, `results` says what came of it. [`snapshot`] writes and reads the whole. Nothing here does I/O or knows a clock.

pub mod compose;
mod execute;
mod fuzz;
pub mod group;
mod hash;
mod list;
mod map;
pub mod results;
mod sessions;
pub mod snapshot;
mod tables;
#[cfg(test)]
mod tests;
mod text;
pub mod transaction;

pub use fuzz::fuzz_transaction;
use group::Request;
use sessions::{Admitted, Sessions};
use snapshot::Freeze;
use tables::{Change, Tables};
use transaction::Transaction;

/// The longest result of a transaction.
pub const RESULT_BYTES_MAX: usize = 1 << 20;

/// How many transactions [`Database::look_ahead`] takes at once: as many loads as a processor has under way.
pub const LOOKED_AHEAD: usize = 16;

/// What bounds the database. All replicas must have the same: what is refused is part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From here on nothing is executed that needs memory; in bytes as `Tables` counts them, of which a process takes up
    /// to twice as many.
    pub bytes_max: u64,
    /// Client sessions that are kept.
    pub sessions_max: u64,
    /// A session is forgotten for a new one only after so many transactions of others; at least 1.
    pub session_idle_min: u64,
    /// Broken on purpose, for tests of tests: what is sent again is executed again.
    #[doc(hidden)]
    pub forgets_results: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 4 << 30,
            sessions_max: 1 << 20,
            session_idle_min: 1 << 20,
            forgets_results: false,
        }
    }
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// All of it is done.
    Done = 0,
    /// Its bytes are not a transaction, or it writes where only reads are taken.
    Invalid = 1,
    /// A map on its way, or the table, is not there.
    Missing = 2,
    /// What is there is of another type than the operation needs.
    WrongType = 3,
    /// A value or version is not the one that was demanded.
    CheckFailed = 4,
    /// Less than the floor would be left, or the number would be too large.
    OutOfRange = 5,
    /// The bound on memory is reached.
    Full = 6,
    /// The client's session has executed a later sequence.
    TooLate = 7,
    /// The client's session was forgotten, or may have been: whether the transaction was executed is not known.
    SessionExpired = 8,
    /// There are as many sessions as may be, and none has been idle for long.
    TooManySessions = 9,
    /// What it reads is longer than a result may be.
    ResultTooLong = 10,
}

impl Status {
    /// The status of a code.
    #[must_use]
    pub const fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Done,
            1 => Self::Invalid,
            2 => Self::Missing,
            3 => Self::WrongType,
            4 => Self::CheckFailed,
            5 => Self::OutOfRange,
            6 => Self::Full,
            7 => Self::TooLate,
            8 => Self::SessionExpired,
            9 => Self::TooManySessions,
            10 => Self::ResultTooLong,
            _ => return None,
        })
    }
}

/// The database.
#[derive(Debug)]
pub struct Database {
    limits: Limits,
    tables: Tables,
    sessions: Sessions,
    /// How many transactions have been executed: the position of the last one, and the version of what it wrote.
    position: u64,
    repeated: u64,
    /// What the transaction at hand has changed; kept for its memory.
    undo: Vec<Change>,
    /// The snapshot that is being written, if one is.
    frozen: Option<Box<Freeze>>,
}

impl Database {
    /// An empty one.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { session_idle_min: limits.session_idle_min.max(1), ..limits };
        Self {
            sessions: Sessions::new(&limits),
            limits,
            tables: Tables::default(),
            position: 0,
            repeated: 0,
            undo: Vec::new(),
            frozen: None,
        }
    }

    /// Its bounds.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// How many transactions have been executed.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// What is held, as it counts for the bound.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.tables.bytes() + self.sessions.bytes()
    }

    /// Numbers about it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            position: self.position,
            repeated: self.repeated,
            tables: self.tables.all().len() as u64,
            sessions: self.sessions.len() as u64,
            sessions_forgotten: self.sessions.forgotten(),
            bytes: self.bytes(),
        }
    }

    /// Looks at what the next transactions, at most [`LOOKED_AHEAD`], will need: it is then in the processor's cache. Alone
    /// each would wait for memory several times, one load after another; here all of them wait at once, step by step. It
    /// changes nothing.
    pub fn look_ahead<'a>(&self, requests: impl Iterator<Item = Request<'a>>) {
        let mut hints = [u32::MAX; LOOKED_AHEAD];
        for (hint, request) in hints.iter_mut().zip(requests) {
            *hint = self.sessions.hint_of(request.client);
        }
        std::hint::black_box(self.tables.touch(&hints));
    }

    /// Executes a transaction of the log, unless it has been, and appends its result to `out` (see [`results`]).
    /// `since` is the position that its sender had learned before it sent anything for this client.
    pub fn apply(
        &mut self,
        since: u64,
        client: u64,
        sequence: u64,
        transaction: &[u8],
        out: &mut Vec<u8>,
    ) -> Applied {
        if let Some(frozen) = &mut self.frozen {
            frozen.before_session(&self.sessions, client);
        }
        let place = match self.sessions.admit(client, sequence, since, self.position) {
            Admitted::Next(place) => place,
            Admitted::Repeated(place) if self.limits.forgets_results => place,
            Admitted::Repeated(place) => {
                self.repeated += 1;
                out.extend_from_slice(self.sessions.at(place).result.bytes());
                return Applied::Repeated;
            }
            Admitted::Refused(status) => {
                results::write_failed(out, status, self.position, 0);
                return Applied::Refused(status);
            }
        };
        self.position += 1;
        let start = out.len();
        let hint = self.sessions.at(place).table_hint;
        let is_full = self.bytes() >= self.limits.bytes_max;
        let execution = execute::Execution {
            tables: &mut self.tables,
            undo: &mut self.undo,
            position: self.position,
            is_full,
            frozen: self.frozen.as_deref_mut(),
        };
        let (status, table) = execution.run(transaction, hint, out);
        if table != hint {
            self.sessions.hint(place, table);
        }
        self.sessions.keep(place, sequence, self.position, &out[start..]);
        Applied::Executed(status)
    }

    /// Carries out a transaction that only reads, on what is there now, and appends its result. One that writes is
    /// refused. It belongs to no session: to read again does no harm.
    pub fn read(&self, transaction: &[u8], out: &mut Vec<u8>) -> Status {
        execute::read(&self.tables, self.position, transaction, out)
    }

    /// Begins a snapshot of what is there now: [`Database::next_chunk`] writes it while transactions go on.
    pub fn freeze(&mut self) {
        self.frozen = Some(Box::new(Freeze::new(self)));
    }

    /// Appends the next chunk of the snapshot to `out`; `false`: it was the last, or there is no snapshot.
    pub fn next_chunk(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut frozen) = self.frozen.take() else { return false };
        frozen.next_chunk(&self.tables, &self.sessions, out);
        if !frozen.is_over() {
            self.frozen = Some(frozen);
        }
        self.frozen.is_some()
    }

    /// Whether a snapshot is being written.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Gives the snapshot up.
    pub fn thaw(&mut self) {
        self.frozen = None;
    }

    /// A number that two databases share only if they hold the same, whatever way they came to it.
    #[must_use]
    pub fn digest(&self) -> u64 {
        snapshot::digest(self)
    }

    /// Whether a transaction may be answered by [`Database::read`], without the log.
    #[must_use]
    pub fn is_read_only(transaction: &[u8]) -> bool {
        Transaction::read(transaction).is_ok_and(|transaction| transaction.is_read_only())
    }
}

/// What [`Database::apply`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was executed: its position is that of the database now, whatever its status.
    Executed(Status),
    /// It had been executed: the result is the one of then.
    Repeated,
    /// Its session refused it.
    Refused(Status),
}

/// Numbers about a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Transactions executed.
    pub position: u64,
    /// Requests that had been executed before.
    pub repeated: u64,
    /// Tables.
    pub tables: u64,
    /// Client sessions.
    pub sessions: u64,
    /// Client sessions that were forgotten.
    pub sessions_forgotten: u64,
    /// Bytes, as they count for the bound.
    pub bytes: u64,
}
