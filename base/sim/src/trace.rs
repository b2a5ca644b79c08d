//! The last steps of a run, for who looks for what went wrong, and a hash over all of them.

use std::collections::VecDeque;
use std::fmt::Write as _;

use clock::Instant;

/// How many of the last steps are kept.
const KEPT: usize = 60;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) at: Instant,
    pub(crate) process: usize,
    pub(crate) machine: usize,
    pub(crate) what: &'static str,
    /// A connection's place, a record's number, a count of bytes: whatever says most.
    pub(crate) detail: u64,
}

/// The trace of a run.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    last: VecDeque<Step>,
    hash: u64,
    pub(crate) steps: u64,
}

impl Trace {
    pub(crate) fn add(&mut self, step: Step) {
        self.steps += 1;
        self.mix(step.at.as_ns().cast_unsigned());
        self.mix(u64::try_from(step.process << 8 | step.machine).unwrap_or(u64::MAX));
        let kind = u64::from(step.what.as_bytes()[0]) << 8 | u64::from(step.what.as_bytes()[1]);
        self.mix(kind << 40 ^ step.detail);
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(step);
    }

    /// Multiply and fold, as in FxHash: equal runs are told, not attackers.
    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The last steps, a line each.
    pub(crate) fn words(&self, names: &[String]) -> String {
        let mut text = String::new();
        for step in &self.last {
            let name = names.get(step.process).map_or("the world", String::as_str);
            let ms = step.at.as_ns() / 1_000;
            let _ = writeln!(
                text,
                "  {:>9}.{:03} ms  {name}.{}  {} {}",
                ms / 1000,
                ms % 1000,
                step.machine,
                step.what,
                step.detail
            );
        }
        text
    }
}
