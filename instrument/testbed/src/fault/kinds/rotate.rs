//! `rotate`: nodes are asked to end, wiped, started and waited for until they have what the others have, over and over.

use model::fault::{FaultKey, FaultKind, FaultWritten, KeyForm, Length, Need, Subject};

use super::{Fault, Kind, Underway};
use crate::fault::anew::{self, Way};
use crate::fault::scene::Scene;

/// The most cycles of a rotation.
const CYCLES_MAX: u64 = 1_000_000;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "rotate",
        called: "a rotation",
        meaning: "Stop, wipe and start these nodes and wait until they have caught up, over and over for `for`",
        on: Subject::Node,
        keys: &[FaultKey::new("cycles", KeyForm::Count(1, CYCLES_MAX), "at most this many times")],
        length: Length::Positive,
        needs: &[Need::Care],
        check: FaultWritten::fine,
    },
    begin,
};

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    anew::begin(of, scene, Way::Rounds { max: of.plan.number("cycles") });
    None
}
