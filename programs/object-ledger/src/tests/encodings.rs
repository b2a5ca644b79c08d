//! Bytes: one encoding of each thing, and trees.

use super::made::{batch, keys, row};
use crate::data::{
    Attestation, Batch, Block, Malformed, Proof, Proposal, Token, Tree, from_hex, hex, names,
};
use crate::fuzz::fuzz_data;

/// Claim: what is written is read as the same; cut anywhere or longer it is refused, each with its reason.
#[test]
fn one_encoding() {
    let made = &row(&[7])[0];
    let proof = made.proof(5);
    type Read = fn(&[u8]) -> Result<Vec<u8>, Malformed>;
    let each: [(Vec<u8>, Read); 6] = [
        (made.batch.encoded(), |it| Batch::parse(it).map(|it| it.encoded())),
        (proof, |it| Proof::parse(it).map(|it| it.encoded())),
        (made.proposal.block.encoded(), |it| Block::parse(it).map(|it| it.encoded())),
        (made.proposal.token.encoded(), |it| Token::parse(it).map(|it| it.encoded())),
        (made.attestation.encoded(), |it| Attestation::parse(it).map(|it| it.encoded())),
        (made.proposal.encoded(), |it| Proposal::parse(it).map(|it| it.encoded())),
    ];
    for (bytes, read) in each {
        assert_eq!(read(&bytes), Ok(bytes.clone()));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Err(Malformed::Short), "{end} of {}", bytes.len());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(read(&longer), Err(Malformed::Trailing));
        let other = [&[bytes[0] ^ 1], &bytes[1..]].concat();
        assert_eq!(read(&other), Err(Malformed::Tag));
        fuzz_data(&bytes);
    }
}

/// Claim: numbers that may not be are refused: no transaction, an empty one, number zero, a time before the epoch.
#[test]
fn ranges() {
    let made = &row(&[3])[0];
    let set = |mut bytes: Vec<u8>, at: usize, with: &[u8]| {
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let of_batch = made.batch.encoded();
    for count in [0, 65_537, u32::MAX] {
        let bytes = set(of_batch.clone(), 20, &count.to_be_bytes());
        assert_eq!(Batch::parse(&bytes), Err(Malformed::Range), "{count}");
    }
    assert_eq!(Batch::parse(&set(of_batch, 24, &[0; 4])), Err(Malformed::Range));
    let block = set(made.proposal.block.encoded(), 20, &[0; 4]);
    assert_eq!(Block::parse(&block), Err(Malformed::Range));
    let token = set(made.proposal.token.encoded(), 36, &[0x80]);
    assert_eq!(Token::parse(&token), Err(Malformed::Range));
    let attestation = set(made.attestation.encoded(), 4, &[0; 8]);
    assert_eq!(Attestation::parse(&attestation), Err(Malformed::Range));
    let proof = set(made.proof(0), 8, &[33]);
    assert_eq!(Proof::parse(&proof), Err(Malformed::Range));
}

/// Claim: each leaf of a tree of any size has a proof that leads to the root, and to it from no other place, count, batch or
/// transaction; sizes up to 65 have every shape of the last levels.
#[test]
fn trees() {
    for count in 1..=65 {
        let batch = batch(9, count);
        let tree = Tree::of(&batch);
        assert_eq!(tree.count(), count);
        assert_eq!(tree.proof(count), None);
        for (index, transaction) in (0..count).zip(&batch.transactions) {
            let proof = tree.proof(index).unwrap();
            assert_eq!(proof.root(&batch.id, count, transaction), Some(tree.root()));
            let elsewhere = Proof { index: (index + 1) % (count + 1), ..proof.clone() };
            assert_ne!(elsewhere.root(&batch.id, count, transaction), Some(tree.root()));
            assert_ne!(proof.root(&batch.id, count + 1, transaction), Some(tree.root()));
            assert_ne!(proof.root(&[8; 16], count, transaction), Some(tree.root()));
            assert_ne!(proof.root(&batch.id, count, b"another"), Some(tree.root()));
            let mut longer = proof.clone();
            longer.siblings.push([0; 32]);
            assert_eq!(longer.root(&batch.id, count, transaction), None);
            if let Some(shorter) = proof.siblings.split_last().map(|(_, rest)| rest.to_vec()) {
                let shorter = Proof { index, siblings: shorter };
                assert_eq!(shorter.root(&batch.id, count, transaction), None);
            }
        }
    }
}

/// Claim: an inner node is no leaf and a leaf no inner node: a tree of two leaves that are the nodes of another one has another
/// root (RFC 6962, section 2.1).
#[test]
fn a_node_is_no_leaf() {
    let four = batch(4, 4);
    let of = |transactions| Tree::of(&Batch { id: four.id, transactions });
    let left = of(four.transactions[..2].to_vec()).root();
    let right = of(four.transactions[2..].to_vec()).root();
    assert_ne!(of(vec![left.to_vec(), right.to_vec()]).root(), Tree::of(&four).root());
}

/// Claim: hexadecimal and names are read back, and only in one form.
#[test]
fn names_and_digits() {
    assert_eq!(from_hex(&hex(&[0, 0xaf, 9])), Some([0, 0xaf, 9]));
    assert_eq!(from_hex::<3>("00AF09"), None);
    assert_eq!(from_hex::<2>("00af09"), None);
    assert_eq!(names::attestation_number(&names::attestation(7)), Some(7));
    for other in ["sequence/7", "sequence/-0000000000000000007", "batch/00000000000000000007"] {
        assert_eq!(names::attestation_number(other), None, "{other}");
    }
}

/// Claim: a key in a folder is the same the next time, and its secret is for its owner alone.
#[test]
fn keys_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let key = crate::keys::Key::in_folder(folder.path()).unwrap().public();
    assert_eq!(crate::keys::Key::in_folder(folder.path()).unwrap().public(), key);
    let mode = folder.path().join("key.secret").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!format!("{:?}", keys().0).contains(&hex(&[1; 32])));
    std::fs::write(folder.path().join("key.secret"), "none").unwrap();
    let why = crate::keys::Key::in_folder(folder.path()).unwrap_err().to_string();
    assert!(why.contains("is no key"), "{why}");
}
