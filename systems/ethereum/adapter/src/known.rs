//! Whose a hash is: what submitting connections have given, for those that watch and for who reads the chain. In many
//! small maps, each behind a lock of its own, so that nobody waits for another's and none is ever long in growing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use clock::WallTime;
use model::TxId;

use crate::hex::Hash;

/// So many maps.
const MAPS: usize = 256;

/// Half a hash tells all transactions of a trial apart.
type Key = u128;

/// A transaction that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) tx: TxId,
    /// When it was due: what the ledger does not say.
    pub(crate) due: WallTime,
    /// Which stages were marked, a bit each.
    marked: u8,
}

/// What was submitted in a trial.
pub(crate) struct Known {
    maps: Vec<Mutex<HashMap<Key, Given>>>,
}

impl Default for Known {
    fn default() -> Self {
        Self { maps: (0..MAPS).map(|_| Mutex::default()).collect() }
    }
}

impl Known {
    fn at<T>(&self, hash: &Hash, work: impl FnOnce(&mut HashMap<Key, Given>, Key) -> T) -> T {
        let (key, _) = hash.split_first_chunk().expect("16 of 32 bytes");
        let map = &self.maps[usize::from(hash[31])];
        // A map is whole between its operations, whoever panicked with it.
        let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut map, Key::from_be_bytes(*key))
    }

    /// It leaves now; if it left before, that is remembered.
    pub(crate) fn give(&self, hash: &Hash, tx: TxId, due: WallTime) {
        self.at(hash, |map, key| {
            map.entry(key).or_insert(Given { tx, due, marked: 0 });
        });
    }

    /// Whose it is.
    pub(crate) fn find(&self, hash: &Hash) -> Option<Given> {
        self.at(hash, |map, key| map.get(&key).copied())
    }

    /// Whose it is, if it is ours and was not marked for this stage before: of a block that came back behind another, and of
    /// several that watch, one marks.
    pub(crate) fn mark(&self, hash: &Hash, stage: u8) -> Option<TxId> {
        self.at(hash, |map, key| {
            let given = map.get_mut(&key)?;
            let is_first = given.marked & 1 << stage == 0;
            given.marked |= 1 << stage;
            is_first.then_some(given.tx)
        })
    }
}
