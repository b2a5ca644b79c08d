//! The chain as it lies on an archiver's disk, whole and tampered with.

use atomizer_node::archiver::disk::write_archive;
use atomizer_node::protocol::block::{HEAD_BYTES, Hashing, Head, write_block_head};
use model::check::CheckInput;
use sut::Ledger as _;

use super::*;
use crate::checks;
use crate::ledger::Chain;

/// A chain of blocks of these transactions, each without its frame; `tamper` changes the bytes of one after it is hashed.
fn blocks(ids: &[std::ops::Range<TxId>], tamper: impl Fn(usize, &mut Vec<u8>)) -> Vec<Vec<u8>> {
    let mut previous = [0; 32];
    let made = ids.iter().enumerate().map(|(place, ids)| {
        let mut bytes = Vec::new();
        ids.clone().for_each(|tx| wallet().transaction(tx).as_transaction().write(&mut bytes));
        let count = ids.end - ids.start;
        let head = Head { height: place as u64 + 1, ledger: 1, previous, hash: [0; 32], count };
        let mut hashing = Hashing::default();
        hashing.add(&bytes);
        let head = Head { hash: hashing.end(&head), ..head };
        previous = head.hash;
        let mut out = Vec::new();
        write_block_head(&mut out, &head, bytes.len() as u64);
        out.extend_from_slice(&bytes);
        let mut block = out.split_off(8);
        tamper(place, &mut block);
        block
    });
    made.collect()
}

/// What the check of the order of blocks says of an archive: whether it holds, and examples where it does not. Or why the
/// archive cannot be read.
fn in_order(blocks: &[Vec<u8>]) -> Result<(bool, Vec<TxId>), String> {
    let folder = tempfile::tempdir().unwrap();
    write_archive(folder.path(), blocks).unwrap();
    let known = known();
    told(&known, 0..20);
    let mut chain = Chain::open(folder.path(), &known, wallet()).unwrap();
    let check = checks::ALL.iter().find(|check| check.name == "blocks_in_order").unwrap();
    let none = model::options::Options::empty();
    let mut state = (check.start)(&CheckInput {
        seed: Seed(3),
        deploy: &none,
        workload: &none,
        kinds: &[],
        stages: &[],
        final_stages: model::FinalStages::default(),
        states: &[],
    });
    while let Some(entry) = chain.next(&mut Vec::new()).map_err(|error| error.to_string())? {
        assert!(entry.ours, "what is in it was submitted: {entry:?}");
        state.entry(&entry, &[]);
    }
    let found = state.finish();
    Ok((found.holds, found.examples))
}

/// Swaps the first two transactions of a block that has nothing but those of two inputs and two outputs.
fn swap(block: &mut [u8]) {
    block[HEAD_BYTES..HEAD_BYTES + 2 * 176].rotate_left(176);
}

/// Claim: a chain whose blocks follow each other by their hashes is in order; two transactions of a block that were swapped
/// are found by their ids, though each is what was submitted, in the last block and before an empty one, too; and so is a
/// block whose hash was mended for that, by the next one.
#[test]
fn an_order_that_was_changed() {
    let ids = [0..3, 3..8, 8..8, 8..12];
    assert_eq!(in_order(&blocks(&ids, |_, _| {})), Ok((true, vec![])));
    let swapped = |at| {
        blocks(&ids, move |place, block| {
            if place == at {
                swap(block)
            }
        })
    };
    assert_eq!(in_order(&swapped(1)), Ok((false, vec![4, 3, 5, 6, 7])));
    assert_eq!(in_order(&swapped(3)), Ok((false, vec![9, 8, 10, 11])));
    let mended = |at| {
        blocks(&ids, move |place, block| {
            if place == at {
                swap(block);
                let head = atomizer_node::protocol::block::read_head(block).unwrap();
                let mut hashing = Hashing::default();
                hashing.add(&block[HEAD_BYTES..]);
                block[48..80].copy_from_slice(&hashing.end(&head));
            }
        })
    };
    assert_eq!(in_order(&mended(0)), Ok((false, vec![3, 4, 5, 6, 7])));
    assert_eq!(in_order(&mended(1)), Ok((false, vec![8, 9, 10, 11])), "behind an empty block");
    let cut = &blocks(&[0..3, 3..3], |place, block| block[16] ^= u8::from(place == 1));
    let words = in_order(cut).unwrap_err();
    assert!(words.contains("block 2 does not follow the one before by its hash"), "{words}");
}
