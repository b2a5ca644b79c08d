//! The system: a gRPC server that is already there. Attaching tries each address once, and asks the server for its descriptions
//! where no file gives them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_adapter::borrowed::{Line, Server, try_one};
use model::Seed;
use model::facts::PreflightFinding;
use prost_reflect::DescriptorPool;
use sut::{
    Deployment, Endpoint, Kind, Link, Role, SutError, System, Testbed, Transaction, Workload,
};

use crate::calls::{COMMITTED, Call, Calls, Wish};
use crate::reflection::Reflection;
use crate::session::GrpcSession;
use crate::status::Outcomes;
use crate::workload::Source;

/// The name of the endpoints in a deployment.
const ENDPOINT: &str = "grpc";
/// The longest wait for the server's descriptions.
const REFLECTION_TIME_MAX: Duration = Duration::from_secs(20);
/// The longest wait for the answer to one call before the load.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Calls that are tried before the load.
const TRIED_MAX: usize = 100;

/// The source of descriptions.
#[derive(Debug)]
pub(crate) enum Description {
    /// Files, read.
    Read(DescriptorPool),
    /// The server's reflection.
    Asked,
}

/// A gRPC server and what is asked of it.
pub(crate) struct GrpcSystem {
    pub(crate) server: Server,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) outcomes: Outcomes,
    pub(crate) message_bytes_max: usize,
    pub(crate) streams: u32,
    pub(crate) has_preflight: bool,
    /// How long the load waits for an answer: the longest wait of what comes before it, too.
    pub(crate) patience: Duration,
    pub(crate) description: Description,
    /// Known from the options where files describe them, else once the server was asked.
    pub(crate) calls: OnceLock<Arc<Calls>>,
}

impl GrpcSystem {
    /// The scheme of HTTP, and the authority.
    pub(crate) fn place(&self) -> (&'static str, &str) {
        let scheme = if self.server.tls.is_some() { "https" } else { "http" };
        (scheme, self.server.authority())
    }

    /// Sets what is ready to send, once.
    pub(crate) fn set_calls(&self, list: Vec<Call>) {
        let outcomes = self.outcomes.clone();
        let calls = Calls { list, outcomes, message_bytes_max: self.message_bytes_max };
        let _ = self.calls.set(Arc::new(calls));
    }

    fn calls(&self) -> Arc<Calls> {
        self.calls.get().expect("a system is deployed before it is loaded").clone()
    }

    fn line(&self, to: &Deployment, wait: Duration) -> Result<Line, String> {
        let (_, address) = to.endpoints.first().ok_or("no address")?;
        Line::connect(*address, self.server.tls.as_ref(), to.clock, wait, &to.stop)
    }

    fn ask(&self, to: &Deployment) -> Result<Vec<Call>, String> {
        let mut line = self.line(to, REFLECTION_TIME_MAX)?;
        let none = Vec::new();
        let metadata = self.wishes.first().map_or(&none, |wish| &wish.metadata);
        let mut reflection = Reflection::new(&mut line, self.place(), metadata);
        let pool = reflection.pool(self.wishes.iter().map(|wish| wish.service.as_str()))?;
        self.wishes.iter().map(|wish| Call::new(wish, &pool, self.place())).collect()
    }
}

impl System for GrpcSystem {
    fn stages(&self) -> Vec<String> {
        vec!["first_message".to_owned(), "committed".to_owned()]
    }

    /// Nothing is read back, so what a ledger would record is not asked.
    fn kinds(&self) -> Vec<Kind> {
        self.wishes.iter().map(|wish| Kind::recorded(&wish.name)).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        let told = "insecure: the server's certificate was not verified, so this may have been another server";
        if self.server.is_insecure { vec![told.to_owned()] } else { Vec::new() }
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let mut deployment = self.server.attach(bed.clock(), ENDPOINT)?;
        let described = match &self.description {
            Description::Read(_) => "files",
            Description::Asked if self.calls.get().is_some() => "reflection",
            Description::Asked => {
                let calls = self
                    .ask(&deployment)
                    .map_err(|why| SutError::Deploy(format!("{}: {why}", self.server.url())))?;
                self.set_calls(calls);
                "reflection"
            }
        };
        deployment.facts.insert("grpc.described_by".to_owned(), described.to_owned());
        Ok(deployment)
    }

    fn workload(&self, seed: Seed, worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Source::new(self.calls(), seed, worker))
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        if role == Role::Observe || to.endpoints.is_empty() {
            return Err(SutError::Deploy("a gRPC server has no such connection".to_owned()));
        }
        let (_, address) = to.endpoints[index as usize % to.endpoints.len()];
        let session = Box::new(GrpcSession::new(self.calls(), self.streams));
        Ok(Link::Wire(Endpoint { address, tls: self.server.tls.clone() }, session))
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        if !self.has_preflight {
            return Ok(Vec::new());
        }
        let calls = self.calls();
        let wait = ANSWER_TIME_MAX.min(self.patience);
        let mut findings = Vec::new();
        for (at, call) in calls.list.iter().enumerate().take(TRIED_MAX) {
            let kind = u32::try_from(at).expect("bounded by TRIED_MAX");
            let mut payload = Vec::new();
            let made = call.write(&mut http_adapter::borrowed::Filler::new(0), 0, 0, &mut payload);
            let mut session = GrpcSession::new(calls.clone(), self.streams);
            let tx = Transaction::new(u64::MAX, kind, &payload);
            let tried = made.and_then(|()| {
                let mut line = self.line(to, wait)?;
                try_one(&mut session, &tx, COMMITTED, &mut line)
            });
            findings.push(match tried {
                Ok(tried) if tried.outcome == model::Outcome::Committed => {
                    PreflightFinding::new(&call.name, true, crate::status::name(tried.code))
                }
                Ok(tried) => PreflightFinding::new(&call.name, false, tried.text),
                Err(why) => PreflightFinding::new(&call.name, false, why),
            });
        }
        Ok(findings)
    }
}
