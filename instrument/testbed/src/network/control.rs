//! Changing links while a trial runs. It decides nothing: what a fault means in links is its caller's.

use std::sync::Arc;

use model::plan::{CLIENT, LinkPlan};

use super::table::Table;
use crate::TestbedError;

/// The links of a trial's own network, to be changed while it runs. Copies act on the same network and do not
/// keep it alive.
///
/// Ends are named exactly, and links are directed: a cut in both directions is two calls. The instrument's own end
/// is `client`. A change holds for packets that are sent after the call returns; those underway keep the time
/// that they were given, and a link's packets do not overtake them.
#[derive(Clone, Debug)]
pub struct LinkControl {
    table: Arc<Table>,
}

impl LinkControl {
    pub(crate) const fn new(table: Arc<Table>) -> Self {
        Self { table }
    }

    /// The names of the nodes that are on the network, in the order added; not the instrument's own end.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        self.table.ends().into_iter().filter(|name| name != CLIENT).collect()
    }

    /// Makes one directed link do this from now on, whatever the plan says.
    ///
    /// # Errors
    /// When one of the ends is not on the network.
    pub fn set(&self, from: &str, to: &str, link: LinkPlan) -> Result<(), TestbedError> {
        self.table.set(from, to, link)
    }

    /// Makes one directed link do what the plan says. A cut stays.
    ///
    /// # Errors
    /// When one of the ends is not on the network.
    pub fn reset(&self, from: &str, to: &str) -> Result<(), TestbedError> {
        self.table.reset(from, to)
    }

    /// Cuts one directed link (nothing passes), or joins it again. Saying the same twice changes nothing.
    ///
    /// # Errors
    /// When one of the ends is not on the network.
    pub fn cut(&self, from: &str, to: &str, is_cut: bool) -> Result<(), TestbedError> {
        self.table.cut(from, to, is_cut)
    }
}
