//! The finding of one of the system's own checks on a trial, and its words.

use serde::{Deserialize, Serialize};

use super::AuditOutcome;
use crate::quantity::show_count;

/// Ids named in the sentence; the result lists up to [`crate::check::EXAMPLES_MAX`].
const NAMED_MAX: usize = 3;

/// The finding of one of the system's own checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// Its subject, in one sentence.
    pub summary: String,
    /// How it came out: ok, failed, warn where not all that it asks for was kept, skipped where it was not shown what
    /// it asks for.
    pub outcome: AuditOutcome,
    /// How many transactions broke the promise; of a check that holds, how many were looked at.
    pub count: u64,
    /// Up to 100 of those that broke it.
    pub examples: Vec<u64>,
    /// Their defect, or the things that were looked at, to follow the count; of one that was skipped, why.
    pub words: String,
    /// Observations and contents of ledger entries that it asks for and that were not kept.
    pub left_out: u64,
}

impl CheckResult {
    /// One sentence with the figures.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.outcome == AuditOutcome::Skipped {
            return self.words.clone();
        }
        let mut text = format!("{} {}", show_count(self.count), self.words);
        if self.outcome == AuditOutcome::Failed && !self.examples.is_empty() {
            let named = self.examples.iter().take(NAMED_MAX).map(|tx| format!("tx {tx}"));
            let mut named: Vec<String> = named.collect();
            if self.examples.len() > NAMED_MAX {
                named.push("…".to_owned());
            }
            text.push_str(&format!(" ({})", named.join(", ")));
        }
        if self.left_out > 0 {
            let count = show_count(self.left_out);
            text.push_str(&format!("; {count} of what it reads were too long to be kept"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a check says its count and words, names up to three transactions where it failed, and says what it was
    /// not shown.
    #[test]
    fn sentences() {
        let found = |outcome, examples: &[u64], left_out| CheckResult {
            name: "register".to_owned(),
            summary: String::new(),
            outcome,
            count: 1_234,
            examples: examples.to_vec(),
            words: "reads are stale".to_owned(),
            left_out,
        };
        for (result, said) in [
            (found(AuditOutcome::Failed, &[7, 8], 0), "1,234 reads are stale (tx 7, tx 8)"),
            (
                found(AuditOutcome::Failed, &[1, 2, 3, 4], 0),
                "1,234 reads are stale (tx 1, tx 2, tx 3, …)",
            ),
            (found(AuditOutcome::Ok, &[7], 0), "1,234 reads are stale"),
            (
                found(AuditOutcome::Warn, &[], 2),
                "1,234 reads are stale; 2 of what it reads were too long to be kept",
            ),
            (found(AuditOutcome::Skipped, &[7], 0), "reads are stale"),
        ] {
            assert_eq!(result.sentence(), said);
        }
    }
}
