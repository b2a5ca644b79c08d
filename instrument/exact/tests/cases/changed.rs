//! Facts that a stranger changed: each value of trial.json in turn by what no honest run has.

use std::panic::AssertUnwindSafe;

use exact::HonestRun;
use model::Seed;
use serde_json::{Value, json};

/// Changes tried, drawn from all by the seed: all of them take minutes.
const TRIED: usize = 400;

/// Claim: whatever one value of a trial's facts is changed to, the analysis refuses it or shows it in every form, without a
/// panic and without a character that drives a terminal.
#[test]
fn each_fact_in_turn() {
    let place = tempfile::tempdir().unwrap();
    let run = HonestRun::make(place.path()).unwrap();
    let honest: Value = serde_json::from_slice(&run.facts().unwrap()).unwrap();
    assert!(run.report_with(honest.to_string().as_bytes()), "an honest run has a report");
    let mut pointers = Vec::new();
    leaves(&honest, String::new(), &mut pointers);
    assert!(pointers.len() > 50, "{pointers:?}");
    let others = [
        json!(0),
        json!(-1),
        json!(1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(u32::MAX),
        json!(""),
        json!("\u{1b}]0;PWNED\u{7}\u{202e}<script>"),
        json!("x".repeat(100_000)),
        json!(null),
        json!([]),
        json!({}),
        json!(true),
    ];
    let mut rng = Seed(29).rng();
    let mut draw = |count: usize| usize::try_from(rng.below(count as u64)).unwrap();
    let (mut shown, mut tried, mut panicked) = (0, 0, Vec::new());
    while tried < TRIED {
        let (pointer, other) = (&pointers[draw(pointers.len())], &others[draw(others.len())]);
        let mut changed = honest.clone();
        *changed.pointer_mut(pointer).unwrap() = other.clone();
        let text = changed.to_string();
        let read = std::panic::catch_unwind(AssertUnwindSafe(|| run.report_with(text.as_bytes())));
        match read {
            Ok(is_shown) => shown += usize::from(is_shown),
            Err(_) => panicked.push(format!("{pointer} = {:.60}", other.to_string())),
        }
        tried += 1;
    }
    assert!(panicked.is_empty(), "{} panics: {panicked:#?}", panicked.len());
    assert!(shown > TRIED / 10 && shown < TRIED, "{shown} of {TRIED} were shown");
}

fn leaves(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            leaves(value, format!("{at}/{name}"), found);
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| leaves(value, format!("{at}/{index}"), found)),
        _ => found.push(at),
    }
}
