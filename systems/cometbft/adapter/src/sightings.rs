//! Which blocks any of several observers has seen: the first to see a block marks its transactions, the others
//! are silent about it, so that one commit is one mark. Two blocks with one transaction are two marks, whoever
//! saw them: that is a duplicate. One observer alone needs none of this.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Heights that are remembered: an observer that is further behind than this is not listened to. At the shortest
/// block intervals seen (some 50 ms) this is minutes.
const HEIGHTS_MAX: usize = 4096;

/// Shared by the observers of a trial. Taken once a block and never for long.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    seen: Mutex<BTreeSet<u64>>,
}

impl Sightings {
    /// Whether nobody has seen the block of this height before.
    pub(crate) fn is_first(&self, height: u64) -> bool {
        // A set is whole between its operations, whoever panicked with it.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_forgotten =
            seen.len() == HEIGHTS_MAX && seen.first().is_some_and(|low| height < *low);
        if is_forgotten || !seen.insert(height) {
            return false;
        }
        if seen.len() > HEIGHTS_MAX {
            seen.pop_first();
        }
        true
    }
}
