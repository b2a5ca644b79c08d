//! A history as it is handed over: transactions in any order, what their reads found, and the lists that were seen.

use crate::orders::Orders;
use crate::prefix::{Element, GARBAGE, Key, Prefix};
use crate::{NONE, at, small};

/// Whether a transaction had its effect, as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was committed.
    Certain,
    /// Nobody knows: it may have its effect at any time after it was sent, or never.
    Possible,
    /// It was refused.
    None,
}

/// A transaction as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its name in what is found.
    pub id: u64,
    /// When it was sent, nanoseconds.
    pub invoked: i64,
    /// When it had been answered, nanoseconds; of no account unless its effect is certain.
    pub completed: i64,
    /// Whether it had its effect.
    pub effect: Effect,
}

/// One of a transaction's operations, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MicroOp {
    /// Puts an element behind a list.
    Append {
        /// The list.
        key: Key,
        /// What is put there, and nowhere else.
        element: Element,
    },
    /// Reads a list.
    Read {
        /// The list.
        key: Key,
        /// The list that it found; absent where it is unknown.
        found: Option<Prefix>,
    },
}

/// What is kept of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    /// The key, and [`APPENDS`].
    key: u32,
    /// The element, or how long the list was; [`NONE`] = not known.
    value: u32,
    /// Of what was read.
    hash: u64,
}

/// The bit of an operation's key that tells an append.
const APPENDS: u32 = 1 << 31;
/// The bit of an element's writer that tells that the writer goes on to append to the same list.
const GOES_ON: u32 = 1 << 31;

impl Op {
    const fn new(op: MicroOp) -> Self {
        match op {
            MicroOp::Append { key, element } => {
                Self { key: key | APPENDS, value: element, hash: 0 }
            }
            MicroOp::Read { key, found: Some(found) } => {
                Self { key, value: found.len, hash: found.hash }
            }
            MicroOp::Read { key, found: None } => Self { key, value: NONE, hash: 0 },
        }
    }

    #[inline]
    pub(crate) const fn get(self) -> MicroOp {
        let key = self.key & !APPENDS;
        if self.key & APPENDS != 0 {
            return MicroOp::Append { key, element: self.value };
        }
        let found = Prefix { len: self.value, hash: self.hash };
        MicroOp::Read { key, found: if self.value == NONE { None } else { Some(found) } }
    }

    #[inline]
    pub(crate) const fn key(self) -> Key {
        self.key & !APPENDS
    }
}

/// Who appends an element.
#[derive(Clone, Copy, Debug)]
struct Writer {
    /// And [`GOES_ON`]; [`NONE`] = no transaction.
    by: u32,
    /// To which list.
    key: Key,
}

/// Transactions on lists, what their reads found, and the lists that were seen.
///
/// Some 30 bytes a transaction, 16 an operation and 16 an element. Keys and elements are indices: what they are given
/// out by counts from 0.
#[derive(Debug, Default)]
pub struct History {
    pub(crate) ids: Vec<u64>,
    pub(crate) invoked: Vec<i64>,
    pub(crate) completed: Vec<i64>,
    pub(crate) effects: Vec<Effect>,
    /// Where each transaction's operations end.
    ends: Vec<u32>,
    pub(crate) ops: Vec<Op>,
    /// By element.
    writers: Vec<Writer>,
    pub(crate) orders: Orders,
    /// How many keys there are in transactions.
    keys: usize,
}

impl History {
    /// Adds a transaction with its operations, in any order among the others, and says its place.
    ///
    /// # Panics
    /// If an element is appended twice, which no generator may do, or a key is 2³¹ or more.
    pub fn add(&mut self, transaction: Transaction, ops: &[MicroOp]) -> u32 {
        let place = small(self.ids.len());
        assert!(place < GOES_ON, "a history has fewer than 2³¹ transactions");
        for (n, op) in ops.iter().enumerate() {
            let (MicroOp::Append { key, .. } | MicroOp::Read { key, .. }) = *op;
            assert!(key < APPENDS, "keys are below 2³¹");
            self.keys = self.keys.max(at(key) + 1);
            if let MicroOp::Append { key, element } = *op {
                let again = |later: &MicroOp| matches!(later, MicroOp::Append { key: other, .. } if *other == key);
                let goes_on = if ops[n + 1..].iter().any(again) { GOES_ON } else { 0 };
                self.writes(element, Writer { by: place | goes_on, key });
            }
            self.ops.push(Op::new(*op));
        }
        self.ids.push(transaction.id);
        self.invoked.push(transaction.invoked);
        self.completed.push(transaction.completed);
        self.effects.push(transaction.effect);
        self.ends.push(small(self.ops.len()));
        place
    }

    fn writes(&mut self, element: Element, writer: Writer) {
        assert!(element != GARBAGE, "an element that stands for garbage is appended");
        if self.writers.len() <= at(element) {
            self.writers.resize(at(element) + 1, Writer { by: NONE, key: 0 });
        }
        let place = &mut self.writers[at(element)];
        assert!(place.by == NONE, "element {element} is appended twice");
        *place = writer;
    }

    /// Says what a transaction's reads found, in their order. False if it was told already, and otherwise.
    ///
    /// # Panics
    /// If there is no such transaction.
    pub fn found(&mut self, place: u32, found: impl IntoIterator<Item = Prefix>) -> bool {
        let (start, end) = self.range(place);
        let reads = self.ops[start..end].iter_mut().filter(|op| op.key & APPENDS == 0);
        let mut agrees = true;
        for (op, found) in reads.zip(found) {
            if op.value == NONE {
                (op.value, op.hash) = (found.len, found.hash);
            }
            agrees &= (op.value, op.hash) == (found.len, found.hash);
        }
        agrees
    }

    /// Hands over a list that a read showed: the elements behind a part of it that was shown before. Of each key the
    /// longest list is kept.
    pub fn list(&mut self, key: Key, from: Prefix, elements: &[Element]) {
        self.orders.list(key, from, elements);
    }

    /// Transactions that were committed for certain and read something, whose results were not handed over.
    #[must_use]
    pub fn unseen(&self) -> u64 {
        let is_unseen = |place: &u32| {
            let (_, ops) = self.ops_of(*place);
            self.effects[at(*place)] == Effect::Certain
                && ops.iter().any(|op| op.key & APPENDS == 0 && op.value == NONE)
        };
        (0..small(self.ids.len())).filter(is_unseen).count() as u64
    }

    /// How many transactions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// An element that was seen in a list, and no transaction of the history appends there.
    pub fn unwritten(&self) -> impl Iterator<Item = (Key, Element)> {
        let seen = self.orders.seen();
        seen.filter(|(key, element)| self.writer(*key, *element).is_none())
    }

    fn range(&self, place: u32) -> (usize, usize) {
        let start = at(place).checked_sub(1).map_or(0, |before| at(self.ends[before]));
        (start, at(self.ends[at(place)]))
    }

    /// A transaction's operations, and the index of the first of them.
    #[inline]
    pub(crate) fn ops_of(&self, place: u32) -> (usize, &[Op]) {
        let (start, end) = self.range(place);
        (start, &self.ops[start..end])
    }

    /// Who appends an element to this list, and whether it goes on to append to it.
    #[inline]
    pub(crate) fn writer(&self, key: Key, element: Element) -> Option<(u32, bool)> {
        let writer = self.writers.get(at(element))?;
        let is_right = writer.by != NONE && writer.key == key;
        is_right.then_some((writer.by & !GOES_ON, writer.by & GOES_ON != 0))
    }

    pub(crate) const fn keys(&self) -> usize {
        self.keys
    }

    pub(crate) fn elements(&self) -> usize {
        self.writers.len()
    }

    /// All transactions.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + use<> {
        0..small(self.ids.len())
    }
}
