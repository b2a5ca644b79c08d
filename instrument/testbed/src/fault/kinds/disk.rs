//! `disk`: a node's disk is slow, full or faulty for a while. Several at once: of what two say the later one holds.

use clock::Instant;
use model::fault::{
    FaultComplaint, FaultDetail, FaultKey, FaultKind, FaultWritten, KeyForm, Length, Need, Subject,
};
use model::plan::{DiskChange, FaultPlan};

use super::{Fault, Kind, Underway};
use crate::TestbedError;
use crate::fault::scene::Scene;

/// One in more than this is never.
const ONE_IN_MAX: u64 = 1_000_000_000;

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "disk",
        called: "a bad disk",
        meaning: "Make this node's disk slow, full or faulty for `for`; omitted keys keep their value",
        on: Subject::Node,
        keys: &[
            FaultKey::new("sync_delay", KeyForm::Duration, "as disk.sync_delay"),
            FaultKey::new("read_delay", KeyForm::Duration, "as disk.read_delay"),
            FaultKey::new("write_delay", KeyForm::Duration, "as disk.write_delay"),
            FaultKey::new(
                "full_at",
                KeyForm::Size,
                "full at this size: what takes more is refused",
            ),
            FaultKey::new(
                "sync_errors",
                KeyForm::Count(1, ONE_IN_MAX),
                "one in so many syncs fails",
            ),
            FaultKey::new(
                "read_errors",
                KeyForm::Count(1, ONE_IN_MAX),
                "one in so many reads fails",
            ),
            FaultKey::new(
                "write_errors",
                KeyForm::Count(1, ONE_IN_MAX),
                "one in so many writes fails",
            ),
        ],
        length: Length::Positive,
        needs: &[Need::Disks],
        check,
    },
    begin,
};

/// Nodes whose disk is bad, and since when.
struct Bad(Vec<(String, Instant)>);

fn change(plan: &FaultPlan) -> DiskChange {
    DiskChange {
        sync_delay: plan.duration("sync_delay"),
        read_delay: plan.duration("read_delay"),
        write_delay: plan.duration("write_delay"),
        full_at: plan.number("full_at"),
        sync_errors: plan.number("sync_errors"),
        read_errors: plan.number("read_errors"),
        write_errors: plan.number("write_errors"),
    }
}

fn check(written: &FaultWritten<'_>) -> Vec<FaultComplaint> {
    if !written.given.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = KIND.declared.keys.iter().map(|key| key.name).collect();
    let help = format!("add one of {}, such as sync_delay = \"50ms\"", names.join(", "));
    vec![FaultComplaint::at("", "this fault changes nothing on its disk", &help)]
}

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let detail = FaultDetail::Keys { keys: of.plan.keys.clone() };
    let change = change(&of.plan);
    let index = of.index;
    let bad = scene.each(of, &detail, |scene, node| scene.control.change_disk(node, index, change));
    Some(Box::new(Bad(bad)))
}

impl Underway for Bad {
    fn end(self: Box<Self>, of: &Fault, scene: &mut Scene, cut_short: bool) {
        for (node, since) in self.0 {
            let mended: Result<(), TestbedError> = scene.control.mend_disk(&node, of.index);
            scene.over(of, &node, since, (cut_short, false), &mended);
        }
    }
}
