//! Where the way of a transaction ends: the final stage of each stream, which reaching makes it *committed*.

use crate::row::STAGES_MAX;

/// The final stage of each stream of a trial, as indices into the ladder.
///
/// The load may end where a system has accepted it, beside a probe that goes on until its client has verified it. A
/// transaction ends at the final stage of its own stream, and at no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalStages {
    /// Of the main (or background) load.
    pub load: usize,
    /// Of the probe; the same as the load's where there is none.
    pub probe: usize,
}

impl FinalStages {
    /// The same stage for every stream.
    #[must_use]
    pub const fn all(stage: usize) -> Self {
        Self { load: stage, probe: stage }
    }

    /// That of a stream, as [`crate::Row::stream`] numbers them: 0 the load, any other the probe.
    #[must_use]
    #[inline]
    pub const fn of(self, stream: u8) -> usize {
        if stream == 0 { self.load } else { self.probe }
    }

    /// Whether the streams end at different stages.
    #[must_use]
    pub const fn differ(self) -> bool {
        self.load != self.probe
    }

    /// The same, inside every row: a damaged record must not lead out of it.
    #[must_use]
    pub fn within_rows(self) -> Self {
        let within = |stage: usize| stage.min(STAGES_MAX - 1);
        Self { load: within(self.load), probe: within(self.probe) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::DeclaredFacts;

    /// Claim: each stream has its own, whatever number a damaged record gives it, and none leads out of a row.
    #[test]
    fn by_stream() {
        let ends = FinalStages { load: 0, probe: 2 };
        assert_eq!([0, 1, 255].map(|stream| ends.of(stream)), [0, 2, 2]);
        assert!(ends.differ() && !FinalStages::all(1).differ());
        let damaged = FinalStages { load: usize::MAX, probe: STAGES_MAX };
        assert_eq!(damaged.within_rows(), FinalStages::all(STAGES_MAX - 1));
    }

    /// Claim: a record of when a trial had one final stage for all still says so.
    #[test]
    fn of_an_earlier_record() {
        let mut declared = DeclaredFacts { final_stage: 1, ..DeclaredFacts::default() };
        assert_eq!(declared.final_stages(), FinalStages::all(1));
        declared.probe_final_stage = Some(2);
        assert_eq!(declared.final_stages(), FinalStages { load: 1, probe: 2 });
    }
}
