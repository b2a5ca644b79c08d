//! What strong verification refuses, each with its reason.

use super::made::{Made, batch, keys, row, trust};
use crate::chain::{Chain, Standing};
use crate::data::{Malformed, Proposal, VOID, genesis};
use crate::verify::{Refusal, Role, Verifier, What, weak};

fn admit(verifier: &mut Verifier, made: &Made) -> Result<(), Refusal> {
    verifier.admit(&made.attestation.encoded(), &made.proposal.encoded())
}

fn verifier_of(row: &[Made]) -> Verifier {
    let mut verifier = Verifier::new(trust());
    row.iter().for_each(|made| admit(&mut verifier, made).unwrap());
    verifier
}

/// Claim: each transaction of an honest ledger is verified, at its height and place.
#[test]
fn honest() {
    let row = row(&[1, 2, 5, 33]);
    let verifier = verifier_of(&row);
    assert_eq!((verifier.height(), verifier.next()), (4, 5));
    for (number, made) in (1..).zip(&row) {
        for (index, transaction) in (0..).zip(&made.batch.transactions) {
            let proof = made.proof(index);
            let it = verifier.verify(transaction, &proof, number).unwrap();
            assert_eq!(
                (it.number, it.height, it.index, it.batch),
                (number, number, index, made.id())
            );
            assert_eq!(it.issued_unix_ns, made.proposal.token.issued_unix_ns);
            let (attestation, proposal) = (made.attestation.encoded(), made.proposal.encoded());
            let weakly = weak(&trust(), transaction, &proof, &attestation, &proposal).unwrap();
            assert_eq!((weakly.number, weakly.height, weakly.index), (number, 0, index));
        }
    }
}

/// What a flipped bit has to be refused for, by the bit's place.
type Reason = fn(&Refusal) -> bool;

fn flip_each(
    bytes: &[u8],
    fields: &[(&str, std::ops::Range<usize>, Reason)],
    refused: impl Fn(&[u8]) -> Option<Refusal>,
) {
    let covered: usize = fields.iter().map(|(_, range, _)| range.len()).sum();
    assert_eq!(covered, bytes.len(), "each byte belongs to one field");
    for (name, range, is_reason) in fields {
        for bit in range.start * 8..range.end * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refusal = refused(&flipped);
            let why = refusal.unwrap_or_else(|| panic!("bit {bit} of {name} passed"));
            assert!(is_reason(&why), "bit {bit} of {name}: {why}");
        }
    }
}

/// Claim: one bit flipped anywhere in an attestation, a block, a token or a proof is refused, with the reason of its field.
#[test]
fn each_bit_of_each_field() {
    let row = row(&[3, 6, 2]);
    let before = verifier_of(&row[..1]);
    let made = &row[1];
    let (attestation, proposal) = (made.attestation.encoded(), made.proposal.encoded());
    let tag: Reason = |it| matches!(it, Refusal::Malformed { why: Malformed::Tag, .. });
    let sequence: Reason = |it| matches!(it, Refusal::ForgedSequence { .. });
    // A number of zero is malformed.
    let number: Reason = |it| {
        let range = Refusal::Malformed { what: What::Attestation, why: Malformed::Range };
        *it == range || matches!(it, Refusal::ForgedSequence { .. })
    };
    let timestamp: Reason = |it| matches!(it, Refusal::ForgedTimestamp { number: 2 });
    let block: Reason = |it| matches!(it, Refusal::OtherBlock { number: 2 });
    // A count that no batch has is malformed before anything else is looked at.
    let count: Reason = |it| {
        let range = Refusal::Malformed { what: What::Proposal, why: Malformed::Range };
        *it == range || matches!(it, Refusal::OtherBlock { number: 2 })
    };
    let issued: Reason = |it| {
        let range = Refusal::Malformed { what: What::Proposal, why: Malformed::Range };
        *it == range || matches!(it, Refusal::ForgedTimestamp { number: 2 })
    };
    flip_each(
        &attestation,
        &[
            ("tag", 0..4, tag),
            ("number", 4..12, number),
            ("link", 12..44, sequence),
            ("signature", 44..108, sequence),
        ],
        |bytes| before.clone().admit(bytes, &proposal).err(),
    );
    flip_each(
        &proposal,
        &[
            ("block's tag", 0..4, tag),
            ("batch", 4..20, block),
            ("count", 20..24, count),
            ("root", 24..56, block),
            ("previous", 56..88, block),
            ("token's tag", 88..92, tag),
            ("link", 92..124, timestamp),
            ("issued", 124..132, issued),
            ("signature", 132..196, timestamp),
        ],
        |bytes| before.clone().admit(&attestation, bytes).err(),
    );
    let whole = verifier_of(&row);
    let not_in_tree: Reason = |it| matches!(it, Refusal::NotInTree { number: 2 });
    let length: Reason =
        |it| matches!(it, Refusal::Malformed { what: What::Proof, why } if *why != Malformed::Tag);
    let (transaction, proof) = (&made.batch.transactions[2], made.proof(2));
    assert_eq!(proof.len(), 9 + 3 * 32);
    flip_each(
        &proof,
        &[
            ("tag", 0..4, tag),
            ("index", 4..8, not_in_tree),
            ("count", 8..9, length),
            ("siblings", 9..105, not_in_tree),
        ],
        |bytes| whole.verify(transaction, bytes, 2).err(),
    );
    flip_each(transaction, &[("transaction", 0..transaction.len(), not_in_tree)], |bytes| {
        whole.verify(bytes, &proof, 2).err()
    });
}

/// Claim: a timestamp that another key signed is refused, though the sequencer has numbered it.
#[test]
fn forged_timestamp() {
    let (_, sequencer, nobody) = keys();
    let mut made = row(&[2]).remove(0);
    made.proposal.token = nobody.token(&genesis("tests"), made.proposal.block.link(), 7);
    made.attestation = sequencer.attestation(&genesis("tests"), 1, made.link());
    let refused = admit(&mut Verifier::new(trust()), &made);
    assert_eq!(refused, Err(Refusal::ForgedTimestamp { number: 1 }));
}

/// Claim: a number that another key signed is refused, the timestamp service's own among them.
#[test]
fn forged_sequence_number() {
    let (timestamp, _, nobody) = keys();
    for key in [nobody, timestamp] {
        let mut made = row(&[2]).remove(0);
        made.attestation = key.attestation(&genesis("tests"), 1, made.link());
        let refused = admit(&mut Verifier::new(trust()), &made);
        assert_eq!(refused, Err(Refusal::ForgedSequence { number: 1 }));
    }
}

/// Claim: a right attestation with another right block is refused, and a right token of another block.
#[test]
fn parts_of_others() {
    let row = row(&[2, 2]);
    let mut swapped = row[0].clone();
    swapped.proposal = row[1].proposal;
    let refused = admit(&mut Verifier::new(trust()), &swapped);
    assert_eq!(refused, Err(Refusal::OtherToken { number: 1 }));
    swapped.proposal = Proposal { block: row[0].proposal.block, token: row[1].proposal.token };
    let refused = admit(&mut Verifier::new(trust()), &swapped);
    assert_eq!(refused, Err(Refusal::OtherBlock { number: 1 }));
}

/// Claim: without a block nothing behind it is verified, however right it is; with it everything is.
#[test]
fn withheld_block() {
    let row = row(&[2, 2, 2]);
    let mut verifier = verifier_of(&row[..1]);
    let withheld = Refusal::Withheld { number: 2 };
    assert_eq!(admit(&mut verifier, &row[2]), Err(withheld));
    let transaction = &row[2].batch.transactions[0];
    assert_eq!(verifier.verify(transaction, &row[2].proof(0), 3), Err(withheld));
    assert_eq!(verifier.verify(transaction, &row[2].proof(0), 0), Err(withheld));
    admit(&mut verifier, &row[1]).unwrap();
    admit(&mut verifier, &row[2]).unwrap();
    assert_eq!(verifier.verify(transaction, &row[2].proof(0), 3).map(|it| it.height), Ok(3));
}

/// Claim: a sequencer that gives a number twice is caught, and from that number on nothing is believed any more.
#[test]
fn fork() {
    let row = row(&[2, 2]);
    let other = Made::new(2, batch(77, 2), row[0].link());
    let mut verifier = verifier_of(&row);
    let fork = Refusal::Fork { number: 2 };
    assert_eq!(admit(&mut verifier, &row[1]), Ok(()), "the same once more is no fork");
    assert_eq!(admit(&mut verifier, &other), Err(fork));
    let verify = |verifier: &Verifier, it: &Made, number| {
        verifier.verify(&it.batch.transactions[0], &it.proof(0), number).map(|it| it.height)
    };
    assert_eq!(verify(&verifier, &row[1], 2), Err(fork));
    assert_eq!(verify(&verifier, &row[0], 1), Ok(1));
    assert_eq!(admit(&mut verifier, &Made::new(3, batch(3, 1), row[1].link())), Err(fork));
}

/// Claim: of two blocks on one head the one with the lower number is on the main chain, in whatever order they are heard of;
/// a transaction of the other is refused, and so is one of a block that links to the other.
#[test]
fn off_the_main_chain() {
    let row = row(&[2, 2]);
    let rival = Made::new(3, batch(7, 2), row[0].link());
    let on_rival = Made::new(4, batch(8, 2), rival.link());
    let verifier = verifier_of(&[row.clone(), vec![rival.clone(), on_rival.clone()]].concat());
    assert_eq!(verifier.height(), 2);
    for (number, it) in [(3, &rival), (4, &on_rival)] {
        let refused = verifier.verify(&it.batch.transactions[0], &it.proof(0), number);
        assert_eq!(refused, Err(Refusal::OffMainChain { number }));
        assert_eq!(verifier.height_of(number), None);
    }
    let numbers: Vec<u64> = verifier.blocks().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 2]);
}

/// Claim: a batch that is on the main chain does not come there again, though its block links to the head.
#[test]
fn replayed_batch() {
    let row = row(&[2, 2]);
    let again = Made::new(3, row[0].batch.clone(), row[1].link());
    let next = Made::new(4, batch(4, 1), row[1].link());
    let verifier = verifier_of(&[row.clone(), vec![again.clone(), next]].concat());
    let refused = verifier.verify(&again.batch.transactions[0], &again.proof(0), 3);
    assert_eq!(refused, Err(Refusal::Replayed { number: 3, height: 1 }));
    assert_eq!(verifier.height(), 3, "the chain goes on from the head before");
}

/// Claim: a watcher that lies is refused: it names another block, a proof of another place, another transaction, a block that
/// it made up, or one that is signed rightly and not on the main chain. The last passes weak verification: that believes it.
#[test]
fn lying_watcher() {
    let row = row(&[3, 3]);
    let rival = Made::new(3, batch(7, 2), row[0].link());
    let verifier = verifier_of(&[row.clone(), vec![rival.clone()]].concat());
    let transaction = &row[0].batch.transactions[1];
    let not_in_tree = |number| Err(Refusal::NotInTree { number });
    assert_eq!(verifier.verify(transaction, &row[0].proof(1), 2), not_in_tree(2));
    assert_eq!(verifier.verify(transaction, &row[0].proof(2), 1), not_in_tree(1));
    assert_eq!(verifier.verify(b"never submitted", &row[0].proof(1), 1), not_in_tree(1));
    let withheld = Err(Refusal::Withheld { number: 4 });
    assert_eq!(verifier.verify(transaction, &row[0].proof(1), 9), withheld);
    let of_rival = &rival.batch.transactions[0];
    let (attestation, proposal) = (rival.attestation.encoded(), rival.proposal.encoded());
    assert!(weak(&trust(), of_rival, &rival.proof(0), &attestation, &proposal).is_ok());
    let refused = verifier.verify(of_rival, &rival.proof(0), 3);
    assert_eq!(refused, Err(Refusal::OffMainChain { number: 3 }));
}

/// Claim: the ledger's name is part of what is signed: a whole other ledger with the same keys is not believed.
#[test]
fn another_ledger() {
    let made = &row(&[2])[0];
    let other = crate::verify::Trust { genesis: genesis("others"), ..trust() };
    let mut verifier = Verifier::new(other);
    assert_eq!(admit(&mut verifier, made), Err(Refusal::ForgedSequence { number: 1 }));
}

/// Claim: a number that the sequencer has signed as void is passed over, verifies nothing, and is a fork beside a block's.
#[test]
fn void() {
    let (_, sequencer, nobody) = keys();
    let row = row(&[2, 2]);
    let after = Made::new(3, row[1].batch.clone(), row[0].link());
    let ledger = genesis("tests");
    let void = sequencer.attestation(&ledger, 2, VOID).encoded();
    let mut verifier = verifier_of(&row[..1]);
    let forged = nobody.attestation(&ledger, 2, VOID).encoded();
    assert_eq!(verifier.admit(&forged, &[]), Err(Refusal::ForgedSequence { number: 2 }));
    verifier.admit(&void, &[]).unwrap();
    admit(&mut verifier, &after).unwrap();
    assert_eq!(verifier.height_of(3), Some(2));
    let refused = verifier.verify(&row[1].batch.transactions[0], &row[1].proof(0), 2);
    assert_eq!(refused, Err(Refusal::Void { number: 2 }));
    assert_eq!(admit(&mut verifier, &row[1]), Err(Refusal::Fork { number: 2 }));
    let fork = verifier.fork().unwrap();
    assert!(fork.one.is_void() && fork.other == row[1].attestation);
}

/// Claim: a block whose timestamp is earlier than the head's is not on the main chain.
#[test]
fn back_in_time() {
    let (timestamp, sequencer, _) = keys();
    let ledger = genesis("tests");
    let row = row(&[2, 2]);
    let mut early = row[1].clone();
    early.proposal.token = timestamp.token(&ledger, early.proposal.block.link(), 1);
    early.attestation = sequencer.attestation(&ledger, 2, early.link());
    let mut verifier = verifier_of(&row[..1]);
    admit(&mut verifier, &early).unwrap();
    let refused = verifier.verify(&early.batch.transactions[0], &early.proof(0), 2);
    assert_eq!(refused, Err(Refusal::Earlier { number: 2 }));
}

/// Claim: a key that the one before it endorses signs from its number on, and the one before it no more; one that is endorsed
/// by nobody, for another role, number or ledger is not taken up.
#[test]
fn rotation() {
    let (timestamp, sequencer, nobody) = keys();
    let next = crate::keys::Key::of_seed(&[4; 32]);
    let ledger = genesis("tests");
    let to = |by: &crate::keys::Key, role, from| crate::verify::Endorsement {
        key: next.public(),
        from: 2,
        signature: by.endorse(&ledger, role, from, &next.public()),
    };
    let mut keys = trust().sequencer;
    assert!(!keys.hand_over(&ledger, Role::Sequencer, &to(&nobody, Role::Sequencer, 2)));
    assert!(!keys.hand_over(&ledger, Role::Sequencer, &to(&sequencer, Role::Timestamp, 2)));
    assert!(!keys.hand_over(&ledger, Role::Sequencer, &to(&sequencer, Role::Sequencer, 3)));
    assert!(!keys.hand_over(&[9; 32], Role::Sequencer, &to(&sequencer, Role::Sequencer, 2)));
    assert!(keys.hand_over(&ledger, Role::Sequencer, &to(&sequencer, Role::Sequencer, 2)));
    let _ = timestamp;
    let row = row(&[2, 2]);
    let mut verifier = Verifier::new(crate::verify::Trust { sequencer: keys, ..trust() });
    admit(&mut verifier, &row[0]).unwrap();
    assert_eq!(admit(&mut verifier, &row[1]), Err(Refusal::ForgedSequence { number: 2 }));
    let mut rotated = row[1].clone();
    rotated.attestation = next.attestation(&ledger, 2, rotated.link());
    admit(&mut verifier, &rotated).unwrap();
}

/// Claim: the chain as its makers compute it, told in any order, is the verifier's; a gap holds it up.
#[test]
fn the_makers_rule_is_the_verifiers() {
    let row = row(&[1, 1, 1]);
    let rival = Made::new(4, batch(9, 1), row[1].link());
    let again = Made::new(5, row[1].batch.clone(), row[2].link());
    let last = Made::new(6, batch(10, 1), row[2].link());
    let all = [row.clone(), vec![rival, again, last]].concat();
    let verifier = verifier_of(&all);
    for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 5, 1, 4, 3]] {
        let mut chain = Chain::new(genesis("tests"));
        let mut standings = vec![None; all.len()];
        for place in order {
            let made = &all[place];
            for decided in chain.tell(made.attestation.number, made.link(), Some(made.proposal)) {
                standings[usize::try_from(decided.number - 1).unwrap()] = Some(decided.standing);
            }
            let known = standings.iter().take_while(|it| it.is_some()).count() as u64;
            assert_eq!(chain.next(), known + 1);
        }
        let height = |height| Some(Standing::On { height });
        let expected = [
            height(1),
            height(2),
            height(3),
            Some(Standing::Elsewhere),
            Some(Standing::Replayed),
            height(4),
        ];
        assert_eq!(standings, expected);
        assert_eq!(chain.height(), verifier.height());
    }
}
