//! The place of a group in its node.

use consensus::{Config, Members, ReplicaId};

/// Where a group lies in its node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The state machine that it is of: a replica of another one is refused.
    pub service: u64,
    /// Drawn at random in each life: what an empty folder is known by from then on.
    pub disk: u64,
    /// The other replicas, each with its number among the node's peers.
    pub peers: Vec<(ReplicaId, usize)>,
    /// Which of the node's listeners is the group's.
    pub listener: usize,
    /// Which of the node's logs is the group's.
    pub log: usize,
    /// The first of [`crate::CELLS`] of the node's cells.
    pub cell: usize,
    /// With more than this waiting on a connection to another replica, messages to it are dropped.
    pub unsent_bytes_max: usize,
}

impl Settings {
    /// Replica `own` beside `others` in a node that has one group and nothing else: its first log, its first cells, and the
    /// others as its first peers. With its configuration, whose seed no other process has.
    ///
    /// # Errors
    /// When two have one number, or there are too many; when no random number is to be had. In words.
    pub fn of_only_group(
        own: u8,
        others: impl Iterator<Item = u8>,
        service: u64,
        listener: usize,
        unsent_bytes_max: usize,
    ) -> Result<(Config, Self), String> {
        let ids: Vec<ReplicaId> = std::iter::once(own).chain(others).map(ReplicaId).collect();
        let members =
            Members::new(&ids).ok_or("replicas have numbers of their own, at most 15 of them")?;
        let mut config = Config::new(ReplicaId(own), members);
        config.seed = u64::from(std::process::id()) << 8 | u64::from(own);
        let disk = process::store::draw().map_err(|error| error.to_string())?;
        let peers = ids[1..].iter().copied().zip(0..).collect();
        Ok((config, Self { service, disk, peers, listener, log: 0, cell: 0, unsent_bytes_max }))
    }
}
