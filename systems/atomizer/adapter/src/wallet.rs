//! The outputs that transactions spend and make: computed from the trial's seed and a transaction's number, never stored.
//! Whoever knows the seed can say what any transaction holds, and whether a block's is one of them, whole.
//!
//! Transactions are dealt out to generators by turns. Each generator begins with [`OUTPUTS_EACH`] outputs; its n-th
//! transaction spends the next two of them, and when there are none left the two that its oldest made. All inputs and all
//! outputs of any are worth the same together.

use atomizer_node::protocol::Hash;
use atomizer_node::protocol::request::write_notify;
use atomizer_node::protocol::transaction::Transaction;
use model::{Seed, TxId};
use ring::digest::{SHA256, digest};

/// Outputs that a generator begins with, as published.
pub(crate) const OUTPUTS_EACH: u64 = 10_000_000;
/// What each of them is worth, as published.
pub(crate) const SEED_VALUE: u64 = 10_000_000;
/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Sort {
    /// Two inputs that are unspent, both vouched for.
    Spend = 0,
    /// The same, vouched for by two messages, one for each input.
    Partial = 1,
    /// Its inputs were spent before.
    Double = 2,
    /// Nobody vouches for its second input, for it does not exist.
    Unknown = 3,
    /// Vouched for at a height that is too old.
    Stale = 4,
    /// Vouched for at a height that is not there yet.
    Future = 5,
}

impl Sort {
    pub(crate) const ALL: [Self; 6] =
        [Self::Spend, Self::Partial, Self::Double, Self::Unknown, Self::Stale, Self::Future];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spend => "spend",
            Self::Partial => "partial",
            Self::Double => "double-spend",
            Self::Unknown => "unknown-input",
            Self::Stale => "stale",
            Self::Future => "future",
        }
    }

    /// Whether it should stand in a block in the end.
    pub(crate) const fn is_good(self) -> bool {
        matches!(self, Self::Spend | Self::Partial)
    }
}

/// How much of the load each sort is, in thousandths; the rest are plain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares(pub(crate) [u64; 5]);

/// The wallets as a workload has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purse {
    pub(crate) generators: u32,
    /// Outputs that each begins with.
    pub(crate) outputs: u64,
    pub(crate) shares: Shares,
    /// A double spend spends again what this many transactions earlier of the same generator did. Where sessions vouch
    /// themselves it is 1: so near that the first cannot stand in a block before the last that was seen, for where it stands
    /// its inputs would not be vouched for any more.
    pub(crate) double_lag: u64,
}

impl Purse {
    pub(crate) fn wallet(&self, seed: Seed) -> Wallet {
        let wallet = Wallet::new(seed, self.generators, self.outputs, self.shares);
        Wallet { double_lag: self.double_lag, ..wallet }
    }
}

/// The wallets of all generators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wallet {
    seed: u64,
    generators: u64,
    /// Transactions of a generator before it spends what it made.
    fresh: u64,
    shares: Shares,
    /// See [`Purse::double_lag`].
    double_lag: u64,
}

/// What one transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) sort: Sort,
    pub(crate) id: Hash,
    pub(crate) inputs: [Hash; 2],
    pub(crate) outputs: [Hash; 2],
}

impl Made {
    pub(crate) const fn as_transaction(&self) -> Transaction<'_> {
        Transaction { id: &self.id, inputs: &self.inputs, outputs: &self.outputs }
    }

    /// The messages that submit it, with no height yet.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let transaction = self.as_transaction();
        match self.sort {
            Sort::Partial => {
                write_notify(out, 0, &transaction, &[0]);
                write_notify(out, 0, &transaction, &[1]);
            }
            Sort::Unknown => write_notify(out, 0, &transaction, &[0]),
            _ => write_notify(out, 0, &transaction, &[0, 1]),
        }
    }
}

/// An output by where it was made.
#[derive(Clone, Copy)]
struct Output {
    /// The transaction that made it.
    of: Hash,
    index: u64,
    owner: Hash,
    value: u64,
}

/// Bytes of an output: whose it is and what it is worth. Of an input: where it was made, and the output.
const OUTPUT_BYTES: usize = 40;
const INPUT_BYTES: usize = 80;

impl Output {
    /// As an input has it; its name is the hash of that.
    fn bytes(&self) -> [u8; INPUT_BYTES] {
        let mut bytes = [0; INPUT_BYTES];
        bytes[..32].copy_from_slice(&self.of);
        bytes[32..40].copy_from_slice(&self.index.to_le_bytes());
        bytes[40..72].copy_from_slice(&self.owner);
        bytes[72..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }
}

fn sha256(bytes: &[u8]) -> Hash {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A number that is spread over all of 64 bits (the finisher of SplitMix64).
fn spread(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Wallet {
    pub(crate) fn new(seed: Seed, generators: u32, outputs_each: u64, shares: Shares) -> Self {
        let generators = u64::from(generators.max(1));
        Self { seed: seed.0, generators, fresh: (outputs_each / 2).max(1), shares, double_lag: 1 }
    }

    /// The sort of a transaction.
    pub(crate) fn sort(&self, n: TxId) -> Sort {
        let Shares(shares) = self.shares;
        if shares == [0; 5] {
            return Sort::Spend;
        }
        let drawn = spread(self.seed ^ n.wrapping_mul(0x2545_f491_4f6c_dd1d)) % 1_000;
        let mut sum = 0;
        for (share, sort) in shares.into_iter().zip(&Sort::ALL[1..]) {
            sum += share;
            if drawn < sum {
                let has_no_earlier = *sort == Sort::Double && self.earlier(n).is_none();
                return if has_no_earlier { Sort::Spend } else { *sort };
            }
        }
        Sort::Spend
    }

    /// What a double spend spends again: the inputs of the last plain one that is old enough.
    fn earlier(&self, n: TxId) -> Option<TxId> {
        let first = n.checked_sub(self.double_lag.saturating_mul(self.generators))?;
        // One in a few is plain, or else the load has hardly any that could be spent twice.
        (0..64).map_while(|back| first.checked_sub(back * self.generators)).find(|earlier| {
            let Shares(shares) = self.shares;
            let drawn = spread(self.seed ^ earlier.wrapping_mul(0x2545_f491_4f6c_dd1d)) % 1_000;
            drawn >= shares.iter().sum()
        })
    }

    /// Whose inputs a transaction spends: its own, or of the one that it spends again.
    pub(crate) fn spends_as(&self, n: TxId) -> TxId {
        match self.sort(n) {
            Sort::Double => self.earlier(n).unwrap_or(n),
            _ => n,
        }
    }

    /// The numbers of the two outputs that it spends: two that have one number are one output.
    pub(crate) fn inputs(&self, n: TxId) -> [u64; 2] {
        let n = self.spends_as(n);
        [2 * n, 2 * n + 1]
    }

    /// What its two outputs are worth.
    pub(crate) fn values(&self, n: TxId) -> [u64; 2] {
        let all = 2 * SEED_VALUE;
        let first = 1 + spread(self.seed.rotate_left(17) ^ n) % (all - 1);
        [first, all - first]
    }

    fn owner(&self, generator: u64) -> Hash {
        let mut bytes = *b"owner\0\0\0................";
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..].copy_from_slice(&generator.to_le_bytes());
        sha256(&bytes)
    }

    /// The transaction that nobody sent and that made the outputs a generator begins with.
    fn origin(&self, generator: u64) -> Hash {
        let mut bytes = *b"origin\0\0................";
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..].copy_from_slice(&generator.to_le_bytes());
        sha256(&bytes)
    }

    fn spent(&self, of: TxId, Owner { hash, origin }: &Owner) -> [Output; 2] {
        let (owner, origin) = (*hash, *origin);
        let (generator, turn) = (of % self.generators, of / self.generators);
        if let Some(old) = turn.checked_sub(self.fresh) {
            let old = old * self.generators + generator;
            let made = self.transaction(old);
            let values = self.values(old);
            return [0, 1].map(|place: usize| Output {
                of: made.id,
                index: place as u64,
                owner,
                value: values[place],
            });
        }
        [0, 1].map(|place| Output { of: origin, index: 2 * turn + place, owner, value: SEED_VALUE })
    }

    /// The whole transaction.
    pub(crate) fn transaction(&self, n: TxId) -> Made {
        self.made_with(n, &self.of_generator(n % self.generators))
    }

    fn of_generator(&self, generator: u64) -> Owner {
        Owner { hash: self.owner(generator), origin: self.origin(generator) }
    }

    fn made_with(&self, n: TxId, of: &Owner) -> Made {
        let owner = &of.hash;
        let spent = self.spent(self.spends_as(n), of).map(|output| output.bytes());
        let values = self.values(n);
        let mut bytes = [0; 8 + 2 * INPUT_BYTES + 8 + 2 * OUTPUT_BYTES];
        bytes[..8].copy_from_slice(&2_u64.to_le_bytes());
        bytes[8..88].copy_from_slice(&spent[0]);
        bytes[88..168].copy_from_slice(&spent[1]);
        bytes[168..176].copy_from_slice(&2_u64.to_le_bytes());
        for (place, value) in values.into_iter().enumerate() {
            let at = 176 + place * OUTPUT_BYTES;
            bytes[at..at + 32].copy_from_slice(owner);
            bytes[at + 32..at + OUTPUT_BYTES].copy_from_slice(&value.to_le_bytes());
        }
        let id = sha256(&bytes);
        let output = |place: usize| {
            Output { of: id, index: place as u64, owner: *owner, value: values[place] }.bytes()
        };
        Made {
            sort: self.sort(n),
            id,
            inputs: spent.map(|bytes| sha256(&bytes)),
            outputs: [0, 1].map(|place| sha256(&output(place))),
        }
    }
}

/// What is the same for all transactions of a generator.
struct Owner {
    hash: Hash,
    /// See [`Wallet::origin`].
    origin: Hash,
}

/// A wallet that remembers what is the same for all transactions of a generator: two blocks of SHA-256 beside the thirteen
/// that each takes.
pub(crate) struct Maker {
    wallet: Wallet,
    owners: Vec<Owner>,
}

impl Maker {
    pub(crate) fn new(wallet: Wallet) -> Self {
        let owners = (0..wallet.generators).map(|it| wallet.of_generator(it)).collect();
        Self { wallet, owners }
    }

    pub(crate) fn transaction(&self, n: TxId) -> Made {
        let generator = usize::try_from(n % self.wallet.generators).expect("32 bits");
        self.wallet.made_with(n, &self.owners[generator])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Claim: whatever the number, a transaction is the same each time, conserves value, and spends what no other does but
    /// the double spends, which spend again what an earlier plain one did; outputs that run out are followed by those made.
    #[test]
    fn every_output_is_spent_once() {
        let wallet = Wallet::new(Seed(7), 3, 40, Shares([100, 100, 50, 20, 20]));
        let maker = Maker::new(wallet);
        let (mut spent, mut made, mut sorts) = (BTreeSet::new(), BTreeSet::new(), [0; 6]);
        for n in 0..2_000 {
            let one = wallet.transaction(n);
            assert_eq!(one, maker.transaction(n));
            sorts[one.sort as usize] += 1;
            assert_eq!(wallet.values(n).iter().sum::<u64>(), 2 * SEED_VALUE);
            let fresh = one.inputs.iter().filter(|input| spent.insert(**input)).count();
            assert_eq!(fresh, if one.sort == Sort::Double { 0 } else { 2 }, "{n} {:?}", one.sort);
            if n >= 60 && one.sort != Sort::Double {
                assert!(one.inputs.iter().all(|input| made.contains(input)), "{n}");
            }
            assert!(one.outputs.iter().all(|output| made.insert(*output)));
        }
        assert!(sorts.iter().all(|count| *count > 10), "{sorts:?}");
        let other = Wallet::new(Seed(8), 3, 40, Shares::default());
        assert_ne!(other.transaction(5).id, wallet.transaction(5).id);
    }
}
