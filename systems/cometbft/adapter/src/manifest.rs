//! What a testnet consists of: its nodes by name and role, who knows whom, and what its genesis says. It comes
//! from three numbers or from a manifest in the published form (`manifest/read.rs`), and is written in that form
//! into the run folder, so that what was started can be started again. It starts nothing and reads no file.

mod read;

pub(crate) use read::{BYTES_MAX, read};

use crate::config_file::{Setting, quoted};

/// Above this a full mesh drowns in gossip; each node then knows four others.
const MESH_MAX: usize = 16;
/// How many others each node knows where they are too many to know all.
const PEERS_OF_MANY: usize = 4;

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// It votes.
    Validator,
    /// It follows the chain and serves clients.
    Full,
    /// It tells others of each other, and hangs up. It does not follow the chain.
    Seed,
}

impl Mode {
    /// The words of the published form.
    pub(crate) const WORDS: [&str; 3] = ["validator", "full", "seed"];

    pub(crate) const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    /// Nodes that it asks for others.
    pub(crate) seeds: Vec<String>,
    /// Nodes that it keeps a connection to.
    pub(crate) persistent_peers: Vec<String>,
    /// A label: where it is said to stand.
    pub(crate) zone: String,
    /// It is started when the others are at this height.
    pub(crate) start_at: u64,
    /// Its votes' weight; 0: not among the validators of the genesis.
    pub(crate) power: u64,
}

/// A testnet: validators first, then full nodes, then seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) nodes: Vec<NodePlan>,
    /// The height of the first block.
    pub(crate) initial_height: u64,
    /// From this height on votes carry extensions; 0: never.
    pub(crate) vote_extensions_enable_height: u64,
    /// The most bytes of a block, where it is not the program's own default.
    pub(crate) block_max_bytes: Option<u64>,
    /// Whether no node tells another of third ones.
    pub(crate) disables_pex: bool,
    /// Whether nodes serve metrics, where the manifest says so.
    pub(crate) prometheus: Option<bool>,
    /// Settings for every node.
    pub(crate) settings: Vec<Setting>,
    /// What it asks for and does not get, in words.
    pub(crate) notes: Vec<String>,
}

impl Manifest {
    /// `node0` …, `full0` …, `seed0` …. With seeds each node asks one of them in turn, and seeds know each other;
    /// without, each node knows so many others (`None`: all, or in a large network four).
    pub(crate) fn of_counts(
        validators: usize,
        full_nodes: usize,
        seeds: usize,
        peers: Option<usize>,
    ) -> Self {
        let seed_names: Vec<String> = (0..seeds).map(|n| format!("seed{n}")).collect();
        let mut nodes = Vec::new();
        for (mode, prefix, count) in
            [(Mode::Validator, "node", validators), (Mode::Full, "full", full_nodes)]
        {
            for n in 0..count {
                let asked = nodes.len().checked_rem(seeds).map(|seed| seed_names[seed].clone());
                let mut node = NodePlan::new(format!("{prefix}{n}"), mode);
                node.seeds = asked.into_iter().collect();
                nodes.push(node);
            }
        }
        for name in &seed_names {
            let mut node = NodePlan::new(name.clone(), Mode::Seed);
            let others = seed_names.iter().filter(|other| *other != name);
            node.persistent_peers = others.cloned().collect();
            nodes.push(node);
        }
        let mut manifest = Self::of_nodes(nodes);
        if seeds == 0 {
            manifest.acquaint(peers);
        }
        manifest
    }

    /// Nodes as they are, and defaults.
    fn of_nodes(nodes: Vec<NodePlan>) -> Self {
        Self {
            nodes,
            initial_height: 1,
            vote_extensions_enable_height: 0,
            block_max_bytes: None,
            disables_pex: false,
            prometheus: None,
            settings: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Gives peers to those that name nobody: so many each, or where that is not said all others, and in a large
    /// network four (a seed still knows all). Gives whether some got fewer than all without being asked to.
    fn acquaint(&mut self, peers: Option<usize>) -> bool {
        let names: Vec<String> = self.nodes.iter().map(|node| node.name.clone()).collect();
        let others = |own: &str| names.iter().filter(|name| *name != own).cloned().collect();
        let followers = self.nodes.iter().filter(|node| node.mode != Mode::Seed);
        let ring: Vec<String> = followers.map(|node| node.name.clone()).collect();
        let of_many = (ring.len() > MESH_MAX).then_some(PEERS_OF_MANY);
        let known = peers.or(of_many).map(|count| steps(ring.len(), count));
        let mut is_sparse = false;
        for node in &mut self.nodes {
            if !node.seeds.is_empty() || !node.persistent_peers.is_empty() {
                continue;
            }
            let place = ring.iter().position(|name| *name == node.name);
            node.persistent_peers = match (place, &known) {
                (Some(place), Some(steps)) => {
                    is_sparse |= peers.is_none();
                    let on = |step: &usize| ring[(place + step) % ring.len()].clone();
                    steps.iter().map(on).collect()
                }
                _ => others(&node.name),
            };
        }
        is_sparse
    }

    /// Whether nodes tell each other of third ones: where seeds are asked, unless it is forbidden.
    pub(crate) fn uses_pex(&self) -> bool {
        !self.disables_pex && self.nodes.iter().any(|node| !node.seeds.is_empty())
    }

    /// How many nodes have a role.
    pub(crate) fn count(&self, mode: Mode) -> usize {
        self.nodes.iter().filter(|node| node.mode == mode).count()
    }

    /// The nodes that follow the chain, in order: those that clients are given to.
    pub(crate) fn followers(&self) -> impl Iterator<Item = &NodePlan> {
        self.nodes.iter().filter(|node| node.mode != Mode::Seed)
    }

    /// `Canada: full0 seed1; Oregon: node0`; empty without zones.
    pub(crate) fn zones(&self) -> String {
        let mut zones = std::collections::BTreeMap::<&str, Vec<&str>>::new();
        for node in self.nodes.iter().filter(|node| !node.zone.is_empty()) {
            zones.entry(&node.zone).or_default().push(&node.name);
        }
        let lines = zones.iter().map(|(zone, names)| format!("{zone}: {}", names.join(" ")));
        lines.collect::<Vec<_>>().join("; ")
    }

    /// The published form.
    pub(crate) fn to_toml(&self) -> String {
        let mut out = String::from("# The testnet that was started.\n");
        let mut line = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        line(format!("initial_height = {}", self.initial_height));
        line(format!("vote_extensions_enable_height = {}", self.vote_extensions_enable_height));
        if let Some(bytes) = self.block_max_bytes {
            line(format!("block_max_bytes = {bytes}"));
        }
        if self.disables_pex {
            line("disable_pex = true".to_owned());
        }
        if let Some(is_on) = self.prometheus {
            line(format!("prometheus = {is_on}"));
        }
        for setting in &self.settings {
            line(format!("{} = {}", setting.key, setting.value));
        }
        line("\n[validators]".to_owned());
        for node in self.nodes.iter().filter(|node| node.power > 0) {
            line(format!("{} = {}", node.name, node.power));
        }
        for node in &self.nodes {
            line(format!("\n[node.{}]", node.name));
            line(format!("mode = \"{}\"", node.mode.word()));
            for (key, names) in
                [("seeds", &node.seeds), ("persistent_peers", &node.persistent_peers)]
            {
                if !names.is_empty() {
                    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                    line(format!("{key} = [{}]", names.join(", ")));
                }
            }
            if !node.zone.is_empty() {
                line(format!("zone = {}", quoted(&node.zone)));
            }
            if node.start_at > 0 {
                line(format!("start_at = {}", node.start_at));
            }
        }
        out
    }
}

/// How many places on, in a ring of `nodes`, those stand that each knows: 1, 2, 4, 8, … up to half the way round,
/// so that nobody is far, then what is missing. With the step 1 among them every run of neighbours is connected inside
/// itself, so a network that is cut between two places of the ring falls into two parts and not more.
fn steps(nodes: usize, peers: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1), |step| Some(step * 2));
    let doubled: Vec<usize> = doubled.take_while(|step| *step <= nodes / 2).collect();
    let rest = (1..nodes).filter(|step| !doubled.contains(step));
    doubled.iter().copied().chain(rest).take(peers).collect()
}

impl NodePlan {
    /// One that knows nobody. A validator has the weight that the published form gives it.
    fn new(name: String, mode: Mode) -> Self {
        Self {
            name,
            mode,
            seeds: Vec::new(),
            persistent_peers: Vec::new(),
            zone: String::new(),
            start_at: 0,
            power: if mode == Mode::Validator { 100 } else { 0 },
        }
    }
}
