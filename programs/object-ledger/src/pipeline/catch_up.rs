//! Learning what others have put on the chain: the sequencer says which numbers it has given, the buckets have the blocks.
//!
//! What another pipeline numbered and did not store, because it crashed in between, is stored here: else nobody could ever
//! decide about a later number.

use std::collections::VecDeque;

use super::{Ask, Pipeline};
use crate::data::{Attestation, Hash, Proposal, names};
use crate::sequencer::SEVERAL_MAX;

/// Blocks that are fetched at once.
const FETCHING_MAX: usize = 32;

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct CatchUp {
    is_asking: bool,
    to_fetch: VecDeque<Attestation>,
    fetching: usize,
    /// A block that is in no bucket: nothing above it can be decided.
    pub(super) withheld: Option<u64>,
}

impl CatchUp {
    pub(super) fn is_under_way(&self) -> bool {
        self.is_asking || self.fetching > 0 || !self.to_fetch.is_empty()
    }
}

impl Pipeline {
    /// The number whose block is in no bucket, if it waits for one.
    #[must_use]
    pub const fn withheld(&self) -> Option<u64> {
        self.catch_up.withheld
    }

    pub(super) fn begin_catch_up(&mut self) {
        if !self.catch_up.is_under_way() {
            self.catch_up.is_asking = true;
            self.ask(Ask::Attestations { from: self.chain.next() });
        }
    }

    pub(super) fn learnt(&mut self, several: &[Attestation]) {
        self.catch_up.is_asking = false;
        for it in several.iter().filter(|it| self.chain.wants(it.number)) {
            self.catch_up.to_fetch.push_back(*it);
        }
        self.fetch();
        let is_more = several.len() == SEVERAL_MAX as usize;
        if let Some(last) = several.last().filter(|_| is_more) {
            self.catch_up.is_asking = true;
            self.ask(Ask::Attestations { from: last.number + 1 });
        }
    }

    fn fetch(&mut self) {
        while self.catch_up.fetching < FETCHING_MAX
            && let Some(it) = self.catch_up.to_fetch.pop_front()
        {
            let (number, link) = (it.number, it.link);
            if !self.attesting.contains_key(&number) {
                let (name, whole) = (names::attestation(number), it.encoded());
                let id = self.ask(Ask::Ensure { name, whole });
                self.attesting.insert(number, id);
            }
            if it.is_void() {
                self.tell(number, link, None);
                continue;
            }
            self.catch_up.fetching += 1;
            self.ask(Ask::Fetch { number, link });
        }
    }

    pub(super) fn fetched(&mut self, number: u64, link: Hash, proposal: Option<Proposal>) {
        match proposal.filter(|it| is_linked(it, link)) {
            Some(proposal) => self.learnt_block(number, link, proposal),
            None => {
                self.ask(Ask::Recall { number, link });
            }
        }
    }

    /// The sequencer had a block that is in no bucket: it is stored for who did not.
    pub(super) fn was_recalled(&mut self, number: u64, link: Hash, proposal: Option<Proposal>) {
        match proposal.filter(|it| is_linked(it, link)) {
            Some(proposal) => {
                let (name, whole) = (names::proposal(&link), proposal.encoded());
                let id = self.ask(Ask::Ensure { name, whole });
                self.recalled.insert(id);
                self.learnt_block(number, link, proposal);
            }
            None => {
                self.catch_up.withheld = Some(number);
                let id = self.ask(Ask::Fetch { number, link });
                if let Some(asking) = self.to_ask.iter_mut().find(|asking| asking.id == id) {
                    asking.is_again = true;
                }
            }
        }
    }

    fn learnt_block(&mut self, number: u64, link: Hash, proposal: Proposal) {
        self.catch_up.fetching -= 1;
        if self.catch_up.withheld == Some(number) {
            self.catch_up.withheld = None;
        }
        self.tell(number, link, Some(proposal));
        self.fetch();
    }
}

fn is_linked(it: &Proposal, link: Hash) -> bool {
    it.token.link() == link && it.token.link == it.block.link()
}
