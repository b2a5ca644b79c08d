//! The rules, and what is written of a machine.

use super::*;
use crate::protocol::entry;
use crate::protocol::errors::read_errors;
use crate::protocol::transaction::Transaction;

fn name(kind: u8, number: u64) -> Hash {
    let mut name = [kind; 32];
    name[..8].copy_from_slice(&number.to_le_bytes());
    name
}

fn rules(depth: u64) -> Rules {
    Rules { depth, inputs: 16, ..Rules::published(Secret::new(5)) }
}

/// An entry of transactions: their heights, names and inputs.
fn batch(list: &[(u64, u64, &[u64])]) -> Value {
    let mut log = Vec::new();
    entry::begin_transactions(&mut log);
    for (height, id, inputs) in list {
        let (id, outputs) = (name(1, *id), [name(3, *id)]);
        let inputs: Vec<Hash> = inputs.iter().map(|it| name(2, *it)).collect();
        let it = Transaction { id: &id, inputs: &inputs, outputs: &outputs };
        entry::push_transaction(&mut log, *height, &it);
    }
    entry::set_count(&mut log, list.len() as u64);
    log.into()
}

fn block(machine: &mut Machine) -> Vec<u64> {
    let Done::Block(block) = machine.apply(&entry::make_block().into(), None) else { panic!() };
    let number = |it: Transaction<'_>| u64::from_le_bytes(*it.id.first_chunk().unwrap());
    block.transactions().map(number).collect()
}

/// What was discarded: number of the transaction, tag of the reason.
fn discarded(machine: &mut Machine, list: &[(u64, u64, &[u64])]) -> Vec<(u64, String)> {
    let mut discarded = Discarded::default();
    machine.apply(&batch(list), Some(&mut discarded));
    let mut frame = Vec::new();
    crate::protocol::errors::write_errors(&mut frame, discarded.count, &discarded.bytes);
    let errors = read_errors(&frame[8..]).unwrap();
    let word = |why: Why<'_>| match why {
        Why::Spent(hashes) => format!("spent {}", hashes.len()),
        other => format!("{other:?}"),
    };
    let number = |id: &Hash| u64::from_le_bytes(*id.first_chunk().unwrap());
    errors.iter().map(|it| (number(it.id), word(it.why))).collect()
}

/// Claim: a transaction is admitted while its height is the last block's or one of the `depth` before, and is expired before
/// and after; without inputs always.
#[test]
fn heights() {
    let mut machine = Machine::new(rules(2));
    for _ in 0..5 {
        block(&mut machine);
    }
    let list: [(u64, u64, &[u64]); 6] =
        [(5, 1, &[1]), (4, 2, &[2]), (3, 3, &[3]), (2, 4, &[4]), (6, 5, &[5]), (0, 6, &[])];
    let expired = |id| (id, "Range".to_owned());
    assert_eq!(discarded(&mut machine, &list), [expired(4), expired(5)]);
    assert_eq!(block(&mut machine), [1, 2, 3, 6]);
    let Fates { admitted, expired, spent, in_blocks, .. } = machine.fates();
    assert_eq!((admitted, expired, spent, in_blocks), (4, 2, 0, 4));
}

/// Claim: an input is spent once: within an entry, a block, and as far back as a height can say that it was unspent. A
/// discarded transaction spends nothing, and one that names an input twice is discarded.
#[test]
fn inputs() {
    let mut machine = Machine::new(rules(1));
    let spent = |id, count| (id, format!("spent {count}"));
    let list: [(u64, u64, &[u64]); 4] =
        [(0, 1, &[1, 2]), (0, 2, &[2, 3]), (0, 3, &[3, 4]), (0, 4, &[9, 9])];
    assert_eq!(discarded(&mut machine, &list), [spent(2, 1), spent(4, 1)]);
    assert_eq!(block(&mut machine), [1, 3]);
    // Seen unspent at height 0: the block since then is looked at. At height 1 whoever vouches knows of it.
    assert_eq!(discarded(&mut machine, &[(0, 5, &[4, 1])]), [spent(5, 2)]);
    assert_eq!(discarded(&mut machine, &[(1, 6, &[4])]), []);
    assert_eq!(discarded(&mut machine, &[(0, 7, &[4])]), [spent(7, 1)]);
    assert_eq!(block(&mut machine), [6]);
}

/// Claim: a machine that was written and read goes on as the one that it was made of; cut anywhere it is refused.
#[test]
fn snapshots() {
    let mut machine = Machine::new(rules(1));
    machine.apply(&entry::ledger(9).into(), None);
    machine.apply(&batch(&[(0, 1, &[1, 2]), (0, 2, &[3])]), None);
    block(&mut machine);
    machine.apply(&batch(&[(1, 3, &[4]), (0, 4, &[5])]), None);
    let bytes = machine.write_snapshot();
    let mut copy = Machine::read_snapshot(rules(1), &bytes).unwrap();
    assert_eq!(copy.write_snapshot(), bytes);
    assert_eq!(
        (copy.digest(), copy.fates(), copy.height()),
        (machine.digest(), machine.fates(), 1)
    );
    assert_eq!(copy.kept().get(1).unwrap().count, 2);
    for of in [&mut machine, &mut copy] {
        assert_eq!(discarded(of, &[(0, 5, &[1]), (1, 6, &[5]), (1, 7, &[6])]).len(), 2);
        assert_eq!(block(of), [3, 4, 7]);
    }
    assert_eq!(copy.digest(), machine.digest());
    let heads = |of: &Machine| of.kept().iter().map(|block| block.head()).collect::<Vec<_>>();
    assert_eq!(heads(&copy), heads(&machine));
    for cut in 0..bytes.len() {
        assert!(Machine::read_snapshot(rules(1), &bytes[..cut]).is_err(), "{cut}");
    }
    assert!(Machine::read_snapshot(rules(2), &bytes).is_err());
}

/// Claim: blocks are a chain of the ledger that began first, by hashes of what they hold; what the atomizer sends is what a
/// reader computes.
#[test]
fn a_chain() {
    let mut machine = Machine::new(rules(1));
    for number in [9, 8] {
        machine.apply(&entry::ledger(number).into(), None);
    }
    let (mut last, mut sent) = (None, Vec::new());
    for height in 1..=3 {
        machine.apply(&batch(&[(height - 1, height, &[height]), (0, 10, &[])]), None);
        block(&mut machine);
        sent.clear();
        machine.kept().get(height).unwrap().write(&mut sent);
        let read = crate::protocol::block::read_block(&sent[8..]).unwrap();
        assert!(read.is_as_hashed() && read.head.follows(last.as_ref()), "{height}");
        assert_eq!((read.head.ledger, read.head.count), (9, 2));
        last = Some(read.head);
    }
}

/// Claim: blocks are kept until they are pruned, or beyond a number where nobody stores them.
#[test]
fn pruning() {
    let mut machine = Machine::new(rules(1));
    (0..5).for_each(|_| drop(block(&mut machine)));
    machine.apply(&entry::prune(3).into(), None);
    assert_eq!((machine.kept().get(2).is_none(), machine.kept().iter().len()), (true, 3));
    machine.apply(&entry::prune(99).into(), None);
    assert_eq!(machine.kept().iter().len(), 0);
    let mut machine = Machine::new(Rules { blocks_max: Some(2), ..rules(1) });
    (0..5).for_each(|_| drop(block(&mut machine)));
    assert_eq!(machine.kept().iter().map(|it| it.height).collect::<Vec<_>>(), [4, 5]);
}
