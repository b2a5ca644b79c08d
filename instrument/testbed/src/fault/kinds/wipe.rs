//! `wipe`: a node's process ends at once, what it had stored is removed, and it is started again and waited for.

use std::time::Duration;

use model::fault::{FaultKind, FaultWritten, Length, Need, Subject};

use super::{Fault, Kind, Underway};
use crate::fault::anew::{self, Way};
use crate::fault::scene::Scene;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "wipe",
        called: "a wipe",
        meaning: "Kill this node's process, remove what it had stored and start it again at once; the fault is over when it has caught up",
        on: Subject::Node,
        keys: &[],
        length: Length::None {
            message: "a wiped node is started again at once: `for` has no meaning here",
            help: "remove it, or write replace in place of wipe, which leaves the node away for so long",
        },
        needs: &[Need::Care],
        check: FaultWritten::fine,
    },
    begin,
};

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    anew::begin(of, scene, Way::Once { away: Duration::ZERO });
    None
}
