//! The JSON Schema and the reader know the same keys, and the table of keys knows them too.

use std::collections::BTreeSet;

use plan::{EXPERIMENT_SCHEMA, Input, Source, keys, resolve};
use serde_json::Value;

type Keys = BTreeSet<String>;

/// Keys that the reader knows only to say that they are not built yet.
const UNBUILT: [&str; 8] =
    ["search", "metrics", "events", "plots", "every", "disk", "outage", "limiter"];

/// Every table of the file: how to write it with an unknown key in it, and where it stands in the schema.
const TABLES: [(&str, &str, &str); 23] = [
    ("", "", "zz0 = 1\n[system]\nkind = 'echo'\n[load]\nrate = '1/s'"),
    ("system", "/properties/system", "[system]\nkind = 'echo'\nzz0 = 1\n[load]\nrate = '1/s'"),
    ("load", "/$defs/load", "[load]\nrate = '1/s'\nzz0 = 1"),
    ("load", "/$defs/load", "[load]\nmodel = 'closed'\nclients = 1\nzz0 = 1"),
    ("load.ramp", "/$defs/load/properties/ramp", "[load.ramp]\nzz0 = 1"),
    ("load.steps[0]", "/$defs/load/properties/steps/oneOf/0/items", "[[load.steps]]\nzz0 = 1"),
    ("load.steps", "/$defs/load/properties/steps/oneOf/1", "[load]\nrate = '1/s'\nsteps.zz0 = 1"),
    ("load.steps.add", "/$defs/growth", "[load]\nrate = '1/s'\nsteps.add.zz0 = 1"),
    ("load.burst", "/$defs/load/properties/burst", "[load]\nrate = '1/s'\nburst.zz0 = 1"),
    ("load.trace", "/$defs/load/properties/trace", "[load.trace]\nzz0 = 1"),
    ("load.drain", "/$defs/load/properties/drain/oneOf/1", "[load]\nrate = '1/s'\ndrain.zz0 = 1"),
    ("probe", "/properties/probe", "[load]\nrate = '1/s'\n[probe]\nzz0 = 1"),
    ("measure", "/properties/measure", "[measure]\nzz0 = 1"),
    ("matrix.a", "/$defs/axis", "[matrix.a]\nset = 'load.rate'\nzz0 = 1"),
    ("threshold[0]", "/properties/threshold/items", "[[threshold]]\nzz0 = 1"),
    ("links", "/properties/links", "[links]\nzz0 = 1"),
    ("links.client", "/properties/links/properties/client", "[links.client]\nzz0 = 1"),
    ("links.pair[0]", "/properties/links/properties/pair/items", "[[links.pair]]\nzz0 = 1"),
    ("disk", "/properties/disk", "[disk]\nzz0 = 1"),
    ("fault[0]", "/properties/fault/items", "[[fault]]\nzz0 = 1"),
    ("fault[0].link", "/properties/fault/items/properties/link", "[[fault]]\nlink.zz0 = 1"),
    ("expect[0]", "/properties/expect/items", "[[expect]]\nzz0 = 1"),
    (
        "report.tables[0]",
        "/properties/report/properties/tables/items",
        "[[report.tables]]\nzz0 = 1",
    ),
];

/// The keys that the reader names when it meets one that it does not know.
fn known_to_reader(path: &str, toml: &str) -> Keys {
    let file = Source { name: "x.toml".into(), text: toml.into() };
    let rejected = resolve(&Input { file, ..Input::default() }).expect_err("zz0 is no key");
    let name = if path.is_empty() { "`zz0`".to_owned() } else { format!("`{path}.zz0`") };
    let problem = rejected.problems().iter().find(|problem| problem.message.starts_with(&name));
    let problem = problem.unwrap_or_else(|| panic!("{path}: {rejected}"));
    let help = problem.help.as_deref().expect("an unknown key names the known ones");
    let list = help.strip_prefix("known here: ").expect("`zz0` is near no key");
    list.split(", ").map(str::to_owned).collect()
}

fn known_to_schema(schema: &Value, pointer: &str) -> Keys {
    let properties = schema.pointer(pointer).and_then(|table| table.get("properties"));
    let properties = properties.unwrap_or_else(|| panic!("{pointer} is not in the schema"));
    properties.as_object().expect("an object").keys().cloned().collect()
}

/// Claim: in every table the schema has the keys that the reader knows, and no others.
#[test]
fn schema_and_reader_agree() {
    let schema: Value = serde_json::from_str(EXPERIMENT_SCHEMA).unwrap();
    for (path, pointer, toml) in TABLES {
        let unbuilt: Vec<&str> = match path {
            // `until` of steps is built, that of the drain is not; `every` likewise of bursts and faults.
            "load.drain" => vec!["until"],
            "" | "fault[0]" => UNBUILT.to_vec(),
            _ => Vec::new(),
        };
        let mut reader = known_to_reader(path, toml);
        reader.retain(|key| !unbuilt.contains(&key.as_str()));
        let mut in_schema = known_to_schema(&schema, pointer);
        // Taken out of the file before it is read.
        in_schema.remove("profile");
        assert_eq!(reader, in_schema, "{path}");
    }
}

/// Claim: every key of the table of keys is in the schema, and every leaf of the schema that is not the
/// user's own is in the table.
#[test]
fn schema_and_table_agree() {
    let schema: Value = serde_json::from_str(EXPERIMENT_SCHEMA).unwrap();
    let mut leaves = Keys::new();
    collect(&schema, &schema, "", &mut leaves);
    for own in ["matrix", "include", "exclude", "profile"] {
        leaves.retain(|leaf| {
            leaf != own
                && !leaf.starts_with(&format!("{own}."))
                && !leaf.starts_with(&format!("{own}[]"))
        });
    }
    leaves.remove("load.drain.max");
    let table: Keys = keys::KEYS.iter().map(|key| key.path.to_owned()).collect();
    assert_eq!(leaves, table);
}

fn collect(schema: &Value, root: &Value, path: &str, leaves: &mut Keys) {
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(pointer) => root.pointer(&pointer[1..]).expect("a reference leads somewhere"),
        None => schema,
    };
    let mut is_leaf = true;
    for (key, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        is_leaf = false;
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        collect(inner, root, &path, leaves);
    }
    if let Some(items) = schema.get("items").filter(|items| items.get("properties").is_some()) {
        is_leaf = false;
        collect(items, root, &format!("{path}[]"), leaves);
    }
    let tables = |one: &&Value| {
        one.get("properties").is_some()
            || one.get("items").is_some_and(|i| i.get("properties").is_some())
    };
    for one in schema.get("oneOf").and_then(Value::as_array).into_iter().flatten().filter(tables) {
        is_leaf = path == "load.drain";
        collect(one, root, path, leaves);
    }
    if is_leaf {
        leaves.insert(path.to_owned());
    }
}
