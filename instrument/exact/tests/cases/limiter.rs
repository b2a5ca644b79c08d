//! A server that refuses two of three.

use std::time::Duration;

use exact::{Law, Script};
use model::result::Verdict;
use model::{Class, Outcome};

use crate::{constant, count, run};

fn limited() -> Script {
    let answers = Law::Constant(Duration::from_millis(1));
    Script::unbounded(answers).limited(1, Duration::from_millis(10))
}

/// Claim: of 300/s under a limit of 100/s every third is committed, the others are limited at once; that is counted, and
/// a threshold that it does not meet has failed, and is no invalid measurement.
#[test]
fn two_of_three() {
    let promise = "[[threshold]]\nexpr = 'success > 99%'";
    let kept = run(&constant("300/s", "10s", "", promise), limited);
    let rows = kept.rows();
    assert_eq!(count(&rows, Outcome::Committed), 1_000);
    assert_eq!(count(&rows, Outcome::Rejected(Class::Limited)), 2_000);
    for row in &rows {
        let length = if row.tx.is_multiple_of(3) { 1_000_000 } else { 0 };
        assert_eq!((row.sent, row.end), (row.due, row.due + length), "{row:?}");
    }
    let trial = kept.trial(0);
    assert_eq!(trial.counts.rejected_by_class["limited"], 2_000);
    assert_eq!(trial.verdict, Verdict::Fail, "{}", trial.reason);
    assert_eq!(kept.ran.result.exit_code, 99);
}
