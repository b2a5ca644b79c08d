//! Looking after nodes in faults that take more than a signal: what a node has stored is removed, as by the
//! program's own `unsafe-reset-all`, and whether it has what the others have is asked. It starts and ends nothing.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clock::Clock;
use sut::NodeCare;

use crate::manifest::Mode;
use crate::rpc::Rpc;

/// What a node that never voted remembers of its votes.
const NEVER_VOTED: &str = "{\n  \"height\": \"0\",\n  \"round\": 0,\n  \"step\": 0\n}\n";

/// The file with it, in the folder of data.
const VOTES: &str = "priv_validator_state.json";

/// Validators that are asked how high the chain is. They follow each other within a block.
const ASKED_MAX: usize = 8;

/// A node of ours.
#[derive(Clone, Debug)]
pub(crate) struct Tended {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    pub(crate) home: PathBuf,
    /// Where clients reach it.
    pub(crate) clients: SocketAddr,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Care {
    pub(crate) clock: Clock,
    pub(crate) nodes: Vec<Tended>,
    /// Blocks that a node may be behind the highest validator and still count as caught up.
    pub(crate) caught_up_within: u64,
    /// Whether the experiment asks for validators that lose their data.
    pub(crate) wipes_validators: bool,
}

impl Care {
    fn find(&self, name: &str) -> Result<&Tended, String> {
        let found = self.nodes.iter().find(|node| node.name == name);
        found.ok_or_else(|| format!("there is no node `{name}` of cometbft"))
    }

    /// The highest of the validators that answer, beside `except`.
    fn height(&self, except: &str) -> Result<u64, String> {
        let others = self.nodes.iter().filter(|node| node.name != except);
        let validators = others.filter(|node| node.mode == Mode::Validator);
        let heights =
            validators.take(ASKED_MAX).map(|node| Rpc::new(node.clients, self.clock).height());
        let heights: Vec<_> = heights.collect();
        let highest = heights.iter().flatten().max().copied();
        highest.ok_or_else(|| match heights.into_iter().find_map(Result::err) {
            Some(error) => format!("no validator says how high the chain is: {error}"),
            None => "there is no other validator to compare with".to_owned(),
        })
    }
}

impl NodeCare for Care {
    /// Keys and configuration stay, the address book goes. A validator that is wiped all the same keeps what it
    /// remembers of its votes, so that it does not vote twice.
    fn wipe(&self, node: &str) -> Result<(), String> {
        let node = self.find(node)?;
        if node.mode == Mode::Validator && !self.wipes_validators {
            return Err(format!(
                "`{}` is a validator, and one that loses its data takes its votes out of the network; rotate full nodes, or set system.deploy.wipe_validators = true",
                node.name
            ));
        }
        let is_to_stay = node.mode == Mode::Validator;
        reset(&node.home, is_to_stay)
            .map_err(|error| format!("removing the data of `{}`: {error}", node.name))
    }

    fn has_caught_up(&self, node: &str) -> Result<bool, String> {
        let node = self.find(node)?;
        let status = Rpc::new(node.clients, self.clock).status()?;
        if node.mode == Mode::Seed {
            // It follows nobody; that it answers is all that it has to do.
            return Ok(true);
        }
        if status.is_catching_up() {
            return Ok(false);
        }
        let highest = self.height(&node.name)?;
        Ok(status.height()? + self.caught_up_within >= highest)
    }
}

/// As `unsafe-reset-all`.
fn reset(home: &Path, keeps_votes: bool) -> io::Result<()> {
    let data = home.join("data");
    for entry in fs::read_dir(&data)? {
        let path = entry?.path();
        if path.ends_with(VOTES) {
            continue;
        }
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    match fs::remove_file(home.join("config/addrbook.json")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if keeps_votes { Ok(()) } else { fs::write(data.join(VOTES), NEVER_VOTED) }
}
