//! The system: starting a server or attaching to one, its connections, its table as a ledger.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use model::plan::CLIENT;
use sut::asker::Clock;
use sut::{
    Deployment, DurabilityFacts, Endpoint, Kind, Ledger, Link, Role, SutError, System, Testbed,
    Workload,
};

use crate::cluster::{NODE, READY_WITHIN};
use crate::control::{Control, ControlError};
use crate::durability;
use crate::ledger::Entries;
use crate::options::{self, Postgres};
use crate::session::{Common, PostgresSession};
use crate::workload::Transactions;

/// The server's address in the deployment.
const SERVER: &str = "server";

/// How often a server that was started again is asked whether it serves.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Settings that what is kept depends on, as the server names them: they are facts of every trial.
const SETTINGS: [&str; 8] = [
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "data_checksums",
    "commit_delay",
    "wal_level",
];

/// Facts for the reader, and those of them that decide what is kept.
type Facts = (BTreeMap<String, String>, DurabilityFacts);

impl Postgres {
    pub(crate) fn common(&self) -> Arc<Common> {
        let parameters = vec![
            ("user", self.login.user.clone()),
            ("database", self.login.database.clone()),
            ("application_name", "assay".to_owned()),
            ("default_transaction_isolation", self.isolation.to_owned()),
        ];
        let statements = self.tables.prepare(&self.sort);
        Arc::new(Common { parameters, statements, in_flight_max: self.in_flight_max })
    }

    fn facts(&self, address: SocketAddr, clock: Clock) -> Result<Facts, ControlError> {
        let mut control = Control::open(address, &self.login, clock)?;
        let mut say = |name: &str| -> Result<String, ControlError> {
            let rows = control.ask(&format!("SHOW {name}"))?;
            Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
        };
        let mut facts = BTreeMap::from([("postgres.isolation".into(), self.isolation.to_owned())]);
        for name in SETTINGS {
            facts.insert(format!("postgres.{name}"), say(name)?);
        }
        Ok((facts, durability::of_server(say)?))
    }
}

fn server(of: &Deployment) -> Result<SocketAddr, SutError> {
    let found = of.endpoint(SERVER);
    found.ok_or_else(|| SutError::Deploy("the deployment has no address of a server".to_owned()))
}

impl System for Postgres {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        let (recorded, read) = self.sort.kinds();
        std::iter::once(Kind::recorded(recorded)).chain(read.map(Kind::read)).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let make = self.tables.make(&self.sort);
        let said = |address: SocketAddr, error: &ControlError| {
            SutError::Deploy(format!("asking the server at {address}: {error}"))
        };
        if let Some(address) = self.attach {
            let control = Control::open(address, &self.login, bed.clock());
            let mut control = control.map_err(|error| said(address, &error))?;
            for sql in make {
                control.ask(&sql).map_err(|error| said(address, &error))?;
            }
            let facts = self.facts(address, bed.clock());
            let (facts, durability) = facts.map_err(|error| said(address, &error))?;
            let endpoints = vec![(SERVER.to_owned(), address)];
            return Ok(Deployment { endpoints, facts, durability, ..Deployment::new(bed.clock()) });
        }
        let (address, folder) = self.cluster.start(&make, &self.login, bed)?;
        let facts = self.facts(address, bed.clock());
        let (facts, durability) = facts.map_err(|error| said(address, &error))?;
        // Where the links are forwarders, the instrument dials one.
        let dialled = bed.forward(CLIENT, NODE, address)?.unwrap_or(address);
        Ok(Deployment {
            endpoints: vec![(SERVER.to_owned(), dialled)],
            nodes: bed.nodes(),
            facts,
            durability,
            folder: Some(folder),
            clocks: ClockRelation::OneHost,
            ..Deployment::new(bed.clock())
        })
    }

    fn workload(&self, seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        let sort = options::sort(&self.workload, seed).unwrap_or(self.sort);
        Box::new(Transactions::new(sort, self.tables.run_mark, self.content_bytes))
    }

    fn connect(&self, to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let session = PostgresSession::new(self.common());
        Ok(Link::Wire(Endpoint { address: server(to)?, tls: None }, Box::new(session)))
    }

    /// The tables are there: what a line of the single-user mode could not do, it says only to its log.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let address = server(to)?;
        let asked = Control::open(address, &self.login, to.clock).and_then(|mut control| {
            let prepare = self.tables.prepare(&self.sort);
            let mut problem = None;
            for statement in prepare {
                let sql = format!("PREPARE {} AS {}", statement.name, statement.sql);
                match control.ask(&sql) {
                    Ok(_) => {}
                    Err(error @ ControlError::Server { .. }) => {
                        // An error is followed by the server's word that it is ready again.
                        control.next_row()?;
                        problem = Some(format!("`{}`: {error}", statement.name));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(problem)
        });
        let problem = asked.map_err(|error| {
            SutError::Deploy(format!("asking the server at {address}: {error}"))
        })?;
        let detail =
            problem.clone().unwrap_or_else(|| "every statement can be prepared".to_owned());
        let finding = |kind: Kind| PreflightFinding::new(kind.name, problem.is_none(), &detail);
        Ok(self.kinds().into_iter().map(finding).collect())
    }

    /// A server that was started again recovers first; what it cannot be asked it does not hold.
    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let address = server(of)?;
        let deadline = of.clock.now().plus(READY_WITHIN);
        loop {
            let error = match Control::open(address, &self.login, of.clock) {
                Ok(control) => return Ok(Some(Box::new(Entries::new(control, self.tables)?))),
                Err(error) => error,
            };
            let now = of.clock.now();
            if now >= deadline || of.stop.load(Ordering::Relaxed) {
                return Err(SutError::Ledger(format!(
                    "the server at {address} does not serve any more ({error}); a fault that takes it down has to \
                     end before the load does"
                )));
            }
            of.clock.sleep_until(now.plus(LOOK_EVERY));
        }
    }

    /// A server that goes on keeps nothing of the trial.
    fn finished(&self, of: &Deployment) {
        if self.attach.is_some()
            && let Ok(address) = server(of)
            && let Ok(mut control) = Control::open(address, &self.login, of.clock)
        {
            // An error has no taker here: what is left carries the trial's mark in its name.
            let _ = control.ask(&self.tables.drop());
        }
    }
}
