//! `rot`: bits of what a node has stored turn while it is down. Its process ends at once, and is started again when the time
//! is over.

use model::fault::{
    FaultDetail, FaultKey, FaultKind, FaultWritten, KeyForm, Length, Need, Subject,
};

use super::restart::Down;
use super::{Fault, Kind, Underway};
use crate::fault::scene::{Scene, why};

/// Bits that may turn at once.
const BITS_MAX: u64 = 100_000;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "rot",
        called: "a rot",
        meaning: "Kill this node's process, flip bits of what it has written to its disk in the last seconds, and start it again after `for`",
        on: Subject::Node,
        keys: &[FaultKey::new(
            "bits",
            KeyForm::Count(1, BITS_MAX),
            "how many bits flip, each in a byte that is not zero",
        )
        .or("1")],
        length: Length::Any,
        needs: &[Need::Disks],
        check: FaultWritten::fine,
    },
    begin,
};

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let bits = of.plan.number("bits").unwrap_or(1);
    let mut down = Vec::new();
    for node in scene.nodes(of) {
        let (at, was_up) = (scene.clock.now(), scene.would_end(&node));
        match scene.control.rot(&node, of.index, bits) {
            Ok(rotted) => {
                let detail = FaultDetail::Rotted { bits: rotted.bits, places: rotted.places };
                scene.began_at(at, of, &node, detail);
                down.push((node, at));
            }
            Err(error) => {
                scene.failed(of, &node, why(&error));
                if was_up {
                    down.push((node, at));
                }
            }
        }
    }
    Some(Box::new(Down(down)))
}
