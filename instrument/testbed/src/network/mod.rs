//! The testbed's own network: what packets between nodes meet on their way.

mod control;
mod kernel;
mod namespace;
mod table;

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::facts::NetworkFacts;
use model::plan::LinksPlan;

use crate::TestbedError;
use namespace::Namespace;
use table::Table;

pub use control::LinkControl;
pub use namespace::Entered;

/// The network of one trial.
#[derive(Debug)]
pub(crate) struct Network {
    table: Arc<Table>,
    ends: Mutex<Vec<End>>,
}

/// One node's place on the network, or the instrument's own.
#[derive(Debug)]
struct End {
    name: String,
    address: Ipv4Addr,
    namespace: Arc<Namespace>,
}

impl Network {
    pub(crate) fn start(plan: &LinksPlan) -> Result<Self, TestbedError> {
        let table = Arc::new(Table::new(plan.clone()));
        Ok(Self { table, ends: Mutex::default() })
    }

    pub(crate) fn control(&self) -> LinkControl {
        LinkControl::new(Arc::clone(&self.table))
    }

    pub(crate) fn address(&self, name: &str) -> Result<Option<Ipv4Addr>, TestbedError> {
        let known = self.ends().iter().find(|end| end.name == name).map(|end| end.address);
        if known.is_none() {
            self.table.add(name);
        }
        Ok(known)
    }

    pub(crate) fn enter(&self) -> Result<Entered, TestbedError> {
        Ok(Entered::nothing())
    }

    /// Makes the node that `command` starts be where its name has been given an address.
    pub(crate) fn place(&self, name: &str, command: &mut Command) {
        if let Some(end) = self.ends().iter().find(|end| end.name == name) {
            kernel::start_inside(command, Arc::clone(&end.namespace));
        }
    }

    pub(crate) fn report(&self) -> NetworkFacts {
        NetworkFacts::default()
    }

    fn ends(&self) -> MutexGuard<'_, Vec<End>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
