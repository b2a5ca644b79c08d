//! The chain as an observer sees it: headers as they are told, what is in their blocks as it is answered, what has to be
//! asked for, and which blocks lie deep enough. A value; bounded; a head whose parent was never told is followed back.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::hex::Hash;

/// Blocks that are remembered: at a thousand a second, four seconds of them; confirmations are fewer.
const BLOCKS_MAX: usize = 4096;

/// Questions that may be outstanding; a node that is further behind is not asked more until it has answered.
const ASKED_MAX: usize = 4096;

/// What of a header is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) hash: Hash,
    pub(crate) parent: Hash,
    pub(crate) number: u64,
    /// Nothing is in it.
    pub(crate) is_empty: bool,
}

/// A transaction in a block, and whether it had its effect.
pub(crate) type Content = (Hash, bool);

/// Something to ask the node for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// What is in a block.
    Content(Hash),
    /// A block that nobody told of.
    Header(Hash),
}

#[derive(Debug)]
struct Block {
    parent: Hash,
    number: u64,
    /// Absent until it is answered.
    content: Option<Vec<Content>>,
    is_deep: bool,
}

/// The blocks.
#[derive(Debug)]
pub(crate) struct View {
    blocks: HashMap<Hash, Block>,
    order: VecDeque<Hash>,
    /// Blocks up to this height are of earlier trials.
    base: u64,
    confirmations: u64,
    next_id: u64,
    asked: BTreeMap<u64, Question>,
    /// What the node had no answer to: asked again when it tells of another head.
    unanswered: Vec<Question>,
}

/// The request's id of the subscription.
pub(crate) const SUBSCRIPTION: u64 = 0;

impl View {
    pub(crate) fn new(base: u64, confirmations: u64) -> Self {
        Self {
            blocks: HashMap::new(),
            order: VecDeque::new(),
            base,
            confirmations,
            next_id: SUBSCRIPTION + 1,
            asked: BTreeMap::new(),
            unanswered: Vec::new(),
        }
    }

    /// Forgets what was asked on a connection that is gone; what was seen stays seen. What had no answer is asked again.
    pub(crate) fn reconnect(&mut self) {
        let open = std::mem::take(&mut self.asked);
        self.unanswered.extend(open.into_values());
    }

    /// A block was told of or answered. Gives what is to be asked, with the ids to ask it by; calls `deep` for what lies
    /// under enough blocks by now.
    pub(crate) fn header(
        &mut self,
        header: Header,
        deep: &mut dyn FnMut(&Content),
    ) -> Vec<(u64, Question)> {
        let mut wanted = std::mem::take(&mut self.unanswered);
        if header.number > self.base && !self.blocks.contains_key(&header.hash) {
            self.remember(&header);
            if !header.is_empty {
                wanted.push(Question::Content(header.hash));
            }
            let has_parent = header.number == self.base + 1
                || self.blocks.contains_key(&header.parent)
                || self.is_asked(&Question::Header(header.parent));
            if !has_parent {
                wanted.push(Question::Header(header.parent));
            }
        }
        self.deepen(&header.hash, deep);
        self.ask(wanted)
    }

    /// What the node was asked by this id, if it was.
    pub(crate) fn answered(&mut self, id: u64) -> Option<Question> {
        self.asked.remove(&id)
    }

    /// The node knows nothing of what it was asked for.
    pub(crate) fn unknown(&mut self, question: Question) {
        self.unanswered.push(question);
    }

    /// What a block holds. Says whether it lies deep enough already.
    pub(crate) fn content(&mut self, hash: &Hash, content: Vec<Content>) -> bool {
        let Some(block) = self.blocks.get_mut(hash) else { return false };
        let is_deep = block.is_deep;
        block.content = Some(if is_deep { Vec::new() } else { content });
        is_deep
    }

    fn is_asked(&self, question: &Question) -> bool {
        // From the newest: what is looked for was asked a moment ago.
        self.asked.values().rev().any(|asked| asked == question)
    }

    fn remember(&mut self, header: &Header) {
        let Header { hash, parent, number, is_empty } = *header;
        let content = is_empty.then(Vec::new);
        self.blocks.insert(hash, Block { parent, number, content, is_deep: false });
        self.order.push_back(hash);
        if self.order.len() > BLOCKS_MAX {
            let oldest = self.order.pop_front().expect("there are many");
            self.blocks.remove(&oldest);
        }
    }

    fn ask(&mut self, wanted: Vec<Question>) -> Vec<(u64, Question)> {
        let room = ASKED_MAX - self.asked.len().min(ASKED_MAX);
        let mut wanted = wanted.into_iter();
        let mut questions = Vec::new();
        for question in wanted.by_ref().take(room) {
            questions.push((self.next_id, question));
            self.asked.insert(self.next_id, question);
            self.next_id += 1;
        }
        self.unanswered.extend(wanted.take(ASKED_MAX));
        questions
    }

    /// Everything that lies `confirmations` blocks under `tip`, down to what did before.
    fn deepen(&mut self, tip: &Hash, deep: &mut dyn FnMut(&Content)) {
        if self.confirmations == 0 {
            return;
        }
        let Some(top) = self.blocks.get(tip).map(|block| block.number) else { return };
        let (mut at, mut above) = (*tip, None);
        while let Some(block) = self.blocks.get_mut(&at) {
            // A parent that is no lower is none, and may be its own.
            if block.is_deep || above.is_some_and(|above| block.number >= above) {
                return;
            }
            above = Some(block.number);
            if top - block.number >= self.confirmations {
                block.is_deep = true;
                block.content.iter_mut().flat_map(|list| list.drain(..)).for_each(|one| deep(&one));
            }
            at = block.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u8, hash: u8, parent: u8) -> Header {
        Header { hash: [hash; 32], parent: [parent; 32], number: number.into(), is_empty: false }
    }

    fn content(of: u8) -> Vec<Content> {
        vec![([of; 32], true)]
    }

    /// Claim: what lies under enough blocks of the chain that grows is deep, each block once, whenever its content comes;
    /// what was left by the chain is not.
    #[test]
    fn depth() {
        let mut view = View::new(10, 2);
        let mut deep = Vec::new();
        let mut tell = |view: &mut View, header: Header| {
            let questions = view.header(header, &mut |(hash, _)| deep.push(hash[0]));
            (questions, deep.clone())
        };
        assert_eq!(tell(&mut view, header(11, 1, 0)).0, [(1, Question::Content([1; 32]))]);
        assert!(!view.content(&[1; 32], content(101)));
        tell(&mut view, header(12, 2, 1));
        assert!(!view.content(&[2; 32], content(102)));
        // Another twelfth block, on which the chain goes on.
        tell(&mut view, header(12, 3, 1));
        assert_eq!(tell(&mut view, header(13, 4, 3)).1, [101]);
        assert_eq!(tell(&mut view, header(14, 5, 4)).1, [101], "its content has not come");
        assert!(view.content(&[3; 32], content(103)), "it is deep by now");
        assert!(!view.content(&[4; 32], content(104)));
        assert_eq!(tell(&mut view, header(15, 6, 5)).1, [101, 104]);
    }

    /// Claim: blocks that nobody told of are followed back, up to where the trial began; what the node does not know is
    /// asked again at the next head; and what is told again is not asked again.
    #[test]
    fn gaps() {
        let mut view = View::new(10, 0);
        let mut none = |_: &Content| panic!("nothing is waited for");
        let asked = view.header(header(13, 3, 2), &mut none);
        let expected = [(1, Question::Content([3; 32])), (2, Question::Header([2; 32]))];
        assert_eq!(asked, expected);
        assert_eq!(view.header(header(13, 3, 2), &mut none), []);
        let question = view.answered(2).unwrap();
        view.unknown(question);
        let asked = view.header(header(14, 4, 3), &mut none);
        assert_eq!(asked, [(3, Question::Header([2; 32])), (4, Question::Content([4; 32]))]);
        assert_eq!(view.answered(3), Some(Question::Header([2; 32])));
        view.header(header(12, 2, 1), &mut none);
        assert_eq!(view.header(header(11, 1, 0), &mut none), [(7, Question::Content([1; 32]))]);
        assert_eq!(view.header(header(10, 0, 9), &mut none), [], "of an earlier trial");
        assert_eq!(view.answered(99), None);
    }

    /// Claim: a block that says to be its own parent, or to lie above all numbers, is held like any other, and looking for what
    /// is deep ends.
    #[test]
    fn parents_that_are_none() {
        let mut view = View::new(0, 1);
        let mut none = |_: &Content| panic!("nothing is deep");
        view.header(header(5, 5, 5), &mut none);
        view.header(header(6, 6, 7), &mut none);
        view.header(header(7, 7, 6), &mut none);
        view.header(Header { number: u64::MAX, ..header(0, 8, 9) }, &mut none);
        view.header(Header { number: u64::MAX, ..header(0, 9, 8) }, &mut none);
    }

    /// Claim: blocks and questions are bounded, however many heads a node tells of.
    #[test]
    fn bounds() {
        let mut view = View::new(0, 1);
        for number in 1..20_000_u64 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_be_bytes());
            let header = Header { hash, parent: [255; 32], number: number + 7, is_empty: false };
            view.header(header, &mut |_| {});
        }
        assert!(view.blocks.len() <= BLOCKS_MAX && view.asked.len() <= ASKED_MAX);
        assert!(view.unanswered.len() <= 2 * ASKED_MAX, "{}", view.unanswered.len());
    }
}
