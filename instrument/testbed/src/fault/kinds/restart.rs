//! `restart`: a node's process ends at once, and is started again when the time is over.

use clock::Instant;
use model::fault::{FaultDetail, FaultKind, FaultPhase, FaultWritten, Length, Subject};

use super::{Fault, Kind, Underway};
use crate::fault::scene::Scene;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "restart",
        called: "a restart",
        meaning: "Kill this node's process and start it again after `for`",
        on: Subject::Node,
        keys: &[],
        length: Length::Any,
        needs: &[],
        check: FaultWritten::fine,
    },
    begin,
};

/// Nodes that are down, and since when.
pub(super) struct Down(pub(super) Vec<(String, Instant)>);

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let down = scene.each(of, &FaultDetail::Killed, |scene, node| scene.control.kill(node));
    Some(Box::new(Down(down)))
}

impl Underway for Down {
    fn end(self: Box<Self>, of: &Fault, scene: &mut Scene, cut_short: bool) {
        for (node, since) in self.0 {
            let detail = match scene.start_again(&node) {
                Ok(()) => FaultDetail::StartedAgain { ns: scene.since(since), cut_short },
                Err(error) => FaultDetail::Down { why: error.to_string() },
            };
            scene.note(FaultPhase::End, of, &node, detail);
        }
    }
}
