//! `kill`: a node's process ends at once and stays down.

use model::fault::{FaultDetail, FaultKind, FaultWritten, Length, Subject};

use super::{Fault, Kind, Underway};
use crate::fault::scene::Scene;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "kill",
        called: "a kill",
        meaning: "Kill this node's process; it stays down",
        on: Subject::Node,
        keys: &[],
        length: Length::None {
            message: "a killed node stays down: `for` has no meaning here",
            help: "remove it, or write restart in place of kill",
        },
        needs: &[],
        check: FaultWritten::fine,
    },
    begin,
};

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    scene.each(of, &FaultDetail::Killed, |scene, node| scene.control.kill(node));
    None
}
