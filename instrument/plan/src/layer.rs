//! Laying trees over each other: tables merge key by key, everything else is replaced whole.
//!
//! Two keys know better. A list laid over an axis of the matrix replaces its values and keeps what it sets;
//! and a layer that chooses `load.model` drops the keys of the other model that lower layers had set, so
//! that `--set load.model=closed --set load.clients=8` does what it says over a file that gives a rate.

use std::collections::BTreeMap;

use model::options::{Options, Problems, Span, Value};

use crate::input::Source;
use crate::parse;

/// Keys of `[load]` that belong to open loops alone.
pub(crate) const OPEN_KEYS: [&str; 7] =
    ["rate", "rate_per", "generators", "arrival", "ramp", "burst", "trace"];

/// The key whose content is another in each.
const STEPS: &str = "steps";

/// Keys of `[load]` that belong to closed loops alone.
pub(crate) const CLOSED_KEYS: [&str; 4] = ["clients", "think", "window", "poll"];

/// Lays `over` over `base`.
pub(crate) fn lay(base: &mut Options, over: Options) {
    drop_other_model(base, &over);
    merge(base, over, 0, false);
}

/// Sets one value under a path.
pub(crate) fn assign(base: &mut Options, path: &[(String, Span)], value: Options) {
    lay(base, nest(path, value));
}

/// A tree that holds nothing but `value` under `path`.
pub(crate) fn nest(path: &[(String, Span)], value: Options) -> Options {
    path.iter().rev().fold(value, |value, (key, span)| {
        let table = BTreeMap::from([(key.clone(), (*span, value))]);
        Options { value: Value::Table(table), span: *span }
    })
}

/// A dotted path whose keys all stand at `span`.
pub(crate) fn keys_at(path: &str, span: Span) -> Vec<(String, Span)> {
    path.split('.').map(|key| (key.to_owned(), span)).collect()
}

fn merge(base: &mut Options, over: Options, depth: usize, in_matrix: bool) {
    if in_matrix
        && depth == 2
        && matches!(over.value, Value::Array(_))
        && let Value::Table(axis) = &mut base.value
    {
        axis.remove("labels");
        axis.insert("values".to_owned(), (over.span, over));
        return;
    }
    match (&mut base.value, over.value) {
        (Value::Table(below), Value::Table(above)) => {
            for (key, (span, value)) in above {
                let in_matrix = in_matrix || (depth == 0 && key == "matrix");
                match below.get_mut(&key) {
                    Some((_, existing)) => merge(existing, value, depth + 1, in_matrix),
                    None => {
                        below.insert(key, (span, value));
                    }
                }
            }
        }
        (_, value) => *base = Options { value, span: over.span },
    }
}

fn drop_other_model(base: &mut Options, over: &Options) {
    let others: &[&str] = match over.get("load.model").map(|model| &model.value) {
        Some(Value::String(word)) if word == "open" => &CLOSED_KEYS,
        Some(Value::String(word)) if word == "closed" => &OPEN_KEYS,
        _ => return,
    };
    if let Value::Table(root) = &mut base.value
        && let Some((_, load)) = root.get_mut("load")
        && let Value::Table(load) = &mut load.value
    {
        load.retain(|key, _| !others.contains(&key.as_str()) && key != STEPS);
    }
}

/// `path=value` as a layer; the source is the text of a `--set`, a variable or a flag, and the path begins
/// at byte `offset` of it.
pub(crate) fn path_and_value(
    source: &Source,
    index: u16,
    offset: usize,
    problems: &mut Problems,
) -> Option<Options> {
    let text = &source.text[offset..];
    let Some((path, value)) = text.split_once('=') else {
        let span = Span { source: index, start: offset, end: source.text.len() };
        let help = "write PATH=VALUE, such as load.rate=80/s".to_owned();
        problems.add(span, format!("`{text}` sets no value"), Some(help));
        return None;
    };
    let before = problems.list.len();
    let keys = parse::dotted_path(path, index, offset, problems);
    let value = parse::loose_value(value, index, offset + path.len() + 1, problems);
    let keys = keys?;
    (problems.list.len() == before).then(|| nest(&keys, value))
}
