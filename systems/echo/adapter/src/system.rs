//! The system: starting the node or attaching to one, its ladder, its connections, its ledger.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use echo_node::events::Stage;
use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, NodeEvents, NodeStage, Role, Session, SutError,
    System, Testbed, Workload,
};

use crate::client::EchoClient;
use crate::control::Control;
use crate::events;
use crate::http_session::HttpSession;
use crate::ledger::{Ledgers, Reader};
use crate::nodes::{EVENTS_FILE, LEDGER_FILE, Place, Places, READY_WITHIN, start_all};
use crate::options::{Echo, Protocol};
use crate::session::{FrameSession, Use};
use crate::workload::Payloads;

/// How long a node may take to be done with what a load left that ended before the last stage, and how often it is asked.
const DONE_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Echo {
    /// The protocol on a connection, without a connection.
    pub(crate) fn session(&self, role: Role, address: SocketAddr) -> Box<dyn Session> {
        let purpose = match role {
            Role::Observe => Use::Observe,
            Role::Submit | Role::Probe if self.polls => Use::SubmitAndAsk,
            Role::Submit | Role::Probe => Use::Submit,
        };
        match self.protocol {
            Protocol::Http => Box::new(HttpSession::new(address, self.in_flight_max)),
            Protocol::Frames => {
                let in_flight_max = self.in_flight_max;
                let session = FrameSession::new(
                    self.run_mark,
                    self.stages,
                    in_flight_max,
                    purpose,
                    self.batches,
                );
                Box::new(session.keeping_order(self.ordered))
            }
        }
    }

    fn attached(&self, address: SocketAddr, bed: &Testbed) -> Result<Deployment, SutError> {
        std::net::TcpStream::connect_timeout(&address, READY_WITHIN).map_err(|error| {
            SutError::Deploy(format!(
                "attaching to {address}: {error}; is `assay serve echo` running there?"
            ))
        })?;
        let endpoints = vec![(self.protocol.endpoint().to_owned(), address)];
        let state = Some(Arc::new(Places::attached()) as _);
        Ok(Deployment { endpoints, state, ..Deployment::new(bed.clock()) })
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let program = self.program.map(|program| ("echo.program".to_owned(), program.to_owned()));
        let arguments = ("echo.arguments".to_owned(), self.arguments.join(" "));
        [arguments].into_iter().chain(program).collect()
    }

    /// A connection for questions to a node, where it speaks frames.
    fn control(place: &Place, of: &Deployment) -> Option<io::Result<Control>> {
        place.address(of, Protocol::Frames).map(|node| Control::open(node, of.clock))
    }
}

impl System for Echo {
    fn stages(&self) -> Vec<String> {
        let names: &[&str] = match self.stages {
            1 => &["committed"],
            2 => &["accepted", "committed"],
            _ => &["accepted", "started", "committed"],
        };
        names.iter().map(ToString::to_string).collect()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.kinds.clone()
    }

    fn node_stages(&self) -> Vec<NodeStage> {
        let stages = if self.stamps { &Stage::ALL[..] } else { &[] };
        stages.iter().map(|stage| NodeStage::new(stage.word(), stage.summary())).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        if let Some(address) = self.attach {
            return self.attached(address, bed);
        }
        let started = start_all(self, bed)?;
        Ok(Deployment { facts: self.facts(), clocks: ClockRelation::OneHost, ..started })
    }

    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        let payloads = Payloads::new(seed, self.payload_bytes, self.kinds.len(), self.keys);
        Box::new(match self.clients {
            Some(count) => payloads.of_clients(count, worker, workers),
            None => payloads,
        })
    }

    fn connect(&self, to: &Deployment, role: Role, _index: u32) -> Result<Link, SutError> {
        let name = self.protocol.endpoint();
        let address = to
            .endpoint(name)
            .ok_or_else(|| SutError::Deploy(format!("the node has no address called {name}")))?;
        if self.called.contains(&role) {
            let client = EchoClient::new(address, self.run_mark, self.stages, Arc::clone(&to.over));
            return Ok(Link::Call(Box::new(client)));
        }
        Ok(Link::Wire(Endpoint { address, tls: None }, self.session(role, address)))
    }

    /// To the nodes in turn: which of them are left is not known here, and one that is gone refuses at once.
    fn route(&self, to: &Deployment, _role: Role, _index: u32, life: u32) -> Option<Endpoint> {
        let places = &to.state::<Places>()?.0;
        let place = &places[life as usize % places.len().max(1)];
        Some(Endpoint { address: place.address(to, self.protocol)?, tls: None })
    }

    fn observers(&self) -> u32 {
        u32::from(self.observes)
    }

    /// Nothing is submitted: a check would stand in the ledger as nobody's.
    fn outlives_trials(&self) -> bool {
        true
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let first = to.state::<Places>().and_then(|places| places.0.first());
        let Some(control) = first.and_then(|first| Self::control(first, to)) else {
            return Ok(Vec::new());
        };
        let failed = |error| SutError::Deploy(format!("asking the node what it takes: {error}"));
        let mut control = control.map_err(failed)?;
        let mut findings = Vec::new();
        for (number, kind) in (0_u16..).zip(&self.kinds) {
            let ok = control.check(number).map_err(failed)?;
            let detail = if ok { "would be taken" } else { "refused as invalid" };
            findings.push(PreflightFinding::new(&kind.name, ok, detail));
        }
        Ok(findings)
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        if self.protocol == Protocol::Http {
            // Requests carry no id, so nothing of them is stored.
            return Ok(None);
        }
        let Some(Places(places)) = of.state::<Places>() else { return Ok(None) };
        let mut readers = Vec::new();
        for place in places {
            let Some(reader) = self.ledger_of(place, of)? else { return Ok(None) };
            readers.push(reader);
        }
        Ok(Some(Box::new(Ledgers::new(readers))))
    }

    fn node_events(&self, of: &Deployment, to: &mut dyn NodeEvents) -> Result<(), SutError> {
        for place in of.state::<Places>().into_iter().flat_map(|places| &places.0) {
            let Some(folder) = &place.folder else { continue };
            let name = &place.name;
            if let Err(error) = Self::settle(place, of) {
                to.problem(format!(
                    "having `{name}` write all its events: {error}; the last are missing"
                ));
            }
            events::read(&folder.join(EVENTS_FILE), name, to);
        }
        Ok(())
    }
}

/// Has a node store everything, what it was still serving included: a load that ends before the last stage leaves some of
/// that. It is done when it holds no more a moment later, or after a second. Gives what [`Control::sync`] does.
fn done(control: &mut Control, of: &Deployment) -> io::Result<Option<u64>> {
    let deadline = of.clock.now().plus(DONE_WITHIN);
    let mut kept = control.sync()?;
    while kept.is_some() && of.clock.now() < deadline && !of.stop.load(Ordering::Relaxed) {
        of.clock.sleep_until(of.clock.now().plus(LOOK_EVERY));
        let before = std::mem::replace(&mut kept, control.sync()?);
        if kept == before {
            break;
        }
    }
    Ok(kept)
}

impl Echo {
    /// Has a node write everything that it holds, if it is still there.
    fn settle(place: &Place, of: &Deployment) -> io::Result<()> {
        match Self::control(place, of) {
            Some(control) => match control.and_then(|mut control| control.sync()) {
                // Nobody is left to write anything: what the file holds is what there is.
                Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// What one node holds, after it has stored everything.
    fn ledger_of(&self, place: &Place, of: &Deployment) -> Result<Option<Reader>, SutError> {
        let Some(control) = Self::control(place, of) else { return Ok(None) };
        let synced = control.and_then(|mut control| {
            let kept = if self.stages == 1 { control.sync() } else { done(&mut control, of) };
            kept.map(|kept| (control, kept))
        });
        let is_dead = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        let state = match (&place.folder, synced) {
            // A server that was started without a ledger keeps none, and has lost nothing.
            (None, Ok((_, None))) => return Ok(None),
            (None, Ok((control, Some(_)))) => {
                return Ok(Some(Reader::of_node(control, self.run_mark)));
            }
            (Some(_), Ok(_)) => "read after it had stored everything",
            // Nobody is left to store anything: what its file holds is what there is.
            (Some(_), Err(error)) if is_dead(&error) => "as it was left when the node ended",
            (_, Err(error)) => {
                return Err(SutError::Ledger(format!(
                    "having `{}` store everything: {error}; what it holds back would look lost",
                    place.name
                )));
            }
        };
        let folder = place.folder.as_deref().expect("attached ones were given back above");
        Reader::of_file(&folder.join(LEDGER_FILE), state, self.run_mark).map(Some)
    }
}
