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
fn objects_of(row: &[Made]) -> Vec<(String, Vec<u8>)> {
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
        .read(
            |it, transaction| {
                all.push((it.height, transaction.to_vec()));
                Ok(())
            },
            |_, _| Ok(()),
        )
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
    let folder = stored(&objects_of(&row), Code::THREE_OF_SIX);
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
    let folder = stored(&objects_of(&row), Code { full_copies: true, ..Code::THREE_OF_SIX });
    assert_eq!(read(&audit(folder.path(), [4])), Ok(wanted));
}

/// Claim: what does not hold is refused with its reason: a number, a block or a batch that is withheld, a forged token, a
/// batch that is another's. What was stored in part behind the last number is none yet.
#[test]
fn what_is_refused() {
    let row = row(&[2, 2, 2]);
    let all = objects_of(&row);
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
    let forged = nobody.token(&genesis("tests"), row[1].proposal.block.link(), 5);
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

/// Claim: pieces that are corrupted, cut off, or made up with hashes that fit do no harm while three others are there; with two
/// others the object is withheld, and the reason is said. Each wrong piece is named.
#[test]
fn pieces_that_lie() {
    let row = row(&[5]);
    let all = objects_of(&row);
    let folder = stored(&all, Code::THREE_OF_SIX);
    let name = names::batch(&row[0].id());
    let at = |bucket: usize| folder.path().join(bucket.to_string()).join(&name);
    let mut bytes = fs::read(at(0)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(at(0), &bytes).unwrap();
    fs::write(at(1), &bytes[..bytes.len() - 1]).unwrap();
    fs::write(at(2), crate::pieces::Piece::made_up(&fs::read(at(2)).unwrap())).unwrap();
    assert_eq!(read(&audit(folder.path(), 0..BUCKETS)), Ok(expected(&row)));
    let sum = audit(folder.path(), 0..BUCKETS).read(|_, _| Ok(()), |_, _| Ok(())).unwrap();
    let why = sum.is_whole().unwrap_err().to_string();
    assert!(why.contains("has 3 of 6 pieces, and 4 are wanted"), "{why}");
    for bucket in 0..3 {
        assert!(why.contains(&format!("{bucket} has something else than its piece")), "{why}");
    }
    fs::remove_file(at(5)).unwrap();
    let why = read(&audit(folder.path(), 0..BUCKETS)).unwrap_err();
    assert!(why.contains("withheld") && why.contains("3 usable pieces"), "{why}");
}

/// Claim: an object that some buckets miss is counted and named when it is below the margin, and not when it is not.
#[test]
fn margins() {
    let row = row(&[2, 2]);
    let folder = stored(&objects_of(&row), Code::THREE_OF_SIX);
    let remove = |bucket: usize| {
        let path = folder.path().join(bucket.to_string()).join(names::batch(&row[1].id()));
        fs::remove_file(path).unwrap();
    };
    let of = |margin| {
        let audit = Audit { margin, ..audit(folder.path(), 0..BUCKETS) };
        audit.read(|_, _| Ok(()), |_, _| Ok(())).unwrap()
    };
    assert_eq!(of(3).is_whole().map_err(|it| it.to_string()), Ok(()));
    remove(0);
    remove(4);
    assert!(of(1).is_whole().is_ok() && of(2).is_whole().is_err());
    remove(5);
    let sum = of(1);
    assert_eq!(sum.pieces, BTreeMap::from([(3, 1), (6, 5)]));
    assert!(of(0).is_whole().is_ok());
    let why = sum.is_whole().unwrap_err().to_string();
    assert!(why.contains("1 objects below the margin: batch/"), "{why}");
}

/// Claim: two signed attestations of one number are a fork, whether both stand under the number's name or one is stored as
/// evidence, and both are shown; one without a valid signature is passed over.
#[test]
fn forks() {
    let row = row(&[2, 2, 2]);
    let (_, sequencer, nobody) = keys();
    let all = objects_of(&row);
    let folder = stored(&all, Code::THREE_OF_SIX);
    let name = names::attestation(3);
    let put = |name: &str, whole: &[u8], buckets: std::ops::Range<usize>| {
        for (bucket, piece) in split(Code::THREE_OF_SIX, name, whole).iter().enumerate() {
            if buckets.contains(&bucket) {
                let path = folder.path().join(bucket.to_string()).join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, piece).unwrap();
            }
        }
    };
    let ledger = genesis("tests");
    put(&name, &nobody.attestation(&ledger, 3, [7; 32]).encoded(), 0..3);
    assert_eq!(read(&audit(folder.path(), 0..BUCKETS)), Ok(expected(&row)));
    let other = sequencer.attestation(&ledger, 3, [7; 32]).encoded();
    put(&name, &other, 0..3);
    let is_fork = |why: &str| {
        let both = [&other, &row[2].attestation.encoded()];
        why.contains("a fork") && both.iter().all(|it| why.contains(&hex(it)))
    };
    let why = read(&audit(folder.path(), 0..BUCKETS)).unwrap_err();
    assert!(is_fork(&why), "{why}");
    put(&name, &row[2].attestation.encoded(), 0..3);
    assert!(read(&audit(folder.path(), 0..BUCKETS)).is_ok());
    put(&names::fork(3, &[7; 32]), &other, 0..6);
    let why = read(&audit(folder.path(), 0..BUCKETS)).unwrap_err();
    assert!(is_fork(&why), "{why}");
}

/// Claim: a number that the sequencer has signed as void is passed over, and what follows is read.
#[test]
fn voids() {
    let (_, sequencer, _) = keys();
    let mut row = row(&[2, 2]);
    let void = sequencer.attestation(&genesis("tests"), 2, crate::data::VOID);
    let third = Made::new(3, row[1].batch.clone(), row[0].link());
    row[1] = third;
    let mut all = objects_of(&row);
    all.push((names::attestation(2), void.encoded()));
    let folder = stored(&all, Code::THREE_OF_SIX);
    assert_eq!(read(&audit(folder.path(), 0..BUCKETS)), Ok(expected(&row)));
}
