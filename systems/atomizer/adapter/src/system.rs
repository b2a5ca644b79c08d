//! The system: its ladder, its connections, its ledger.

use std::sync::Arc;

use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, NodeEvents, NodeStage, NodeState, Role, Session,
    SutError, System, Testbed, Workload,
};

use crate::archive::ArchiveSession;
use crate::care;
use crate::ledger::Chain;
use crate::nodes;
use crate::options::{Atomizer, Observe};
use crate::places::Places;
use crate::session::{BlockSession, COMMITTED, ErrorSession, SubmitSession};
use crate::stages;
use crate::wallet::{Sort, Wallet};
use crate::watch::WatchSession;
use crate::workload::Spends;

/// One transaction in so many is followed by its name through the stages.
const FOLLOWED_ONE_IN: u64 = 1024;

impl Atomizer {
    fn made_wallet(&self, seed: Seed) -> Wallet {
        self.purse.wallet(seed)
    }

    /// Whether atomizers are started with this option.
    fn is_on(&self, option: &str) -> bool {
        self.arguments.iter().any(|it| it == option)
    }

    fn stamped(&self) -> stages::Stamped {
        stages::Stamped {
            is_alone: self.atomizers == 1
                && !self.arguments.iter().any(|it| it.starts_with("--up-to")),
            keeps_log: self.log != "memory",
            is_seen_archived: self.observe == Observe::Archiver,
        }
    }

    /// How many connections there are to observe with: each atomizer's blocks or the archiver, and each one's errors.
    fn block_observers(&self) -> u32 {
        match self.observe {
            Observe::Archiver | Observe::Watchtower => 1,
            Observe::Atomizer => self.atomizers.into(),
        }
    }

    /// The protocol on a connection, without a connection.
    pub(crate) fn session(&self, role: Role, index: u32) -> Box<dyn Session> {
        let known = Arc::clone(&self.known);
        match role {
            Role::Submit | Role::Probe => {
                let (refresh, depth) = (self.refresh.clone(), self.depth);
                let session = SubmitSession::new(known, refresh, depth, self.in_flight_max);
                let hears = ["--as-published", "--broadcast-to-all"];
                let hears_blocks = hears.into_iter().any(|it| self.is_on(it));
                // Who looks heights up as the published generators do has them from where these have them.
                let asks = self.refresh_every == 1 && self.observe != Observe::Watchtower;
                Box::new(session.hearing_blocks(hears_blocks).asking(asks))
            }
            Role::Observe if index >= self.block_observers() => {
                let wallet = self.wallet.get().copied().filter(|_| self.resends);
                Box::new(ErrorSession::new(known, wallet))
            }
            Role::Observe => match self.observe {
                Observe::Archiver => Box::new(ArchiveSession::new(known, COMMITTED)),
                Observe::Atomizer => Box::new(BlockSession::new(known)),
                Observe::Watchtower => {
                    let wallet = self.wallet.get().copied();
                    Box::new(WatchSession::new(known, wallet, self.resends))
                }
            },
        }
    }
}

fn places(of: &Deployment) -> Result<&Places, SutError> {
    let none = || SutError::Deploy("the deployment is not one of an atomizer".to_owned());
    of.state::<Places>().ok_or_else(none)
}

impl System for Atomizer {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn node_stages(&self) -> Vec<NodeStage> {
        if self.stamps { stages::stages(self.stamped()) } else { Vec::new() }
    }

    fn kinds(&self) -> Vec<Kind> {
        Sort::ALL.iter().map(|sort| Kind::recorded(sort.name())).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        let switches = [
            ("--as-published", "atomizers do all that the published ones do"),
            ("--no-batch-cap", "an entry of the log takes all that waits"),
            ("--admit-late", "what is too old goes into the log before it is discarded"),
            ("--copy-blocks", "blocks are copied on their way"),
            ("--broadcast-to-all", "blocks go to clients, too"),
            ("--ignore-height-zero", "a height of 0 counts as none, which admits double spends"),
            ("--silent", "an atomizer that does not lead says nothing"),
        ];
        let on = switches.iter().filter(|(option, _)| self.is_on(option));
        let mut all: Vec<String> = on.map(|(_, words)| (*words).to_owned()).collect();
        if self.refresh_every > 1 {
            all.push(format!("a generator looks up heights every {} sends", self.refresh_every));
        }
        match (self.watchtower_stub, self.observe) {
            (true, Observe::Watchtower) => all.push(
                "the watchtower calls every output unspent, so that each answer of it is a commit"
                    .to_owned(),
            ),
            (true, _) => all.push("the watchtower calls every output unspent".to_owned()),
            (false, Observe::Watchtower) => {
                all.push("committed is what the watchtower says".to_owned())
            }
            (false, _) => {}
        }
        for (number, lie) in &self.lies {
            all.push(format!("shard{number} lies: {lie}"));
        }
        if self.log != "fsync" {
            all.push(format!("the log is not synced: {}", self.log));
        }
        all
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let started = nodes::start_all(self, bed)?;
        Ok(Deployment { clocks: ClockRelation::OneHost, ..started })
    }

    fn workload(&self, seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        let wallet = self.made_wallet(seed);
        // The main load's comes first.
        let _ = self.wallet.set(wallet);
        Box::new(Spends::new(wallet))
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let places = places(to)?;
        let number = |index: u32| usize::try_from(index).expect("few") % places.atomizers.len();
        let address = match role {
            Role::Submit | Role::Probe => {
                places.shard(index).unwrap_or(places.atomizers[0].clients)
            }
            Role::Observe if index >= self.block_observers() => {
                let index = usize::try_from(index - self.block_observers()).expect("few");
                let errors = places.atomizers.iter().map(|it| it.errors);
                let errors: Vec<_> =
                    errors.chain(places.shards.iter().map(|it| it.errors)).collect();
                errors[index % errors.len()]
            }
            Role::Observe => match self.observe {
                Observe::Archiver => places.archiver,
                Observe::Atomizer => places.atomizers[number(index)].blocks,
                Observe::Watchtower => places.watchtower.ok_or_else(|| {
                    SutError::Deploy("there is no watchtower to be asked".to_owned())
                })?,
            },
        };
        Ok(Link::Wire(Endpoint { address, tls: None }, self.session(role, index)))
    }

    /// To a shard, if there are any; else to the atomizer that is said to lead; else to each in turn, connections that were
    /// closed together to different ones: whichever leads is found at once.
    fn route(&self, to: &Deployment, role: Role, index: u32, life: u32) -> Option<Endpoint> {
        if role == Role::Observe {
            return None;
        }
        let places = places(to).ok()?;
        let turn = index.wrapping_add(life);
        if let Some(address) = places.shard(turn) {
            return Some(Endpoint { address, tls: None });
        }
        let told = self.known.take_leader().map(usize::from);
        let turn = usize::try_from(turn).unwrap_or(0) % places.atomizers.len();
        let place = told.and_then(|it| places.atomizers.get(it)).unwrap_or(&places.atomizers[turn]);
        Some(Endpoint { address: place.clients, tls: None })
    }

    fn observers(&self) -> u32 {
        let told = u32::from(self.atomizers) + u32::from(self.shards);
        let errors = if self.observe_errors { told } else { 0 };
        self.block_observers() + errors
    }

    /// Nothing is submitted: it would stand in a block as nobody's.
    fn preflight(&self, _to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let shares = |kind: &Kind| Sort::ALL.iter().any(|sort| sort.name() == kind.name);
        let finding = |kind: Kind| PreflightFinding::new(kind.name, true, "all nodes are up");
        Ok(self.kinds().into_iter().filter(shares).map(finding).collect())
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let Some(wallet) = self.wallet.get() else { return Ok(None) };
        let chain = Chain::open(&places(of)?.archive, &self.known, *wallet)?;
        Ok(Some(Box::new(chain)))
    }

    fn states(&self, of: &Deployment) -> Vec<NodeState> {
        let several = places(of).ok().filter(|places| places.atomizers.len() > 1);
        several.map_or(Vec::new(), |places| care::states(places, of))
    }

    fn node_events(&self, of: &Deployment, to: &mut dyn NodeEvents) -> Result<(), SutError> {
        let names = stages::names(&self.known, FOLLOWED_ONE_IN);
        for (node, path) in &places(of)?.events {
            stages::hand_over((node, path), self.stamped(), &names, to);
        }
        Ok(())
    }
}
