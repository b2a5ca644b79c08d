//! The walk from a history to its verdict: the order of each list, what each read says by itself, and the cycles among
//! transactions.

use crate::history::History;
use crate::verdict::Verdict;
use crate::{cycles, direct};

impl History {
    /// Whether the history is strictly serializable; if not, what is wrong with it.
    #[must_use]
    pub fn check(mut self) -> Verdict {
        let mut orders = std::mem::take(&mut self.orders);
        orders.settle(&self);
        let versions = orders.versions(&self);
        drop(orders);
        let mut verdict = Verdict { transactions: self.len() as u64, ..Verdict::default() };
        let reads = direct::look(&self, &versions, &mut verdict);
        cycles::look(&self, &versions, &reads, &mut verdict);
        verdict
    }
}
