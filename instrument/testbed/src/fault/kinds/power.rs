//! `power`: a node's power is cut. Its process ends at once, its disk loses what was not synced, and it is started
//! again when the time is over.

use model::fault::{
    FaultDetail, FaultKey, FaultKind, FaultWritten, KeyForm, Length, Need, Subject,
};
use model::plan::{FaultPlan, PowerLoss};

use super::restart::Down;
use super::{Fault, Kind, Underway};
use crate::fault::scene::{Scene, why};

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "power",
        called: "a cut of the power",
        meaning: "Cut this node's power: it ends, its disk loses what was not synced, and it is started again after `for`",
        on: Subject::Node,
        keys: &[FaultKey::new(
            "loss",
            KeyForm::Word(&["drop", "tear"]),
            "what the disk loses: all that was not synced, or some of it sector by sector",
        )
        .or("drop")],
        length: Length::Any,
        needs: &[Need::Disks],
        check: FaultWritten::fine,
    },
    begin,
};

fn loss(plan: &FaultPlan) -> PowerLoss {
    match plan.word("loss") {
        Some("tear") => PowerLoss::Tear,
        _ => PowerLoss::Drop,
    }
}

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let mut dark = Vec::new();
    for node in scene.nodes(of) {
        let (at, was_up) = (scene.clock.now(), scene.would_end(&node));
        match scene.control.cut_power(&node, loss(&of.plan)) {
            Ok(cut) => {
                let detail = FaultDetail::PowerCut {
                    lost_bytes: cut.lost_bytes,
                    kept_bytes: cut.kept_bytes,
                    lost_names: cut.lost_names,
                };
                scene.began_at(at, of, &node, detail);
                dark.push((node, at));
            }
            Err(error) => {
                scene.failed(of, &node, why(&error));
                if was_up {
                    dark.push((node, at));
                }
            }
        }
    }
    Some(Box::new(Down(dark)))
}
