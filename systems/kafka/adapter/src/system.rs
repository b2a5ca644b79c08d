//! The system: starting brokers or attaching to some, connections, the topic as a ledger.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use model::Seed;
use model::facts::PreflightFinding;
use sut::{Deployment, Endpoint, Kind, Ledger, Link, Role, SutError, System, Testbed, Workload};

use crate::brokers::{Brokers, Place};
use crate::durability;
use crate::session::{Common, ProduceSession};
use crate::topic;
use crate::workload::Values;

/// Brokers of Kafka as an experiment wants them.
pub(crate) struct Kafka {
    pub(crate) brokers: Brokers,
    pub(crate) attach: Option<Vec<SocketAddr>>,
    pub(crate) acks: i16,
    pub(crate) is_idempotent: bool,
    pub(crate) in_flight_max: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) run_mark: u64,
}

/// The adapter's own state of a deployment.
struct Up {
    places: Vec<Place>,
    /// The place of the one that led the partition when the load began.
    leader: usize,
}

fn up(of: &Deployment) -> Result<&Up, SutError> {
    let none = || SutError::Deploy("the deployment is not one of kafka".to_owned());
    of.state::<Up>().ok_or_else(none)
}

impl Kafka {
    pub(crate) fn common(&self) -> Arc<Common> {
        Arc::new(Common {
            topic: topic::name(self.run_mark),
            acks: self.acks,
            is_idempotent: self.is_idempotent,
            in_flight_max: self.in_flight_max,
        })
    }
}

impl System for Kafka {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("produce")]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let attached = |address: &SocketAddr| Place { address: *address, number: None };
        let (places, folder, version) = match &self.attach {
            Some(list) => (list.iter().map(attached).collect(), None, None),
            None => {
                let (places, folder, version) = self.brokers.start(bed)?;
                (places, Some(folder), Some(version))
            }
        };
        let leader = topic::make(&places, self.run_mark, bed.clock())?;
        let acks = if self.acks == -1 { "all".to_owned() } else { self.acks.to_string() };
        let mut facts = BTreeMap::from([
            ("kafka.brokers".to_owned(), places.len().to_string()),
            ("kafka.acks".to_owned(), acks.clone()),
            ("kafka.enable.idempotence".to_owned(), self.is_idempotent.to_string()),
        ]);
        let producer = [acks, self.is_idempotent.to_string()];
        let set = self.attach.is_none().then_some(&self.brokers.settings);
        let durability = durability::of_brokers(
            version.clone().unwrap_or_default(),
            producer,
            places.len(),
            set,
        );
        facts.extend(version.map(|version| ("kafka.version".to_owned(), version)));
        for (name, value) in &self.brokers.settings {
            facts.insert(format!("kafka.{name}"), value.clone());
        }
        let addresses = places.iter().map(|place| place.address);
        let deployed = Deployment::of_servers(bed, "broker", addresses, folder);
        let state = Some(Arc::new(Up { places, leader }) as _);
        Ok(Deployment { facts, durability, state, ..deployed })
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Values { run_mark: self.run_mark, payload_bytes: self.payload_bytes })
    }

    /// To the partition's leader, as a producer goes.
    fn connect(&self, to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let Up { places, leader } = up(to)?;
        let session = ProduceSession::new(self.common());
        let address = places[*leader].address;
        Ok(Link::Wire(Endpoint { address, tls: None }, Box::new(session)))
    }

    /// After a loss or a refusal to the next broker, since another may lead.
    fn route(&self, to: &Deployment, _role: Role, _index: u32, life: u32) -> Option<Endpoint> {
        let Up { places, leader } = up(to).ok()?;
        let turn = leader + usize::try_from(life).unwrap_or(0);
        Some(Endpoint { address: places[turn % places.len()].address, tls: None })
    }

    /// Nothing is produced: it would be a record of no transaction. The topic has been made.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let count = up(to)?.places.len();
        let detail = format!("the topic was made, with {count} replicas");
        Ok(vec![PreflightFinding::new("produce", true, detail)])
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        Ok(Some(Box::new(topic::read(&up(of)?.places, self.run_mark, of)?)))
    }

    /// Brokers that go on keep nothing of the trial.
    fn finished(&self, of: &Deployment) {
        if self.attach.is_some()
            && let Ok(up) = up(of)
        {
            topic::remove(&up.places, self.run_mark, of.clock);
        }
    }
}
