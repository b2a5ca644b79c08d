//! The stages of an atomizer, and who is told of them. Where nobody is, nothing is measured.

use crate::protocol::Hash;

/// The stages that the published system measures, in its order, and those behind and beside them. Notifications are received:
/// each leaves its transaction waiting for more (`partial`), completes it (`accumulate`), or has it refused (`refuse`). A
/// transaction that is complete goes into the log, or has become too old in the queue (`stale`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// A notification: from its arrival to its place in the queue.
    Receive = 1,
    /// A transaction whose attestations are all there.
    Accumulate = 2,
    /// Complete transactions, given to the log.
    Log = 3,
    /// Transactions of an entry that this atomizer has proposed, durable in its own log, or decided before by others. Not
    /// measured there.
    Sync = 4,
    /// An entry of the log, applied.
    Apply = 5,
    /// A transaction, admitted.
    Admit = 6,
    /// A transaction, discarded because of its height.
    Expire = 7,
    /// A transaction, discarded because an input is spent.
    Spent = 8,
    /// A block, made.
    Block = 9,
    /// A block, durable in the archive. Not measured in the published system.
    Archive = 10,
    /// A notification after which its transaction waits for more. Not measured there.
    Partial = 11,
    /// A notification whose transaction was refused at once: too old, or too much waits. Not measured there.
    Refuse = 12,
    /// A complete transaction that is given up before the log: it became too old in the queue, or another leads. Not measured
    /// there.
    Stale = 13,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Receive,
        Self::Accumulate,
        Self::Log,
        Self::Sync,
        Self::Apply,
        Self::Admit,
        Self::Expire,
        Self::Spent,
        Self::Block,
        Self::Archive,
        Self::Partial,
        Self::Refuse,
        Self::Stale,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Accumulate => "accumulate",
            Self::Log => "log",
            Self::Apply => "apply",
            Self::Admit => "admit",
            Self::Expire => "expire",
            Self::Spent => "spent",
            Self::Block => "block",
            Self::Archive => "archive",
            Self::Partial => "partial",
            Self::Refuse => "refuse",
            Self::Stale => "stale",
            Self::Sync => "sync",
        }
    }

    /// The name that the published system's plots have for it, if they have it.
    #[must_use]
    pub const fn published_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Receive => "controller.server_handler.tx_notify",
            Self::Accumulate => "raft_node.tx_notify",
            Self::Log => "raft_node.send_complete_txs",
            Self::Apply => "state_machine.tx_notify",
            Self::Admit => "atomizer.insert_complete.success",
            Self::Expire => "atomizer.insert_complete.discard.expired",
            Self::Spent => "atomizer.insert_complete.discard.spent",
            Self::Block => "atomizer.make_block",
            Self::Archive | Self::Partial | Self::Refuse | Self::Stale | Self::Sync => return None,
        })
    }

    /// In words, or as the published system's plots have it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Archive => "durable in the archive",
            Self::Partial => "waits for attestations",
            Self::Refuse => "refused at once",
            Self::Stale => "given up before the log",
            Self::Sync => "durable in the leader's log",
            other => match other.published_name() {
                Some(name) => name,
                None => "",
            },
        }
    }

    /// The stage of which it takes a part of what passed: what passed that one passes one of those that name it, once.
    #[must_use]
    pub const fn behind(self) -> Option<Self> {
        match self {
            Self::Partial | Self::Accumulate | Self::Refuse => Some(Self::Receive),
            Self::Log | Self::Stale => Some(Self::Accumulate),
            Self::Admit | Self::Expire | Self::Spent => Some(Self::Apply),
            Self::Receive | Self::Apply | Self::Block | Self::Archive | Self::Sync => None,
        }
    }
}

/// Who is told. It has a clock; a node has none.
pub trait Stamps {
    /// The time now, in nanoseconds of a clock of its own.
    fn now_ns(&mut self) -> u64;

    /// `count` transactions have gone through a stage, from `since_ns` until now.
    fn stage(&mut self, stage: Stage, since_ns: u64, count: u64);

    /// A transaction that is followed one by one has gone through a stage.
    fn trace(&mut self, stage: Stage, id: &Hash, since_ns: u64);

    /// Whether this one is followed one by one. The same transactions are in every process: their names say which.
    fn follows(&self, id: &Hash) -> bool;
}
