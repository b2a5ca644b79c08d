//! Which transaction a hash names: what sessions that submit tell and sessions that observe ask. Bounded, without a lock,
//! shared by all sessions of a trial.
//!
//! Two tables. *Recent* finds a number by its hash: buckets of four entries of 16 bytes, one line of the processor's cache;
//! who comes into a full bucket takes the place of the oldest. *All* has the first eight bytes of the hash of every number,
//! for the reader of the ledger, in pieces that are made when they are needed: 8 bytes a transaction.
//!
//! Eight bytes of a SHA-256 name it: among fifty million that two agree has a chance of 1 in 15,000.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use atomizer_node::protocol::Hash;
use atomizer_node::protocol::request::NOBODY;
use model::TxId;

/// Entries of a bucket.
const WAYS: usize = 4;
/// Numbers of a piece of *all*.
const PIECE: usize = 1 << 20;
/// Pieces at most: a thousand million transactions, 8 GB.
const PIECES_MAX: usize = 1 << 10;

/// The first bytes of a hash; never 0, which stands for none.
pub(crate) fn short(hash: &Hash) -> u64 {
    let first = hash.first_chunk::<8>().expect("a hash has 32 bytes");
    u64::from_le_bytes(*first).max(1)
}

/// An entry: the hash, 0 = none, and whose it is.
#[derive(Default)]
struct Entry {
    short: AtomicU64,
    tx: AtomicU64,
}

/// Four that share a line.
#[repr(align(64))]
#[derive(Default)]
struct Bucket([Entry; WAYS]);

/// What is known of the transactions of a trial.
pub(crate) struct Known {
    recent: Box<[Bucket]>,
    mask: u64,
    all: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// The highest that blocks were seen to have come to.
    height: AtomicU64,
    /// The highest that whoever leads has said.
    said: AtomicU64,
    /// One more than the largest number that was told.
    count: AtomicU64,
    /// The replica that was last said to lead.
    leader: AtomicU8,
}

impl Known {
    /// Recent are so many at least.
    pub(crate) fn new(recent: usize) -> Self {
        // Twice as many places as entries: a bucket of four overflows at a load of a half once in some fifty.
        let buckets = (recent.max(1) * 2).div_ceil(WAYS).next_power_of_two();
        Self {
            recent: (0..buckets).map(|_| Bucket::default()).collect(),
            mask: (buckets - 1) as u64,
            all: (0..PIECES_MAX).map(|_| OnceLock::new()).collect(),
            height: AtomicU64::new(0),
            said: AtomicU64::new(0),
            count: AtomicU64::new(0),
            leader: AtomicU8::new(NOBODY),
        }
    }

    /// Bytes of the table of recent ones.
    pub(crate) fn recent_bytes(&self) -> usize {
        self.recent.len() * size_of::<Bucket>()
    }

    fn bucket(&self, short: u64) -> &[Entry; WAYS] {
        // The high bits choose: the low ones of some hashes are all that others keep.
        let place = usize::try_from((short >> 20) & self.mask).expect("it is an index");
        &self.recent[place].0
    }

    /// A transaction is submitted. One that is told again stays.
    pub(crate) fn tell(&self, hash: &Hash, tx: TxId) {
        let short = short(hash);
        let bucket = self.bucket(short);
        let mut oldest = &bucket[0];
        let mut oldest_tx = u64::MAX;
        for entry in bucket {
            let is = entry.short.load(Relaxed);
            if is == short {
                return;
            }
            let age = if is == 0 { 0 } else { entry.tx.load(Relaxed) + 1 };
            if age < oldest_tx {
                (oldest, oldest_tx) = (entry, age);
            }
        }
        // Whoever looks meanwhile finds nothing here, or all of it.
        oldest.short.store(0, Release);
        oldest.tx.store(tx, Release);
        oldest.short.store(short, Release);
        self.keep(short, tx);
    }

    fn keep(&self, short: u64, tx: TxId) {
        let Ok(number) = usize::try_from(tx) else { return };
        let Some(piece) = self.all.get(number / PIECE) else { return };
        let piece = piece.get_or_init(|| (0..PIECE).map(|_| AtomicU64::new(0)).collect());
        piece[number % PIECE].store(short, Relaxed);
        self.count.fetch_max(tx + 1, Relaxed);
    }

    /// Whose a hash is, if it is a recent one.
    pub(crate) fn find(&self, hash: &Hash) -> Option<TxId> {
        let short = short(hash);
        let entry = self.bucket(short).iter().find(|entry| entry.short.load(Acquire) == short)?;
        let tx = entry.tx.load(Acquire);
        // Its place was not taken meanwhile.
        (entry.short.load(Acquire) == short).then_some(tx)
    }

    /// The numbers of all that were submitted, each with the first bytes of its hash.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, TxId)> + '_ {
        (0..self.count()).filter_map(|tx| {
            let number = usize::try_from(tx).ok()?;
            let short = self.all.get(number / PIECE)?.get()?[number % PIECE].load(Relaxed);
            (short != 0).then_some((short, tx))
        })
    }

    /// One more than the largest number that was submitted.
    pub(crate) fn count(&self) -> TxId {
        self.count.load(Acquire)
    }

    /// Whether this one was submitted: numbers are given out before they are.
    pub(crate) fn is_told(&self, tx: TxId) -> bool {
        let piece = |number: usize| self.all.get(number / PIECE)?.get();
        let number = usize::try_from(tx).ok();
        let told = number.and_then(|it| Some(piece(it)?[it % PIECE].load(Relaxed)));
        told.is_some_and(|short| short != 0)
    }

    /// A block of this height was seen.
    pub(crate) fn saw(&self, height: u64) {
        self.height.fetch_max(height, Relaxed);
    }

    /// This replica leads, as one says that does not.
    pub(crate) fn leads(&self, replica: u8) {
        self.leader.store(replica, Relaxed);
    }

    /// Who leads, as was said since the last time that this was asked.
    pub(crate) fn take_leader(&self) -> Option<u8> {
        Some(self.leader.swap(NOBODY, Relaxed)).filter(|replica| *replica != NOBODY)
    }

    /// Whoever leads has come to this height.
    pub(crate) fn said(&self, height: u64) {
        self.said.fetch_max(height, Relaxed);
    }

    /// The highest that was seen or said.
    pub(crate) fn latest(&self) -> u64 {
        self.said.load(Relaxed).max(self.height())
    }

    /// The height that was seen last.
    pub(crate) fn height(&self) -> u64 {
        self.height.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> Hash {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        hash
    }

    /// Claim: what is recent is found, what is older than the table holds is forgotten and never taken for another, and the
    /// list of all has every one.
    #[test]
    fn recent_ones_are_found() {
        let known = Known::new(1_000);
        for tx in 0..10_000 {
            known.tell(&hash(tx + 1), tx);
            assert_eq!(known.find(&hash(tx + 1)), Some(tx));
        }
        let found = (9_000..10_000).filter(|tx| known.find(&hash(tx + 1)) == Some(*tx)).count();
        assert!(found > 950, "{found}");
        assert!((0..10_000).all(|tx| known.find(&hash(tx + 1)).is_none_or(|found| found == tx)));
        assert_eq!(known.find(&hash(20_000)), None);
        let all: Vec<_> = known.all().collect();
        assert_eq!(all.len(), 10_000);
        assert_eq!(known.count(), 10_000);
        assert!(known.is_told(9_999) && !known.is_told(10_000) && !known.is_told(u64::MAX));
        assert!(all.iter().all(|(of, tx)| *of == short(&hash(tx + 1))));
        known.saw(7);
        known.saw(5);
        known.said(6);
        assert_eq!((known.height(), known.latest()), (7, 7));
        known.said(8);
        assert_eq!((known.height(), known.latest()), (7, 8));
        assert_eq!(size_of::<Bucket>(), 64);
    }
}
