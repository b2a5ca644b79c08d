//! The chain as it is known at one moment: its head, the hashes of the blocks below it, and what is final. A value: it
//! asks nothing and never changes; a new head makes a new one.
//!
//! A height is no identity: the block at a height is replaced by another when the chain reorganises. So everything that may
//! be another under another head is looked up here by its block's hash.

use std::collections::VecDeque;

use crate::json;
use crate::quantity::Quantity;

/// Hashes that a view holds at most: the head's and those of the blocks below it.
const HASHES_MAX: usize = 256;
/// So many blocks are asked for one by one to find where a new head joins the known chain.
const WALK_MAX: usize = 128;
/// A head so far above the known one is not joined to it block by block.
const GAP_MAX: u64 = 16;

/// A block's hash.
pub type Hash = [u8; 32];

/// A block, named so that it can be no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: Hash,
}

/// The part of a block that says where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The block.
    pub id: Id,
    /// The hash of the block before it.
    pub parent: Hash,
}

impl Header {
    /// Reads it from a block as JSON; none where the node gave none, or one that is still pending.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let id = Id {
            height: height(json::member(block, "number")?)?,
            hash: hash(json::member(block, "hash")?)?,
        };
        Some(Self { id, parent: hash(json::member(block, "parentHash")?)? })
    }
}

impl Id {
    /// The block that a transaction or a receipt says it is in; none while it is in none.
    #[must_use]
    pub fn of_place(result: &[u8]) -> Option<Self> {
        Some(Self {
            height: height(json::member(result, "blockNumber")?)?,
            hash: hash(json::member(result, "blockHash")?)?,
        })
    }
}

fn height(value: &[u8]) -> Option<u64> {
    json::plain_string(value).and_then(Quantity::from_hex).and_then(Quantity::to_u64)
}

fn hash(value: &[u8]) -> Option<Hash> {
    let digits = json::plain_string(value)?.strip_prefix("0x")?.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

/// A hash as JSON-RPC writes it.
#[must_use]
pub fn hex(hash: &Hash) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(66);
    text.push_str("0x");
    for byte in hash {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The last block.
    pub head: Id,
    /// Hashes up to the head's, the oldest first.
    hashes: VecDeque<Hash>,
    /// Blocks up to this height will never be others, as far as the node says.
    pub final_height: Option<u64>,
    /// A final block whose hash is known: a chain that does not have it is another one.
    pub anchor: Option<Id>,
    /// How often what was final turned out not to be.
    pub generation: u64,
}

/// How to go on with a head that was not known.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// It joins the known chain.
    Joined(View),
    /// The block with this hash is needed to say.
    Ask(Hash),
    /// It does not join the known chain within the blocks that are looked at.
    Lost,
}

impl View {
    /// Of a chain of which only the head is known.
    #[must_use]
    pub fn first(head: Header) -> Self {
        Self {
            head: head.id,
            hashes: VecDeque::from([head.id.hash]),
            final_height: None,
            anchor: None,
            generation: 0,
        }
    }

    /// The hash of the block at a height of the head's chain, if it is among those that are known.
    #[must_use]
    pub fn hash_at(&self, height: u64) -> Option<Hash> {
        let below = usize::try_from(self.head.height.checked_sub(height)?).ok()?;
        let place = self.hashes.len().checked_sub(below + 1)?;
        self.hashes.get(place).copied()
    }

    /// The height of the oldest block whose hash is known.
    fn lowest(&self) -> u64 {
        self.head.height.saturating_sub((self.hashes.len() as u64).saturating_sub(1))
    }

    /// Whether the head's chain has this block, as far as that is known.
    #[must_use]
    pub fn has(&self, block: Id) -> bool {
        self.hash_at(block.height) == Some(block.hash)
    }

    /// Whether the block at this height will never be another.
    #[must_use]
    pub fn is_final(&self, height: u64) -> bool {
        self.final_height.is_some_and(|last| height <= last)
    }

    /// Goes on to a new head; `news` are the blocks that are known of its chain, the head first and each followed by its
    /// parent. Where their heights do not say so, too, they are no chain.
    #[must_use]
    pub fn step(&self, news: &[Header]) -> Step {
        let (Some(newest), Some(oldest)) = (news.first(), news.last()) else { return Step::Lost };
        let follow = |pair: &[Header]| pair[1].id.height.checked_add(1) == Some(pair[0].id.height);
        if !news.windows(2).all(follow) {
            return Step::Lost;
        }
        if self.has(oldest.id) {
            return Step::Joined(self.joined(&news[..news.len() - 1], oldest.id));
        }
        let below = oldest.id.height.checked_sub(1);
        if let Some(parent) = below.map(|height| Id { height, hash: oldest.parent })
            && self.has(parent)
        {
            return Step::Joined(self.joined(news, parent));
        }
        let gap = newest.id.height.saturating_sub(self.head.height);
        let is_below_all = self.lowest() > oldest.id.height;
        if gap > GAP_MAX || news.len() >= WALK_MAX || is_below_all || below.is_none() {
            return Step::Lost;
        }
        Step::Ask(oldest.parent)
    }

    /// The view after `news`, the newest first, on top of `fork`, which this one has.
    fn joined(&self, news: &[Header], fork: Id) -> Self {
        let mut view = self.clone();
        let dropped = usize::try_from(self.head.height - fork.height).unwrap_or(usize::MAX);
        view.hashes.truncate(view.hashes.len().saturating_sub(dropped));
        view.hashes.extend(news.iter().rev().map(|header| header.id.hash));
        while view.hashes.len() > HASHES_MAX {
            view.hashes.pop_front();
        }
        view.head = news.first().map_or(fork, |header| header.id);
        // Everything below the fork is as it was; if what was final is above it, the node's word was not kept.
        if self.final_height.is_some_and(|last| fork.height < last) {
            view.forget_final();
        }
        view
    }

    /// Blocks of this view that an earlier one does not have, the lowest first.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Vec<Hash> {
        let heights = self.lowest()..=self.head.height;
        let ids = self.hashes.iter().zip(heights).map(|(hash, height)| Id { height, hash: *hash });
        let fork = ids.clone().filter(|id| earlier.has(*id)).last();
        match fork {
            Some(fork) => ids.filter(|id| id.height > fork.height).map(|id| id.hash).collect(),
            // Nothing in common: only the head is news for sure.
            None => vec![self.head.hash],
        }
    }

    /// A view of which only the head is known, after a gap; what was final still is.
    #[must_use]
    pub fn after_gap(&self, head: Header) -> Self {
        Self { head: head.id, hashes: VecDeque::from([head.id.hash]), ..self.clone() }
    }

    /// Final blocks are not final any more: another generation begins.
    pub fn forget_final(&mut self) {
        self.generation += 1;
        self.final_height = None;
        self.anchor = None;
    }

    /// Takes the node's word for what is final. It never goes back within a generation, and one that contradicts the known
    /// chain is not taken: the next one will do.
    pub fn finalize(&mut self, block: Id) {
        let contradicts = self.hash_at(block.height).is_some_and(|known| known != block.hash);
        if contradicts || block.height > self.head.height || self.is_final(block.height) {
            return;
        }
        self.final_height = Some(block.height);
        self.anchor = Some(block);
    }

    /// Where the node names no final block: those so far below the head are taken for final.
    pub fn finalize_below(&mut self, depth: u64) {
        let Some(height) = self.head.height.checked_sub(depth) else { return };
        if self.is_final(height) {
            return;
        }
        self.final_height = Some(height);
        self.anchor = self.hash_at(height).map(|hash| Id { height, hash }).or(self.anchor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of a branch: its hash is made of both.
    fn id(branch: u8, height: u64) -> Id {
        let mut hash = [branch; 32];
        hash[..8].copy_from_slice(&height.to_be_bytes());
        Id { height, hash }
    }

    /// Blocks of a branch that leaves the branch 0 after `fork`, the highest first.
    fn blocks(branch: u8, fork: u64, heights: std::ops::RangeInclusive<u64>) -> Vec<Header> {
        let of = |height: u64| if height <= fork { id(0, height) } else { id(branch, height) };
        let header = |height: u64| Header { id: of(height), parent: of(height - 1).hash };
        heights.rev().map(header).collect()
    }

    fn joined(view: &View, news: &[Header]) -> View {
        match view.step(news) {
            Step::Joined(view) => view,
            other => panic!("{other:?}"),
        }
    }

    /// Claim: a new head that follows the known one is joined to it, and one of another branch drops exactly what is above
    /// the fork, also at the same height and at a lower one.
    #[test]
    fn forks() {
        let mut view = View::first(blocks(0, 100, 1..=1)[0]);
        view = joined(&view, &blocks(0, 100, 2..=10));
        assert_eq!((view.head, view.hash_at(1)), (id(0, 10), Some(id(0, 1).hash)));
        let same_height = joined(&view, &blocks(1, 9, 10..=10));
        assert!(!same_height.has(id(0, 10)) && same_height.has(id(0, 9)));
        let higher = joined(&view, &blocks(1, 7, 8..=12));
        assert!(higher.has(id(0, 7)) && !higher.has(id(0, 8)) && higher.has(id(1, 8)));
        let lower = joined(&view, &blocks(1, 7, 8..=8));
        assert_eq!((lower.head, lower.hash_at(9), lower.hash_at(10)), (id(1, 8), None, None));
        let news = higher.since(&view);
        assert_eq!(news, (8..=12).map(|height| id(1, height).hash).collect::<Vec<_>>());
        let rolled_back = joined(&view, &blocks(0, 100, 6..=6));
        assert_eq!((rolled_back.head, rolled_back.hash_at(7)), (id(0, 6), None));
    }

    /// Claim: blocks are asked for until one joins; a head that is too far above, or of a chain that joins nowhere, is lost.
    #[test]
    fn walks() {
        let mut view = View::first(blocks(0, 1000, 500..=500)[0]);
        view = joined(&view, &blocks(0, 1000, 501..=510));
        assert_eq!(view.step(&blocks(1, 505, 508..=510)), Step::Ask(id(1, 507).hash));
        assert_eq!(view.step(&blocks(0, 1000, 600..=600)), Step::Lost);
        assert_eq!(view.step(&blocks(1, 3, 499..=510)), Step::Lost);
        assert_eq!(view.step(&[]), Step::Lost);
    }

    /// Claim: blocks whose heights do not follow each other join nowhere, and the highest of all heights is one like others.
    #[test]
    fn heights_that_lie() {
        let view = View::first(Header { id: id(0, 1), parent: id(0, 0).hash });
        let liar = Header { id: Id { height: 2, hash: [7; 32] }, parent: id(0, 1).hash };
        for height in [0, 1, 2, 4, u64::MAX] {
            let head = Header { id: Id { height, hash: [8; 32] }, parent: liar.id.hash };
            assert_eq!(view.step(&[head, liar]), Step::Lost, "{height}");
        }
        let last = View::first(Header { id: id(0, u64::MAX), parent: id(0, 6).hash });
        assert_eq!(last.since(&view), [last.head.hash]);
        assert_eq!(last.since(&last), Vec::<Hash>::new());
    }

    /// Claim: a reorganisation below what was final begins another generation, one above it does not, and the hashes that
    /// are held are bounded.
    #[test]
    fn finality() {
        let mut view = View::first(blocks(0, 1000, 1..=1)[0]);
        for height in 2..=600 {
            view = joined(&view, &blocks(0, 1000, height..=height));
        }
        assert_eq!((view.hashes.len(), view.hash_at(344)), (HASHES_MAX, None));
        view.finalize(id(0, 590));
        view.finalize(id(0, 580));
        view.finalize(id(1, 595));
        assert_eq!((view.final_height, view.anchor), (Some(590), Some(id(0, 590))));
        let above = joined(&view, &blocks(1, 590, 591..=600));
        assert!(above.is_final(590) && above.generation == 0);
        let below = joined(&view, &blocks(1, 589, 590..=600));
        assert!(!below.is_final(1) && below.generation == 1 && below.anchor.is_none());
        let mut by_depth = above;
        by_depth.finalize_below(4);
        assert_eq!(by_depth.final_height, Some(596));
    }

    /// Claim: a block is read from JSON, and what is pending or no block is none.
    #[test]
    fn of_json() {
        let (hash, parent) = (hex(&[1; 32]), hex(&[2; 32]));
        let text = format!(
            r#"{{"number":"0x10","hash":"{hash}","parentHash":"{parent}","transactions":[]}}"#
        );
        let read = Header::read(text.as_bytes()).unwrap();
        assert_eq!((read.id.height, read.id.hash, read.parent), (16, [1; 32], [2; 32]));
        for text in ["null", "{}", r#"{"number":null,"hash":null,"parentHash":"0x00"}"#, "7"] {
            assert_eq!(Header::read(text.as_bytes()), None, "{text}");
        }
    }
}
