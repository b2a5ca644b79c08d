//! The faults of a trial, put together from their events: who, what, from when to when, and what is said of it.
//!
//! An end belongs to the beginning of the same fault of the plan, in the same round, on the same node: two pauses of
//! one node may lie within each other, and each keeps its own ends. A fault that could not be injected is one of them,
//! too: a reader must see that what was asked for did not take place.

use std::collections::BTreeMap;

use model::fault::{FaultEvent, FaultPhase};
use model::picture::{Band, BandKind};
use model::result::FaultResult;
use model::{NO_STAMP, Stamp};

/// The most that the result holds; the events have all of them.
const FAULTS_MAX: usize = 1_000;
/// More faults of one kind that begin together are drawn as one: that many names would hide each other.
const TOGETHER_MAX: usize = 3;
/// Faults that begin within this begin together, for the eye and in the search for silences.
pub(crate) const TOGETHER_NS: Stamp = 100_000_000;

/// All faults by when they began.
pub(crate) fn of_events(events: &[FaultEvent]) -> Vec<FaultResult> {
    let mut all: Vec<FaultResult> = Vec::new();
    // Places in `all` of what has not ended.
    let mut open: BTreeMap<(u32, u32, &str), usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.at_ns != NO_STAMP) {
        let identity = (event.fault, event.cycle, event.node.as_str());
        match event.phase {
            FaultPhase::Start => {
                open.insert(identity, all.len());
                all.push(begun(event));
            }
            FaultPhase::Failed => all.push(begun(event)),
            FaultPhase::End => {
                // An end whose beginning the record lost says nothing that could be shown.
                let Some(index) = open.remove(&identity) else { continue };
                let fault = &mut all[index];
                fault.to_ns = Some(event.at_ns);
                fault.length_ns = Some(event.at_ns - fault.from_ns);
                fault.ended = Some(event.detail.clone());
            }
        }
    }
    // A fault that takes a moment is written when it is done.
    all.sort_by_key(|fault| fault.from_ns);
    all
}

fn begun(event: &FaultEvent) -> FaultResult {
    FaultResult {
        fault: event.fault,
        cycle: event.cycle,
        kind: event.kind.clone(),
        node: event.node.clone(),
        from_ns: event.at_ns,
        began: event.detail.clone(),
        happened: event.phase != FaultPhase::Failed,
        ..FaultResult::default()
    }
}

/// The faults that the result holds, and how many more there are.
pub(crate) fn kept(mut all: Vec<FaultResult>) -> (Vec<FaultResult>, u64) {
    let left_out = u64::try_from(all.len().saturating_sub(FAULTS_MAX)).expect("a count");
    all.truncate(FAULTS_MAX);
    (all, left_out)
}

/// The bands that are drawn: one for each fault that took place; for many of one kind that begin together one, from the first's
/// beginning to the last's end.
pub(crate) fn bands(faults: &[FaultResult]) -> Vec<Band> {
    let mut groups: Vec<Vec<&FaultResult>> = Vec::new();
    for fault in faults.iter().filter(|fault| fault.happened) {
        let belongs = |group: &&mut Vec<&FaultResult>| {
            let first = group[0];
            first.kind == fault.kind
                && first.to_ns.is_some() == fault.to_ns.is_some()
                && fault.from_ns - first.from_ns <= TOGETHER_NS
        };
        match groups.iter_mut().rev().take_while(|group| near(group[0], fault)).find(belongs) {
            Some(group) => group.push(fault),
            None => groups.push(vec![fault]),
        }
    }
    groups.iter().flat_map(|group| bands_of(group)).collect()
}

/// Whether there may be a group of this fault's at or before this one: groups are in order of time.
fn near(first: &FaultResult, fault: &FaultResult) -> bool {
    fault.from_ns - first.from_ns <= TOGETHER_NS
}

fn bands_of(group: &[&FaultResult]) -> Vec<Band> {
    // A killed node stays dead; what is marked is when it died.
    let end = |fault: &FaultResult| fault.to_ns.unwrap_or(fault.from_ns);
    let band = |from_ns, to_ns, label| Band { kind: BandKind::Fault, from_ns, to_ns, label };
    if group.len() <= TOGETHER_MAX {
        let one = |fault: &&FaultResult| {
            band(fault.from_ns, end(fault), format!("{} {}", fault.kind, fault.node))
        };
        return group.iter().map(one).collect();
    }
    let to_ns = group.iter().map(|fault| end(fault)).max().unwrap_or_default();
    let (first, count) = (group[0], group.len());
    let label = format!("{} {} and {} more", first.kind, first.node, count - 1);
    vec![band(first.from_ns, to_ns, label)]
}

#[cfg(test)]
mod tests {
    use model::fault::FaultDetail;

    use super::*;
    use crate::testing::fault_event;

    const S: Stamp = 1_000_000_000;

    use FaultPhase::{End, Failed, Start};

    /// Claim: of two pauses of one node of which one lies within the other, each keeps its own end.
    #[test]
    fn nested_pauses_keep_their_ends() {
        let (outer, inner) = ((0, 0, "pause", "a"), (1, 0, "pause", "a"));
        let faults = of_events(&[
            fault_event(S, Start, outer),
            fault_event(2 * S, Start, inner),
            fault_event(3 * S, End, inner),
            fault_event(10 * S, End, outer),
        ]);
        let seen: Vec<_> =
            faults.iter().map(|it| (it.fault, it.from_ns / S, it.to_ns.map(|to| to / S))).collect();
        assert_eq!(seen, [(0, 1, Some(10)), (1, 2, Some(3))]);
        let bands: Vec<_> =
            bands(&faults).iter().map(|band| (band.from_ns / S, band.to_ns / S)).collect();
        assert_eq!(bands, [(1, 10), (2, 3)]);
    }

    /// Claim: each end is put to the beginning of the same fault, round and node, what never ended has no end, what
    /// failed is there and did not happen, and words come from both events.
    #[test]
    fn ends_find_their_beginnings() {
        let said = |event: FaultEvent, detail| FaultEvent { detail, ..event };
        let change = model::plan::LinkChange {
            delay: Some(std::time::Duration::from_millis(80)),
            ..model::plan::LinkChange::default()
        };
        let after = FaultDetail::After {
            ns: 2 * S,
            cut_short: false,
            goes_on: false,
            error: String::new(),
        };
        let link = (1, 0, "link", "a to b*");
        let faults = of_events(&[
            fault_event(S, Start, (0, 1, "rotate", "a")),
            fault_event(S, Start, (0, 1, "rotate", "b")),
            said(fault_event(2 * S, Start, link), FaultDetail::Link { change }),
            said(
                fault_event(3 * S, End, (0, 1, "rotate", "a")),
                FaultDetail::CaughtUp { ns: 3 * S / 2 },
            ),
            fault_event(3 * S, Start, (0, 2, "rotate", "a")),
            said(fault_event(4 * S, End, link), after),
            said(
                fault_event(5 * S, Failed, (2, 0, "kill", "c")),
                FaultDetail::NoSuchNode { known: vec!["a".into(), "b".into()] },
            ),
            fault_event(6 * S, End, (3, 0, "pause", "a")),
        ]);
        let seen: Vec<_> = faults
            .iter()
            .map(|it| (it.kind.as_str(), it.node.as_str(), it.length_ns, it.in_words()))
            .collect();
        let words = |text: &str| text.to_owned();
        assert_eq!(
            seen,
            [
                ("rotate", "a", Some(2 * S), words("caught up after 1.50 s, cycle 1")),
                ("rotate", "b", None, words("cycle 1")),
                ("link", "a to b*", Some(2 * S), words("delay 80ms; after 2.00 s")),
                ("rotate", "a", None, words("cycle 2")),
                ("kill", "c", None, words("there is no such node; there are: a, b")),
            ]
        );
        assert_eq!(faults.iter().filter(|it| it.happened).count(), 4);
        assert_eq!(bands(&faults).len(), 4, "what failed is no band");
    }

    /// Claim: up to three that begin together are a band each, more are one with their number; the next cycle is
    /// another.
    #[test]
    fn many_at_once_are_one_band() {
        let cycle = |at: Stamp, round: u32, nodes: i64| {
            let of = |at, phase, n: i64| {
                fault_event(at, phase, (0, round, "rotate", &format!("full{n}")))
            };
            let start = (1..=nodes).map(|n| of(at + n, Start, n));
            let end = (1..=nodes).map(|n| of(at + n * S, End, n));
            start.chain(end).collect::<Vec<_>>()
        };
        let mut events = cycle(0, 1, 25);
        events.extend(cycle(30 * S, 2, 25));
        events.extend(cycle(60 * S, 3, 3));
        let bands = bands(&of_events(&events));
        let seen: Vec<_> = bands
            .iter()
            .map(|band| (band.from_ns / S, band.to_ns / S, band.label.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (0, 25, "rotate full1 and 24 more"),
                (30, 55, "rotate full1 and 24 more"),
                (60, 61, "rotate full1"),
                (60, 62, "rotate full2"),
                (60, 63, "rotate full3"),
            ]
        );
    }

    /// Claim: the result holds a bounded number and says how many more there are.
    #[test]
    fn the_rest_is_counted() {
        let events: Vec<FaultEvent> =
            (0..1_007).map(|at| fault_event(at * S, Start, (0, 0, "kill", "a"))).collect();
        let (kept, left_out) = kept(of_events(&events));
        assert_eq!((kept.len(), left_out), (1_000, 7));
    }
}
