//! What an atomizer is asked, and what it says to those that ask.

use super::transaction::{INPUTS_MAX, Transaction};
use super::{Hash, Malformed, REQUEST_BYTES_MAX, Reader, put_u64, write_frame};

mod tag {
    pub const NOTIFY: u8 = 0;
    pub const PRUNE: u8 = 1;
    pub const GET_BLOCK: u8 = 2;
    pub const STANDING: u8 = 3;
    pub const ARCHIVER: u8 = 4;
    pub const ALIVE: u8 = 5;
}

/// A request to an atomizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A transaction, some of whose inputs are vouched for.
    Notify(Notification<'a>),
    /// The archiver of this connection has stored the blocks below this height.
    Prune(u64),
    /// The block of this height is wanted. Where blocks are listened to it comes among them.
    GetBlock(u64),
    /// Who leads is wanted. Not in the published system, whose clients send to all.
    Standing,
    /// Whoever is connected is the archiver of this number, and shows the archivers' key. Not in the published system, where
    /// anybody prunes.
    Archiver(u8, &'a Hash),
    /// Nothing is wanted: whoever only listens learns by it whether the other side is still there.
    Alive,
}

/// A transaction, and which of its inputs somebody vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The height at which the inputs were seen unspent.
    pub height: u64,
    /// The transaction.
    pub transaction: Transaction<'a>,
    /// Places of inputs, eight bytes each.
    attested: &'a [[u8; 8]],
}

impl Notification<'_> {
    /// Places of the inputs that are vouched for, as a set.
    #[must_use]
    pub fn attested(&self) -> u128 {
        self.attested.iter().fold(0, |set, place| set | 1 << u64::from_le_bytes(*place))
    }
}

/// The set of so many inputs.
#[must_use]
pub const fn all_inputs(count: usize) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

/// Reads a request.
///
/// # Errors
/// When the bytes are none.
#[inline]
pub fn read_request(payload: &[u8]) -> Result<Request<'_>, Malformed> {
    if payload.len() > REQUEST_BYTES_MAX {
        return Err(Malformed::Length);
    }
    let mut reader = Reader(payload);
    let request = match reader.byte()? {
        tag::NOTIFY => Request::Notify(notification(&mut reader)?),
        tag::PRUNE => Request::Prune(reader.u64()?),
        tag::GET_BLOCK => Request::GetBlock(reader.u64()?),
        tag::STANDING => Request::Standing,
        tag::ARCHIVER => Request::Archiver(reader.byte()?, reader.hash()?),
        tag::ALIVE => Request::Alive,
        _ => return Err(Malformed::Tag),
    };
    reader.end()?;
    Ok(request)
}

#[inline]
fn notification<'a>(reader: &mut Reader<'a>) -> Result<Notification<'a>, Malformed> {
    let height = reader.u64()?;
    let transaction = Transaction::take(reader)?;
    let count = reader.count(INPUTS_MAX, 8)?;
    let (attested, rest) = reader.0.split_at(count * 8);
    reader.0 = rest;
    let attested = attested.as_chunks::<8>().0;
    let inputs = transaction.inputs.len() as u64;
    if attested.iter().any(|place| u64::from_le_bytes(*place) >= inputs) {
        return Err(Malformed::Input);
    }
    Ok(Notification { height, transaction, attested })
}

/// Says that the inputs at these places were unspent at a height.
pub fn write_notify(
    out: &mut Vec<u8>,
    height: u64,
    transaction: &Transaction<'_>,
    attested: &[u64],
) {
    write_frame(out, |out| {
        out.push(tag::NOTIFY);
        put_u64(out, height);
        transaction.write(out);
        put_u64(out, attested.len() as u64);
        attested.iter().for_each(|place| put_u64(out, *place));
    });
}

/// Where the height of a notification stands, counted from the beginning of its frame: it may be written at the last moment.
pub const HEIGHT_AT: usize = super::FRAME_HEADER_BYTES + 1;

/// Says that the blocks below `height` are stored: for an archiver that has said that it is one.
pub fn write_prune(out: &mut Vec<u8>, height: u64) {
    write_number(out, tag::PRUNE, height);
}

/// Asks for a block.
pub fn write_get_block(out: &mut Vec<u8>, height: u64) {
    write_number(out, tag::GET_BLOCK, height);
}

/// Says that whoever sends this is the archiver `number`, which knows the archivers' key: what it stores may be forgotten once
/// all archivers have it.
pub fn write_archiver(out: &mut Vec<u8>, number: u8, key: &Hash) {
    write_frame(out, |out| {
        out.extend_from_slice(&[tag::ARCHIVER, number]);
        out.extend_from_slice(key);
    });
}

/// Says nothing.
pub fn write_alive(out: &mut Vec<u8>) {
    write_frame(out, |out| out.push(tag::ALIVE));
}

/// Asks who leads.
pub fn write_standing_request(out: &mut Vec<u8>) {
    write_frame(out, |out| out.push(tag::STANDING));
}

fn write_number(out: &mut Vec<u8>, tag: u8, number: u64) {
    write_frame(out, |out| {
        out.push(tag);
        put_u64(out, number);
    });
}

/// No replica: nobody is known to lead.
pub const NOBODY: u8 = u8::MAX;

/// How an atomizer stands: the only thing that it says to its clients, asked, or because it does not lead and was sent a
/// transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its number.
    pub replica: u8,
    /// Who leads as far as it knows, or [`NOBODY`].
    pub leader: u8,
    /// The height of its last block.
    pub height: u64,
    /// The first bytes of that block's hash: two that hold the same chain say the same of one height.
    pub chain: u64,
    /// Whether it has a vote. One whose folder was empty has none until it has caught up.
    pub has_vote: bool,
}

/// Bytes of a standing in its frame.
pub const STANDING_BYTES: usize = super::FRAME_HEADER_BYTES + 1 + 1 + 8 + 8 + 1;

/// Appends it in its frame.
pub fn write_standing(out: &mut Vec<u8>, standing: &Standing) {
    write_frame(out, |out| {
        out.extend_from_slice(&[standing.replica, standing.leader]);
        put_u64(out, standing.height);
        put_u64(out, standing.chain);
        out.push(u8::from(standing.has_vote));
    });
}

/// Reads one.
///
/// # Errors
/// When the bytes are none.
pub fn read_standing(payload: &[u8]) -> Result<Standing, Malformed> {
    let mut reader = Reader(payload);
    let standing = Standing {
        replica: reader.byte()?,
        leader: reader.byte()?,
        height: reader.u64()?,
        chain: reader.u64()?,
        has_vote: reader.byte()? != 0,
    };
    reader.end()?;
    Ok(standing)
}
