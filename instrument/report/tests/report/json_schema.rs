//! A document against a JSON Schema, for the tests of both schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A validator for as much of JSON Schema as the schema uses; a keyword that it does not know is an error, so that
/// nothing in the schema goes unchecked.
pub struct Validator {
    pub root: Value,
    /// Definitions that some value has been held against.
    pub visited: BTreeSet<String>,
}

impl Validator {
    pub fn new(root: &Value) -> Self {
        Self { root: root.clone(), visited: BTreeSet::new() }
    }

    pub fn check(&mut self, value: &Value, schema: &Value, path: &str) -> Result<(), String> {
        for (keyword, rule) in schema.as_object().ok_or("a schema is an object")? {
            self.keyword(keyword, rule, value, schema, path)?;
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        keyword: &str,
        rule: &Value,
        value: &Value,
        schema: &Value,
        path: &str,
    ) -> Result<(), String> {
        match keyword {
            "$schema" | "$id" | "title" | "description" | "$defs" | "default" => Ok(()),
            // Forms of texts are the readers', who are tested with them.
            "pattern" | "maxLength" | "minLength" | "propertyNames" => Ok(()),
            "type" => type_matches(rule, value)
                .then_some(())
                .ok_or_else(|| format!("{path}: {value} is not of type {rule}")),
            "const" => (rule == value).then_some(()).ok_or_else(|| format!("{path}: not {rule}")),
            "enum" => {
                let is_one = rule.as_array().is_some_and(|all| all.contains(value));
                is_one.then_some(()).ok_or_else(|| format!("{path}: {value} is none of {rule}"))
            }
            "minimum" => {
                let is_less = value.is_number() && value.as_f64() < rule.as_f64();
                (!is_less).then_some(()).ok_or_else(|| format!("{path}: {value} < {rule}"))
            }
            "maximum" => {
                let is_more = value.is_number() && value.as_f64() > rule.as_f64();
                (!is_more).then_some(()).ok_or_else(|| format!("{path}: {value} > {rule}"))
            }
            "maxItems" => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                (Some(count) <= rule.as_u64()).then_some(()).ok_or(format!("{path}: too long"))
            }
            "minItems" => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                (Some(count) >= rule.as_u64()).then_some(()).ok_or(format!("{path}: too short"))
            }
            "$ref" => {
                let name = rule.as_str().and_then(|it| it.strip_prefix("#/$defs/"));
                let name = name.ok_or_else(|| format!("{path}: reference {rule}"))?.to_owned();
                let target = self.root["$defs"][&name].clone();
                self.visited.insert(name);
                self.check(value, &target, path)
            }
            "anyOf" => {
                let all = rule.as_array().ok_or("anyOf is a list")?;
                let found: Vec<String> =
                    all.iter().filter_map(|one| self.check(value, one, path).err()).collect();
                if found.len() < all.len() { Ok(()) } else { Err(found.join("; ")) }
            }
            "oneOf" => {
                let all = rule.as_array().ok_or("oneOf is a list")?;
                let fits = |one: &&Value| self.check(value, one, path).is_ok();
                let count = all.iter().filter(fits).count();
                (count == 1).then_some(()).ok_or_else(|| format!("{path}: {count} of {rule} fit"))
            }
            "items" | "prefixItems" => self.items(value, schema, path),
            "required" => {
                let has = |key: &Value| value.get(key.as_str().unwrap_or_default()).is_some();
                let missing = rule.as_array().and_then(|keys| keys.iter().find(|key| !has(key)));
                missing.map_or(Ok(()), |key| Err(format!("{path}: {key} is required")))
            }
            "properties" | "additionalProperties" => self.properties(value, schema, path),
            other => Err(format!("{path}: the test does not know the keyword {other}")),
        }
    }

    fn items(&mut self, value: &Value, schema: &Value, path: &str) -> Result<(), String> {
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let rule = prefix.and_then(|rules| rules.get(index)).unwrap_or(&schema["items"]);
            match rule {
                Value::Bool(false) => return Err(format!("{path}: more items than described")),
                rule => self.check(item, rule, &format!("{path}[{index}]"))?,
            }
        }
        Ok(())
    }

    fn properties(&mut self, value: &Value, schema: &Value, path: &str) -> Result<(), String> {
        let empty = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        // An object that says nothing of other keys may have any.
        let is_open = schema.get("additionalProperties").is_none();
        for (key, item) in value.as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            match (known.get(key), &schema["additionalProperties"]) {
                (Some(rule), _) => self.check(item, rule, &path)?,
                (None, Value::Object(_)) => {
                    self.check(item, &schema["additionalProperties"], &path)?;
                }
                (None, _) if is_open => {}
                (None, _) => return Err(format!("{path} is not described")),
            }
        }
        Ok(())
    }
}

fn type_matches(rule: &Value, value: &Value) -> bool {
    let one = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => false,
    };
    rule.as_array().map_or_else(|| one(rule), |all| all.iter().any(one))
}
