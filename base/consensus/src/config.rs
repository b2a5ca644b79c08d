//! What a replica is told once: who it is, how long it waits, and the bounds of everything that could grow.

use std::time::Duration;

use crate::ids::{Members, ReplicaId};

/// What a replica is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who it is.
    pub id: ReplicaId,
    /// Who has a vote at the beginning. A replica that is to join later is given the others only, and waits. What the log
    /// says outweighs this.
    pub members: Members,
    /// Whence its election timeouts come. Different for each replica.
    pub seed: u64,
    /// How often a leader says that it is there.
    pub heartbeat_every: Duration,
    /// How long a follower waits for its leader, at least; at most twice as long. A leader that has not heard from a
    /// majority for as long gives up, and so does one whose disk has made nothing durable for as long although something
    /// waits for it. Several heartbeats, and longer than a disk may take for a write.
    pub election_timeout: Duration,
    /// Most instances that a leader has proposed and that are not chosen yet.
    pub window_max: u64,
    /// The most that those may weigh together, in bytes (each value counts 64 bytes more than it has). One value always
    /// fits.
    pub window_bytes_max: u64,
    /// The most that may be under way to one follower, in bytes, counted in the same way. One entry always fits. It bounds
    /// what waits for the leader's own disk, too: others may be quicker, but memory is not without end.
    pub peer_bytes_max: u64,
    /// About the longest message, in bytes: entries are put together up to here, and one entry is never cut.
    pub message_bytes_max: u64,
    /// Most reads that wait for their round.
    pub reads_max: usize,
    /// After how many bytes of delivered entries the state machine is asked for a snapshot. Until there is one, the log
    /// stays in memory and on disk; while a follower is being sent the last one, no other is asked for.
    pub snapshot_after_bytes: u64,
    /// How many bytes of entries are kept behind a snapshot, for followers that lag.
    pub retain_bytes: u64,
    /// The longest part of a snapshot in one message, in bytes.
    pub snapshot_part_bytes: u32,
    /// Fidelity switch: an entry is chosen only once all members have it durably, so that one that is dead or slow stalls
    /// everybody. A published system did that. Elections still take a majority.
    pub wait_for_all: bool,
    /// Fidelity switch: values are sent to each follower once more when they are chosen. A published system did that.
    pub resend_values: bool,
    /// What is broken on purpose. For tests of tests only.
    #[doc(hidden)]
    pub broken: Broken,
}

/// Faults that a simulator must find.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Broken {
    /// Nothing is.
    #[default]
    Nothing,
    /// What was appended counts as durable at once.
    AcknowledgesBeforeSync,
    /// A read is ready at once, whoever leads: without a word from anybody.
    ReadsWithoutRound,
    /// Two entries that are delivered together change places.
    DeliversOutOfOrder,
    /// A new leader proposes nothing of what others have accepted.
    ForgetsPromises,
    /// A promise is sent before it is durable.
    PromisesBeforeSync,
    /// A candidate's own promise counts before it is durable.
    OwnPromiseAtOnce,
}

impl Config {
    /// The defaults of everything but who it is.
    #[must_use]
    pub fn new(id: ReplicaId, members: Members) -> Self {
        Self {
            id,
            members,
            seed: id.0.into(),
            heartbeat_every: Duration::from_millis(50),
            election_timeout: Duration::from_millis(500),
            window_max: 256,
            window_bytes_max: 64 << 20,
            peer_bytes_max: 64 << 20,
            message_bytes_max: 1 << 20,
            reads_max: 65_536,
            snapshot_after_bytes: 256 << 20,
            retain_bytes: 64 << 20,
            snapshot_part_bytes: 1 << 20,
            wait_for_all: false,
            resend_values: false,
            broken: Broken::Nothing,
        }
    }
}
