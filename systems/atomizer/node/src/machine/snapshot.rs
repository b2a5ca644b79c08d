//! A machine as bytes, and back: version, ledger, hash of the last block, height, digest, fates, the sets, what gathers, the blocks that are kept.

use std::sync::Arc;

use replicated::Value;

use super::{Broken, Fates, Machine, Rules};
use crate::chain::Block;
use crate::protocol::block::Head;
use crate::protocol::{Hash, Malformed, Reader, put_hashes, put_u64};

const VERSION: u8 = 3;

/// The bytes are no snapshot of a machine with these rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl From<Malformed> for Damaged {
    fn from(_: Malformed) -> Self {
        Self
    }
}

impl Machine {
    /// Writes all of it.
    #[must_use]
    pub fn write_snapshot(&self) -> Vec<u8> {
        let names: usize = self.ring.sets().map(|set| set.names().len()).sum();
        let bytes = self.kept.bytes() * 184 / 176 + self.gathered.bytes * 184 / 176;
        let mut out = Vec::with_capacity(names * 32 + usize::try_from(bytes).unwrap_or(0) + 4096);
        out.push(VERSION);
        put_u64(&mut out, self.ledger);
        out.extend_from_slice(&self.last);
        let Fates { admitted, expired, spent, not_taken, in_blocks } = self.fates;
        for number in [self.height, self.digest, admitted, expired, spent, not_taken, in_blocks] {
            put_u64(&mut out, number);
        }
        put_u64(&mut out, self.ring.depth());
        let lacks_spent = self.rules.broken == Broken::SnapshotLacksSpent;
        for set in self.ring.sets() {
            put_hashes(&mut out, if lacks_spent { &[] } else { set.names() });
        }
        write_block(&mut out, &self.gathered);
        put_u64(&mut out, self.kept.iter().len() as u64);
        self.kept.iter().for_each(|block| write_block(&mut out, block));
        out
    }

    /// Reads what [`Machine::write_snapshot`] has written.
    ///
    /// # Errors
    /// When the bytes are something else, or of a machine of another depth.
    pub fn read_snapshot(rules: Rules, bytes: &[u8]) -> Result<Self, Damaged> {
        let mut machine = Self::new(rules);
        let mut reader = Reader(bytes);
        if reader.byte()? != VERSION {
            return Err(Damaged);
        }
        machine.ledger = reader.u64()?;
        machine.last = *reader.hash()?;
        machine.height = reader.u64()?;
        machine.digest = reader.u64()?;
        machine.fates = Fates {
            admitted: reader.u64()?,
            expired: reader.u64()?,
            spent: reader.u64()?,
            not_taken: reader.u64()?,
            in_blocks: reader.u64()?,
        };
        if reader.u64()? != rules.depth {
            return Err(Damaged);
        }
        for set in 0..=usize::try_from(rules.depth).map_err(|_| Damaged)? {
            let names: &[Hash] = reader.hashes(usize::MAX / 32)?;
            names.iter().for_each(|name| machine.ring.insert_into(set, name));
        }
        machine.gathered = read_block(&mut reader)?;
        machine.hashing = machine.gathered.hashing();
        for _ in 0..reader.count(bytes.len(), 88)? {
            let block = read_block(&mut reader)?;
            machine.kept.push(Arc::new(block));
        }
        reader.end()?;
        Ok(machine)
    }
}

fn write_block(out: &mut Vec<u8>, block: &Block) {
    let Head { height, ledger, previous, hash, .. } = block.head();
    put_u64(out, height);
    put_u64(out, ledger);
    out.extend_from_slice(&previous);
    out.extend_from_slice(&hash);
    let start = out.len();
    put_u64(out, 0);
    block.write_entry(out);
    let length = (out.len() - start - 8) as u64;
    out[start..start + 8].copy_from_slice(&length.to_le_bytes());
}

fn read_block(reader: &mut Reader<'_>) -> Result<Block, Damaged> {
    let (height, ledger) = (reader.u64()?, reader.u64()?);
    let (previous, hash) = (*reader.hash()?, *reader.hash()?);
    let length = reader.count(usize::MAX / 2, 1)?;
    let (entry, rest) = reader.0.split_at(length);
    reader.0 = rest;
    let mut block = Block::of_entry(&Value::from(entry)).ok_or(Damaged)?;
    (block.height, block.ledger) = (height, ledger);
    (block.previous, block.hash) = (previous, hash);
    Ok(block)
}
