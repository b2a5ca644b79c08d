//! The schema of an experiment file, made of the table of keys, the list of faults, and what only the schema can say: the
//! forms of texts, and the tables whose keys are the user's own.

use model::fault::{FaultKey, KeyForm, Length, Subject};
use plan::keys::{Fallback, Form, KEYS, Key};
use serde_json::{Map, Value, json};

/// Tables that are described: as a path of the table of keys has them.
const TABLES: [(&str, &str); 7] = [
    ("probe", "A light client whose latency is the result, beside the load."),
    ("links", "A network of the trial's own between the nodes."),
    ("links.client", "The same between the instrument and every node."),
    ("links.pair[]", "Links that differ; of several that fit, the last holds."),
    (
        "disk",
        "A disk of the testbed's own under the files of nodes, which can lose its power and be slow, full or faulty.",
    ),
    (
        "load.batch",
        "Transactions wait on their connection and leave together; without it each leaves at once.",
    ),
    (
        "load.resend",
        "What is unknown is sent again, with the same id: its connection was lost, or it had no answer for a time. load.timeout, from when it was due, bounds all attempts. Without it nothing is sent twice.",
    ),
];

/// A closed load has clients instead of rates: what the table calls required is so of the one or of the other.
const REQUIRED_OF_SOME: [&str; 3] = ["load.rate", "load.steps[].rate", "load.steps[].clients"];

/// Tables that must be there where their table is, although no one key of theirs must.
const REQUIRED_TABLES: [&str; 4] = ["system", "load", "load.steps.add", "load.steps.until"];

/// The whole schema.
pub fn schema() -> Value {
    let mut root = table();
    let properties = object(&mut root, "properties");
    for own in ["matrix", "include", "exclude", "profile"] {
        properties.insert(own.to_owned(), users_own(own));
    }
    for key in KEYS.iter().filter(|key| !key.path.starts_with("fault[]")) {
        put(&mut root, key);
    }
    for (name, value) in [("fault", of_faults()), ("$defs", forms())] {
        match name {
            "$defs" => root[name] = value,
            _ => drop(object(&mut root, "properties").insert(name.to_owned(), value)),
        }
    }
    let mut all = Map::new();
    all.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    all.insert("$id".into(), "assay.experiment/1".into());
    all.insert("title".into(), "Assay experiment file".into());
    all.extend(root.as_object().cloned().expect("a table is an object"));
    all.into()
}

/// An empty table.
fn table() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": {} })
}

/// An empty table, or a list of such, as it stands at `path`.
fn fresh(path: &str, is_list: bool) -> Value {
    let mut made = match is_list {
        true => json!({ "type": "array", "items": table() }),
        false => table(),
    };
    if let Some((_, said)) = TABLES.iter().find(|(known, _)| *known == path) {
        made["description"] = (*said).into();
    }
    made
}

fn object<'v>(value: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    value[key].as_object_mut().expect("made as an object")
}

/// Puts a key where its path says, making the tables on the way there.
fn put(root: &mut Value, key: &Key) {
    let mut at = root;
    let mut path = String::new();
    let segments: Vec<&str> = key.path.split('.').collect();
    let (name, tables) = segments.split_last().expect("a path has a name");
    for segment in tables {
        let bare = segment.trim_end_matches("[]");
        path = if path.is_empty() { (*segment).to_owned() } else { format!("{path}.{segment}") };
        if REQUIRED_TABLES.contains(&path.as_str()) {
            require(at, bare);
        }
        let properties = object(at, "properties");
        let place = properties.entry(bare).or_insert(Value::Null);
        at = inner(place, &path, segment.ends_with("[]"));
    }
    if key.fallback == Fallback::Required && !REQUIRED_OF_SOME.contains(&key.path) {
        require(at, name);
    }
    object(at, "properties").insert((*name).to_owned(), form(key));
}

/// The table at a place, made if it is not there: itself, the items of a list, or (where both may be written) one of two.
fn inner<'v>(place: &'v mut Value, path: &str, is_list: bool) -> &'v mut Value {
    let is_other = |value: &Value| (value["type"] == "array") != is_list;
    if place.is_null() {
        *place = fresh(path, is_list);
    } else if place["oneOf"].is_null() && is_other(place) {
        *place = json!({ "oneOf": [place.take(), fresh(path, is_list)] });
    }
    let chosen = match place["oneOf"].is_null() {
        true => place,
        false => {
            let both = place["oneOf"].as_array_mut().expect("made as a list");
            both.iter_mut().find(|one| !is_other(one)).expect("there are both")
        }
    };
    if is_list { &mut chosen["items"] } else { chosen }
}

fn require(at: &mut Value, name: &str) {
    let mut required = at["required"].as_array().cloned().unwrap_or_default();
    if !required.contains(&name.into()) {
        required.push(name.into());
    }
    at["required"] = required.into();
}

/// The allowed values of a key, its default and its meaning.
fn form(key: &Key) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let mut made = match key.form {
        Form::Text => json!({ "type": "string" }),
        Form::Texts => {
            json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
        }
        Form::Word(words) => json!({ "enum": words }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Integer(min, u64::MAX) => json!({ "type": "integer", "minimum": min }),
        Form::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Form::IntegerOr(min, max, word) => json!({ "oneOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "enum": [word] },
        ] }),
        Form::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Form::Duration => reference("duration"),
        Form::Rate => reference("rate"),
        Form::Share => reference("share"),
        Form::Bandwidth => reference("bandwidth"),
        Form::Size => reference("size"),
        Form::Node => reference("node"),
        Form::Nodes => json!({ "type": "array", "minItems": 1, "items": reference("node") }),
        Form::Settings => reference("at"),
        Form::Verdict => reference("verdict"),
        Form::Table => json!({ "type": "object" }),
        Form::Own => own(key.path),
    };
    let mut said = format!("{}.", key.meaning);
    match key.fallback {
        Fallback::Fixed(text) => {
            if let Some(default) = default(key, text) {
                made["default"] = default;
            }
        }
        Fallback::Rule(rule) => said.push_str(&format!(" Default: {rule}.")),
        Fallback::Required | Fallback::Nothing => {}
    }
    made["description"] = said.into();
    made
}

fn default(key: &Key, text: &str) -> Option<Value> {
    match key.form {
        Form::Integer(..) | Form::Number(..) | Form::Flag => {
            Some(serde_json::from_str(text).expect("a default is of its form"))
        }
        // A word that stands for none.
        Form::Word(_) if text.is_empty() => None,
        Form::Own => Some(
            text.split(' ')
                .map(|one| -> Value {
                    serde_json::from_str(one).expect("the percentiles are numbers")
                })
                .collect(),
        ),
        _ => Some(text.into()),
    }
}

/// Forms that one key has.
fn own(path: &str) -> Value {
    match path {
        "name" => {
            json!({ "type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]*$" })
        }
        "measure.percentiles" => json!({
            "type": "array", "minItems": 1, "maxItems": 100,
            "items": { "oneOf": [
                { "type": "number", "minimum": 0, "maximum": 100 },
                { "type": "string", "pattern": "^(p[0-9.]+|[0-9.]+%)$" },
            ] },
        }),
        "load.drain" => json!({ "oneOf": [
            { "$ref": "#/$defs/duration" },
            {
                "type": "object", "additionalProperties": false,
                "properties": { "max": { "$ref": "#/$defs/duration" } },
            },
        ] }),
        "search.most" => json!({ "oneOf": [
            { "$ref": "#/$defs/rate" },
            { "type": "integer", "minimum": 1 },
        ] }),
        other => panic!("{other} has a form of its own, and it is not here"),
    }
}

/// Tables whose keys are the user's.
fn users_own(name: &str) -> Value {
    match name {
        "matrix" => json!({
            "type": "object",
            "description": "Axes: name to values; every combination is a setting.",
            "propertyNames": { "pattern": "^[A-Za-z0-9_.-]+$", "not": { "const": "expect" } },
            "additionalProperties": { "oneOf": [
                {
                    "type": "array", "minItems": 1,
                    "description": "Values of the key of [load] with the axis's name, or of the dotted path that the name is.",
                },
                { "$ref": "#/$defs/axis" },
            ] },
        }),
        "include" => json!({
            "type": "array",
            "description": "Further settings: one value, or several, of every axis.",
            "items": { "type": "object", "properties": {
                "set": { "description": "Dotted path to value, beside the axes (or a value of an axis called set)." },
                "expect": { "$ref": "#/$defs/verdict" },
            } },
        }),
        "exclude" => json!({
            "type": "array",
            "description": "Settings of the matrix to leave out, by one value or several of some axes.",
            "items": { "type": "object" },
        }),
        _ => json!({
            "type": "object",
            "description": "Overlays by name, chosen with --profile: the same keys as the file.",
            "additionalProperties": { "type": "object" },
        }),
    }
}

/// Forms that several keys have.
fn forms() -> Value {
    let text = |pattern: &str, said: &str| json!({ "type": "string", "pattern": pattern, "description": said });
    let node = "A node's name, or the beginning of names and *.";
    json!({
        "duration": text("^([0-9._]+ ?(ns|us|µs|ms|s|m|min|h|d) ?)+$|^0$", "A number with a unit: 250us, 30s, 1h30m."),
        "rate": text(
            "^([0-9._]+ ?/ ?[0-9._]*(ns|us|µs|ms|s|m|min|h|d)|max|inf)$",
            "Events and a time: 50/s, 600/1m; or max.",
        ),
        "bandwidth": text(
            "^([0-9._]+ ?([kMG]?(bit|B)|[KMG]iB)/s|max)$",
            "A number with a unit: 100Mbit/s, 10MB/s; or max.",
        ),
        "size": text("^[0-9._]+ ?([kMG]?B|[KMG]iB)$", "A number with a unit: 64MiB, 1GB."),
        "share": text("^[0-9._]+ ?%$", "A percentage: 0.1%."),
        "node": { "type": "string", "pattern": "^[A-Za-z0-9._-]*\\*?$", "minLength": 1, "description": node },
        "verdict": {
            "enum": ["pass", "fail", "invalid"],
            "description": "The verdict that these settings should have.",
        },
        "at": { "type": "object", "description": "Which settings: label by axis. All without it." },
        "axis": {
            "type": "object", "additionalProperties": false, "required": ["set", "values"],
            "properties": {
                "set": text(
                    "^(load|probe|measure|system|workload|links|disk|fault)(\\.[^.]+)*$",
                    "The dotted path that the values are put at.",
                ),
                "values": { "type": "array", "minItems": 1 },
                "labels": {
                    "type": "array", "items": { "type": "string" },
                    "description": "What to call the values, for those that make no short text.",
                },
            },
        },
    })
}

/// The key `fault`: two keys that all have, then each kind with its own, as the testbed declares them.
fn of_faults() -> Value {
    let kinds = testbed::fault_kinds();
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word).collect();
    let is_short = |kind: &&model::fault::FaultKind| matches!(kind.length, Length::None { .. });
    let short: Vec<&str> = kinds.iter().filter(is_short).map(|kind| kind.called).collect();
    let mut properties = Map::new();
    let mut put = |name: &str, form: Value, said: String| {
        let mut made = form;
        made["description"] = said.into();
        properties.entry(name).or_insert(made);
    };
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let meaning = |path: &str| {
        let key = KEYS.iter().find(|key| key.path == path);
        key.map(|key| key.meaning.to_owned()).expect("all faults have it")
    };
    put("at", reference("duration"), format!("{}.", meaning("fault[].at")));
    let not = short.join(" or ");
    put("for", reference("duration"), format!("{}; not for {not}.", meaning("fault[].for")));
    for kind in kinds {
        let node = reference("node");
        let form = match kind.on {
            Subject::Node => node,
            Subject::Nodes => {
                json!({ "oneOf": [node, { "type": "array", "minItems": 1, "items": node }] })
            }
            Subject::Link(keys) => of_link(keys),
        };
        put(kind.word, form, sentence(kind.meaning));
        for key in kind.keys {
            let said = format!("{}: {}", sentence(kind.word).trim_end_matches('.'), key.meaning);
            put(key.name, of_key(key), with_rule(key, &said));
        }
    }
    let (last, first) = words.split_last().expect("there are some");
    json!({
        "type": "array",
        "description": format!(
            "What is done to nodes and links during the trial; one of {} and {last} each.",
            first.join(", ")
        ),
        "items": {
            "type": "object", "additionalProperties": false, "required": ["at"], "properties": properties,
        },
    })
}

fn of_link(keys: &[FaultKey]) -> Value {
    let end = |said: &str| json!({ "$ref": "#/$defs/node", "description": said });
    let mut properties = Map::new();
    properties.insert("from".into(), end("The sending node; client is the instrument."));
    properties.insert("to".into(), end("The receiving node."));
    for key in keys {
        let mut made = of_key(key);
        made["description"] = with_rule(key, key.meaning).into();
        properties.insert(key.name.to_owned(), made);
    }
    json!({
        "type": "object", "additionalProperties": false, "required": ["from", "to"], "properties": properties,
    })
}

fn of_key(key: &FaultKey) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    match key.form {
        KeyForm::Duration => reference("duration"),
        KeyForm::Share => reference("share"),
        KeyForm::Bandwidth => reference("bandwidth"),
        KeyForm::Size => json!({ "type": "string" }),
        KeyForm::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        KeyForm::Flag => json!({ "type": "boolean", "default": false }),
        KeyForm::Word(words) => json!({ "enum": words }),
    }
}

fn with_rule(key: &FaultKey, said: &str) -> String {
    match key.default {
        "" => sentence(said),
        rule => format!("{} Default: {rule}.", sentence(said)),
    }
}

/// With a capital and a final stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
