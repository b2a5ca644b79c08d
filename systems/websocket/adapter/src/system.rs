//! The system: a WebSocket server that is already there. Attaching tries each address once.

use std::sync::Arc;
use std::time::Duration;

use http_adapter::borrowed::{Filler, Line, Server, try_one};
use model::facts::PreflightFinding;
use model::{Outcome, Seed};
use sut::{
    Deployment, Endpoint, Kind, Link, Role, SutError, System, Testbed, Transaction, Workload,
};

use crate::messages::Messages;
use crate::session::{COMMITTED, Greeting, WebSocketSession};
use crate::workload::Source;

/// The name of the endpoints in a deployment.
const ENDPOINT: &str = "websocket";
/// The longest wait for the answer to one message before the load.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Messages that are tried before the load.
const TRIED_MAX: usize = 100;

/// A WebSocket server and what is said to it.
pub(crate) struct WebSocketSystem {
    pub(crate) server: Server,
    pub(crate) messages: Arc<Messages>,
    pub(crate) greeting: Arc<Greeting>,
    pub(crate) has_preflight: bool,
    /// How long the load waits for an answer: the longest wait of what comes before it, too.
    pub(crate) patience: Duration,
}

impl WebSocketSystem {
    pub(crate) fn session(&self, index: u32) -> WebSocketSession {
        WebSocketSession::new(self.messages.clone(), self.greeting.clone(), index)
    }
}

impl System for WebSocketSystem {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    /// Nothing is read back, so what a ledger would record is not asked.
    fn kinds(&self) -> Vec<Kind> {
        self.messages.list.iter().map(|message| Kind::recorded(&message.name)).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        let told = "insecure: the server's certificate was not verified, so this may have been another server";
        if self.server.is_insecure { vec![told.to_owned()] } else { Vec::new() }
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        self.server.attach(bed.clock(), ENDPOINT)
    }

    fn workload(&self, seed: Seed, worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Source::new(self.messages.clone(), seed, worker))
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        if role == Role::Observe || to.endpoints.is_empty() {
            return Err(SutError::Deploy("a WebSocket server has no such connection".to_owned()));
        }
        let (_, address) = to.endpoints[index as usize % to.endpoints.len()];
        let endpoint = Endpoint { address, tls: self.server.tls.clone() };
        Ok(Link::Wire(endpoint, Box::new(self.session(index))))
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let Some((_, address)) = to.endpoints.first().filter(|_| self.has_preflight) else {
            return Ok(Vec::new());
        };
        let wait = ANSWER_TIME_MAX.min(self.patience);
        let tried = self.messages.list.iter().enumerate().take(TRIED_MAX).map(|(at, message)| {
            let kind = u32::try_from(at).expect("bounded by TRIED_MAX");
            let mut payload = Vec::new();
            let made = self.messages.write(message, &mut Filler::new(0), (0, 0), &mut payload);
            let tried = made.and_then(|()| {
                let tls = self.server.tls.as_ref();
                let mut line = Line::connect(*address, tls, to.clock, wait, &to.stop)?;
                let tx = Transaction::new(u64::MAX, kind, &payload);
                try_one(&mut self.session(u32::MAX), &tx, COMMITTED, &mut line)
            });
            match tried {
                Ok(tried) if tried.outcome == Outcome::Committed => {
                    PreflightFinding::new(&message.name, true, "answered")
                }
                Ok(tried) => PreflightFinding::new(&message.name, false, tried.text),
                Err(why) => PreflightFinding::new(&message.name, false, why),
            }
        });
        Ok(tried.collect())
    }
}
