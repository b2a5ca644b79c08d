//! Stamps that nodes wrote to files of their own, from the adapter that reads them to the record, after the drain.

use model::WallTime;
use model::facts::DeclaredFacts;
use model::node_events::NodeEventsFacts;
use record::{NodeEventsWriter, TrialFolder};
use sut::{Deployment, NodeEvent, NodeEvents, NodeSpan, System};

/// Reads and keeps them; `None` where the system declares no node stages. What goes wrong is said in the facts: nothing
/// else of the trial is worth losing for it.
pub(super) fn read(
    system: &dyn System,
    deployment: &Deployment,
    folder: &TrialFolder,
    declared: &DeclaredFacts,
    started: WallTime,
) -> Option<NodeEventsFacts> {
    if declared.node_stages.is_empty() {
        return None;
    }
    let writer = match folder.node_events_writer(started, &declared.node_stages) {
        Ok(writer) => writer,
        Err(error) => {
            let problems = vec![error.to_string()];
            return Some(NodeEventsFacts { problems, ..Default::default() });
        }
    };
    let mut keeper = Keeper(writer);
    if let Err(error) = system.node_events(deployment, &mut keeper) {
        keeper.problem(error.to_string());
    }
    Some(keeper.0.close())
}

/// The record, as the contract sees it.
struct Keeper(NodeEventsWriter);

impl NodeEvents for Keeper {
    fn event(&mut self, event: NodeEvent<'_>) {
        self.0.event(&event);
    }

    fn span(&mut self, span: NodeSpan<'_>) {
        self.0.span(&span);
    }

    fn problem(&mut self, words: String) {
        self.0.problem(words);
    }
}
