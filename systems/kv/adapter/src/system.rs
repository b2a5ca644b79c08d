//! The system: starting the replicas or attaching to one, its connections, its ledger.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use model::options::Options;
use sut::{Deployment, Endpoint, Kind, Ledger, Link, Role, SutError, System, Testbed, Workload};

use crate::control::Control;
use crate::ledger::Reader;
use crate::nodes::{self, Place, Places, READY_WITHIN};
use crate::observing::Observes;
use crate::options;
use crate::session::{Common, KvSession};
use crate::workload::{Sort, Transactions};

/// How often a replica that was started again is asked whether it serves.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// The database as an experiment wants it.
pub(crate) struct Kv {
    /// Of the command line of each replica.
    pub(crate) arguments: Vec<String>,
    pub(crate) attach: Option<SocketAddr>,
    pub(crate) in_flight_max: u32,
    pub(crate) resends: bool,
    /// What transactions do; `workload` is what it was read from, and is read again once the seed is known.
    pub(crate) sort: Sort,
    pub(crate) workload: Options,
    pub(crate) value_bytes: usize,
    /// How many clients bring transactions where the arrivals are open.
    pub(crate) clients: u32,
    pub(crate) run_mark: u64,
    /// By connection: the replica that it was told leads.
    pub(crate) leaders: Vec<Arc<AtomicU8>>,
}

impl Kv {
    /// What sessions have in common.
    pub(crate) fn common(&self, since: u64) -> Common {
        Common {
            run_mark: self.run_mark,
            in_flight_max: self.in_flight_max,
            since,
            resends: self.resends,
            reads: self.kinds().iter().map(|kind| !kind.is_recorded).collect(),
            observes: match self.sort {
                Sort::MapAndList | Sort::Proposal => Observes::Nothing,
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

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        if let Some(address) = self.attach {
            return nodes::deployment(bed, nodes::attached(address));
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
        let first = places.replicas.first();
        let address = first.ok_or_else(|| SutError::Deploy("no replica is up".to_owned()))?.address;
        let session = KvSession::new(self.common(places.since), self.leader(role, index));
        Ok(Link::Wire(Endpoint { address, tls: None }, Box::new(session)))
    }

    /// To the replica that the connection was told leads; else to the replicas in turn.
    fn route(&self, to: &Deployment, role: Role, index: u32, life: u32) -> Option<Endpoint> {
        let replicas = &places(to).ok()?.replicas;
        let told = usize::from(self.leader(role, index).swap(u8::MAX, Ordering::Relaxed));
        let turn = usize::try_from(life).unwrap_or(0) % replicas.len().max(1);
        let Place { address, .. } = replicas.get(told).or_else(|| replicas.get(turn))?;
        Some(Endpoint { address: *address, tls: None })
    }

    /// Nothing is submitted: it would stand in the ledger as nobody's.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let Place { address, name } = &places(to)?.replicas[0];
        let state = Control::open(*address).and_then(|mut control| control.state());
        let state = state.map_err(|error| SutError::Deploy(format!("asking `{name}`: {error}")))?;
        let detail = format!("`{name}` leads at position {}", state.position);
        let finding = |kind: Kind| PreflightFinding {
            kind: kind.name,
            ok: true,
            detail: detail.clone(),
            remark: String::new(),
        };
        Ok(self.kinds().into_iter().map(finding).collect())
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let Place { address, name } = &places(of)?.replicas[0];
        let failed = |why: String| SutError::Ledger(format!("asking `{name}`: {why}"));
        let deadline = of.clock.now().plus(READY_WITHIN);
        let mut control = loop {
            match Control::open(*address) {
                Ok(control) => break control,
                Err(error) if of.clock.now() >= deadline => return Err(failed(error.to_string())),
                Err(_) => of.clock.sleep_until(of.clock.now().plus(LOOK_EVERY)),
            }
        };
        let state = control.state().map_err(|error| failed(error.to_string()))?;
        if !state.keeps_ledger {
            return Ok(None);
        }
        let part = control.ledger(0).map_err(|error| failed(error.to_string()))?;
        if part.whole_to < state.position {
            return Err(failed(format!(
                "its ledger lacks what was executed behind position {}, of {}",
                part.whole_to, state.position
            )));
        }
        Ok(Some(Box::new(Reader::new(control, self.run_mark, name.clone()))))
    }
}
