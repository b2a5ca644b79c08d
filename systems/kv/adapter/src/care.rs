//! Looking after replicas in faults that take more than a signal: what one has stored is removed, and whether it has what the
//! others have is asked. It starts and ends nothing.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sut::asker::Clock;
use sut::{NodeCare, Tls};

use crate::control::Control;

/// A replica of ours.
#[derive(Debug)]
pub(crate) struct Tended {
    pub(crate) name: String,
    /// Where clients reach it.
    pub(crate) address: SocketAddr,
    /// What it keeps; `None`: nothing.
    pub(crate) data: Option<PathBuf>,
}

/// All of them.
pub(crate) struct Care {
    pub(crate) replicas: Vec<Tended>,
    pub(crate) tls: Option<Tls>,
    pub(crate) clock: Clock,
}

impl std::fmt::Debug for Care {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Care").field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

impl Care {
    fn find(&self, name: &str) -> Result<&Tended, String> {
        let found = self.replicas.iter().find(|replica| replica.name == name);
        found.ok_or_else(|| format!("there is no replica `{name}` of kv"))
    }

    fn open(&self, replica: &Tended) -> io::Result<Control> {
        Control::open(replica.address, self.tls.as_ref(), self.clock)
    }
}

impl NodeCare for Care {
    /// Its folder is emptied, durably: a cut of the power that follows must not bring back what was lost.
    fn wipe(&self, node: &str) -> Result<(), String> {
        let data = self.find(node)?.data.as_deref();
        let data = data.ok_or_else(|| format!("`{node}` keeps nothing on a disk"))?;
        if self.replicas.len() == 1 {
            return Err(format!(
                "`{node}` is the only replica, and what it holds would be gone; deploy three (system.deploy.replicas)"
            ));
        }
        empty(data).map_err(|error| format!("removing what `{node}` has stored: {error}"))
    }

    /// It has a vote and has come as far as all others were when they were asked, just before.
    fn has_caught_up(&self, node: &str) -> Result<bool, String> {
        let own = self.find(node)?;
        let others = self.replicas.iter().filter(|replica| replica.name != node);
        let others: Vec<_> = others.map(|replica| self.open(replica)?.state()).collect();
        let most = others.iter().flatten().map(|state| state.position).max();
        let Some(most) = most else {
            return Err("no other replica says how far it has come".to_owned());
        };
        let state = self.open(own).and_then(|mut control| control.state());
        let state = state.map_err(|error| format!("it does not say how it stands: {error}"))?;
        if !state.has_vote {
            return Err(format!("it has no vote, at position {} of {most}", state.position));
        }
        Ok(state.position >= most)
    }
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn care(count: usize, data: Option<&Path>) -> Care {
        let replica = |number: usize| Tended {
            name: format!("kv{number}"),
            address: ([127, 0, 0, 1], 1).into(),
            data: data.map(Path::to_owned),
        };
        Care { replicas: (0..count).map(replica).collect(), tls: None, clock: Clock::start() }
    }

    /// Claim: a wipe leaves an empty folder; the only replica, one that keeps nothing and one that there is not are refused.
    #[test]
    fn what_is_wiped() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("identity.cell"), "x").unwrap();
        fs::create_dir(folder.path().join("log")).unwrap();
        fs::write(folder.path().join("log/1"), "x").unwrap();
        let alone = care(1, Some(folder.path())).wipe("kv0").unwrap_err();
        assert!(alone.contains("the only replica") && alone.contains("deploy three"), "{alone}");
        assert!(care(3, None).wipe("kv1").unwrap_err().contains("keeps nothing"));
        assert!(care(3, Some(folder.path())).wipe("kv7").unwrap_err().contains("no replica"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        care(3, Some(folder.path())).wipe("kv1").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
