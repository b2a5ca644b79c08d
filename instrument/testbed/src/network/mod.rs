//! The testbed's own network: delay, jitter, loss, bandwidth, reordering and cuts for every directed pair of nodes,
//! without the kernel's netem, which many kernels lack.
//!
//! Each node is in a network namespace of its own (`namespace.rs`) with a TUN device (`device.rs`) whose other side
//! one thread of ours holds (`switch.rs`). That thread reads a packet, looks up its target, asks the link when it is
//! to be handed over (`link.rs`), holds it until then (`fabric.rs`) and writes it to the target's device. So no node
//! needs a change, and every protocol over IPv4 passes. The instrument has a namespace of its own like a node.
//!
//! Without root there are forwarders for TCP streams instead (`forwarders.rs`, `pump.rs`): nodes stay on the host's
//! loopback and dial them instead of their peers.
//!
//! It measures its own error: how late each packet was, and what it dropped that it was not asked to
//! (`report.rs`). Nothing of it outlives the process: namespaces have no name and devices are descriptors.
//!
//! It must never touch the host's own network, and never take more of the processors than its packets do: it runs before the nodes, and it never spins.

mod control;
mod device;
mod fabric;
mod forwarders;
mod kernel;
mod link;
mod namespace;
mod netlink;
mod pump;
mod report;
mod switch;
mod table;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::facts::NetworkFacts;
use model::plan::{CLIENT, LinksPlan, Through};

use crate::TestbedError;
use forwarders::Forwarders;
use namespace::Namespace;
use switch::Switch;
use table::Table;

pub use control::LinkControl;
pub(crate) use device::leave_for_loopback;
pub use namespace::Entered;
pub(crate) use switch::take_precedence;

/// The most nodes: each costs two descriptors, and one thread carries for all.
const NODES_MAX: usize = 1_000;

/// The network of one trial.
#[derive(Debug)]
pub(crate) struct Network {
    table: Arc<Table>,
    carrier: Carrier,
    /// Those on the switch, by place.
    ends: Mutex<Vec<End>>,
}

/// What carries from one end to another.
#[derive(Debug)]
enum Carrier {
    Switch(Switch),
    /// The nodes use the host's network.
    Forwarders(Forwarders),
}

/// One node's place on the switch, or the instrument's own.
#[derive(Debug)]
struct End {
    name: String,
    address: Ipv4Addr,
    namespace: Namespace,
}

impl Network {
    /// The instrument's end and no node.
    pub(crate) fn start(plan: &LinksPlan, clock: Clock, seed: Seed) -> Result<Self, TestbedError> {
        let table = Arc::new(Table::new(plan.clone()));
        let rules = Arc::clone(&table);
        let refused = |error| host(&error);
        let carrier = match plan.through {
            Through::Switch => Carrier::Switch(Switch::start(clock, rules, seed).map_err(refused)?),
            Through::Forwarders => {
                Carrier::Forwarders(Forwarders::start(clock, rules, seed).map_err(refused)?)
            }
        };
        let network = Self { table, carrier, ends: Mutex::default() };
        if let Carrier::Switch(switch) = &network.carrier {
            add(switch, &mut network.ends(), CLIENT)?;
        }
        Ok(network)
    }

    pub(crate) fn control(&self) -> LinkControl {
        LinkControl::new(Arc::clone(&self.table))
    }

    /// The address of the node `name`, which is made when it is asked for the first time.
    pub(crate) fn address(&self, name: &str) -> Result<Option<Ipv4Addr>, TestbedError> {
        let Carrier::Switch(switch) = &self.carrier else { return Ok(None) };
        if name == CLIENT {
            let what = format!("`{CLIENT}` is the instrument's own end; call the node otherwise");
            return Err(TestbedError::Network { what });
        }
        let mut ends = self.ends();
        if let Some(end) = ends.iter().find(|end| end.name == name) {
            return Ok(Some(end.address));
        }
        if ends.len() > NODES_MAX {
            let what = format!("it takes at most {NODES_MAX} nodes");
            return Err(TestbedError::Network { what });
        }
        let address = add(switch, &mut ends, name)?;
        self.table.add(name);
        Ok(Some(address))
    }

    /// What the end `from` is to dial instead of `target`, on which the end `to` listens.
    pub(crate) fn forward(
        &self,
        from: &str,
        to: &str,
        target: SocketAddr,
    ) -> Result<Option<SocketAddr>, TestbedError> {
        let Carrier::Forwarders(forwarders) = &self.carrier else { return Ok(None) };
        let address = forwarders.forward(self.table.place(from), self.table.place(to), target);
        address.map(Some).map_err(|error| host(&error))
    }

    /// Takes the calling thread to the instrument's end.
    pub(crate) fn enter(&self) -> Result<Entered, TestbedError> {
        let own = self.ends().first().map(|end| end.namespace.clone());
        match own {
            None => Ok(Entered::nothing()),
            Some(namespace) => Entered::enter(&namespace).map_err(|error| host(&error)),
        }
    }

    /// Makes the node that `command` starts be where its name has been given an address.
    pub(crate) fn place(&self, name: &str, command: &mut Command) {
        if let Some(end) = self.ends().iter().find(|end| end.name == name) {
            kernel::start_inside(command, end.namespace.held());
        }
    }

    /// Processor time of the network's threads so far.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(match &self.carrier {
            Carrier::Switch(switch) => report::cpu_ns(&switch.fabric()),
            Carrier::Forwarders(forwarders) => forwarders.cpu_ns(),
        })
    }

    pub(crate) fn report(&self) -> NetworkFacts {
        let names = self.table.ends();
        let (mut facts, has_ended) = match &self.carrier {
            Carrier::Switch(switch) => {
                (report::of_switch(&switch.fabric(), &names), switch.has_ended())
            }
            Carrier::Forwarders(forwarders) => {
                (report::of_forwarders(forwarders, &names), forwarders.has_ended())
            }
        };
        if has_ended {
            facts.failed = "its thread ended before the trial did".to_owned();
        }
        for end in self.ends().iter() {
            match device::dropped(&end.namespace) {
                Ok(packets) => facts.device_dropped += packets,
                Err(error) => {
                    facts.failed = format!("what the device of `{}` dropped: {error}", end.name);
                }
            }
        }
        facts
    }

    /// Ends the network's threads and lets go of the namespaces. Nodes must have ended; nothing passes any more.
    pub(crate) fn close(&self) {
        match &self.carrier {
            Carrier::Switch(switch) => switch.stop(),
            Carrier::Forwarders(forwarders) => forwarders.stop(),
        }
        self.ends().clear();
    }

    fn ends(&self) -> MutexGuard<'_, Vec<End>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One more end on the switch. Gives its address.
fn add(switch: &Switch, ends: &mut Vec<End>, name: &str) -> Result<Ipv4Addr, TestbedError> {
    let address = fabric::address(ends.len());
    let (namespace, tun) = device::make(address)?;
    let place = switch.add(tun).map_err(|error| host(&error))?;
    assert_eq!(place, ends.len(), "the switch counts as its network does");
    ends.push(End { name: name.to_owned(), address, namespace });
    Ok(address)
}

fn host(error: &io::Error) -> TestbedError {
    TestbedError::Network { what: format!("the host refused it: {error}") }
}
