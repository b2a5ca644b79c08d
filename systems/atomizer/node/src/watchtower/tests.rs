//! What a watchtower says, by the published system's rules.

use super::cache::{Blocks, Errors};
use super::*;
use crate::protocol::Hash;
use crate::protocol::errors::{Error, Why};
use crate::protocol::transaction::Transaction;

fn name(number: u64) -> Hash {
    let mut name = [7; 32];
    name[..8].copy_from_slice(&number.to_le_bytes());
    name
}

fn secret() -> Secret {
    Secret::new(3)
}

/// A block of transactions: their numbers, inputs and outputs.
fn add(blocks: &mut Blocks, height: u64, list: &[(u64, &[u64], &[u64])]) {
    let mut block = blocks.begin(height, 0);
    for (id, inputs, outputs) in list {
        let names = |list: &[u64]| list.iter().map(|it| name(*it)).collect::<Vec<_>>();
        let (id, inputs, outputs) = (name(*id), names(inputs), names(outputs));
        block.push(&secret(), &Transaction { id: &id, inputs: &inputs, outputs: &outputs });
    }
    blocks.add(block);
}

fn find(blocks: &Blocks, id: u64, output: u64) -> Option<(Status, u64)> {
    blocks.find(secret().place(&name(output)), &name(id), &name(output))
}

/// Claim: of a transaction in a block its outputs are unspent until a later one spends them, and its inputs are spent; of
/// another transaction's nothing is known; the oldest block is forgotten.
#[test]
fn blocks() {
    let mut blocks = Blocks::new(2, usize::MAX);
    add(&mut blocks, 1, &[(1, &[10, 11], &[20, 21]), (2, &[12], &[22])]);
    assert_eq!(find(&blocks, 1, 20), Some((Status::Unspent, 1)));
    assert_eq!(find(&blocks, 1, 10), Some((Status::Spent, 1)));
    assert_eq!(
        (find(&blocks, 1, 22), find(&blocks, 2, 20), find(&blocks, 9, 9)),
        (None, None, None)
    );
    add(&mut blocks, 2, &[(3, &[20], &[30])]);
    assert_eq!(find(&blocks, 1, 20), Some((Status::Spent, 2)));
    assert_eq!(find(&blocks, 3, 20), Some((Status::Spent, 2)));
    assert_eq!(find(&blocks, 1, 21), Some((Status::Unspent, 1)));
    add(&mut blocks, 3, &[]);
    assert_eq!((find(&blocks, 1, 21), blocks.count()), (None, 2));
    assert_eq!(find(&blocks, 3, 30), Some((Status::Unspent, 2)));
    let many: Vec<(u64, [u64; 2], [u64; 2])> = (100..5000)
        .map(|it| (it, [it << 20, it << 20 | 1], [it << 20 | 2, it << 20 | 3]))
        .collect();
    let many: Vec<(u64, &[u64], &[u64])> =
        many.iter().map(|(id, inputs, outputs)| (*id, &inputs[..], &outputs[..])).collect();
    add(&mut blocks, 4, &many);
    for id in 100..5000 {
        assert_eq!(find(&blocks, id, id << 20 | 3), Some((Status::Unspent, 4)));
    }
}

/// Claim: an error says that a transaction can be sent again, or was refused for an output, or otherwise; the oldest is
/// forgotten, and of one transaction the last counts.
#[test]
fn errors() {
    let mut errors = Errors::new(3);
    let (inputs, ids) = ([name(1), name(2)], [name(5), name(6), name(7), name(8)]);
    errors.add(&Error { id: &ids[0], why: Why::Range });
    assert_eq!(errors.status(&ids[0], &name(1)), Some(Status::InternalError));
    errors.add(&Error { id: &ids[0], why: Why::Spent(&inputs) });
    assert_eq!(errors.status(&ids[0], &name(1)), Some(Status::InvalidInput));
    assert_eq!(errors.status(&ids[0], &name(3)), Some(Status::Rejected));
    errors.add(&Error { id: &ids[1], why: Why::Incomplete });
    assert_eq!(errors.status(&ids[1], &name(1)), Some(Status::Rejected));
    errors.add(&Error { id: &ids[2], why: Why::NotTaken });
    errors.add(&Error { id: &ids[3], why: Why::NotTaken });
    assert_eq!(
        (errors.status(&ids[0], &name(1)), errors.status(&ids[3], &name(1))),
        (None, Some(Status::InternalError))
    );
}

/// Claim: with the published system's stub everything is unspent at the last height, whatever became of it.
#[test]
fn the_stub() {
    let options = Options {
        atomizers: 1,
        blocks_max: 2,
        blocks_bytes_max: 1 << 20,
        errors_max: 2,
        says_unspent: true,
        secret: secret(),
    };
    assert_eq!(Watchtower::new(options).status(&name(1), &name(2)), (Status::Unspent, 0));
    let real = Watchtower::new(Options { says_unspent: false, ..options });
    assert_eq!(real.status(&name(1), &name(2)), (Status::NoHistory, 0));
}

/// Claim: outputs of one name in one transaction, or in many, make the table of their block neither long nor slow; inputs and
/// other outputs are found all the same.
#[test]
fn many_of_one_name() {
    let mut blocks = Blocks::new(2, usize::MAX);
    let same = [7; 4_096];
    let alone: Vec<(u64, &[u64], &[u64])> =
        (0..50_000).map(|id| (id, &[][..], &same[..1])).collect();
    let together: Vec<(u64, &[u64], &[u64])> =
        (60_000..60_100).map(|id| (id, &[][..], &same[..])).collect();
    let others: [(u64, &[u64], &[u64]); 2] = [(90_000, &[7], &[8]), (90_001, &[9], &[10])];
    let list: Vec<_> = alone.into_iter().chain(together).chain(others).collect();
    add(&mut blocks, 1, &list);
    assert_eq!(find(&blocks, 0, 7), Some((Status::Spent, 1)));
    assert_eq!(find(&blocks, 90_000, 7), Some((Status::Spent, 1)));
    assert_eq!(find(&blocks, 90_000, 8), Some((Status::Unspent, 1)));
    assert_eq!(find(&blocks, 90_001, 9), Some((Status::Spent, 1)));
}
