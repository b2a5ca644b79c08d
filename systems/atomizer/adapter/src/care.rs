//! Looking after atomizers in faults that take more than a signal, and what they say that they hold when the load is over.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use atomizer_node::protocol::request::Standing;
use sut::{Deployment, NodeCare, NodeState};

use crate::places::Places;
use crate::standing::standing;

/// How long atomizers may take to come to one height.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);

/// How often they are asked meanwhile: they are at one height for most of the time between two blocks.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// An atomizer of ours.
#[derive(Debug)]
pub(crate) struct Tended {
    pub(crate) name: String,
    /// Where clients reach it.
    pub(crate) address: SocketAddr,
    /// What it keeps; `None`: nothing.
    pub(crate) data: Option<PathBuf>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Care(pub(crate) Vec<Tended>);

impl Care {
    fn find(&self, name: &str) -> Result<&Tended, String> {
        let found = self.0.iter().find(|atomizer| atomizer.name == name);
        found.ok_or_else(|| format!("`{name}` is not an atomizer of a group; only those are wiped"))
    }
}

impl NodeCare for Care {
    /// Its folder is emptied, durably: a cut of the power that follows must not bring back what was lost.
    fn wipe(&self, node: &str) -> Result<(), String> {
        let data = self.find(node)?.data.as_deref();
        let data = data.ok_or_else(|| format!("`{node}` keeps nothing on a disk"))?;
        if self.0.len() == 1 {
            return Err(format!(
                "`{node}` is the only atomizer, and what it holds would be gone; deploy three (system.deploy.atomizers)"
            ));
        }
        empty(data).map_err(|error| format!("removing what `{node}` has stored: {error}"))
    }

    /// It has a vote and has come as far as all others were when they were asked, just before.
    fn has_caught_up(&self, node: &str) -> Result<bool, String> {
        let own = self.find(node)?;
        let others = self.0.iter().filter(|atomizer| atomizer.name != node);
        let most = others.filter_map(|it| standing(it.address).ok()).map(|it| it.height).max();
        let most = most.ok_or("no other atomizer says how far it has come")?;
        let own = standing(own.address)
            .map_err(|error| format!("it does not say how it stands: {error}"))?;
        if !own.has_vote {
            return Err(format!("it has no vote, at height {} of {most}", own.height));
        }
        Ok(own.height >= most)
    }
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    File::open(folder)?.sync_all()
}

/// The chain that each atomizer holds, by the hash of its last block.
pub(crate) fn states(places: &Places, of: &Deployment) -> Vec<NodeState> {
    let deadline = of.clock.now().plus(SETTLE_WITHIN);
    loop {
        let said: Vec<io::Result<Standing>> =
            places.atomizers.iter().map(|place| standing(place.clients)).collect();
        let mut heights = said.iter().flatten().map(|it| it.height);
        let first = heights.next();
        let are_at_one = said.iter().all(Result::is_ok) && heights.all(|it| Some(it) == first);
        if are_at_one || of.clock.now() >= deadline || of.stop.load(Ordering::Relaxed) {
            let named = of.endpoints.iter().zip(said);
            return named.map(|((name, _), said)| state(name, said)).collect();
        }
        of.clock.sleep_until(of.clock.now().plus(ASK_EVERY));
    }
}

fn state(node: &str, said: io::Result<Standing>) -> NodeState {
    let node = node.to_owned();
    match said {
        Ok(Standing { height: position, chain, .. }) => {
            NodeState { node, position, digest: format!("{chain:016x}"), ..NodeState::default() }
        }
        Err(error) => {
            let why = format!("it does not say what it holds: {error}");
            NodeState { node, why, ..NodeState::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a wipe leaves an empty folder; the only atomizer, one that keeps nothing and another node are refused.
    #[test]
    fn what_is_wiped() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("log")).unwrap();
        fs::write(folder.path().join("log/1"), "x").unwrap();
        let care = |count: usize, data: Option<&Path>| {
            let atomizer = |number: usize| Tended {
                name: format!("atomizer{number}"),
                address: ([127, 0, 0, 1], 1).into(),
                data: data.map(Path::to_owned),
            };
            Care((0..count).map(atomizer).collect())
        };
        let alone = care(1, Some(folder.path())).wipe("atomizer0").unwrap_err();
        assert!(alone.contains("the only atomizer") && alone.contains("deploy three"), "{alone}");
        assert!(care(3, None).wipe("atomizer1").unwrap_err().contains("keeps nothing"));
        let other = care(3, Some(folder.path())).wipe("archiver").unwrap_err();
        assert!(other.contains("not an atomizer"), "{other}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        care(3, Some(folder.path())).wipe("atomizer1").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
