//! `$ref` within a document. References to other files are not followed.

use serde_json::Value;

/// References that lead to references.
const REFERENCES_MAX: usize = 16;

static NOTHING: Value = Value::Null;

/// A description.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
}

impl<'a> Document<'a> {
    /// What a value stands for: itself, or what its `$ref` leads to; null if that leads nowhere or in a circle.
    pub(super) fn resolved(self, value: &'a Value) -> &'a Value {
        let mut value = value;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return value };
            let Some(pointer) = reference.strip_prefix('#') else { return &NOTHING };
            // A pointer in a URI is percent-encoded; only braces occur in practice.
            let pointer = pointer.replace("%7B", "{").replace("%7D", "}");
            let Some(next) = self.root.pointer(&pointer) else { return &NOTHING };
            value = next;
        }
        &NOTHING
    }
}
