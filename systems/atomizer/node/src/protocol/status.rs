//! What a watchtower is asked, and what it answers.

use super::transaction::OUTPUTS_MAX;
use super::{Hash, Malformed, Reader, STATUS_BYTES_MAX, put_hashes, put_u64, write_frame};

/// The least that a transaction takes in a question or an answer.
const TRANSACTION_BYTES_MIN: usize = 40;
/// Bytes of what is answered of one output.
const ANSWER_BYTES: usize = 41;

/// What is known of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Nothing is.
    NoHistory = 0,
    /// The transaction made it, in a block.
    Unspent = 1,
    /// The transaction spent it, in a block; or made it, and it has been spent since.
    Spent = 2,
    /// The transaction was refused, and not for this output.
    Rejected = 3,
    /// The transaction was refused for this output.
    InvalidInput = 4,
    /// The transaction was not taken up, or came too late: it can be sent again.
    InternalError = 5,
}

impl Status {
    const fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::NoHistory,
            1 => Self::Unspent,
            2 => Self::Spent,
            3 => Self::Rejected,
            4 => Self::InvalidInput,
            5 => Self::InternalError,
            _ => return None,
        })
    }
}

/// A question to a watchtower.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// What became of outputs, by transaction.
    Status(Asked<'a>),
    /// The height of the last block.
    BestHeight,
}

/// Transactions, and of each the outputs that are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    count: u64,
    rest: &'a [u8],
}

impl<'a> Asked<'a> {
    /// How many transactions.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Each with its outputs.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Hash, &'a [Hash])> + use<'a> {
        let mut reader = Reader(self.rest);
        (0..self.count).map_while(move |_| asked(&mut reader).ok())
    }
}

fn asked<'a>(reader: &mut Reader<'a>) -> Result<(&'a Hash, &'a [Hash]), Malformed> {
    Ok((reader.hash()?, reader.hashes(OUTPUTS_MAX)?))
}

/// Reads a question.
///
/// # Errors
/// When the bytes are none.
pub fn read_question(payload: &[u8]) -> Result<Question<'_>, Malformed> {
    let mut reader = Reader(payload);
    let question = match reader.byte()? {
        0 => {
            let count = reader.count(STATUS_BYTES_MAX, TRANSACTION_BYTES_MIN)? as u64;
            let rest = reader.0;
            for _ in 0..count {
                asked(&mut reader)?;
            }
            Question::Status(Asked { count, rest })
        }
        1 => Question::BestHeight,
        _ => return Err(Malformed::Tag),
    };
    reader.end()?;
    Ok(question)
}

/// Asks for outputs of transactions.
pub fn write_status_question<'a>(
    out: &mut Vec<u8>,
    transactions: impl ExactSizeIterator<Item = (&'a Hash, &'a [Hash])>,
) {
    write_frame(out, |out| {
        out.push(0);
        put_u64(out, transactions.len() as u64);
        for (id, outputs) in transactions {
            out.extend_from_slice(id);
            put_hashes(out, outputs);
        }
    });
}

/// Asks for the height of the last block.
pub fn write_best_height_question(out: &mut Vec<u8>) {
    write_frame(out, |out| out.push(1));
}

/// An answer of a watchtower.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// What is known of outputs, by transaction, in the order of the question.
    Status(Answered<'a>),
    /// The height of the last block.
    BestHeight(u64),
}

/// Transactions, and of each what is known of its outputs.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    count: u64,
    rest: &'a [u8],
}

/// What is known of one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What.
    pub status: Status,
    /// The height of the block that says so; else of the last one.
    pub height: u64,
    /// The output.
    pub output: Hash,
}

impl<'a> Answered<'a> {
    /// How many transactions.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Each transaction with what is known.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (&'a Hash, impl Iterator<Item = Known> + use<'a>)> + use<'a> {
        let mut reader = Reader(self.rest);
        (0..self.count).map_while(move |_| {
            let (id, known) = answered(&mut reader).ok()?;
            Some((id, known.iter().filter_map(known_of)))
        })
    }
}

fn answered<'a>(
    reader: &mut Reader<'a>,
) -> Result<(&'a Hash, &'a [[u8; ANSWER_BYTES]]), Malformed> {
    let id = reader.hash()?;
    let count = reader.count(OUTPUTS_MAX, ANSWER_BYTES)?;
    let (known, rest) = reader.0.split_at(count * ANSWER_BYTES);
    reader.0 = rest;
    Ok((id, known.as_chunks().0))
}

fn known_of(bytes: &[u8; ANSWER_BYTES]) -> Option<Known> {
    let mut reader = Reader(bytes);
    let status = Status::of(reader.byte().ok()?)?;
    Some(Known { status, height: reader.u64().ok()?, output: *reader.hash().ok()? })
}

/// Reads an answer.
///
/// # Errors
/// When the bytes are none.
pub fn read_answer(payload: &[u8]) -> Result<Answer<'_>, Malformed> {
    let mut reader = Reader(payload);
    let answer = match reader.byte()? {
        0 => {
            let count = reader.count(STATUS_BYTES_MAX, TRANSACTION_BYTES_MIN)? as u64;
            let rest = reader.0;
            for _ in 0..count {
                let (_, known) = answered(&mut reader)?;
                if known.iter().any(|it| known_of(it).is_none()) {
                    return Err(Malformed::Tag);
                }
            }
            Answer::Status(Answered { count, rest })
        }
        1 => Answer::BestHeight(reader.u64()?),
        _ => return Err(Malformed::Tag),
    };
    reader.end()?;
    Ok(answer)
}

/// Answers a question of outputs; `look` says what is known of each.
pub fn write_status_answer(
    out: &mut Vec<u8>,
    asked: &Asked<'_>,
    mut look: impl FnMut(&Hash, &Hash) -> (Status, u64),
) {
    write_frame(out, |out| {
        out.push(0);
        put_u64(out, asked.count());
        for (id, outputs) in asked.iter() {
            out.extend_from_slice(id);
            put_u64(out, outputs.len() as u64);
            for output in outputs {
                let (status, height) = look(id, output);
                out.push(status as u8);
                put_u64(out, height);
                out.extend_from_slice(output);
            }
        }
    });
}

/// Answers with the height of the last block.
pub fn write_best_height(out: &mut Vec<u8>, height: u64) {
    write_frame(out, |out| {
        out.push(1);
        put_u64(out, height);
    });
}
