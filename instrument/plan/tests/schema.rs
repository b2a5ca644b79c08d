//! The JSON Schema and the reader know the same keys, and the table of keys knows them too.

use std::collections::BTreeSet;

use model::fault::{FaultKey, KeyForm, Length, Subject};
use plan::{EXPERIMENT_SCHEMA, Input, Outside, Source, keys, resolve};
use serde_json::Value;

type Keys = BTreeSet<String>;

/// Keys that the reader knows only to say that they are not built yet.
const UNBUILT: [&str; 7] = ["search", "metrics", "events", "plots", "every", "outage", "limiter"];

/// Every table of the file: how to write it with an unknown key in it, and where it stands in the schema.
const TABLES: [(&str, &str, &str); 25] = [
    ("", "", "zz0 = 1\n[system]\nkind = 'echo'\n[load]\nrate = '1/s'"),
    ("system", "/properties/system", "[system]\nkind = 'echo'\nzz0 = 1\n[load]\nrate = '1/s'"),
    ("load", "/$defs/load", "[load]\nrate = '1/s'\nzz0 = 1"),
    ("load", "/$defs/load", "[load]\nmodel = 'closed'\nclients = 1\nzz0 = 1"),
    ("load.ramp", "/$defs/load/properties/ramp", "[load.ramp]\nzz0 = 1"),
    ("load.steps[0]", "/$defs/load/properties/steps/oneOf/0/items", "[[load.steps]]\nzz0 = 1"),
    ("load.steps", "/$defs/load/properties/steps/oneOf/1", "[load]\nrate = '1/s'\nsteps.zz0 = 1"),
    ("load.steps.add", "/$defs/growth", "[load]\nrate = '1/s'\nsteps.add.zz0 = 1"),
    ("load.burst", "/$defs/load/properties/burst", "[load]\nrate = '1/s'\nburst.zz0 = 1"),
    ("load.batch", "/$defs/load/properties/batch", "[load]\nrate = '1/s'\nbatch.zz0 = 1"),
    ("load.trace", "/$defs/load/properties/trace", "[load.trace]\nzz0 = 1"),
    ("load.resend", "/$defs/load/properties/resend", "[load]\nrate = '1/s'\nresend.zz0 = 1"),
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

/// Claim: what the schema says of faults is what the list of kinds declares, word for word. `ASSAY_TEST_BLESS=1` writes
/// it there from the list.
#[test]
fn faults_of_the_schema_come_from_the_list() {
    let (before, rest) = EXPERIMENT_SCHEMA.split_once("    \"fault\": {\n").expect("the key");
    let (_, after) = rest.split_once("\n    },\n").expect("its end");
    let made = format!("{before}    \"fault\": {{\n{}\n    }},\n{after}", of_faults());
    if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/experiment.schema.json");
        std::fs::write(path, &made).unwrap();
    }
    let _: Value = serde_json::from_str(&made).expect("it is JSON");
    assert!(made == EXPERIMENT_SCHEMA, "the list of faults has changed; see the claim\n{made}");
}

/// The lines of the schema's key `fault`.
fn of_faults() -> String {
    let kinds = testbed::fault_kinds();
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word).collect();
    let is_short = |kind: &&model::fault::FaultKind| matches!(kind.length, Length::None { .. });
    let short: Vec<&str> = kinds.iter().filter(is_short).map(|kind| kind.called).collect();
    let (last, first) = words.split_last().expect("there are some");
    let mut lines = vec![
        ("at".to_owned(), r##"{ "$ref": "#/$defs/duration", "description": "After the start of the measured window." }"##.to_owned()),
        (
            "for".to_owned(),
            format!(
                r##"{{ "$ref": "#/$defs/duration", "description": "How long; not for {}." }}"##,
                short.join(" or ")
            ),
        ),
    ];
    for kind in kinds {
        let said = sentence(kind.meaning);
        let (node, said) =
            (r##"{ "$ref": "#/$defs/node" }"##, format!(r#""description": "{said}""#));
        let value = match kind.on {
            Subject::Node => format!(r##"{{ "$ref": "#/$defs/node", {said} }}"##),
            Subject::Nodes => format!(
                r#"{{ "oneOf": [{node}, {{ "type": "array", "minItems": 1, "items": {node} }}], {said} }}"#
            ),
            Subject::Link(keys) => of_link(keys, &said),
        };
        lines.push((kind.word.to_owned(), value));
        for key in kind.keys {
            let said = format!("{}: {}", sentence(kind.word).trim_end_matches('.'), key.meaning);
            if !lines.iter().any(|(name, _)| name == key.name) {
                lines.push((key.name.to_owned(), of_key(key, &said)));
            }
        }
    }
    let lines: Vec<String> =
        lines.iter().map(|(name, value)| format!("          \"{name}\": {value}")).collect();
    format!(
        r#"      "type": "array",
      "description": "What is done to nodes and links during the trial; one of {} and {last} each.",
      "items": {{
        "type": "object",
        "additionalProperties": false,
        "required": ["at"],
        "properties": {{
{}
        }}
      }}"#,
        first.join(", "),
        lines.join(",\n")
    )
}

fn of_link(keys: &[FaultKey], said: &str) -> String {
    let mut lines = vec![
        r##""from": { "$ref": "#/$defs/node", "description": "The sending node; client is the instrument." }"##.to_owned(),
        r##""to": { "$ref": "#/$defs/node", "description": "The receiving node." }"##.to_owned(),
    ];
    lines.extend(keys.iter().map(|key| format!("\"{}\": {}", key.name, of_key(key, key.meaning))));
    format!(
        r#"{{
            "type": "object",
            "additionalProperties": false,
            "required": ["from", "to"],
            {said},
            "properties": {{
              {}
            }}
          }}"#,
        lines.join(",\n              ")
    )
}

fn of_key(key: &FaultKey, said: &str) -> String {
    let form = match key.form {
        KeyForm::Duration => r##""$ref": "#/$defs/duration""##.to_owned(),
        KeyForm::Share => r##""$ref": "#/$defs/share""##.to_owned(),
        KeyForm::Bandwidth => r##""$ref": "#/$defs/bandwidth""##.to_owned(),
        KeyForm::Size => r#""type": "string""#.to_owned(),
        KeyForm::Count(min, max) => {
            format!(r#""type": "integer", "minimum": {min}, "maximum": {max}"#)
        }
        KeyForm::Flag => r#""type": "boolean", "default": false"#.to_owned(),
        KeyForm::Word(words) => format!(r#""enum": ["{}"]"#, words.join("\", \"")),
    };
    let rule =
        if key.default.is_empty() { String::new() } else { format!(" Default: {}.", key.default) };
    format!(r#"{{ {form}, "description": "{}{rule}" }}"#, sentence(said))
}

/// With a capital and a final stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
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
