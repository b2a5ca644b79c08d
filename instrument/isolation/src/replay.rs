//! Where a system says in which order it committed, no order has to be looked for: its transactions are let happen in that
//! one, each must have been answered as it is then, and none may have been answered before one that stands before it was
//! sent. Both are one pass. A history that passes is strictly serializable.

/// The most transactions that are named.
pub(crate) const NAMED_MAX: usize = 100;

/// What transactions do, one after another.
pub trait Model {
    /// What a client asked.
    type Transaction: ?Sized;
    /// What it was answered.
    type Answer: ?Sized;

    /// Lets a transaction happen, and says whether this is its answer; where the client has none, any is.
    fn apply(&mut self, transaction: &Self::Transaction, answer: Option<&Self::Answer>) -> bool;
}

/// When a transaction was under way, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it was sent.
    pub invoked: i64,
    /// When it had been answered; absent where it was not.
    pub completed: Option<i64>,
}

/// A replay under way.
#[derive(Debug)]
pub struct Replay<M> {
    model: M,
    /// The transaction that was sent last among those that were replayed, and when.
    latest: Option<(u64, i64)>,
    replayed: Replayed,
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Transactions that were let happen.
    pub transactions: u64,
    /// Answers that were compared.
    pub answers: u64,
    /// How many of them are not what the transaction does at its place.
    pub wrong: u64,
    /// The first of those.
    pub wrong_ids: Vec<u64>,
    /// How many transactions stand behind one that was sent only when they had been answered.
    pub misplaced: u64,
    /// The first of those: the one before, and the one behind it that should not be.
    pub misplaced_ids: Vec<[u64; 2]>,
}

impl Replayed {
    /// Whether the order explains everything.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.wrong == 0 && self.misplaced == 0
    }
}

impl<M: Model> Replay<M> {
    /// From the model's first state on.
    pub fn new(model: M) -> Self {
        Self { model, latest: None, replayed: Replayed::default() }
    }

    /// The next transaction in the order of commits; `span` is absent where it is unknown when it was under way.
    pub fn next(
        &mut self,
        id: u64,
        span: Option<Span>,
        transaction: &M::Transaction,
        answer: Option<&M::Answer>,
    ) {
        let found = &mut self.replayed;
        found.transactions += 1;
        found.answers += u64::from(answer.is_some());
        if !self.model.apply(transaction, answer) {
            found.wrong += 1;
            if found.wrong_ids.len() < NAMED_MAX {
                found.wrong_ids.push(id);
            }
        }
        let Some(Span { invoked, completed }) = span else { return };
        if let (Some((earlier, sent)), Some(completed)) = (self.latest, completed)
            && completed < sent
        {
            found.misplaced += 1;
            if found.misplaced_ids.len() < NAMED_MAX {
                found.misplaced_ids.push([earlier, id]);
            }
        }
        if self.latest.is_none_or(|(_, sent)| sent < invoked) {
            self.latest = Some((id, invoked));
        }
    }

    /// What was found, and the model's last state.
    pub fn finish(self) -> (Replayed, M) {
        (self.replayed, self.model)
    }
}
