//! YAML 1.2 (core schema) into a JSON value, from the events of `saphyr-parser`. The tree is built here and not
//! by a loader, because an alias may stand for a tree of aliases: nodes are counted as they are copied.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Nodes of a document, aliases counted as often as they stand there. The largest published description, of
/// 10 MB, has some 700,000.
const NODES_MAX: usize = 4_000_000;
/// As deep as the JSON parser goes.
const DEPTH_MAX: usize = 128;
/// Bytes of text that count as a node when they are copied: what a node itself takes.
const BYTES_PER_NODE: usize = 32;

/// The first document in a text.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut tree = Tree::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("it is not YAML: {error}"))?;
        let line = span.start.line();
        match event {
            Event::DocumentEnd => break,
            Event::SequenceStart(anchor, _) => tree.open(Open::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => tree.open(Open::Table(Map::new(), None), anchor),
            Event::SequenceEnd | Event::MappingEnd => tree.close(),
            Event::Scalar(text, style, anchor, _) => tree.put(scalar(&text, style), anchor),
            Event::Alias(anchor) => tree.alias(anchor),
            _ => Ok(()),
        }
        .map_err(|why| format!("line {line}: {why}"))?;
    }
    tree.root.ok_or_else(|| "there is no document in it".to_owned())
}

enum Open {
    List(Vec<Value>),
    /// The entries, and the key that waits for its value.
    Table(Map<String, Value>, Option<String>),
}

#[derive(Default)]
struct Tree {
    root: Option<Value>,
    open: Vec<(Open, usize)>,
    /// Looked up, never walked.
    anchors: HashMap<usize, (Value, usize)>,
    node_count: usize,
}

impl Tree {
    fn open(&mut self, open: Open, anchor: usize) -> Result<(), String> {
        if self.open.len() == DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        self.open.push((open, anchor));
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let (open, anchor) = self.open.pop().ok_or("something ends that never began")?;
        let value = match open {
            Open::List(items) => Value::Array(items),
            Open::Table(table, _) => Value::Object(table),
        };
        self.put(value, anchor)
    }

    fn alias(&mut self, anchor: usize) -> Result<(), String> {
        let (value, size) =
            self.anchors.get(&anchor).ok_or("the alias stands inside what it names")?;
        if self.open.len() + depth(value) > DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        self.count(*size)?;
        let value = self.anchors.get(&anchor).map(|(value, _)| value.clone()).unwrap_or_default();
        self.place(value)
    }

    fn put(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        self.count(1)?;
        if anchor > 0 {
            let size = size(&value);
            self.count(size)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        self.place(value)
    }

    fn count(&mut self, more: usize) -> Result<(), String> {
        self.node_count = self.node_count.saturating_add(more);
        if self.node_count > NODES_MAX {
            return Err(format!("with its aliases it has more than {NODES_MAX} nodes"));
        }
        Ok(())
    }

    fn place(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((Open::List(items), _)) => items.push(value),
            Some((Open::Table(_, key @ None), _)) => {
                *key = Some(match value {
                    Value::String(text) => text,
                    Value::Array(_) | Value::Object(_) => {
                        return Err("a list or a table cannot be a key".to_owned());
                    }
                    plain => plain.to_string(),
                });
            }
            Some((Open::Table(table, key), _)) => {
                let key = key.take().unwrap_or_default();
                match value {
                    value if key != "<<" => drop(table.insert(key, value)),
                    Value::Object(more) => merge(table, more),
                    Value::Array(items) if items.iter().all(Value::is_object) => {
                        for item in items {
                            if let Value::Object(more) = item {
                                merge(table, more);
                            }
                        }
                    }
                    value => drop(table.insert(key, value)),
                }
            }
        }
        Ok(())
    }
}

/// `<<: *other`, which YAML 1.2 no longer has and descriptions use: what the table says itself stands.
fn merge(table: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        table.entry(key).or_insert(value);
    }
}

/// Nodes, and texts by their length.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(table) => {
            let of = |(key, value): (&String, &Value)| key.len() / BYTES_PER_NODE + size(value);
            1 + table.iter().map(of).sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / BYTES_PER_NODE,
        _ => 1,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(table) => 1 + table.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Only plain scalars are anything but texts (YAML 1.2.2, 10.3.2).
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let looks_numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if looks_numeric && text.bytes().any(|byte| byte.is_ascii_digit()) {
        if let Ok(number) = text.parse::<i64>() {
            return Value::from(number);
        }
        if let Ok(number) = text.parse::<u64>() {
            return Value::from(number);
        }
        // An id of more digits than a number keeps stays as it is written.
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Value::from(text);
        }
        if let Some(number) = text.parse::<f64>().ok().and_then(Number::from_f64) {
            return Value::Number(number);
        }
    }
    Value::from(text)
}
