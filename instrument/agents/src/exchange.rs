//! How far two clocks are apart, by four stamps of one question and its answer (RFC 5905, section 8). The only place where
//! one host's clock is subtracted from another's, and the result says how wrong it may be.

use model::facts::ClockExchange;

/// The stamps of one exchange: the question leaves and the answer comes on the coordinator's clock, the agent's two on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The question left the coordinator.
    pub asked_ns: i64,
    /// It reached the agent.
    pub heard_ns: i64,
    /// The answer left the agent.
    pub answered_ns: i64,
    /// It reached the coordinator.
    pub back_ns: i64,
}

impl Exchange {
    /// The agent's clock less the coordinator's, and by how much that may be wrong whatever the way there and back took: half
    /// of the time that both took.
    #[must_use]
    pub fn result(self) -> ClockExchange {
        let there = i128::from(self.heard_ns) - i128::from(self.asked_ns);
        let back = i128::from(self.answered_ns) - i128::from(self.back_ns);
        let way = there - back;
        let whole = |ns: i128| i64::try_from(ns).unwrap_or(i64::MAX);
        ClockExchange {
            at_ns: self.back_ns,
            offset_ns: whole((there + back).div_euclid(2)),
            error_ns: whole(way.max(0) / 2 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: whatever the ways there and back take, the true offset lies within the error that is said.
    #[test]
    fn the_true_offset_lies_within_the_error() {
        for offset in [-7_000_000_000_i64, -1, 0, 3, 12_345_678_901] {
            for (there, back, thought) in
                [(0, 0, 0), (1, 0, 5), (900, 3, 0), (0, 100_000, 44), (7, 7, 7)]
            {
                let asked_ns = 1_000;
                let heard_ns = asked_ns + there + offset;
                let answered_ns = heard_ns + thought;
                let back_ns = answered_ns - offset + back;
                let found = Exchange { asked_ns, heard_ns, answered_ns, back_ns }.result();
                assert!((found.offset_ns - offset).abs() <= found.error_ns, "{found:?} {offset}");
                assert!(found.error_ns <= (there + back) / 2 + 1);
            }
        }
    }
}
