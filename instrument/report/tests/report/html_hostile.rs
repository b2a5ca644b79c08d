//! A page of a run whose every text is hostile.

use report::Assets;
use serde_json::Value;

use crate::html_reader::elements;
use crate::html_samples;

const HOSTILE: &str = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&lt;\u{202e}\u{0}\u{1b}[31m\u{feff}<!--]]>";

/// Keys whose texts are words of a closed list.
const WORDS: &[&str] = &[
    "verdict",
    "outcome",
    "expect",
    "clocks",
    "what",
    "aggregate",
    "said_by",
    "is",
    "answer",
    "family",
    "may_be",
    "figures",
];

fn spoil(value: &mut Value) {
    match value {
        Value::String(text) => *text = format!("{text}{HOSTILE}"),
        Value::Array(all) => all.iter_mut().for_each(spoil),
        Value::Object(map) => {
            let spoiled = std::mem::take(map).into_iter().map(|(key, mut value)| {
                let is_word = WORDS.contains(&key.as_str());
                if !is_word {
                    spoil(&mut value);
                }
                (key, value)
            });
            *map = spoiled.collect();
            for key in [
                "rejected_by_class",
                "status_codes",
                "values",
                "examples",
                "resources",
                "resources_last",
                "failed",
            ] {
                if let Some(Value::Object(inner)) = map.get_mut(key) {
                    let keys = std::mem::take(inner).into_iter();
                    *inner =
                        keys.map(|(key, value)| (format!("{key}{HOSTILE}/~"), value)).collect();
                }
            }
        }
        _ => {}
    }
}

/// Claim: no text from outside becomes a tag, an attribute or a control character, wherever it stands.
#[test]
fn hostile_texts_stay_texts() {
    for name in ["failed", "liar", "matrix", "declared", "probe", "nodes"] {
        let (run, mut picture) = html_samples::named(name);
        let mut value = serde_json::to_value(&run).expect("a document");
        spoil(&mut value);
        let run = serde_json::from_value(value).expect("still a result");
        let bad = || HOSTILE.to_owned();
        picture.experiment = bad();
        picture.plan = bad();
        for axis in &mut picture.axes {
            axis.name = bad();
            axis.labels = vec![bad(); axis.labels.len()];
        }
        picture.files.iter_mut().for_each(|file| file.path = bad());
        for trial in &mut picture.trials {
            trial.path = bad();
            trial.stages.iter_mut().for_each(|it| *it = bad());
            trial.kinds.iter_mut().for_each(|it| *it = bad());
            trial.errors.iter_mut().for_each(|it| *it = bad());
            trial.bands.iter_mut().for_each(|it| it.label = bad());
            for it in &mut trial.moments {
                (it.name, it.detail) = (bad(), bad());
            }
            for it in &mut trial.series {
                (it.source, it.name) = (bad(), bad());
            }
            for it in &mut trial.lanes {
                (it.name, it.unit) = (bad(), bad());
                it.lanes.iter_mut().for_each(|lane| lane.source = bad());
            }
        }
        let page = report::html(&[(run, picture)], &Assets::built()).expect("a page");
        let own = page.replace(Assets::built().script, "").replace(Assets::built().style, "");
        for c in ['\u{202e}', '\u{0}', '\u{1b}', '\u{feff}'] {
            assert!(!own.contains(c), "{name}: {c:?} survives");
        }
        assert!(!own.contains("<img") && !own.contains("<!--"), "{name}");
        let all = elements(&page);
        let scripts = all.iter().filter(|it| it.tag.name == "script").count();
        assert_eq!(scripts, 2, "{name}");
        for it in &all {
            assert!(
                it.tag.attributes.keys().all(|key| !key.starts_with("on") && key != "src"),
                "{it:?}"
            );
        }
        assert!(
            all.iter().any(|it| it.text.contains("<script>alert(1)</script>")),
            "{name}: shown"
        );
    }
}
