//! `link`: links that are different for a while. What is not said of them stays as it is.

use clock::Instant;
use model::fault::{
    FaultComplaint, FaultDetail, FaultKey, FaultKind, FaultPhase, FaultWritten, KeyForm, Length,
    Need, Subject,
};
use model::plan::{FaultPlan, LinkChange, Through};
use model::quantity::show_duration;

use super::{Fault, Kind, Underway};
use crate::fault::changes::Pair;
use crate::fault::scene::{Scene, why};

pub(super) const KIND: Kind = Kind {
    declared: FaultKind {
        word: "link",
        called: "a change of links",
        meaning: "Change these links for `for`; omitted keys keep their value",
        on: Subject::Link(&[
            FaultKey::new("delay", KeyForm::Duration, "As links.delay"),
            FaultKey::new("jitter", KeyForm::Duration, "As links.jitter"),
            FaultKey::new("loss", KeyForm::Share, "As links.loss"),
            FaultKey::new("bandwidth", KeyForm::Bandwidth, "As links.bandwidth"),
            FaultKey::new("reorder", KeyForm::Share, "As links.reorder"),
        ]),
        keys: &[],
        length: Length::Positive,
        needs: &[Need::Links],
        check,
    },
    begin,
};

/// Links that are different, since when, and how the journal calls them.
struct Different {
    pairs: Vec<Pair>,
    at: Instant,
    called: String,
}

fn change(plan: &FaultPlan) -> LinkChange {
    LinkChange {
        delay: plan.duration("delay"),
        jitter: plan.duration("jitter"),
        loss: plan.share("loss"),
        bandwidth: plan.number("bandwidth"),
        reorder: plan.share("reorder"),
    }
}

fn check(written: &FaultWritten<'_>) -> Vec<FaultComplaint> {
    let mut found = Vec::new();
    let change = change(written.plan);
    if written.links.is_some_and(|links| links.through == Through::Forwarders) {
        let shares = [("loss", change.loss, "lose"), ("reorder", change.reorder, "reorder")];
        for (key, share, what) in shares {
            if share.is_some_and(|share| share > 0.0) {
                let message = format!("forwarders carry streams: they cannot {what} packets");
                let help = "remove it, or write through = \"switch\" in [links]";
                found.push(FaultComplaint::at(key, message, help));
            }
        }
    }
    let names: Vec<&str> = KIND.declared.inner_keys().iter().map(|key| key.name).collect();
    if written.plan.on.len() == 2 && !names.iter().any(|name| written.has(name)) {
        let help = format!("add one of {}, such as delay = \"200ms\"", names.join(", "));
        found.push(FaultComplaint::at("", "this fault changes nothing on its links", &help));
    }
    if let (Some(jitter), Some(delay)) = (change.jitter, change.delay)
        && jitter > delay
    {
        let message = format!(
            "a jitter of {} around a delay of {} would deliver before it is sent",
            show_duration(jitter),
            show_duration(delay)
        );
        found.push(FaultComplaint::at("jitter", message, "raise the delay, or lower the jitter"));
    }
    for key in ["jitter", "reorder"] {
        if written.has(key) && !written.has("delay") {
            let message = format!("a change of {key} says its delay, too");
            found.push(FaultComplaint::at(key, message, "add delay = \"…\" beside it"));
        }
    }
    found
}

fn begin(of: &Fault, scene: &mut Scene) -> Option<Box<dyn Underway>> {
    let (from, to) = of.plan.ends();
    let called = format!("{from} to {to}");
    let Some(links) = &mut scene.links else {
        scene.failed(of, &called, FaultDetail::NoNetwork);
        return None;
    };
    let (pairs, change) = (links.links(from, to), change(&of.plan));
    let changed = links.change(of.index, &pairs, change);
    if pairs.is_empty() {
        scene.failed(of, &called, FaultDetail::NoSuchLink);
        return None;
    }
    if let Err(error) = changed {
        scene.failed(of, &called, why(&error));
        return None;
    }
    scene.note(FaultPhase::Start, of, &called, FaultDetail::Link { change });
    Some(Box::new(Different { pairs, at: scene.clock.now(), called }))
}

impl Underway for Different {
    fn end(self: Box<Self>, of: &Fault, scene: &mut Scene, cut_short: bool) {
        let restored =
            scene.links.as_mut().map_or(Ok(()), |links| links.restore(of.index, &self.pairs));
        scene.over(of, &self.called, self.at, (cut_short, false), &restored);
    }
}
