//! Which transaction a hash names: what sessions that submit tell and sessions that observe ask. Bounded, without a lock,
//! shared by all sessions of a trial.
//!
//! Two tables. *Recent* finds a number by its hash: buckets of eight entries of 8 bytes, one line of the processor's cache;
//! who comes into a full bucket takes the place of the oldest. *All* has the first eight bytes of the hash of every number,
//! for the reader of the ledger and to be sure of what was found, in pieces that are made when they are needed: 8 bytes a
//! transaction.
//!
//! Eight bytes of a SHA-256 name it: among fifty million that two agree has a chance of 1 in 15,000.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, LazyLock, OnceLock};

use atomizer_node::protocol::Hash;
use atomizer_node::protocol::request::NOBODY;
use model::TxId;

/// Entries of a bucket. With a quarter as many outstanding as are recent, one in ten million is pushed out of its bucket
/// by newer ones before it is looked for (Poisson: eight or more where a half is expected); with four entries it was one in
/// 800, and each of these counted as never answered.
const WAYS: usize = 8;
/// Bits of an entry that have the number; above them stand the lowest of the hash.
const TX_BITS: u32 = 41;
const TX: u64 = (1 << TX_BITS) - 1;
/// The entry of nobody.
const NONE: u64 = u64::MAX;
/// Hashes that are looked up together.
const TOGETHER: usize = 16;
/// Numbers of a piece of *all*.
const PIECE: usize = 1 << 20;
/// Pieces at most: a thousand million transactions, 8 GB.
const PIECES_MAX: usize = 1 << 10;

/// The first bytes of a hash; never 0, which stands for none.
pub(crate) fn short(hash: &Hash) -> u64 {
    let first = hash.first_chunk::<8>().expect("a hash has 32 bytes");
    u64::from_le_bytes(*first).max(1)
}

/// What stands in the table of a transaction.
const fn entry(short: u64, tx: TxId) -> u64 {
    short << TX_BITS | tx
}

/// Eight that share a line.
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

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

/// The same, made when it is first used.
pub(crate) type MadeLater = LazyLock<Arc<Known>, Box<dyn FnOnce() -> Arc<Known> + Send>>;

impl Known {
    /// Recent are so many at least.
    pub(crate) fn new(recent: usize) -> Self {
        // Four times as many places as entries.
        let buckets = (recent.max(1) * 4).div_ceil(WAYS).next_power_of_two();
        let bucket = || Bucket(std::array::from_fn(|_| AtomicU64::new(NONE)));
        Self {
            recent: (0..buckets).map(|_| bucket()).collect(),
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

    fn bucket(&self, short: u64) -> &[AtomicU64; WAYS] {
        // Other bits than those that an entry keeps.
        let place = usize::try_from((short >> 32) & self.mask).expect("it is an index");
        &self.recent[place].0
    }

    /// A transaction is submitted. One that is told again stays.
    pub(crate) fn tell(&self, hash: &Hash, tx: TxId) {
        if tx >= TX {
            return;
        }
        let short = short(hash);
        let (bucket, wanted) = (self.bucket(short), entry(short, tx));
        let (mut place, mut oldest) = (0, u64::MAX);
        for (at, entry) in bucket.iter().enumerate() {
            let is = entry.load(Relaxed);
            if is == wanted {
                return;
            }
            // Nobody is older than any.
            let age = (is & TX).wrapping_add(1) & TX;
            (place, oldest) = if age < oldest { (at, age) } else { (place, oldest) };
        }
        // Before: what is found is held against it.
        self.keep(short, tx);
        bucket[place].store(wanted, Release);
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
        self.find_short(short(hash))
    }

    fn find_short(&self, short: u64) -> Option<TxId> {
        // Without a branch for each entry: which of them it is nobody can foretell.
        let (mut found, bucket) = (0_u32, self.bucket(short));
        for (at, entry) in bucket.iter().enumerate() {
            let is_like = (entry.load(Acquire) ^ (short << TX_BITS)) <= TX;
            found |= u32::from(is_like) << at;
        }
        while found != 0 {
            let at = usize::try_from(found.trailing_zeros()).expect("below eight");
            let is = bucket[at].load(Acquire);
            if (is ^ (short << TX_BITS)) <= TX && is != NONE && self.is_of(is & TX, short) {
                return Some(is & TX);
            }
            found &= found - 1;
        }
        None
    }

    /// Whether a number's hash begins so, as far as that is kept.
    fn is_of(&self, tx: TxId, short: u64) -> bool {
        let number = usize::try_from(tx).ok();
        let piece = number.and_then(|it| Some((self.all.get(it / PIECE)?.get()?, it % PIECE)));
        piece.is_none_or(|(piece, at)| piece[at].load(Relaxed) == short)
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

/// Looks up hashes several at a time. The lines of the table are asked for together before any is needed: each alone is
/// likely to wait for memory.
#[derive(Default)]
pub(crate) struct Lookup {
    shorts: [u64; TOGETHER],
    count: usize,
}

impl Lookup {
    /// One more; `each` is told of those that were found, some time.
    pub(crate) fn push(&mut self, known: &Known, hash: &Hash, each: impl FnMut(TxId)) {
        self.shorts[self.count] = short(hash);
        self.count += 1;
        if self.count == TOGETHER {
            self.flush(known, each);
        }
    }

    /// Tells of all that were found, in their order.
    pub(crate) fn flush(&mut self, known: &Known, mut each: impl FnMut(TxId)) {
        let shorts = &self.shorts[..std::mem::take(&mut self.count)];
        let asked = shorts.iter().fold(0, |all, it| all ^ known.bucket(*it)[0].load(Relaxed));
        std::hint::black_box(asked);
        shorts.iter().filter_map(|it| known.find_short(*it)).for_each(&mut each);
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
        assert!(found > 990, "{found}");
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

    /// Claim: many at a time are found as one by one, in their order, whatever their count; numbers of a probe, which are not
    /// in the list of all, are found; and a hash that agrees with another in what an entry keeps is not taken for it.
    #[test]
    fn many_at_a_time() {
        let known = Known::new(1_000);
        let probe = 1 << 40;
        for tx in (0..40).chain(probe..probe + 3) {
            known.tell(&hash(tx + 1), tx);
        }
        for count in [0, 1, 15, 16, 17, 40] {
            let (mut lookup, mut found) = (Lookup::default(), Vec::new());
            for tx in 0..count {
                // Every other one is a stranger's.
                lookup.push(&known, &hash(tx + 1), |tx| found.push(tx));
                lookup.push(&known, &hash(tx + 1_000_000), |tx| found.push(tx));
            }
            lookup.flush(&known, |tx| found.push(tx));
            assert!(found.iter().copied().eq(0..count), "{count}: {found:?}");
        }
        assert_eq!(known.find(&hash(probe + 2)), Some(probe + 1));
        let mut like = hash(1);
        // Bits between those that choose a bucket and those that an entry keeps.
        like[3] ^= 0x80;
        assert_eq!((known.find(&hash(1)), known.find(&like)), (Some(0), None));
    }

    /// Claim: of a quarter as many outstanding as are recent next to none is lost.
    #[test]
    fn none_is_pushed_out() {
        let known = Known::new(40_000);
        let outstanding = 10_000;
        let lost = (0..400_000_u64)
            .filter(|tx| {
                known.tell(&hash(tx + 1), *tx);
                tx.checked_sub(outstanding)
                    .is_some_and(|old| known.find(&hash(old + 1)) != Some(old))
            })
            .count();
        assert!(lost < 10, "{lost}");
    }
}
