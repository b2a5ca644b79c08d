//! `pause`: a node stands still. Pauses of one node may overlap; it goes on when the last of them ends.

use clock::Instant;
use model::fault::{FaultDetail, FaultKind, FaultWritten, Length, Subject};

use super::{Fault, Kind, Underway};
use crate::fault::scene::Scene;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "pause",
        called: "a pause",
        meaning: "Stop this node's process and let it go on (a name, or a name's beginning and *)",
        on: Subject::Node,
        keys: &[],
        length: Length::Positive,
        needs: &[],
        check: FaultWritten::fine,
    },
    begin,
};

/// Nodes that this pause holds, and since when.
struct Paused(Vec<(String, Instant)>);

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let held = scene.each(of, &FaultDetail::Nothing, Scene::hold);
    Some(Box::new(Paused(held)))
}

impl Underway for Paused {
    fn end(self: Box<Self>, of: &Fault, scene: &mut Scene, cut_short: bool) {
        for (node, since) in self.0 {
            let (goes_on, resumed) = scene.let_go(&node);
            scene.over(of, &node, since, (cut_short, goes_on), &resumed);
        }
    }
}
