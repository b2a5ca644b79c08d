//! Why a group does not start, and why a vote is not changed: in words for whoever runs it.

use consensus::{Instance, RecoverError};

/// Why a group cannot start from its disk.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] RecoverError),
    /// The snapshot that the log begins with is not there.
    #[error(
        "the log begins behind a snapshot up to entry {through}, which is in neither cell; restore it, or give the replica an empty folder: it then joins without a vote until it has caught up"
    )]
    NoSnapshot {
        /// The last instance in it.
        through: Instance,
    },
    /// The state machine cannot read its snapshot.
    #[error(
        "the snapshot up to entry {through} is damaged; restore it, or give the replica an empty folder: it then joins without a vote until it has caught up"
    )]
    Snapshot {
        /// The last instance in it.
        through: Instance,
    },
    /// The folder holds something, and does not say whose it is.
    #[error(
        "the folder has a log, and identity.cell, which says whose it is, is missing or damaged; restore it, or give the replica an empty folder: it then joins without a vote until it has caught up"
    )]
    NoIdentity,
    /// It is another replica's folder.
    #[error(
        "this is the folder of replica {pinned}, and the replica was started as {given}; start it with its own folder"
    )]
    Number {
        /// The replica that the folder belongs to.
        pinned: u8,
        /// The replica that was started.
        given: u8,
    },
    /// It is the folder of a group of other replicas.
    #[error(
        "the folder is of a group of the replicas {pinned:?}, and the replica was started in one of {given:?}; start it with the --peer numbers of its group"
    )]
    Members {
        /// The group that the folder belongs to.
        pinned: Vec<u8>,
        /// The group that was named.
        given: Vec<u8>,
    },
    /// A number that no replica can have.
    #[error("replicas have numbers from 0 to 15, and {0} is none")]
    TooHigh(u8),
}

/// Why no vote is given or taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChange {
    /// This replica does not lead.
    NotLeader,
    /// It is the only one that has a vote.
    Last,
    /// Of those that would be left no majority is heard by this one: nothing could be decided any more.
    WouldStop,
    /// No replica of this number was named to this one: it was started without `--peer` for it.
    Unknown,
}
