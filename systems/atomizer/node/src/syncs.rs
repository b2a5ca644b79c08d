//! Entries that an atomizer has proposed and that its own disk does not have yet. It keeps them where it stamps stages, so that
//! the wait for the disk is told from the wait for the others.

use std::collections::VecDeque;

use crate::protocol::Hash;
use crate::stamps::{Stage, Stamps};

/// Entries that wait at most: of more the oldest are not stamped.
const WAITING_MAX: usize = 1024;

/// An entry.
#[derive(Debug)]
struct Waiting {
    proposal: u64,
    /// It is durable when all records below this one are.
    below: u64,
    since_ns: u64,
    count: u64,
    followed: Vec<Hash>,
}

/// Entries, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Syncs(VecDeque<Waiting>);

impl Syncs {
    /// An entry was proposed and stands before record `below` of the log.
    pub(crate) fn proposed(
        &mut self,
        (proposal, below): (u64, u64),
        since_ns: u64,
        count: u64,
        followed: Vec<Hash>,
    ) {
        if self.0.len() == WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Waiting { proposal, below, since_ns, count, followed });
    }

    /// Records below this one are durable.
    pub(crate) fn durable(&mut self, below: u64, stamps: &mut dyn Stamps) {
        self.end(|it| it.below <= below, stamps);
    }

    /// This entry is decided, whatever the own disk has.
    pub(crate) fn decided(&mut self, proposal: u64, stamps: &mut dyn Stamps) {
        self.end(|it| it.proposal <= proposal, stamps);
    }

    /// Another leads.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn end(&mut self, is_over: impl Fn(&Waiting) -> bool, stamps: &mut dyn Stamps) {
        while self.0.front().is_some_and(&is_over) {
            let it = self.0.pop_front().expect("it was there");
            stamps.stage(Stage::Sync, it.since_ns, it.count);
            it.followed.iter().for_each(|id| stamps.trace(Stage::Sync, id, it.since_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Vec<(Option<u8>, u64)>);

    impl Stamps for Told {
        fn now_ns(&mut self) -> u64 {
            0
        }

        fn stage(&mut self, stage: Stage, _since_ns: u64, count: u64) {
            assert_eq!(stage, Stage::Sync);
            self.0.push((None, count));
        }

        fn trace(&mut self, stage: Stage, id: &Hash, since_ns: u64) {
            assert_eq!(stage, Stage::Sync);
            self.0.push((Some(id[0]), since_ns));
        }

        fn follows(&self, _id: &Hash) -> bool {
            true
        }
    }

    /// Claim: each entry is stamped once, when its own record is durable or it was decided before; what stood before a change
    /// of leader is not.
    #[test]
    fn once_each() {
        let (mut syncs, mut told) = (Syncs::default(), Told::default());
        syncs.proposed((1, 10), 100, 5, vec![[1; 32]]);
        syncs.proposed((2, 12), 200, 6, vec![]);
        syncs.proposed((3, 13), 300, 7, vec![[3; 32]]);
        syncs.durable(9, &mut told);
        assert_eq!(told.0, []);
        syncs.durable(11, &mut told);
        assert_eq!(std::mem::take(&mut told.0), [(None, 5), (Some(1), 100)]);
        syncs.decided(2, &mut told);
        syncs.durable(12, &mut told);
        assert_eq!(std::mem::take(&mut told.0), [(None, 6)]);
        syncs.clear();
        syncs.durable(20, &mut told);
        assert_eq!(told.0, []);
    }
}
