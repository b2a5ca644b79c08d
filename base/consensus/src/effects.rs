//! What a replica is told, and what it asks for.

use clock::Instant;

use crate::entry::Entry;
use crate::ids::{Instance, Members, ReplicaId};
use crate::message::Message;
use crate::record::Record;
use crate::value::Value;

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The time that was asked for has come. Also the first input of every life.
    Wake,
    /// A message came.
    Received {
        /// From whom, as the connection says.
        from: ReplicaId,
        /// What it says.
        message: Message,
    },
    /// A value that is to be chosen. Its fate is an [`Effect::Deliver`] with its id, an [`Effect::Refused`], or unknown
    /// once another leads.
    Propose {
        /// The caller's own name for it, which is told back and means nothing.
        id: u64,
        /// The value.
        value: Value,
    },
    /// Somebody wants to read what all that was acknowledged before now made.
    Read {
        /// The caller's own name for it.
        id: u64,
    },
    /// All records with a smaller number than `through` are durable.
    Persisted {
        /// The number of the first record that may not be.
        through: u64,
    },
    /// The state machine has a durable snapshot of what was delivered up to `through`. It is kept until
    /// [`Effect::Trim`] says otherwise.
    SnapshotMade {
        /// The last instance in it.
        through: Instance,
    },
    /// The state machine has installed the snapshot of [`Effect::InstallPart`], durably, and stands where it ends.
    SnapshotInstalled {
        /// The last instance in it.
        through: Instance,
    },
    /// The answer to [`Effect::ReadSnapshot`].
    SnapshotPart {
        /// For whom.
        to: ReplicaId,
        /// Of which snapshot.
        through: Instance,
        /// Where the part begins.
        offset: u64,
        /// The part; no longer than was asked for, and empty only if the whole is.
        bytes: Value,
        /// Whether the whole ends with it.
        is_last: bool,
    },
    /// One replica is to join or to leave.
    ChangeMembers {
        /// The caller's own name for it.
        id: u64,
        /// Who shall have the votes.
        members: Members,
    },
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Sends a message. It may be lost.
    Send {
        /// To whom.
        to: ReplicaId,
        /// What.
        message: Message,
    },
    /// Appends a record to the log; [`Input::Persisted`] tells when it is durable. Nothing waits for it but what says so.
    Append {
        /// Its number: one more than that of the record before it.
        number: u64,
        /// What.
        record: Record,
    },
    /// Neither records nor snapshots before these are needed any more.
    Trim {
        /// The number of the first record that is.
        records_before: u64,
        /// The end of the snapshot that is.
        snapshots_before: Instance,
    },
    /// An entry was chosen and is next. In a life of a replica each instance comes once, in order.
    Deliver {
        /// Where.
        instance: Instance,
        /// What.
        entry: Entry,
        /// The id under which it was proposed here, if it was.
        proposal: Option<u64>,
    },
    /// A read may be served from what has been delivered.
    ReadReady {
        /// The caller's own name for it.
        id: u64,
        /// Everything up to here had to be delivered, and has been.
        instance: Instance,
    },
    /// The log has grown: a snapshot of what has been delivered is wanted, at leisure.
    NeedSnapshot,
    /// A part of the latest snapshot is wanted; [`Input::SnapshotPart`] brings it.
    ReadSnapshot {
        /// For whom.
        to: ReplicaId,
        /// Of which snapshot.
        through: Instance,
        /// From where.
        offset: u64,
        /// The longest that it may be.
        bytes_max: u32,
    },
    /// A part of a snapshot came, beside the state machine. Offset 0 begins anew, and drops what came of another. After the
    /// last part it is installed, and [`Input::SnapshotInstalled`] says so; until then nothing is delivered.
    InstallPart {
        /// Of which snapshot.
        through: Instance,
        /// Where it begins.
        offset: u64,
        /// The part.
        bytes: Value,
        /// Whether the whole ends with it.
        is_last: bool,
    },
    /// Something was not begun, or was given up.
    Refused {
        /// What.
        request: Request,
        /// Why.
        why: Refusal,
    },
    /// Who leads, as far as is known here, has changed.
    Leader(Option<ReplicaId>),
    /// A message was not heeded, because no replica that keeps to the protocol and has its records sends it.
    Distrusted {
        /// Who sent it.
        from: ReplicaId,
        /// Why.
        why: Distrust,
    },
}

/// Why a message was not heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// A ballot far beyond all that were seen: heeding it would leave no ballots to lead with.
    #[error(
        "a ballot with counter {counter}, and the highest seen was {seen}: a jump by more than 4294967296"
    )]
    BallotJump {
        /// The counter of the ballot.
        counter: u64,
        /// The highest that was seen before.
        seen: u64,
    },
    /// A leader's entry is another than the one that is chosen here, or follows another than stands here. One of the two
    /// has lost records. This replica takes part no more in this life.
    #[error(
        "its entry at instance {instance} does not go with what is held here: one of the two has lost what it had"
    )]
    Diverged {
        /// Where.
        instance: Instance,
    },
}

/// What was asked of a replica, by the caller's own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// [`Input::Propose`].
    Propose(u64),
    /// [`Input::Read`].
    Read(u64),
    /// [`Input::ChangeMembers`].
    ChangeMembers(u64),
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This replica does not lead.
    NotLeader {
        /// Who does, as far as is known here.
        leader: Option<ReplicaId>,
    },
    /// A bound is reached: the window, the reads that wait, or a change of members that is under way.
    Busy,
    /// The value is longer than [`crate::VALUE_BYTES_MAX`].
    TooLong,
    /// The members asked for differ from the present ones in none or in more than one.
    NotOneChange,
}

/// What one or more steps ask for, in order. Emptied by the caller and used again.
#[derive(Debug)]
pub struct Effects {
    list: Vec<Effect>,
    wake_at: Instant,
}

impl Default for Effects {
    fn default() -> Self {
        Self { list: Vec::new(), wake_at: Instant::FAR_FUTURE }
    }
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    pub(crate) fn send(&mut self, to: ReplicaId, message: Message) {
        self.list.push(Effect::Send { to, message });
    }

    pub(crate) fn refuse(&mut self, request: Request, why: Refusal) {
        self.list.push(Effect::Refused { request, why });
    }

    pub(crate) fn distrust(&mut self, from: ReplicaId, why: Distrust) {
        self.list.push(Effect::Distrusted { from, why });
    }

    pub(crate) fn set_wake(&mut self, at: Instant) {
        self.wake_at = at;
    }

    /// Takes what there is, in order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.list.drain(..)
    }

    /// When the next [`Input::Wake`] is due, as of the last step; it takes the place of what was said before.
    #[must_use]
    pub fn wake_at(&self) -> Instant {
        self.wake_at
    }
}
