//! The JSON Schema and the reader know the same keys, and the table of keys knows them too.

#[path = "../../report/tests/report/json_schema.rs"]
mod json_schema;
#[path = "schema/made.rs"]
mod made;

use std::collections::BTreeSet;

use json_schema::Validator;
use model::fault::Subject;
use plan::{EXPERIMENT_SCHEMA, Input, Outside, Source, keys, resolve};
use serde_json::Value;

type Keys = BTreeSet<String>;

/// Keys that the reader knows only to say that they are not built yet.
const UNBUILT: [&str; 6] = ["metrics", "events", "plots", "every", "outage", "limiter"];

/// Every table of the file: how to write it with an unknown key in it, and where it stands in the schema.
const TABLES: [(&str, &str, &str); 27] = [
    ("", "", "zz0 = 1\n[system]\nkind = 'echo'\n[load]\nrate = '1/s'"),
    ("system", "/properties/system", "[system]\nkind = 'echo'\nzz0 = 1\n[load]\nrate = '1/s'"),
    ("load", "/properties/load", "[load]\nrate = '1/s'\nzz0 = 1"),
    ("against", "/properties/against", "[against]\nzz0 = 1"),
    ("search", "/properties/search", "[search]\nzz0 = 1"),
    ("load", "/properties/load", "[load]\nmodel = 'closed'\nclients = 1\nzz0 = 1"),
    ("load.ramp", "/properties/load/properties/ramp", "[load.ramp]\nzz0 = 1"),
    ("load.steps[0]", "/properties/load/properties/steps/oneOf/0/items", "[[load.steps]]\nzz0 = 1"),
    (
        "load.steps",
        "/properties/load/properties/steps/oneOf/1",
        "[load]\nrate = '1/s'\nsteps.zz0 = 1",
    ),
    (
        "load.steps.add",
        "/properties/load/properties/steps/oneOf/1/properties/add",
        "[load]\nrate = '1/s'\nsteps.add.zz0 = 1",
    ),
    ("load.burst", "/properties/load/properties/burst", "[load]\nrate = '1/s'\nburst.zz0 = 1"),
    ("load.batch", "/properties/load/properties/batch", "[load]\nrate = '1/s'\nbatch.zz0 = 1"),
    ("load.trace", "/properties/load/properties/trace", "[load.trace]\nzz0 = 1"),
    ("load.resend", "/properties/load/properties/resend", "[load]\nrate = '1/s'\nresend.zz0 = 1"),
    (
        "load.drain",
        "/properties/load/properties/drain/oneOf/1",
        "[load]\nrate = '1/s'\ndrain.zz0 = 1",
    ),
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
    let outside = Outside { faults: testbed::fault_kinds(), ..Outside::default() };
    let rejected =
        resolve(&Input { file, outside, ..Input::default() }).expect_err("zz0 is no key");
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
    let mut table: Keys = keys::KEYS.iter().map(|key| key.path.to_owned()).collect();
    for kind in testbed::fault_kinds() {
        let inner = kind.inner_keys().iter().map(|key| key.name);
        match kind.on {
            Subject::Link(_) => table.extend(
                ["from", "to"]
                    .into_iter()
                    .chain(inner)
                    .map(|key| format!("fault[].{}.{key}", kind.word)),
            ),
            Subject::Node | Subject::Nodes => {
                table.insert(format!("fault[].{}", kind.word));
            }
        }
        table.extend(kind.keys.iter().map(|key| format!("fault[].{}", key.name)));
    }
    assert_eq!(leaves, table);
}

/// Claim: the schema is what the table of keys and the list of faults make it, word for word. `ASSAY_TEST_BLESS=1` writes
/// it from them.
#[test]
fn the_schema_is_made_of_the_table() {
    let made = made::schema();
    let text = serde_json::to_string_pretty(&made).expect("it is JSON") + "\n";
    if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/experiment.schema.json");
        std::fs::write(path, &text).unwrap();
        return;
    }
    assert!(text == EXPERIMENT_SCHEMA, "the table of keys has changed; see the claim");
}

/// Claim: every experiment of the repository is one by the schema, and a key that is not known is none.
#[test]
fn experiments_are_of_the_schema() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let mut folders = vec![std::path::PathBuf::from(root)];
    let mut count = 0;
    let schema: Value = serde_json::from_str(EXPERIMENT_SCHEMA).unwrap();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Manifests of networks and lists of stores are no experiments.
                let is_none = path.ends_with("manifests") || path.ends_with("stores");
                folders.extend((!is_none).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let mut value: Value = toml::from_str(&text).unwrap();
                let said = Validator::new(&schema).check(&value, &schema, "");
                assert_eq!(said, Ok(()), "{}", path.display());
                value["surprise"] = 1.into();
                assert!(Validator::new(&schema).check(&value, &schema, "").is_err());
                count += 1;
            }
        }
    }
    assert!(count >= 10, "{count}");
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
