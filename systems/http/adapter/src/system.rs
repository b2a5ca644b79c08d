//! The server as the instrument's contract has it: its workloads, its sessions and the pass before the load.

use std::cell::OnceCell;

use model::Seed;
use model::facts::{CodeRemark, PreflightFinding};
use sut::{Deployment, Endpoint, Kind, Link, Role, Session, SutError, System, Testbed, Workload};

use crate::flow;
use crate::http2_session::Http2Session;
use crate::preflight::{NOT_FOLLOWED, Pass, REDIRECTS};
use crate::server::HttpSystem;
use crate::session::HttpSession;
use crate::workload::Source;

impl System for HttpSystem {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    /// Nothing is read back, so what a ledger would record is not asked.
    fn kinds(&self) -> Vec<Kind> {
        let steps = self.flows.iter().flat_map(|flows| flows.kinds());
        self.requests.kinds.iter().map(Kind::recorded).chain(steps).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        let told = "insecure: the server's certificate was not verified, so this may have been another server";
        if self.is_insecure { vec![told.to_owned()] } else { Vec::new() }
    }

    fn code_remarks(&self) -> Vec<CodeRemark> {
        let counts = |status: &u16| self.rules.counts_as_committed_unasked(*status);
        let remark = |code| CodeRemark { code, remark: NOT_FOLLOWED.to_owned() };
        REDIRECTS.into_iter().filter(counts).map(remark).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        self.attach(bed.clock())
    }

    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        let targets = Source::new(self.requests.clone(), self.order, seed, worker);
        match &self.flows {
            None => Box::new(targets),
            Some(flows) => {
                let users =
                    flow::source::Source::new(flows.clone(), Some(targets), seed, worker, workers);
                Box::new(users)
            }
        }
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        if role == Role::Observe || to.endpoints.is_empty() {
            return Err(SutError::Deploy("an HTTP server has no such connection".to_owned()));
        }
        let (_, address) = to.endpoints[index as usize % to.endpoints.len()];
        let (requests, rules) = (self.requests.clone(), self.rules.clone());
        let session: Box<dyn Session> = match self.streams {
            Some(streams) => {
                let session = Http2Session::new(requests, rules, streams);
                Box::new(session.walking(self.flows.clone()))
            }
            None => {
                let session = HttpSession::new(requests, rules, self.pipeline);
                Box::new(session.walking(self.flows.clone()))
            }
        };
        Ok(Link::Wire(Endpoint { address, tls: self.tls.clone() }, session))
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let Some((_, address)) = to.endpoints.first().filter(|_| self.has_preflight) else {
            return Ok(Vec::new());
        };
        let speaks_tls = OnceCell::new();
        Pass { system: self, address: *address, clock: to.clock, stop: &to.stop, speaks_tls }.run()
    }
}
