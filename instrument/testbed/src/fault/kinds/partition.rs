//! `partition`: nodes are cut off from all others but each other.

use clock::Instant;
use model::fault::{
    FaultComplaint, FaultDetail, FaultKey, FaultKind, FaultPhase, FaultWritten, KeyForm, Length,
    Need, Subject,
};
use model::plan::{CutWay, FaultPlan};

use super::{Fault, Kind, Underway};
use crate::fault::changes::Pair;
use crate::fault::scene::{Scene, why};

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "partition",
        called: "a partition",
        meaning: "Cut these nodes off from all others",
        on: Subject::Nodes,
        keys: &[
            FaultKey::new(
                "one_way",
                KeyForm::Word(&["in", "out"]),
                "only what comes in, or only what goes out",
            )
            .or("both"),
            FaultKey::new("client", KeyForm::Flag, "the instrument is cut off from them, too"),
        ],
        length: Length::Positive,
        needs: &[Need::Links],
        check,
    },
    begin,
};

/// Links that are cut, since when, and whom the journal names.
struct Cut {
    pairs: Vec<Pair>,
    at: Instant,
    nodes: Vec<String>,
}

fn check(written: &FaultWritten<'_>) -> Vec<FaultComplaint> {
    if written.plan.on.iter().any(|name| name == model::plan::CLIENT) {
        let message = "the instrument is no node that could be cut off from the others";
        let help = "name nodes, and add client = true to cut these off from it, too";
        return vec![FaultComplaint::at("partition", message, help)];
    }
    Vec::new()
}

fn way(plan: &FaultPlan) -> CutWay {
    match plan.word("one_way") {
        Some("in") => CutWay::In,
        Some(_) => CutWay::Out,
        None => CutWay::Both,
    }
}

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let subject = of.plan.subject();
    let Some(links) = &mut scene.links else {
        scene.failed(of, &subject, FaultDetail::NoNetwork);
        return None;
    };
    let (way, client) = (way(&of.plan), of.plan.flag("client"));
    let nodes = links.nodes(&of.plan.on);
    let pairs = links.cut_by(&nodes, way, client);
    let cut = links.cut(&pairs);
    if pairs.is_empty() {
        scene.failed(of, &subject, FaultDetail::NoSuchLink);
        return None;
    }
    if let Err(error) = cut {
        scene.failed(of, &subject, why(&error));
        return None;
    }
    let detail = match (way, client) {
        (CutWay::Both, false) => FaultDetail::Nothing,
        _ => FaultDetail::Cut { way, client },
    };
    for node in &nodes {
        scene.note(FaultPhase::Start, of, node, detail.clone());
    }
    Some(Box::new(Cut { pairs, at: scene.clock.now(), nodes }))
}

impl Underway for Cut {
    fn end(self: Box<Self>, of: &Fault, scene: &mut Scene, cut_short: bool) {
        let joined = scene.links.as_mut().map_or(Ok(()), |links| links.join(&self.pairs));
        for node in &self.nodes {
            scene.over(of, node, self.at, (cut_short, false), &joined);
        }
    }
}
