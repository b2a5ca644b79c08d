//! What a transaction's time is made of: parts that follow each other and sum to the whole.

use crate::pipeline::Step;
use crate::watch::Found;

/// One part: name, beginning (nanoseconds of CLOCK_MONOTONIC), how long it took (nanoseconds).
pub(super) type Part = (&'static str, i64, i64);

/// All names, in their order: each is the wait for what it is called. None is a stage of the ladder's.
pub(super) const NAMES: [&str; 12] = [
    "queued",
    "dequeued",
    "tree_made",
    "timestamped",
    "proposal_stored",
    "sequenced",
    "chained",
    "stored",
    "seen",
    "cached",
    "decided",
    "checked",
];

/// The parts of one transaction. Clocks of several processes of one host agree to within a read; a step that seems to be before
/// the one in front of it takes no time, so that the sum stays the whole. What nobody has told is part of what follows.
pub(super) fn parts(submitted: i64, accepted: i64, found: &Found, verified: i64) -> Vec<Part> {
    let step = |step: Step| found.steps[usize::from(step.code())];
    let (height, number) = (0, 0);
    let ends = [
        accepted,
        step(Step::Dequeued { first: 0, attempt: 0 }),
        step(Step::TreeMade { count: 0 }),
        step(Step::Timestamped),
        step(Step::ProposalStored),
        step(Step::Sequenced { number }),
        step(Step::OnMainChain { height, number }),
        step(Step::Stored),
        found.times.seen,
        found.times.cached,
        found.times.decided,
        verified,
    ];
    let mut from = submitted;
    let mut parts = Vec::with_capacity(ends.len());
    for (name, end) in NAMES.into_iter().zip(ends).filter(|(_, end)| *end != 0) {
        let end = end.clamp(from, verified.max(from));
        parts.push((name, from, end - from));
        from = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Times;

    fn found(steps: [i64; 8], seen: i64) -> Found {
        let times = Times { seen, cached: seen + 10, decided: seen + 30 };
        let (number, height, index) = (1, 1, 0);
        let (attestation, proposal, proof) = (Vec::new(), Vec::new(), Vec::new());
        Found { number, height, index, steps, times, attestation, proposal, proof }
    }

    /// Claim: parts follow each other and sum to the whole, also where steps are missing or seem to be out of order.
    #[test]
    fn they_sum() {
        // Before the submission, after the verification, none at all: each has to add up.
        for steps in
            [[120, 130, 150, 180, 190, 195, 0, 240], [90, 0, 9_999, 0, 0, 195, 0, 0], [0; 8]]
        {
            let parts = parts(100, 110, &found(steps, 230), 300);
            assert_eq!(parts.iter().map(|(_, _, took)| took).sum::<i64>(), 200, "{parts:?}");
            let ends = parts.iter().map(|(_, from, took)| from + took);
            assert!(
                ends.zip(parts.iter().skip(1)).all(|(end, (_, from, _))| end == *from),
                "{parts:?}"
            );
            assert!(parts.iter().all(|(_, _, took)| *took >= 0), "{parts:?}");
        }
    }
}
