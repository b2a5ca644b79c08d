//! `replace`: a node is lost with all that it had stored, and when the time is over an empty one takes its place.

use model::fault::{FaultKind, FaultWritten, Length, Need, Subject};

use super::{Fault, Kind, Underway};
use crate::fault::anew::{self, Way};
use crate::fault::scene::Scene;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "replace",
        called: "a replacement",
        meaning: "Kill this node's process and, after `for`, start an empty one in its place; the fault is over when that has caught up",
        on: Subject::Node,
        keys: &[],
        length: Length::Positive,
        needs: &[Need::Care],
        check: FaultWritten::fine,
    },
    begin,
};

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    anew::begin(of, scene, Way::Once { away: of.plan.length });
    None
}
