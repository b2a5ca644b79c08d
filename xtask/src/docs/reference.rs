//! Reference pages made from what `assay schema` prints: keys of experiment files, fields of the result
//! document, whose schema is made of its types. All are kept in the repository, so that they can be read without building
//! anything; one that is not what its source says is a finding.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

/// What `assay schema experiment` prints.
const EXPERIMENT: &str = "instrument/plan/schema/experiment.schema.json";
/// What `assay schema result` prints.
const RESULT: &str = "instrument/report/schema/result.schema.json";

/// Deeper is no file of ours; the schemas have cycles in principle.
const DEPTH_MAX: usize = 8;

/// Compares the generated pages with the schemas, or writes them.
pub fn run(root: &Path, write: bool) -> Result<Vec<String>, String> {
    let of_result = super::schema::result(root)?;
    let parsed = serde_json::from_str(&of_result).expect("it was printed as JSON");
    let made = [
        ("docs/reference/experiment-keys.md", experiment_page(&schema(root, EXPERIMENT)?)),
        ("docs/reference/result-document.md", result_page(&parsed)),
        (RESULT, of_result),
    ];
    let mut findings = Vec::new();
    for (name, wanted) in made.into_iter().chain(super::audits::pages(root)?) {
        let path = root.join(name);
        if write {
            std::fs::write(&path, wanted).map_err(|error| format!("writing {name}: {error}"))?;
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(wanted.as_str()) {
            findings
                .push(format!("{name} is not what its source says; run: cargo xtask docs --write"));
        }
    }
    Ok(findings)
}

/// A schema file: what `assay schema` prints is this text, built in.
fn schema(root: &Path, name: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(root.join(name))
        .map_err(|error| format!("reading {name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name} is no JSON: {error}"))
}

fn experiment_page(schema: &Value) -> String {
    let mut page = "\
# Keys of an experiment file

Generated from `assay schema experiment` by `cargo xtask docs --write`. A key that is not here is an error, with \
a suggestion. `[]` stands after a list of tables; `NAME` for a name of your choice. The keys under \
`system.deploy` and `workload` are the system's own: see \
[cometbft](../systems/cometbft.md), [echo](../systems/echo.md), [etcd](../systems/etcd.md), \
[http](../systems/http.md), [kafka](../systems/kafka.md), [nats](../systems/nats.md), [postgres](../systems/postgres.md) and \
[redis](../systems/redis.md).

| key | form | default | meaning |
| --- | --- | --- | --- |
"
    .to_owned();
    rows(schema, schema, "", 0, &mut page);
    page
}

fn result_page(schema: &Value) -> String {
    let mut page = "\
# The result document

Generated from `assay schema result` by `cargo xtask docs --write`. `assay run --json` prints one such document; \
it is `summary.json` in the run folder, and `assay report --format json` computes it again. Units stand in the \
names. A number that cannot be given is `null`.

## Versions

`schema` names the version. A key that is added does not change it: pass over keys that you do not know. It changes where \
a key means something else, or is gone. `assay list` does not read a result of another version; `assay report FOLDER` \
computes it anew from the record, whose files have versions of their own.

What is another in `assay.result/2` than in `assay.result/1`, and what a reader must do:

* `verdict`: a threshold that failed by a valid number comes before a number that is not valid. A run that was `invalid` (97) may \
be `fail` (99) now; treat both as no pass.
* `audits`: one that failed no longer makes its trial invalid. `voids` names the families of numbers that are not valid, and \
which way they may be wrong; take the verdict from `verdict`, and look into `voids` before using a number. `figures` are what the \
audit computed: read these, and not the sentence.
* `thresholds`: `holds` is what the value alone says. Decide by `answer`, one of four: undecided and invalid are \
no *yes*. `implicit` thresholds are in the list that nobody wrote: lost, doubled, invented and misplaced transactions, \
which once made a trial invalid.
* `quantiles[].unconditional_ns` and all that is *of all due*: a refusal counts with the time to its answer, and only what \
had no answer is infinite (`null`); where nothing was committed all of it is.
* `rates.goodput_per_s` is less the growth of what is outstanding, and `rates.sent_per_s` without what the drain sent. \
Both are smaller than before where a system was overloaded.
* What came after its timeout, counted from due, is not committed: there are fewer of them, and more of `unknown`.

## The document

| field | form | meaning |
| --- | --- | --- |
"
    .to_owned();
    fields(schema, schema, &mut page);
    let parts = schema["$defs"].as_object();
    for (name, part) in parts.into_iter().flatten() {
        if !is_part(part) {
            continue;
        }
        let _ = write!(page, "\n## {name}\n\n{}\n\n", text(part, "description"));
        if part["anyOf"].is_array() {
            let _ = writeln!(
                page,
                "It is {}.",
                result_form(schema, &serde_json::json!({ "anyOf": part["anyOf"] }))
            );
            continue;
        }
        page += "| field | form | meaning |\n| --- | --- | --- |\n";
        fields(schema, part, &mut page);
    }
    page
}

/// Whether a definition has a section of its own: an object, or one of several.
fn is_part(definition: &Value) -> bool {
    definition["properties"].is_object() || definition["anyOf"].is_array()
}

/// One row a property of one object.
fn fields(root: &Value, object: &Value, page: &mut String) {
    for (name, value) in object["properties"].as_object().into_iter().flatten() {
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} |",
            cell(&result_form(root, value)),
            cell(text(value, "description"))
        );
    }
}

/// The form of a field, with links to the parts of the document.
fn result_form(root: &Value, value: &Value) -> String {
    let target = resolved(root, value);
    if let Some(name) = value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"))
        && is_part(target)
    {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(items) = value.get("items").filter(|items| items.is_object()) {
        return format!("list of {}", result_form(root, items));
    }
    if let Some(each) = value.get("additionalProperties").filter(|each| each.is_object()) {
        return format!("table of {}", result_form(root, each));
    }
    let any = value["anyOf"].as_array().into_iter().flatten();
    let any: Vec<String> = any.map(|one| result_form(root, one)).collect();
    if any.is_empty() { form(target, target) } else { any.join(" or ") }
}

/// One row a key, tables within tables.
fn rows(root: &Value, object: &Value, prefix: &str, depth: usize, page: &mut String) {
    if depth > DEPTH_MAX {
        return;
    }
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, value) in object["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        row(root, value, &path, required.contains(&name.as_str()), depth, page);
    }
}

fn row(
    root: &Value,
    value: &Value,
    path: &str,
    is_required: bool,
    depth: usize,
    page: &mut String,
) {
    let target = resolved(root, value);
    let mut is_table = false;
    for (inner, suffix) in tables_in(root, target) {
        is_table = true;
        rows(root, inner, &format!("{path}{suffix}"), depth + 1, page);
    }
    if is_table && text(value, "description").is_empty() && text(target, "description").is_empty() {
        return;
    }
    let meaning = match text(value, "description") {
        "" => text(target, "description"),
        own => own,
    };
    let (meaning, rule) = meaning.split_once(" Default: ").unwrap_or((meaning, ""));
    let default = match value.get("default").or_else(|| target.get("default")) {
        Some(Value::String(text)) if text.is_empty() => "empty".to_owned(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(other) => format!("`{other}`"),
        None if !rule.is_empty() => rule.trim_end_matches('.').to_owned(),
        None if is_required => "must be written".to_owned(),
        None => "–".to_owned(),
    };
    let form = if is_table { "table".to_owned() } else { form(value, target) };
    let _ =
        writeln!(page, "| `{path}` | {} | {} | {} |", cell(&form), cell(&default), cell(meaning));
}

/// The tables that a value is, or holds: with what stands after its path.
fn tables_in<'a>(root: &'a Value, value: &'a Value) -> Vec<(&'a Value, &'static str)> {
    let mut found = Vec::new();
    let alternatives = value["oneOf"].as_array().into_iter().flatten();
    for value in std::iter::once(value).chain(alternatives.map(|one| resolved(root, one))) {
        if value["properties"].is_object() {
            found.push((value, ""));
        }
        let items = resolved(root, &value["items"]);
        if items["properties"].is_object() {
            found.push((items, "[]"));
        }
        let each = resolved(root, &value["additionalProperties"]);
        let each = each["oneOf"].as_array().into_iter().flatten().map(|one| resolved(root, one));
        found.extend(each.filter(|one| one["properties"].is_object()).map(|one| (one, ".NAME")));
    }
    found
}

fn resolved<'a>(root: &'a Value, value: &'a Value) -> &'a Value {
    let name = value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    name.map_or(value, |name| &root["$defs"][name])
}

/// What may be written, in a word or two.
fn form(value: &Value, target: &Value) -> String {
    if let Some(name) = value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"))
        && target["enum"].is_null()
    {
        return name.to_owned();
    }
    if let Some(words) = target["enum"].as_array() {
        let words: Vec<String> =
            words.iter().map(|word| format!("`{}`", word.to_string().replace('"', ""))).collect();
        return words.join(", ");
    }
    if let Some(constant) = target["const"].as_str() {
        return format!("`{constant}`");
    }
    let bounds = match (target["minimum"].as_f64(), target["maximum"].as_f64()) {
        (Some(low), Some(high)) => format!(" {low} to {high}"),
        (Some(low), None) => format!(" from {low}"),
        _ => String::new(),
    };
    let kind = match &target["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => {
            let one = target["oneOf"].as_array().into_iter().flatten();
            one.map(|one| form(one, one)).collect::<Vec<_>>().join(" or ")
        }
    };
    format!("{}{bounds}", kind.replace("array", "list").replace("object", "table"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: tables, lists of tables, references and alternatives each give their keys with defaults.
    #[test]
    fn keys_of_a_schema() {
        let schema = serde_json::json!({
            "required": ["load"],
            "properties": {
                "load": { "$ref": "#/$defs/load" },
                "fault": { "type": "array", "items": { "properties": {
                    "at": { "$ref": "#/$defs/duration", "description": "When." }
                } } }
            },
            "$defs": {
                "load": { "properties": {
                    "threads": { "type": "integer", "minimum": 1, "default": 1, "description": "How many." },
                    "drain": { "type": "string", "description": "Wait. Default: the timeout." }
                } },
                "duration": { "type": "string" }
            }
        });
        let mut page = String::new();
        rows(&schema, &schema, "", 0, &mut page);
        assert_eq!(
            page,
            "| `load.threads` | integer from 1 | `1` | How many. |\n\
             | `load.drain` | string | the timeout | Wait. |\n\
             | `fault[].at` | duration | – | When. |\n"
        );
    }
}
