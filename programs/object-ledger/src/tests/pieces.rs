//! Objects as pieces: what rebuilds them and what does not.

use crate::pieces::{Code, Gather, Piece, Unusable, split};

const NAME: &str = "batch/00";

fn objects() -> Vec<Vec<u8>> {
    let bytes = |length: u32| (0..length).map(|it| (it * 7 + 1) as u8).collect();
    [1, 2, 3, 5, 6, 7, 196, 1_000, 65_537].into_iter().map(bytes).collect()
}

fn gather(name: &str, pieces: &[(usize, &[u8])]) -> Result<Option<Vec<u8>>, Unusable> {
    let mut gather = Gather::of(name);
    let mut last = Ok(None);
    for (bucket, piece) in pieces {
        last = gather.offer(*bucket, piece);
        if !matches!(last, Ok(None)) {
            break;
        }
    }
    last
}

/// Claim: any three of six pieces rebuild an object of any length, and no two do.
#[test]
fn any_three_of_six() {
    for whole in objects() {
        let pieces = split(Code::THREE_OF_SIX, NAME, &whole);
        assert_eq!(pieces.len(), 6);
        for mask in 0_u32..64 {
            let chosen: Vec<(usize, &[u8])> = (0..6)
                .filter(|bucket| mask >> bucket & 1 == 1)
                .map(|bucket| (bucket, &pieces[bucket][..]))
                .collect();
            let made = gather(NAME, &chosen).unwrap();
            assert_eq!(made.is_some(), mask.count_ones() >= 3, "{mask:b} of {}", whole.len());
            assert!(made.is_none_or(|made| made == whole));
        }
    }
}

/// Claim: of full copies each one is enough.
#[test]
fn full_copies() {
    let code = Code { full_copies: true, ..Code::THREE_OF_SIX };
    let pieces = split(code, NAME, b"whole");
    for (bucket, piece) in pieces.iter().enumerate() {
        assert_eq!(gather(NAME, &[(bucket, piece)]), Ok(Some(b"whole".to_vec())));
    }
}

/// Claim: one bit flipped anywhere in a piece is noticed, and the others rebuild the object without it.
#[test]
fn corrupted_pieces() {
    let whole = &objects()[6];
    let pieces = split(Code::THREE_OF_SIX, NAME, whole);
    for bit in 0..pieces[1].len() * 8 {
        let mut flipped = pieces[1].clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut gather = Gather::of(NAME);
        // One whose head was changed is of no group that the others are of.
        assert!(!matches!(gather.offer(1, &flipped), Ok(Some(_))), "bit {bit}");
        assert_eq!(gather.offer(0, &pieces[0]), Ok(None));
        assert_eq!(gather.offer(4, &pieces[4]), Ok(None));
        assert_eq!(gather.offer(5, &pieces[5]), Ok(Some(whole.clone())));
    }
    let mut in_payload = pieces[1].clone();
    *in_payload.last_mut().unwrap() ^= 1;
    assert_eq!(Piece::parse(&in_payload), Err(Unusable::Corrupted));
}

/// Claim: up to three buckets that make pieces up, with hashes that fit and under the right whole's name, neither stop nor
/// mislead: in whatever order buckets answer, the whole is there as soon as three honest ones have, and nothing else is.
#[test]
fn made_up_pieces() {
    for whole in objects() {
        let mut pieces = split(Code::THREE_OF_SIX, NAME, &whole);
        for liar in [0, 2, 5] {
            pieces[liar] = Piece::made_up(&pieces[liar]);
        }
        for first in 0..6 {
            let mut gather = Gather::of(NAME);
            let order = (0..6).map(|it| (first + it) % 6);
            let made: Vec<_> =
                order.filter_map(|it| gather.offer(it, &pieces[it]).expect("fits")).collect();
            assert_eq!(made, std::slice::from_ref(&whole), "from {first}");
        }
    }
}

/// Claim: a piece of another object, of another bucket, or of nothing real is not used; with made-up pieces in three buckets
/// the object is rebuilt from the other three.
#[test]
fn wrong_pieces() {
    let whole = &objects()[7];
    let pieces = split(Code::THREE_OF_SIX, NAME, whole);
    assert_eq!(gather(NAME, &[(2, &pieces[1])]), Err(Unusable::Misplaced));
    let other = split(Code::THREE_OF_SIX, "batch/01", whole);
    let three: Vec<(usize, &[u8])> = other[..3].iter().map(Vec::as_slice).enumerate().collect();
    assert_eq!(gather(NAME, &three), Err(Unusable::NotTheWhole));
    let made_up = split(Code::THREE_OF_SIX, NAME, b"made up");
    let mut gathered = Gather::of(NAME);
    for bucket in [0, 1] {
        assert_eq!(gathered.offer(bucket, &made_up[bucket]), Ok(None));
    }
    for bucket in [3, 4] {
        assert_eq!(gathered.offer(bucket, &pieces[bucket]), Ok(None));
    }
    assert_eq!(gathered.offer(5, &pieces[5]), Ok(Some(whole.clone())));
}
