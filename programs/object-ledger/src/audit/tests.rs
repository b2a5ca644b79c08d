//! What an audit reads from folders, and what it refuses.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::data::Proposal;
use crate::pieces::{Code, split};
use crate::tests::made::{Made, keys, row};

const BUCKETS: usize = 6;

/// Folders that hold these objects, as pipelines store them.
fn stored(objects: &[(String, Vec<u8>)], code: Code) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, whole) in objects {
        for (bucket, piece) in split(code, name, whole).into_iter().enumerate() {
            let path = folder.path().join(bucket.to_string()).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, piece).unwrap();
        }
    }
    folder
}

/// The three objects of each block.
fn objects(row: &[Made]) -> Vec<(String, Vec<u8>)> {
    row.iter()
        .flat_map(|it| {
            let number = it.attestation.number;
            [
                (names::batch(&it.id()), it.batch.encoded()),
                (names::proposal(&it.link()), it.proposal.encoded()),
                (names::attestation(number), it.attestation.encoded()),
            ]
        })
        .collect()
}

fn audit(folder: &Path, buckets: impl IntoIterator<Item = usize>) -> Audit {
    let (timestamp, sequencer, _) = keys();
    let [timestamp, sequencer] = [timestamp, sequencer].map(|it| hex(&it.public()));
    let path = |it: usize| folder.join(it.to_string()).display().to_string();
    let buckets: Vec<String> = buckets.into_iter().map(path).collect();
    Audit::new("tests", &timestamp, &sequencer, &buckets).unwrap()
}

/// What it reads: of each transaction its height and bytes.
fn read(audit: &Audit) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let mut all = Vec::new();
    audit
        .read(|it, transaction| {
            all.push((it.height, transaction.to_vec()));
            Ok(())
        })
        .map_err(|stopped| stopped.to_string())?;
    Ok(all)
}

fn expected(row: &[Made]) -> Vec<(u64, Vec<u8>)> {
    let of = |(height, made): (u64, &Made)| {
        made.batch.transactions.clone().into_iter().map(move |it| (height, it))
    };
    (1..).zip(row).flat_map(of).collect()
}

/// Claim: every transaction is read, in the order of the main chain, from all folders, from any three of six, in any order,
/// and from one of full copies; two folders of six are too few, and that is said.
#[test]
fn any_three_folders() {
    let row = row(&[3, 1, 40]);
    let folder = stored(&objects(&row), Code::THREE_OF_SIX);
    let wanted = expected(&row);
    for mask in 0_u32..64 {
        let buckets: Vec<usize> = (0..BUCKETS).filter(|it| mask >> it & 1 == 1).rev().collect();
        if buckets.len() >= 3 {
            assert_eq!(read(&audit(folder.path(), buckets)).as_ref(), Ok(&wanted), "{mask:b}");
        } else if !buckets.is_empty() {
            let why = read(&audit(folder.path(), buckets)).unwrap_err();
            assert!(why.contains("too few buckets"), "{mask:b}: {why}");
        }
    }
    let folder = stored(&objects(&row), Code { full_copies: true, ..Code::THREE_OF_SIX });
    assert_eq!(read(&audit(folder.path(), [4])), Ok(wanted));
}

/// Claim: what does not hold is refused with its reason: a number, a block or a batch that is withheld, a forged token, a
/// batch that is another's. What was stored in part behind the last number is none yet.
#[test]
fn what_is_refused() {
    let row = row(&[2, 2, 2]);
    let all = objects(&row);
    let without = |part: &str| {
        let left: Vec<_> = all.iter().filter(|(name, _)| name != part).cloned().collect();
        let folder = stored(&left, Code::THREE_OF_SIX);
        read(&audit(folder.path(), 0..BUCKETS))
    };
    for (name, words) in [
        (names::attestation(2), "number 2 is withheld, and number 3 is there"),
        (names::proposal(&row[1].link()), "of number 2 is withheld"),
        (names::batch(&row[1].id()), "of number 2 is withheld"),
    ] {
        let why = without(&name).unwrap_err();
        assert!(why.contains(words), "{name}: {why}");
    }
    assert_eq!(without(&names::attestation(3)), Ok(expected(&row[..2])));
    let with = |name: &str, whole: Vec<u8>| {
        let change = |(at, it): &(String, Vec<u8>)| {
            (at.clone(), if at == name { whole.clone() } else { it.clone() })
        };
        let folder = stored(&all.iter().map(change).collect::<Vec<_>>(), Code::THREE_OF_SIX);
        read(&audit(folder.path(), 0..BUCKETS)).unwrap_err()
    };
    let (.., nobody) = keys();
    let forged = nobody.token(row[1].proposal.block.link(), 5);
    let forged = Proposal { block: row[1].proposal.block, token: forged };
    let why = with(&names::proposal(&row[1].link()), forged.encoded());
    assert!(why.contains("not signed by the timestamp service"), "{why}");
    let why = with(&names::batch(&row[1].id()), row[2].batch.encoded());
    assert!(why.contains("does not lead from the transaction to the root"), "{why}");
    // Two pieces of the next number: a store that was broken off.
    let folder = stored(&all, Code::THREE_OF_SIX);
    for bucket in 2..BUCKETS {
        let bucket = folder.path().join(bucket.to_string());
        fs::remove_file(bucket.join(names::attestation(3))).unwrap();
    }
    assert_eq!(read(&audit(folder.path(), 0..BUCKETS)), Ok(expected(&row[..2])));
}

/// Claim: pieces that are corrupted, cut off, or made of something else with right hashes do no harm while three others are
/// there; with two others the object is withheld, and the reason is said.
#[test]
fn pieces_that_lie() {
    let row = row(&[5]);
    let all = objects(&row);
    let folder = stored(&all, Code::THREE_OF_SIX);
    let name = names::batch(&row[0].id());
    let at = |bucket: usize| folder.path().join(bucket.to_string()).join(&name);
    let mut bytes = fs::read(at(0)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(at(0), &bytes).unwrap();
    fs::write(at(1), &bytes[..bytes.len() - 1]).unwrap();
    // A piece with right hashes: the head of the right one, the payload of nothing, its own hash made anew.
    let mut lie = fs::read(at(2)).unwrap();
    let (head, payload) = (lie[..44].to_vec(), vec![7; lie.len() - 76]);
    let own = crate::data::hash(crate::data::Domain::Piece, &[&head, &payload]);
    lie = [&head[..], &own, &payload].concat();
    fs::write(at(2), lie).unwrap();
    assert_eq!(read(&audit(folder.path(), 0..BUCKETS)), Ok(expected(&row)));
    fs::remove_file(at(5)).unwrap();
    let why = read(&audit(folder.path(), 0..BUCKETS)).unwrap_err();
    assert!(why.contains("withheld") && why.contains("3 usable pieces"), "{why}");
}
