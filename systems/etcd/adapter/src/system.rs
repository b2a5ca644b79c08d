//! The system: starting members or attaching to some, connections, the keys as a ledger.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::Seed;
use model::facts::PreflightFinding;
use sut::content::Letters;
use sut::{Deployment, Endpoint, Kind, Ledger, Link, Role, SutError, System, Testbed, Workload};

use crate::ledger::Keys;
use crate::members::{Members, ask};
use crate::session::PutSession;

/// How often a cluster that recovers is asked whether it serves.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// How long a cluster may take after the load until it answers: it elects within a second or two, or never.
const RECOVERED_WITHIN: Duration = Duration::from_secs(20);

/// Members of etcd as an experiment wants them.
pub(crate) struct Etcd {
    pub(crate) members: Members,
    pub(crate) attach: Option<Vec<SocketAddr>>,
    pub(crate) in_flight_max: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) run_mark: u64,
}

/// The adapter's own state of a deployment.
struct Up {
    members: Vec<SocketAddr>,
}

fn members(of: &Deployment) -> Result<&[SocketAddr], SutError> {
    let none = || SutError::Deploy("the deployment is not one of etcd".to_owned());
    of.state::<Up>().map(|up| up.members.as_slice()).ok_or_else(none)
}

impl System for Etcd {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("put")]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let (members, folder) = match &self.attach {
            Some(list) => (list.clone(), None),
            None => {
                let (members, folder) = self.members.start(bed)?;
                (members, Some(folder))
            }
        };
        let status =
            ask(members[0], "/v3/maintenance/status", "{}", bed.clock()).map_err(|error| {
                SutError::Deploy(format!("asking the member at {}: {error}", members[0]))
            })?;
        let version = status["version"].as_str().unwrap_or_default().to_owned();
        let set = self.attach.is_none().then_some(&self.members.arguments[..]);
        let durability = crate::durability::of_members(&version, set);
        let facts = BTreeMap::from([
            ("etcd.version".to_owned(), version),
            ("etcd.members".to_owned(), members.len().to_string()),
            ("etcd.options".to_owned(), self.members.arguments.join(" ")),
            ("etcd.way".to_owned(), "gRPC over HTTP/2".to_owned()),
        ]);
        let deployed = Deployment::of_servers(bed, "member", members.iter().copied(), folder);
        let state = Some(Arc::new(Up { members }) as _);
        Ok(Deployment { facts, durability, state, ..deployed })
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Letters { run_mark: self.run_mark, count: self.payload_bytes })
    }

    /// To the members by turns.
    fn connect(&self, to: &Deployment, _role: Role, index: u32) -> Result<Link, SutError> {
        let members = members(to)?;
        let address = members[usize::try_from(index).unwrap_or(0) % members.len()];
        let session = PutSession::new(self.run_mark, self.in_flight_max);
        Ok(Link::Wire(Endpoint { address, tls: None }, Box::new(session)))
    }

    /// After a loss to the next member, since the one before may be down.
    fn route(&self, to: &Deployment, _role: Role, index: u32, life: u32) -> Option<Endpoint> {
        let members = members(to).ok()?;
        let turn = usize::try_from(index).unwrap_or(0) + usize::try_from(life).unwrap_or(0);
        Some(Endpoint { address: members[turn % members.len()], tls: None })
    }

    fn outlives_trials(&self) -> bool {
        true
    }

    /// Nothing is put: it would be a key of no transaction.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let count = members(to)?.len();
        Ok(vec![PreflightFinding::new("put", true, format!("{count} members serve"))])
    }

    /// From the last member, where the load began with the first.
    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let members = members(of)?;
        let deadline = of.clock.now().plus(RECOVERED_WITHIN);
        loop {
            let now = of.clock.now();
            let is_over = now >= deadline || of.stop.load(Ordering::Relaxed);
            let mut last = None;
            for member in members.iter().rev() {
                match Keys::new(*member, self.run_mark, of.clock) {
                    Ok(keys) => return Ok(Some(Box::new(keys))),
                    Err(error) => last = Some(error),
                }
            }
            if is_over {
                let why = last.map(|error| error.to_string()).unwrap_or_default();
                return Err(SutError::Ledger(format!(
                    "no member serves any more ({why}); a fault that takes members down has to end before the load does"
                )));
            }
            of.clock.sleep_until(now.plus(ASK_EVERY));
        }
    }
}
