//! The check `same-state`: replicas that have come to one position hold the same there. Each says a digest of all that it
//! holds, when the load is over; reads cannot show that two replicas differ in a key that was never read.

use std::collections::BTreeMap;

use model::check::{Check, CheckFinding, CheckState, Entries, Reads};
use model::facts::NodeState;

use super::NO_STATES;

/// The check.
pub const SAME_STATE: Check = Check {
    name: "same-state",
    summary: "replicas that have executed the same transactions hold the same",
    reads: Reads { rows: false, observations: false, entries: Entries::Unread },
    applies: |input| !input.states.is_empty(),
    start: |input| Box::new(SameState(input.states.to_vec())),
};

struct SameState(Vec<NodeState>);

impl CheckState for SameState {
    fn finish(self: Box<Self>) -> CheckFinding {
        let mut by_position: BTreeMap<u64, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for state in self.0.iter().filter(|state| !state.digest.is_empty()) {
            let digests = by_position.entry(state.position).or_default();
            digests.entry(&state.digest).or_default().push(&state.node);
        }
        let differing = by_position.iter().find(|(_, digests)| digests.len() > 1);
        if let Some((position, digests)) = differing {
            let said =
                digests.iter().map(|(digest, nodes)| format!("{} {digest}", nodes.join(", ")));
            let said = said.collect::<Vec<_>>().join("; ");
            let words =
                format!("transactions executed, and the replicas hold different things: {said}");
            return CheckFinding { count: *position, words, ..CheckFinding::default() };
        }
        let last = by_position.last_key_value();
        let position = last.map_or(0, |(position, _)| *position);
        let compared = last.map_or(0, |(_, digests)| digests.values().map(Vec::len).sum());
        let is_behind = |state: &&NodeState| !state.digest.is_empty() && state.position < position;
        let behind: Vec<&NodeState> = self.0.iter().filter(is_behind).collect();
        let mut words = match compared {
            0 | 1 => NO_STATES.to_owned(),
            count => format!("transactions executed, and {count} replicas hold the same"),
        };
        for state in &behind {
            words.push_str(&format!(
                "; {} has come to {} and was not compared",
                state.node, state.position
            ));
        }
        for state in self.0.iter().filter(|state| state.digest.is_empty()) {
            words.push_str(&format!("; {} was not compared: {}", state.node, state.why));
        }
        CheckFinding {
            holds: true,
            count: position,
            words,
            missing: behind.len() as u64,
            saw_nothing: compared < 2,
            ..CheckFinding::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(node: &str, position: u64, digest: &str) -> NodeState {
        let why = if digest.is_empty() { "it does not answer" } else { "" };
        let (digest, why) = (digest.to_owned(), why.to_owned());
        NodeState { node: node.to_owned(), position, digest, why }
    }

    fn found(states: &[NodeState]) -> CheckFinding {
        Box::new(SameState(states.to_vec())).finish()
    }

    /// Claim: replicas at one position that differ fail it, wherever others are; those that agree hold, and who was not
    /// compared is named. One that is behind warns, one that is down does not.
    #[test]
    fn only_equal_positions_are_compared() {
        let same = found(&[state("a", 9, "x"), state("b", 9, "x"), state("c", 0, "")]);
        assert!(same.holds && !same.saw_nothing && same.missing == 0 && same.count == 9);
        let words = "transactions executed, and 2 replicas hold the same; c was not compared: it does not answer";
        assert_eq!(same.words, words);
        let behind = found(&[state("a", 9, "x"), state("b", 9, "x"), state("c", 8, "y")]);
        assert!(behind.holds && behind.missing == 1, "{behind:?}");
        assert!(behind.words.ends_with("; c has come to 8 and was not compared"), "{behind:?}");
        for states in [
            [state("a", 401, "x"), state("b", 401, "y"), state("c", 401, "y")],
            [state("a", 401, "x"), state("b", 401, "y"), state("c", 500, "y")],
        ] {
            let differs = found(&states);
            assert!(!differs.holds && differs.count == 401, "{differs:?}");
            assert!(differs.words.contains("a x; b"), "{differs:?}");
        }
    }

    /// Claim: where no two replicas can be compared there is no verdict.
    #[test]
    fn one_replica_is_compared_with_nobody() {
        for states in [vec![state("a", 9, "x"), state("b", 0, "")], vec![state("a", 0, "")]] {
            let finding = found(&states);
            assert!(finding.holds && finding.saw_nothing, "{finding:?}");
        }
    }
}
