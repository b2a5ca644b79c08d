//! The system: starting servers or attaching to some, connections, the stream as a ledger.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use model::Seed;
use model::facts::{CodeRemark, PreflightFinding};
use sut::{Deployment, Endpoint, Kind, Ledger, Link, Role, SutError, System, Testbed, Workload};

use crate::control::Control;
use crate::durability;
use crate::servers::{Place, Servers};
use crate::session::{Common, PublishSession};
use crate::stream;
use crate::workload::Bodies;

/// Servers of NATS as an experiment wants them.
pub(crate) struct Nats {
    pub(crate) servers: Servers,
    pub(crate) attach: Option<Vec<SocketAddr>>,
    pub(crate) in_flight_max: u32,
    pub(crate) has_ids: bool,
    pub(crate) payload_bytes: usize,
    pub(crate) run_mark: u64,
}

/// The adapter's own state of a deployment.
struct Up {
    places: Vec<Place>,
    /// The server on which the stream was read first.
    read_at: OnceLock<String>,
}

fn up(of: &Deployment) -> Result<&Up, SutError> {
    let none = || SutError::Deploy("the deployment is not one of nats".to_owned());
    of.state::<Up>().ok_or_else(none)
}

fn places(of: &Deployment) -> Result<&[Place], SutError> {
    Ok(&up(of)?.places)
}

impl Nats {
    pub(crate) fn common(&self) -> Arc<Common> {
        Arc::new(Common {
            run_mark: self.run_mark,
            stream: stream::name(self.run_mark),
            subject: stream::subject(self.run_mark),
            in_flight_max: self.in_flight_max,
            has_ids: self.has_ids,
        })
    }
}

impl System for Nats {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("publish")]
    }

    fn code_remarks(&self) -> Vec<CodeRemark> {
        let remark = "the stream had stored a message with this id before".to_owned();
        vec![CodeRemark { code: 1, remark }]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let (places, folder) = match &self.attach {
            Some(list) => (list.iter().map(|address| Place { address: *address }).collect(), None),
            None => {
                let (places, folder) = self.servers.start(bed)?;
                (places, Some(folder))
            }
        };
        stream::make(&places, self.run_mark, bed.clock())?;
        let first = places[0].address;
        let version = Control::open(first, bed.clock()).map(|control| control.version);
        let version = version
            .map_err(|error| SutError::Deploy(format!("asking the server at {first}: {error}")))?;
        let interval = match (&self.attach, &self.servers.sync_interval) {
            (Some(_), _) => "the servers' own",
            (None, Some(interval)) => interval,
            (None, None) => "the server's default",
        };
        let facts = BTreeMap::from([
            ("nats.version".to_owned(), version.clone()),
            ("nats.servers".to_owned(), places.len().to_string()),
            ("nats.sync_interval".to_owned(), interval.to_owned()),
            ("nats.message_ids".to_owned(), self.has_ids.to_string()),
        ]);
        let set = self.attach.is_none().then_some(self.servers.sync_interval.as_deref());
        let durability = durability::of_servers(version, set, places.len());
        let addresses = places.iter().map(|place| place.address);
        let deployed = Deployment::of_servers(bed, "server", addresses, folder);
        let state = Some(Arc::new(Up { places, read_at: OnceLock::new() }) as _);
        Ok(Deployment { facts, durability, state, ..deployed })
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Bodies { run_mark: self.run_mark, payload_bytes: self.payload_bytes })
    }

    /// To the servers by turns.
    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let places = places(to)?;
        let place = &places[usize::try_from(index).unwrap_or(0) % places.len()];
        let name = match role {
            Role::Probe => format!("p{index}"),
            Role::Submit | Role::Observe => format!("c{index}"),
        };
        let session = PublishSession::new(self.common(), &name);
        Ok(Link::Wire(Endpoint { address: place.address, tls: None }, Box::new(session)))
    }

    /// After a loss to the next server, since the one before may be down.
    fn route(&self, to: &Deployment, _role: Role, index: u32, life: u32) -> Option<Endpoint> {
        let places = places(to).ok()?;
        let turn = usize::try_from(index).unwrap_or(0) + usize::try_from(life).unwrap_or(0);
        Some(Endpoint { address: places[turn % places.len()].address, tls: None })
    }

    /// Nothing is published: it would be a message of no transaction. The stream has been made.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let count = places(to)?.len();
        let detail = format!("the stream was made, with {count} replicas");
        Ok(vec![PreflightFinding::new("publish", true, detail)])
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let Up { places, read_at } = up(of)?;
        Ok(Some(Box::new(stream::read((places, read_at), self.run_mark, of)?)))
    }

    /// Servers that go on keep nothing of the trial.
    fn finished(&self, of: &Deployment) {
        if self.attach.is_some()
            && let Ok([first, ..]) = places(of)
            && let Ok(mut control) = Control::open(first.address, of.clock)
        {
            // An error has no taker here: what is left carries the trial's mark in its name.
            let _ = control.api(&format!("STREAM.DELETE.{}", stream::name(self.run_mark)), "");
        }
    }
}
