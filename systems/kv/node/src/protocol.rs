//! What is said on a connection: frames (see `wire::frames`) whose first byte tells what they are. The README gives the
//! form byte by byte. Anybody can send anything: what is not of this form is an error, never a panic, and bounded.

use wire::frames::write_frame;

use crate::database::group::{Group, REQUESTS_MAX};
use crate::database::transaction::{Malformed, Reader, TRANSACTION_BYTES_MAX};

/// What both sides must speak.
pub const VERSION: u16 = 1;

/// The longest request: a group of a few long transactions, or of as many short ones as may be.
pub const REQUEST_BYTES_MAX: usize = 4 << 20;

/// A reply of results ends with the first that reaches this; more come in another one.
pub const RESULTS_BYTES: usize = 1 << 20;

/// The longest reply.
pub const REPLY_BYTES_MAX: usize = RESULTS_BYTES + 2 * TRANSACTION_BYTES_MAX;

/// Bytes of a ledger that one reply brings at most.
pub const PART_BYTES_MAX: usize = 1 << 20;

/// No replica: nobody is known to lead.
pub const NOBODY: u8 = u8::MAX;

mod word {
    pub const HELLO: u8 = 1;
    pub const SUBMIT: u8 = 2;
    pub const READ: u8 = 3;
    pub const LEDGER: u8 = 4;
    pub const STATUS: u8 = 5;
    pub const DIGEST: u8 = 6;
    pub const VOTES: u8 = 7;
    pub const WELCOME: u8 = 129;
    pub const RESULTS: u8 = 130;
    pub const REFUSED: u8 = 131;
    pub const PART: u8 = 132;
    pub const STATE: u8 = 133;
    pub const DIGESTED: u8 = 134;
    pub const VOTERS: u8 = 135;
}

/// A request of a client.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// The first: which version the client speaks.
    Hello {
        /// The version that the client speaks.
        version: u16,
        /// The database that it means, by the number that a [`State`] says; 0: any.
        database: u64,
    },
    /// Transactions for the log.
    Submit {
        /// The client's own number for it, told back.
        number: u64,
        /// The transactions.
        group: Group<'a>,
        /// The group's bytes.
        bytes: &'a [u8],
    },
    /// Transactions that only read.
    Read {
        /// The client's own number for it, told back.
        number: u64,
        /// The transactions.
        reads: Reads<'a>,
    },
    /// A part of the ledger, from this byte on.
    Ledger(u64),
    /// How the replica stands.
    Status,
    /// A digest of all that it holds.
    Digest,
    /// An operator, who shows the operators' key, asks who has a vote, or that one gets or loses it.
    Votes {
        /// Who, and whether it is to have one; nothing is changed without.
        change: Option<(u8, bool)>,
        /// The operators' key.
        key: &'a [u8; KEY_BYTES],
    },
}

/// Bytes of the operators' key.
pub const KEY_BYTES: usize = 32;

/// Transactions that only read.
#[derive(Clone, Copy, Debug)]
pub struct Reads<'a> {
    count: u32,
    rest: &'a [u8],
}

impl<'a> Reads<'a> {
    /// How many.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Their bytes: as they were sent, for [`Reads::again`].
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// The same of bytes that were kept.
    #[must_use]
    pub const fn again(count: u32, rest: &'a [u8]) -> Self {
        Self { count, rest }
    }

    /// Them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader(self.rest);
        (0..self.count).map_while(move |_| reader.long().ok())
    }
}

/// Reads a request.
///
/// # Errors
/// When the bytes are none.
pub fn read_request(payload: &[u8]) -> Result<Request<'_>, Malformed> {
    if payload.len() > REQUEST_BYTES_MAX {
        return Err(Malformed);
    }
    let mut reader = Reader(payload);
    let request = match reader.byte()? {
        word::HELLO => Request::Hello {
            version: reader.array().map(u16::from_le_bytes)?,
            database: if reader.0.is_empty() { 0 } else { reader.u64()? },
        },
        word::SUBMIT => {
            let number = reader.u64()?;
            let bytes = std::mem::take(&mut reader.0);
            Request::Submit { number, group: Group::read(bytes)?, bytes }
        }
        word::READ => {
            let (number, count) = (reader.u64()?, reader.u32()?);
            let rest = reader.0;
            if count > REQUESTS_MAX {
                return Err(Malformed);
            }
            for _ in 0..count {
                reader.long()?;
            }
            Request::Read { number, reads: Reads { count, rest } }
        }
        word::LEDGER => Request::Ledger(reader.u64()?),
        word::STATUS => Request::Status,
        word::DIGEST => Request::Digest,
        word::VOTES => {
            let (what, number) = (reader.byte()?, reader.byte()?);
            let change = match what {
                0 => None,
                1 => Some((number, true)),
                2 => Some((number, false)),
                _ => return Err(Malformed),
            };
            let (key, rest) = reader.0.split_first_chunk().ok_or(Malformed)?;
            reader.0 = rest;
            Request::Votes { change, key }
        }
        _ => return Err(Malformed),
    };
    if reader.0.is_empty() { Ok(request) } else { Err(Malformed) }
}

/// Asks for a [`Reply::Welcome`] of a replica of this database; 0: of any.
pub fn write_hello(out: &mut Vec<u8>, database: u64) {
    write_frame(out, |out| {
        out.push(word::HELLO);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&database.to_le_bytes());
    });
}

/// Submits a group whose bytes are those of [`crate::database::group`].
pub fn write_submit(out: &mut Vec<u8>, number: u64, group: &[u8]) {
    write_frame(out, |out| {
        out.push(word::SUBMIT);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(group);
    });
}

/// Asks for reads; `transactions` are `count`, each behind its length.
pub fn write_read(out: &mut Vec<u8>, number: u64, count: u32, transactions: &[u8]) {
    write_frame(out, |out| {
        out.push(word::READ);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(transactions);
    });
}

/// Asks for a part of the ledger.
pub fn write_ledger_request(out: &mut Vec<u8>, from: u64) {
    write_frame(out, |out| {
        out.push(word::LEDGER);
        out.extend_from_slice(&from.to_le_bytes());
    });
}

/// Asks how the replica stands.
pub fn write_status_request(out: &mut Vec<u8>) {
    write_frame(out, |out| out.push(word::STATUS));
}

/// Asks for a digest of all that the replica holds.
pub fn write_digest_request(out: &mut Vec<u8>) {
    write_frame(out, |out| out.push(word::DIGEST));
}

/// Asks who has a vote, after this change of it, if any: the replica's number, and whether it is to have one.
pub fn write_votes_request(out: &mut Vec<u8>, change: Option<(u8, bool)>, key: &[u8; KEY_BYTES]) {
    write_frame(out, |out| {
        let (what, number) = match change {
            None => (0, 0),
            Some((number, true)) => (1, number),
            Some((number, false)) => (2, number),
        };
        out.extend_from_slice(&[word::VOTES, what, number]);
        out.extend_from_slice(key);
    });
}

/// Why a request was not taken. Nothing of it was or will be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// This replica does not lead.
    NotLeader = 1,
    /// As much waits as may.
    Busy = 2,
    /// The request is not of the protocol, or of another version; the connection ends.
    Malformed = 3,
    /// This replica keeps no ledger.
    NoLedger = 4,
    /// It is a replica of another database than the client means; the connection ends.
    OtherDatabase = 5,
    /// Whoever asks is no operator: the key is another, or the replica was given none.
    NotOperator = 6,
    /// The replica was not started with a `--peer` of this number.
    UnknownReplica = 7,
    /// It is the only one that has a vote.
    LastVote = 8,
    /// Of those that would be left no majority is there.
    WouldStop = 9,
}

impl Why {
    const fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::NotLeader,
            2 => Self::Busy,
            3 => Self::Malformed,
            4 => Self::NoLedger,
            5 => Self::OtherDatabase,
            6 => Self::NotOperator,
            7 => Self::UnknownReplica,
            8 => Self::LastVote,
            9 => Self::WouldStop,
            _ => return None,
        })
    }
}

/// A reply of a replica.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// To a hello.
    Welcome(Welcome),
    /// Results of a submission or of reads, in the order of the transactions.
    Results {
        /// The request's number.
        number: u64,
        /// Which of the request's transactions the first result is of, from 0.
        first: u32,
        /// The results.
        results: Reads<'a>,
    },
    /// The request was not taken.
    Refused {
        /// The request's number; 0 where it has none.
        number: u64,
        /// Why.
        why: Why,
        /// Who leads, as far as is known: [`NOBODY`] if it is not.
        leader: u8,
    },
    /// A part of the ledger.
    Part {
        /// Where it begins.
        from: u64,
        /// How long the ledger is.
        total: u64,
        /// The position up to which nothing is missing from it; less than the database's if something is.
        whole_to: u64,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// How the replica stands.
    State(State),
    /// What it holds.
    Digest(Digest),
    /// The numbers of those that have a vote. What an operator has asked for just now is not done yet.
    Voters(&'a [u8]),
}

/// What a replica says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// What it speaks.
    pub version: u16,
    /// Its number.
    pub replica: u8,
    /// Who leads, or [`NOBODY`].
    pub leader: u8,
    /// The position it has come to: the `since` of what is submitted on this connection for new clients.
    pub position: u64,
}

/// How a replica stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Its number.
    pub replica: u8,
    /// Who leads, or [`NOBODY`].
    pub leader: u8,
    /// Whether it keeps a ledger.
    pub keeps_ledger: bool,
    /// Transactions executed.
    pub position: u64,
    /// Entries of the log that it has carried out.
    pub entries: u64,
    /// Whether its log waits for room on its disk.
    pub is_disk_full: bool,
    /// Whether it has a vote in its group. One whose folder was empty has none until it has caught up.
    pub has_vote: bool,
    /// The number that was drawn for its database when that was founded; 0: it is of none yet, or alone.
    pub database: u64,
}

/// What a replica holds: two that have come to one position are to say one digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Transactions executed.
    pub position: u64,
    /// See [`crate::database::Database::digest`].
    pub digest: u64,
}

/// Reads a reply.
///
/// # Errors
/// When the bytes are none.
pub fn read_reply(payload: &[u8]) -> Result<Reply<'_>, Malformed> {
    let mut reader = Reader(payload);
    let reply = match reader.byte()? {
        word::WELCOME => Reply::Welcome(Welcome {
            version: reader.array().map(u16::from_le_bytes)?,
            replica: reader.byte()?,
            leader: reader.byte()?,
            position: reader.u64()?,
        }),
        word::RESULTS => {
            let (number, first, count) = (reader.u64()?, reader.u32()?, reader.u32()?);
            let rest = reader.0;
            for _ in 0..count {
                reader.long()?;
            }
            Reply::Results { number, first, results: Reads { count, rest } }
        }
        word::REFUSED => Reply::Refused {
            number: reader.u64()?,
            why: Why::of(reader.byte()?).ok_or(Malformed)?,
            leader: reader.byte()?,
        },
        word::PART => Reply::Part {
            from: reader.u64()?,
            total: reader.u64()?,
            whole_to: reader.u64()?,
            bytes: std::mem::take(&mut reader.0),
        },
        word::STATE => Reply::State(State {
            replica: reader.byte()?,
            leader: reader.byte()?,
            keeps_ledger: reader.byte()? != 0,
            position: reader.u64()?,
            entries: reader.u64()?,
            is_disk_full: reader.byte()? != 0,
            has_vote: reader.byte()? != 0,
            database: reader.u64()?,
        }),
        word::DIGESTED => Reply::Digest(Digest { position: reader.u64()?, digest: reader.u64()? }),
        word::VOTERS => Reply::Voters(std::mem::take(&mut reader.0)),
        _ => return Err(Malformed),
    };
    if reader.0.is_empty() { Ok(reply) } else { Err(Malformed) }
}

/// Says who one is.
pub fn write_welcome(out: &mut Vec<u8>, welcome: &Welcome) {
    write_frame(out, |out| {
        out.push(word::WELCOME);
        out.extend_from_slice(&welcome.version.to_le_bytes());
        out.extend_from_slice(&[welcome.replica, welcome.leader]);
        out.extend_from_slice(&welcome.position.to_le_bytes());
    });
}

/// Writes the results of a request's `count` transactions in as many replies as they need: `write` appends the next one's
/// result, and is called exactly `count` times.
pub fn write_results(
    out: &mut Vec<u8>,
    number: u64,
    count: u32,
    mut write: impl FnMut(&mut Vec<u8>),
) {
    let mut first = 0;
    while first < count {
        write_frame(out, |out| {
            let start = out.len();
            out.push(word::RESULTS);
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&first.to_le_bytes());
            let count_at = out.len();
            out.extend_from_slice(&[0; 4]);
            let mut written = 0_u32;
            while first < count && out.len() - start < RESULTS_BYTES {
                let length_at = out.len();
                out.extend_from_slice(&[0; 4]);
                write(out);
                let length = out.len() - length_at - 4;
                put_u32(out, length_at, length);
                first += 1;
                written += 1;
            }
            out[count_at..count_at + 4].copy_from_slice(&written.to_le_bytes());
        });
    }
}

fn put_u32(out: &mut [u8], at: usize, number: usize) {
    let number = u32::try_from(number).expect("a frame is shorter");
    out[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Refuses a request.
pub fn write_refused(out: &mut Vec<u8>, number: u64, why: Why, leader: u8) {
    write_frame(out, |out| {
        out.push(word::REFUSED);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&[why as u8, leader]);
    });
}

/// Gives a part of the ledger, which `write` appends.
pub fn write_part(
    out: &mut Vec<u8>,
    from: u64,
    total: u64,
    whole_to: u64,
    write: impl FnOnce(&mut Vec<u8>),
) {
    write_frame(out, |out| {
        out.push(word::PART);
        for number in [from, total, whole_to] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        write(out);
    });
}

/// Says how one stands.
pub fn write_state(out: &mut Vec<u8>, state: &State) {
    write_frame(out, |out| {
        out.push(word::STATE);
        out.extend_from_slice(&[state.replica, state.leader, state.keeps_ledger.into()]);
        out.extend_from_slice(&state.position.to_le_bytes());
        out.extend_from_slice(&state.entries.to_le_bytes());
        out.extend_from_slice(&[state.is_disk_full.into(), state.has_vote.into()]);
        out.extend_from_slice(&state.database.to_le_bytes());
    });
}

/// Says what one holds.
pub fn write_digest(out: &mut Vec<u8>, of: &Digest) {
    write_frame(out, |out| {
        out.push(word::DIGESTED);
        out.extend_from_slice(&of.position.to_le_bytes());
        out.extend_from_slice(&of.digest.to_le_bytes());
    });
}

/// Says who has a vote.
pub fn write_voters(out: &mut Vec<u8>, voters: impl Iterator<Item = u8>) {
    write_frame(out, |out| {
        out.push(word::VOTERS);
        out.extend(voters);
    });
}
