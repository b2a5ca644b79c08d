//! Which of a trial's streams goes over wires and which through a client library. Asked of the system once, before
//! any thread is started; each thread checks its own connections against it.

use std::net::SocketAddr;

use model::plan::LoadPlan;
use sut::{Link, Role};

use crate::{LoadError, Setup};

/// The kinds of link of one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// The main load is calls.
    pub is_main_called: bool,
    /// There is a probe, and it is calls.
    pub is_probe_called: bool,
    /// There is a probe, and it has wires.
    pub is_probe_wired: bool,
    /// Where the first wire goes, if there is any that goes to an address.
    pub wire: Option<SocketAddr>,
}

impl Links {
    pub(crate) fn of(setup: &Setup<'_>) -> Result<Self, LoadError> {
        let ask = |role, index| match setup.system.connect(setup.deployment, role, index) {
            Ok(Link::Wire(endpoint, _)) => Ok(Way::Wire(Some(endpoint.address))),
            Ok(Link::Channel(..)) => Ok(Way::Wire(None)),
            Ok(Link::Call(_)) => Ok(Way::Call),
            Err(source) => Err(LoadError::System { index, source }),
        };
        let main = ask(Role::Submit, 0)?;
        let mut links =
            Self { is_main_called: main == Way::Call, wire: main.address(), ..Self::default() };
        if setup.plan.probe.is_some() {
            let index = probe_index(&setup.plan.load, setup.system.observers(), 0);
            let probe = ask(Role::Probe, index)?;
            links.is_probe_called = probe == Way::Call;
            links.is_probe_wired = probe != Way::Call;
            links.wire = links.wire.or(probe.address());
        }
        Ok(links)
    }

    /// Whether anything is called.
    pub(crate) fn has_calls(&self) -> bool {
        self.is_main_called || self.is_probe_called
    }

    /// Whether anything goes over a wire.
    pub(crate) fn has_wires(&self) -> bool {
        !self.is_main_called || self.is_probe_wired
    }

    /// Whether both do.
    pub(crate) fn is_mixed(&self) -> bool {
        self.has_calls() && self.has_wires()
    }
}

/// How one stream goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Call,
    /// By the event loops; to this address, or to a program.
    Wire(Option<SocketAddr>),
}

impl Way {
    const fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Call => None,
            Self::Wire(address) => address,
        }
    }
}

/// The index of an observer's connection: the main load's come first, then the observers', then the probe's.
pub(crate) fn observer_index(load: &LoadPlan, n: u32) -> u32 {
    load.connections.max(load.connections_max) + n
}

/// The index of a probe's connection.
pub(crate) fn probe_index(load: &LoadPlan, observers: u32, n: u32) -> u32 {
    observer_index(load, observers) + n
}

/// A connection that is of another kind than the first of its role.
pub(crate) fn odd_one(index: u32, is: &str, first: &str) -> LoadError {
    LoadError::Plan(format!(
        "connection {index} is {is} and the first one of its role is {first}; connections of one role are of one kind"
    ))
}
