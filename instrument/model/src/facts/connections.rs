//! How connections fared: what the engine counts of each of their lives, without an allocation.

use serde::{Deserialize, Serialize};

/// How the connections of one engine thread fared, over the whole trial. A life is one TCP connection, from when
/// transactions could go on it; connections that only watch are counted where they end and where they break the
/// protocol, and have no lives here, since nothing is asked on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionFacts {
    /// Lives that began.
    pub opened: u64,
    /// Of these, those that took the place of one that was lost.
    pub reopened: u64,
    /// Closed by the system in good order.
    pub closed: u64,
    /// Reset by the system, or broken in the network.
    pub reset: u64,
    /// Bytes that arrived and that no request had asked for.
    pub unasked_bytes: u64,
    /// Transactions that had been sent and not answered when their connection was lost.
    pub lost: u64,
    /// Answers.
    pub answers: u64,
    /// The fewest answers of one life.
    pub answers_min: u64,
    /// The most.
    pub answers_max: u64,
    /// Answers of lives that broke the protocol later: any of them may be another transaction's.
    pub doubtful: u64,
}

impl ConnectionFacts {
    /// A life is over, or the trial is.
    pub fn life_over(&mut self, answers: u64, was_reopened: bool) {
        self.answers_min = if self.opened == 0 { answers } else { self.answers_min.min(answers) };
        self.answers_max = self.answers_max.max(answers);
        self.answers += answers;
        self.opened += 1;
        self.reopened += u64::from(was_reopened);
    }

    /// The two together. Counts of a damaged record stop at the largest number.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let answers_min = match (self.opened, other.opened) {
            (0, _) => other.answers_min,
            (_, 0) => self.answers_min,
            _ => self.answers_min.min(other.answers_min),
        };
        Self {
            opened: self.opened.saturating_add(other.opened),
            reopened: self.reopened.saturating_add(other.reopened),
            closed: self.closed.saturating_add(other.closed),
            reset: self.reset.saturating_add(other.reset),
            unasked_bytes: self.unasked_bytes.saturating_add(other.unasked_bytes),
            lost: self.lost.saturating_add(other.lost),
            answers: self.answers.saturating_add(other.answers),
            answers_min,
            answers_max: self.answers_max.max(other.answers_max),
            doubtful: self.doubtful.saturating_add(other.doubtful),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: lives are counted with the fewest and the most answers of one, also over threads of which one had none.
    #[test]
    fn lives_add_up() {
        let mut one = ConnectionFacts::default();
        one.life_over(7, false);
        one.life_over(3, true);
        let mut two = ConnectionFacts::default();
        two.life_over(5, false);
        let all = ConnectionFacts::default().with(&one).with(&two);
        assert_eq!((all.opened, all.reopened, all.answers), (3, 1, 15));
        assert_eq!((all.answers_min, all.answers_max), (3, 7));
        assert_eq!(all.with(&ConnectionFacts::default()), all);
    }
}
