//! The result document of a real run against its published schema.

use std::time::Duration;

use exact::{Client, Law, Script};
use serde_json::Value;

use crate::json_schema::Validator;
use crate::run_as;

/// Claim: summary.json of a run with rejections, silence, losses, a matrix, thresholds and a table is of the schema that is
/// made of the types.
#[test]
fn a_result_is_of_its_schema() {
    let experiment = "
name = 'document'
question = 'Is it of its schema?'
trials = 2
[system]
kind = 'script'
[load]
rate = '500/s'
duration = '2s'
timeout = '50ms'
[matrix]
rate = ['200/s', '500/s']
[[threshold]]
expr = 'p99 < 1s'
[[threshold]]
expr = 'lost == 0'
[[report.tables]]
columns = ['p50', 'p99', 'success']
";
    let script = || {
        let answers = Law::Constant(Duration::from_millis(3));
        Script::unbounded(answers)
            .silent_every(50)
            .loses_every(99)
            .limited(40, Duration::from_millis(3))
    };
    let kept = run_as(Client::default(), experiment, |_, _| script());
    let text = kept.ran.folder.text("summary.json").unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let schema: Value = serde_json::from_str(report::RESULT_SCHEMA).unwrap();
    assert_eq!(Validator::new(&schema).check(&document, &schema, ""), Ok(()));
    assert_eq!(serde_json::from_str::<Value>(&report::json(&kept.ran.result)).unwrap(), document);
    assert_eq!(document["settings"].as_array().map(Vec::len), Some(2));
}
