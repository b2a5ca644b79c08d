//! The faults of a trial, put together from their events: who, what, from when to when, and what is said of it.
//!
//! A fault that could not be injected is one of them: a reader must see that what was asked for did not take place.

use model::facts::Event;
use model::picture::{Band, BandKind};
use model::result::FaultResult;
use model::{NO_STAMP, Stamp};

/// The most that the result holds; the events have all of them.
const FAULTS_MAX: usize = 1_000;
/// More faults of one kind that begin together are drawn as one: that many names would hide each other.
const TOGETHER_MAX: usize = 3;
/// What begins within this begins together, for the eye.
const TOGETHER_NS: Stamp = 100_000_000;

/// All faults by when they began.
pub(crate) fn of_events(events: &[Event]) -> Vec<FaultResult> {
    let mut all: Vec<FaultResult> = Vec::new();
    // Places in `all` of what has not ended.
    let mut open: Vec<usize> = Vec::new();
    for event in events.iter().filter(|event| event.at != NO_STAMP) {
        let (what, words) = subject(&event.detail);
        let (kind, node) = what.split_once(' ').unwrap_or((what, ""));
        let mut fault = FaultResult {
            kind: kind.to_owned(),
            node: node.to_owned(),
            from_ns: event.at,
            to_ns: None,
            length_ns: None,
            words: words.to_owned(),
            happened: event.name != "fault_failed",
            ..FaultResult::default()
        };
        match event.name.as_str() {
            "fault_start" => {
                open.push(all.len());
                all.push(fault);
            }
            "fault_failed" => all.push(fault),
            "fault_end" => {
                let is_it = |place: &usize| all[*place].kind == kind && all[*place].node == node;
                let Some(index) = open.iter().position(is_it) else { continue };
                let began = &mut all[open.remove(index)];
                (fault.from_ns, fault.to_ns) = (began.from_ns, Some(event.at));
                fault.length_ns = Some(event.at - began.from_ns);
                if !began.words.is_empty() && !words.contains(&began.words) {
                    fault.words = format!("{}; {words}", began.words);
                }
                *began = fault;
            }
            _ => {}
        }
    }
    all
}

/// What the result holds of them, and how many more there are.
pub(crate) fn kept(mut all: Vec<FaultResult>) -> (Vec<FaultResult>, u64) {
    let left_out = u64::try_from(all.len().saturating_sub(FAULTS_MAX)).expect("a count");
    all.truncate(FAULTS_MAX);
    (all, left_out)
}

/// What is drawn: a band for each that took place; for many of one kind that begin together one, from the first's
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

/// `pause echo-0` and `after 1.00 s` of `pause echo-0: after 1.00 s`.
fn subject(detail: &str) -> (&str, &str) {
    detail.split_once(": ").unwrap_or((detail, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;

    const S: Stamp = 1_000_000_000;

    /// Claim: each end is put to the oldest beginning of the same fault, what never ended has no end, and what failed
    /// is there and did not happen.
    #[test]
    fn ends_find_their_beginnings() {
        let faults = of_events(&[
            event(S, "fault_start", "rotate a: cycle 1"),
            event(S, "fault_start", "rotate b: cycle 1"),
            event(2 * S, "fault_start", "link a to b*: delay 80ms"),
            event(3 * S, "fault_end", "rotate a: caught up after 1.50 s, cycle 1"),
            event(3 * S, "connection_lost", "reset"),
            event(4 * S, "fault_end", "link a to b*: after 2.00 s"),
            event(5 * S, "fault_failed", "kill c: there is no such node; there are: a, b"),
            event(6 * S, "fault_end", "pause a: after 1.00 s"),
        ]);
        let seen: Vec<_> = faults
            .iter()
            .map(|it| (it.kind.as_str(), it.node.as_str(), it.length_ns, it.words.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("rotate", "a", Some(2 * S), "caught up after 1.50 s, cycle 1"),
                ("rotate", "b", None, "cycle 1"),
                ("link", "a to b*", Some(2 * S), "delay 80ms; after 2.00 s"),
                ("kill", "c", None, "there is no such node; there are: a, b"),
            ]
        );
        assert_eq!(faults.iter().filter(|it| it.happened).count(), 3);
        assert_eq!(bands(&faults).len(), 3, "what failed is no band");
    }

    /// Claim: up to three that begin together are a band each, more are one with their number; the next cycle is
    /// another.
    #[test]
    fn many_at_once_are_one_band() {
        let cycle = |at: Stamp, nodes: i64| {
            let start = move |n| event(at + n, "fault_start", &format!("rotate full{n}: cycle"));
            let end =
                move |n| event(at + n * S, "fault_end", &format!("rotate full{n}: caught up"));
            (1..=nodes).map(start).chain((1..=nodes).map(end)).collect::<Vec<_>>()
        };
        let mut events = cycle(0, 25);
        events.extend(cycle(30 * S, 25));
        events.extend(cycle(60 * S, 3));
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
        let events: Vec<Event> =
            (0..1_007).map(|at| event(at * S, "fault_start", "kill a")).collect();
        let (kept, left_out) = kept(of_events(&events));
        assert_eq!((kept.len(), left_out), (1_000, 7));
    }
}
