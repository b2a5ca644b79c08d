//! The result as one JSON document, `assay.result/2`, and its published schema.
//!
//! It must never reorder or leave out a key: the order is that of the types in `model::result`, and a number that
//! is not finite becomes null.

use model::result::RunResult;

/// The JSON Schema (draft 2020-12) of what [`json`] prints.
pub const RESULT_SCHEMA: &str = include_str!("../../schema/result.schema.json");

/// The run as one document, indented, with a line end.
#[must_use]
pub fn json(run: &RunResult) -> String {
    let mut text = serde_json::to_string_pretty(run)
        .expect("every map of a result has text keys, and writing to memory cannot fail");
    text.push('\n');
    text
}
