//! The published schema against the document that it describes.
//!
//! It must never be looser than the types: every key is described, typed and required, and none is left over.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value};

use crate::json_schema::Validator;
use crate::{made_runs, sample_runs};

fn schema() -> Value {
    serde_json::from_str(report::RESULT_SCHEMA).expect("the schema is JSON")
}

fn documents() -> Vec<(&'static str, Value)> {
    let parse = |run| serde_json::from_str(&report::json(&run)).expect("JSON");
    let made = [("search", made_runs::search()), ("rare", rare())];
    sample_runs::all().into_iter().chain(made).map(|(name, run)| (name, parse(run))).collect()
}

/// A run with the parts that no sample has: users' flows, a sweep over clients, and durability settings.
fn rare() -> model::result::RunResult {
    let mut run = made_runs::search();
    let setting = &mut run.settings[0];
    setting.scalability = Some(model::result::ScalabilityResult {
        law: Some(Default::default()),
        ..Default::default()
    });
    let promise = Some(model::facts::DocumentedPromise::default());
    let settings = vec![model::facts::DurabilitySetting { promise, ..Default::default() }];
    setting.trials[0].durability.settings = settings;
    let flows = vec![Default::default()];
    setting.trials[0].flows = Some(model::result::FlowsResult { flows, ..Default::default() });
    run
}

/// Claim: every document of the samples is valid, and together they touch every definition of the schema; of alternatives
/// it is enough that one is touched.
#[test]
fn documents_are_valid() {
    let mut validator = Validator::new(&schema());
    for (name, document) in documents() {
        let root = validator.root.clone();
        if let Err(error) = validator.check(&document, &root, name) {
            panic!("{error}");
        }
    }
    let definitions = validator.root["$defs"].as_object().expect("definitions");
    let mut alternatives = Vec::new();
    for any in definitions.values().filter_map(|definition| definition["anyOf"].as_array()) {
        let names = any.iter().filter_map(|one| one["$ref"].as_str()?.strip_prefix("#/$defs/"));
        alternatives.extend(names);
    }
    // What only such an alternative refers to is reached through it alone.
    let inner = ["CutWay", "FaultValue", "LinkChange", "RotationOver"];
    let is_needed =
        |name: &&String| !alternatives.contains(&name.as_str()) && !inner.contains(&name.as_str());
    for definition in definitions.keys().filter(is_needed) {
        assert!(validator.visited.contains(definition), "no sample has a {definition}");
    }
}

/// Claim: the schema refuses a key that is missing, one that is new, and one of the wrong type, wherever it stands.
#[test]
fn the_schema_is_strict() {
    let (_, document) = documents().swap_remove(5);
    let root = schema();
    let mut places = 0;
    for pointer in objects(&document, String::new()) {
        let keys: Vec<String> = match document.pointer(&pointer).and_then(Value::as_object) {
            Some(object) => object.keys().cloned().collect(),
            None => continue,
        };
        // Maps with free keys (labels, counts by class, the facts of a fault's event) are the only objects without required keys.
        let is_map = [
            "began",
            "ended",
            "values",
            "rejected_by_class",
            "status_codes",
            "examples",
            "resources",
            "resources_last",
            "keys",
        ]
        .iter()
        .any(|name| pointer.ends_with(name));
        let mut added = document.clone();
        insert(&mut added, &pointer, "surprise", serde_json::json!({ "wrong": { "type": 1 } }));
        assert!(check(&root, &added).is_err(), "{pointer}: a new key");
        for key in keys.iter().filter(|_| !is_map) {
            let mut removed = document.clone();
            remove(&mut removed, &pointer, key);
            assert!(check(&root, &removed).is_err(), "{pointer}/{key}: missing");
            let mut wrong = document.clone();
            insert(&mut wrong, &pointer, key, serde_json::json!({ "wrong": { "type": 1 } }));
            assert!(check(&root, &wrong).is_err(), "{pointer}/{key}: wrong type");
            places += 1;
        }
    }
    assert!(places > 150, "{places}");
}

fn check(root: &Value, document: &Value) -> Result<(), String> {
    Validator::new(root).check(document, root, "")
}

/// Pointers to every kind of object in the document: of a list, the first item stands for all.
fn objects(value: &Value, pointer: String) -> Vec<String> {
    match value {
        Value::Object(object) => {
            let inner = object.iter().flat_map(|(key, item)| {
                objects(item, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")))
            });
            let mut all: Vec<String> = inner.collect();
            all.push(pointer);
            all
        }
        Value::Array(items) => match items.first() {
            Some(first) => objects(first, format!("{pointer}/0")),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn object_at<'a>(document: &'a mut Value, pointer: &str) -> &'a mut Map<String, Value> {
    document.pointer_mut(pointer).and_then(Value::as_object_mut).expect("an object")
}

fn insert(document: &mut Value, pointer: &str, key: &str, value: Value) {
    object_at(document, pointer).insert(key.to_owned(), value);
}

fn remove(document: &mut Value, pointer: &str, key: &str) {
    object_at(document, pointer).shift_remove(key).expect("a known key");
}

/// Claim: every object of the schema forbids other keys, requires all of its own, and describes each.
#[test]
fn every_key_is_required_and_described() {
    let root = schema();
    let definitions = root["$defs"].as_object().expect("definitions");
    let mut objects: Vec<(&str, &Value)> = vec![("the document", &root)];
    objects.extend(definitions.iter().map(|(name, schema)| (name.as_str(), schema)));
    for (name, schema) in objects {
        assert!(schema["description"].is_string(), "{name} is not described");
        let Some(properties) = schema["properties"].as_object() else {
            let is_other = schema["enum"].is_array() || schema["anyOf"].is_array();
            assert!(is_other, "{name} is neither an object nor a word nor one of several");
            continue;
        };
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let required: Vec<&str> =
            schema["required"].as_array().expect(name).iter().filter_map(Value::as_str).collect();
        let keys: Vec<&str> = properties.keys().map(String::as_str).collect();
        // Details of a fault, and the flows of a trial, are left out where there are none.
        let may_lack = ["FaultDetailNotWiped", "LinkChange", "TrialResult"].contains(&name);
        let is_in = |key: &&str| keys.contains(key);
        assert!(required == keys || may_lack && required.iter().all(is_in), "{name}");
        for (key, property) in properties {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(text.len() >= 4, "{name}.{key} is not described: {text:?}");
        }
    }
}

/// Claim: keys come in the order of the types, the same each time, and what is not finite is null.
#[test]
fn stable_order_and_no_infinities() {
    let mut run = sample_runs::matrix();
    run.settings[0].trials[0].rates.offered_per_s = f64::INFINITY;
    run.settings[0].trials[0].vegeta.rate = f64::NAN;
    run.settings[0].trials[0].latency[0].response.mean_ns = Some(f64::NEG_INFINITY);
    let text = report::json(&run);
    assert_eq!(text, report::json(&run.clone()));
    assert!(text.starts_with("{\n  \"schema\": \"assay.result/2\",\n  \"name\": \"api-rates\""));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let trial = &document["settings"][0]["trials"][0];
    assert!(trial["rates"]["offered_per_s"].is_null());
    assert!(trial["vegeta"]["rate"].is_null());
    assert!(trial["latency"][0]["response"]["mean_ns"].is_null());
    assert_eq!(check(&schema(), &document), Ok(()));
}

/// Claim: Python's jsonschema, where it is installed, finds the schema sound and the documents valid.
#[test]
fn python_agrees() {
    let program = "\
import sys
try:
    import json, jsonschema
    Validator = jsonschema.Draft202012Validator
except (ImportError, AttributeError):
    sys.exit(77)
schema = json.load(open(sys.argv[1]))
Validator.check_schema(schema)
documents = json.load(sys.stdin)
for name, document in documents:
    errors = list(Validator(schema).iter_errors(document))
    assert not errors, (name, [(list(error.path), error.message[:200]) for error in errors[:3]])
documents[0][1]['surprise'] = 1
assert list(Validator(schema).iter_errors(documents[0][1])), 'a new key was not refused'
print(len(documents))
";
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/result.schema.json");
    let child = Command::new("python3")
        .args(["-c", program])
        .arg(schema)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("SKIPPED result_schema::python_agrees: python3 is not installed");
        return;
    };
    let documents = documents();
    let count = documents.len();
    let input = serde_json::to_vec(&documents).expect("JSON");
    let mut stdin = child.stdin.take().expect("piped");
    // A python without the module ends before it reads: a closed pipe is no failure of this test.
    let _ = std::io::Write::write_all(&mut stdin, &input);
    drop(stdin);
    let output = child.wait_with_output().expect("python3 ends");
    if output.status.code() == Some(77) {
        println!("SKIPPED result_schema::python_agrees: python3 has no module jsonschema 4");
        return;
    }
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{error}");
    assert_eq!(out.trim(), count.to_string());
}
