//! Where the nodes of a deployment listen and keep their files.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where one atomizer listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) clients: SocketAddr,
    pub(crate) blocks: SocketAddr,
    pub(crate) errors: SocketAddr,
}

/// Where one shard listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardPlace {
    pub(crate) clients: SocketAddr,
    pub(crate) errors: SocketAddr,
}

/// What the adapter remembers of a deployment.
pub(crate) struct Places {
    pub(crate) atomizers: Vec<Place>,
    pub(crate) shards: Vec<ShardPlace>,
    pub(crate) archiver: SocketAddr,
    pub(crate) archive: PathBuf,
    /// Where the watchtower answers, if there is one.
    pub(crate) watchtower: Option<SocketAddr>,
    /// The files in which nodes stamp their stages, by node.
    pub(crate) events: Vec<(String, PathBuf)>,
}

impl Places {
    /// The shard that a connection of this number goes to, if there are any.
    pub(crate) fn shard(&self, index: u32) -> Option<SocketAddr> {
        let place = usize::try_from(index).ok()?.checked_rem(self.shards.len())?;
        Some(self.shards[place].clients)
    }
}
