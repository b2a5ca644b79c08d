//! The system: starting the replicas or attaching to one, its connections, its ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kv_node::protocol::NOBODY;
use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, NodeState, Role, SutError, System, Testbed, Workload,
};

use crate::certificates;
use crate::ledger::Reader;
use crate::nodes::{self, Place, Places};
use crate::observing::Observes;
use crate::options::{self, Kv};
use crate::session::{Common, KvSession};
use crate::states;
use crate::workload::{Sort, Transactions};

impl Kv {
    /// What sessions have in common.
    pub(crate) fn common(&self, since: u64) -> Common {
        Common {
            run_mark: self.run_mark,
            in_flight_max: self.in_flight_max,
            since,
            database: 0,
            resends: self.resends,
            reads: self.kinds().iter().map(|kind| !kind.is_recorded).collect(),
            observes: match self.sort {
                Sort::MapAndList | Sort::Proposal | Sort::Puts(_) => Observes::Nothing,
                Sort::Lists(_) => Observes::Lists,
                Sort::Bank(bank) => Observes::Bank(bank),
            },
        }
    }

    /// Where a connection is told who leads.
    fn leader(&self, role: Role, index: u32) -> Arc<AtomicU8> {
        let all = self.leaders.len().max(1);
        let place = usize::try_from(index).unwrap_or(0) * 2 + usize::from(role == Role::Probe);
        self.leaders.get(place % all).cloned().unwrap_or_else(crate::session::nobody)
    }
}

fn places(of: &Deployment) -> Result<&Places, SutError> {
    let none = || SutError::Deploy("the deployment is not one of kv".to_owned());
    of.state::<Places>().ok_or_else(none)
}

impl System for Kv {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        let (recorded, read) = self.sort.kinds();
        std::iter::once(Kind::recorded(recorded)).chain(read.map(Kind::read)).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        let switches = [
            ("--wait-for-all", "an entry is decided only once all replicas keep it"),
            ("--resend-values", "what is decided is sent to each replica once more in full"),
            ("--sync=segment", "a whole segment of the log is synced for each batch"),
            ("--sync=none", "nothing is synced: a loss of power loses what was acknowledged"),
        ];
        let is_on = |option: &str| self.arguments.iter().any(|argument| argument == option);
        let on = switches.iter().filter(|(option, _)| is_on(option));
        on.map(|(_, words)| (*words).to_owned()).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        if let Some(address) = self.attach {
            let tls = self.identity.as_deref().map(certificates::client).transpose();
            let tls = tls.map_err(SutError::Deploy)?;
            let places = Places::agreed(nodes::attached(address), tls, bed)?;
            return Ok(nodes::deployment(bed, places));
        }
        let started = nodes::start_all(self, bed)?;
        Ok(Deployment { clocks: ClockRelation::OneHost, ..started })
    }

    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        let Self { value_bytes, clients, .. } = *self;
        let sort = options::sort(&self.workload, seed).unwrap_or(self.sort);
        Box::new(Transactions::new(sort, seed, value_bytes, clients, worker, workers))
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let places = places(to)?;
        let address = places.replicas[places.leader].address;
        let session = KvSession::new(
            Common { database: places.database, ..self.common(places.since) },
            self.leader(role, index),
        );
        Ok(Link::Wire(Endpoint { address, tls: places.tls.clone() }, Box::new(session)))
    }

    /// To the replica that the connection was told leads; else to the replicas in turn, from the one that led at first.
    fn route(&self, to: &Deployment, role: Role, index: u32, life: u32) -> Option<Endpoint> {
        let Places { replicas, leader, tls, .. } = places(to).ok()?;
        let told = usize::from(self.leader(role, index).swap(NOBODY, Ordering::Relaxed));
        let turn = usize::try_from(life).unwrap_or(0).wrapping_add(*leader) % replicas.len();
        let Place { address, .. } = replicas.get(told).unwrap_or(&replicas[turn]);
        Some(Endpoint { address: *address, tls: tls.clone() })
    }

    /// Nothing is submitted: it would stand in the ledger as nobody's.
    fn outlives_trials(&self) -> bool {
        true
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let places = places(to)?;
        let name = &places.replicas[places.leader].name;
        let detail = format!("`{name}` leads, at position {}", places.since);
        let finding = |kind: Kind| PreflightFinding::new(kind.name, true, &detail);
        Ok(self.kinds().into_iter().map(finding).collect())
    }

    fn states(&self, of: &Deployment) -> Vec<NodeState> {
        // An attached replica, or a single one, has none to be compared with.
        let several = places(of).ok().filter(|places| places.replicas.len() > 1);
        several.map_or(Vec::new(), |places| states::of(places, of))
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let keeper = places(of)?.keeper(of)?;
        Ok(keeper.map(|(control, name)| {
            Box::new(Reader::new(control, self.run_mark, name)) as Box<dyn Ledger>
        }))
    }
}
