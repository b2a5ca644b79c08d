//! The schema of the result document from the types that it is written from: their fields, their doc comments and what
//! they tell serde, read from the source of `model` with `syn`. The alternative, a derive (`schemars`), would stand in the
//! build of every crate and give descriptions and nullable numbers other forms than ours; this costs the instrument
//! nothing.
//!
//! It must never guess: a type or an attribute that it does not know is an error that names it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use syn::{Attribute, Expr, Field, Fields, GenericArgument, Item, Lit, Meta, PathArguments, Type};

/// Where the types stand.
const SOURCES: [&str; 2] = ["base/clock/src", "instrument/model/src"];
/// The document.
const ROOT: &str = "RunResult";
/// What stands at the top of the schema, beside what is made of the types.
const ID: &str = "urn:assay:result:2";
const DESCRIPTION: &str = "A whole run. Units stand in the keys. A number that cannot be given, or is not finite, is null.";
/// Objects and lists that are no longer than this stand on one line.
const WIDTH: usize = 120;

/// The schema as a file.
pub fn result(root: &Path) -> Result<String, String> {
    let types = Types::read(root)?;
    let mut text = String::new();
    print(&types.document()?, 0, &mut text);
    text.push('\n');
    Ok(text)
}

/// Every type and text constant of the sources, by name.
#[derive(Default)]
struct Types {
    items: BTreeMap<String, Vec<Item>>,
}

/// What a type or a field tells serde.
#[derive(Debug, Default)]
struct Told {
    /// `rename_all`: `lowercase` or `snake_case`.
    rename_all: Option<String>,
    rename: Option<String>,
    /// The key of an enum's word.
    tag: Option<String>,
    /// The type that it is written as.
    into: Option<String>,
    /// The module that writes it.
    with: Option<String>,
    is_transparent: bool,
    may_be_left_out: bool,
    is_skipped: bool,
}

impl Types {
    fn read(root: &Path) -> Result<Self, String> {
        let mut types = Self::default();
        for folder in SOURCES {
            types.read_folder(&root.join(folder))?;
        }
        Ok(types)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("reading {}: {error}", folder.display());
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            paths.push(entry.map_err(failed)?.path());
        }
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.read_folder(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).map_err(failed)?;
                let file = syn::parse_file(&text);
                self.take(file.map_err(|error| format!("{}: {error}", path.display()))?.items);
            }
        }
        Ok(())
    }

    fn take(&mut self, items: Vec<Item>) {
        for item in items {
            let name = match &item {
                Item::Struct(it) => it.ident.to_string(),
                Item::Enum(it) => it.ident.to_string(),
                Item::Type(it) => it.ident.to_string(),
                Item::Const(it) => it.ident.to_string(),
                _ => continue,
            };
            self.items.entry(name).or_default().push(item);
        }
    }

    /// The item of a name; names that the document needs are unique in the sources.
    fn item(&self, name: &str) -> Result<&Item, String> {
        match self.items.get(name).map(Vec::as_slice) {
            Some([item]) => Ok(item),
            Some(_) => Err(format!("`{name}` stands in the sources more than once")),
            None => Err(format!("`{name}` is no type that the schema knows")),
        }
    }

    fn document(&self) -> Result<Value, String> {
        let mut maker = Maker { types: self, wanted: VecDeque::new(), seen: BTreeSet::new() };
        let mut document = Map::new();
        document.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        document.insert("$id".into(), ID.into());
        document.insert("title".into(), self.text("SCHEMA")?.into());
        let Item::Struct(root) = self.item(ROOT)? else {
            return Err(format!("`{ROOT}` is no struct"));
        };
        let Value::Object(made) = maker.object(&root.fields, &root.attrs, ROOT)? else {
            return Err(format!("`{ROOT}` is no object"));
        };
        document.extend(made);
        document.insert("description".into(), DESCRIPTION.into());
        let mut definitions = Map::new();
        while let Some(name) = maker.wanted.pop_front() {
            let made = maker.definition(&name, &mut definitions)?;
            definitions.insert(name, made);
        }
        document.insert("$defs".into(), definitions.into());
        Ok(document.into())
    }

    /// The text of a constant.
    fn text(&self, name: &str) -> Result<String, String> {
        if let Item::Const(it) = self.item(name)?
            && let Expr::Lit(literal) = &*it.expr
            && let Lit::Str(text) = &literal.lit
        {
            return Ok(text.value());
        }
        Err(format!("`{name}` is no text"))
    }
}

struct Maker<'a> {
    types: &'a Types,
    /// Definitions that something refers to and that are still to be made.
    wanted: VecDeque<String>,
    seen: BTreeSet<String>,
}

impl Maker<'_> {
    fn definition(&mut self, name: &str, others: &mut Map<String, Value>) -> Result<Value, String> {
        match self.types.item(name)? {
            Item::Struct(it) => self.object(&it.fields, &it.attrs, name),
            Item::Enum(it) => self.words(it, name, others),
            _ => Err(format!("`{name}` is neither a struct nor an enum")),
        }
    }

    /// A struct, or the fields of a variant.
    fn object(
        &mut self,
        fields: &Fields,
        attributes: &[Attribute],
        name: &str,
    ) -> Result<Value, String> {
        let rename_all = told(attributes)?.rename_all;
        let mut required = Vec::new();
        let mut properties = Map::new();
        for field in fields {
            let key = field.ident.as_ref().ok_or(format!("`{name}` has fields without names"))?;
            let told = told(&field.attrs)?;
            if told.is_skipped {
                continue;
            }
            let key = told.rename.clone().unwrap_or_else(|| renamed(key, rename_all.as_deref()));
            if !told.may_be_left_out {
                required.push(Value::from(key.clone()));
            }
            let made = self.field(field, &told).map_err(|why| format!("{name}.{key}: {why}"))?;
            properties.insert(key, made);
        }
        Ok(object(doc(attributes), required, properties))
    }

    /// A key: what it means, then what stands there.
    fn field(&mut self, field: &Field, told: &Told) -> Result<Value, String> {
        let said = doc(&field.attrs);
        // A key that is documented by nothing but a constant has its value.
        let constant = said.trim_end_matches('.').trim_matches('`');
        if let Ok(Item::Const(it)) = self.types.item(constant) {
            let value = self.types.text(constant)?;
            return Ok(json!({ "description": doc(&it.attrs), "const": value }));
        }
        let form = match told.with.as_deref() {
            None => self.form(&field.ty)?,
            Some("duration_text") => json!({ "type": "string" }),
            Some("duration_text_option") => json!({ "type": ["string", "null"] }),
            Some(other) => return Err(format!("written by `{other}`, which is not known here")),
        };
        let mut made = Map::new();
        made.insert("description".into(), said.into());
        made.extend(form.as_object().cloned().unwrap_or_default());
        Ok(made.into())
    }

    /// An enum: words, or objects with a word.
    fn words(
        &mut self,
        it: &syn::ItemEnum,
        name: &str,
        others: &mut Map<String, Value>,
    ) -> Result<Value, String> {
        let of_all = told(&it.attrs)?;
        let word = |one: &syn::Variant| -> Result<String, String> {
            let own = told(&one.attrs)?.rename;
            Ok(own.unwrap_or_else(|| renamed(&one.ident, of_all.rename_all.as_deref())))
        };
        let said = doc(&it.attrs);
        if of_all.tag.is_none() && it.variants.iter().all(|one| one.fields.is_empty()) {
            let words = it.variants.iter().map(word).collect::<Result<Vec<_>, _>>()?;
            return Ok(json!({ "description": said, "enum": words }));
        }
        let mut any = Vec::new();
        for variant in &it.variants {
            let of_variant = format!("{name}{}", variant.ident);
            let word = word(variant)?;
            let made = match &of_all.tag {
                Some(tag) => self.tagged(variant, tag, &word, &of_variant)?,
                None => self.keyed(variant, &word, &of_variant)?,
            };
            any.push(reference(&of_variant));
            others.insert(of_variant, made);
        }
        Ok(json!({ "description": said, "anyOf": any }))
    }

    /// `{"what": "cut", …}`.
    fn tagged(
        &mut self,
        variant: &syn::Variant,
        tag: &str,
        word: &str,
        name: &str,
    ) -> Result<Value, String> {
        let inner = self.object(&variant.fields, &variant.attrs, name)?;
        let mut required = vec![Value::from(tag)];
        required.extend(inner["required"].as_array().cloned().unwrap_or_default());
        let mut properties = Map::new();
        properties.insert(tag.into(), json!({ "description": "Which it is.", "const": word }));
        properties.extend(inner["properties"].as_object().cloned().unwrap_or_default());
        Ok(object(doc(&variant.attrs), required, properties))
    }

    /// `{"count": 3}`.
    fn keyed(&mut self, variant: &syn::Variant, word: &str, name: &str) -> Result<Value, String> {
        let mut fields = variant.fields.iter();
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return Err(format!("`{name}` has not one field, which is not known here"));
        };
        let said = doc(&variant.attrs);
        let mut made = self.field(field, &told(&field.attrs)?)?;
        made["description"] = said.clone().into();
        let properties = Map::from_iter([(word.to_owned(), made)]);
        Ok(object(said, vec![word.into()], properties))
    }

    /// What a type is written as.
    fn form(&mut self, of: &Type) -> Result<Value, String> {
        match of {
            Type::Tuple(tuple) => {
                let items: Result<Vec<Value>, String> =
                    tuple.elems.iter().map(|item| self.form(item)).collect();
                let items = items?;
                let count = items.len();
                Ok(
                    json!({ "type": "array", "prefixItems": items, "minItems": count, "items": false }),
                )
            }
            Type::Path(path) => {
                let last = path.path.segments.last().ok_or("a type without a name")?;
                let inner = match &last.arguments {
                    PathArguments::AngleBracketed(inner) => inner.args.iter().collect(),
                    _ => Vec::new(),
                };
                self.named(&last.ident.to_string(), &inner)
            }
            _ => Err("a type that is not known here".to_owned()),
        }
    }

    fn named(&mut self, name: &str, inner: &[&GenericArgument]) -> Result<Value, String> {
        let mut of = |nth: usize| match inner.get(nth) {
            Some(GenericArgument::Type(of)) => self.form(of),
            _ => Err(format!("`{name}` of nothing")),
        };
        Ok(match name {
            "String" => json!({ "type": "string" }),
            "bool" => json!({ "type": "boolean" }),
            "u8" | "u16" | "u32" | "u64" | "usize" => json!({ "type": "integer", "minimum": 0 }),
            "i8" | "i16" | "i32" | "i64" => json!({ "type": "integer" }),
            // What is not finite is null.
            "f64" => json!({ "type": ["number", "null"] }),
            "Vec" => json!({ "type": "array", "items": of(0)? }),
            "BTreeMap" => json!({ "type": "object", "additionalProperties": of(1)? }),
            "Option" => or_null(of(0)?),
            "Box" => of(0)?,
            _ => self.of_ours(name)?,
        })
    }

    /// A type of the sources: what it is written as if that is another type, else a reference.
    fn of_ours(&mut self, name: &str) -> Result<Value, String> {
        let types = self.types;
        let (attributes, only) = match types.item(name)? {
            Item::Type(it) => return self.form(&it.ty),
            Item::Struct(it) => (&it.attrs, it.fields.iter().next()),
            Item::Enum(it) => (&it.attrs, None),
            _ => return Err(format!("`{name}` is no type")),
        };
        let told = told(attributes)?;
        if let Some(into) = &told.into {
            return self.named(into, &[]);
        }
        if told.is_transparent {
            return self.form(&only.ok_or(format!("`{name}` is transparent and empty"))?.ty);
        }
        if self.seen.insert(name.to_owned()) {
            self.wanted.push_back(name.to_owned());
        }
        Ok(reference(name))
    }
}

fn object(description: String, required: Vec<Value>, properties: Map<String, Value>) -> Value {
    json!({
        "description": description, "type": "object", "additionalProperties": false, "required": required,
        "properties": properties,
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A form, or null.
fn or_null(mut form: Value) -> Value {
    match form.get("type").cloned() {
        Some(Value::String(one)) if form.get("items").is_none() => {
            form["type"] = json!([one, "null"]);
            form
        }
        Some(Value::Array(_)) => form,
        _ => json!({ "anyOf": [form, { "type": "null" }] }),
    }
}

/// What serde is told by the attributes of a type, a variant or a field.
fn told(attributes: &[Attribute]) -> Result<Told, String> {
    let mut told = Told::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let read = attribute.parse_nested_meta(|meta| {
            let text = || -> syn::Result<Option<String>> {
                Ok(Some(meta.value()?.parse::<syn::LitStr>()?.value()))
            };
            let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match word.as_str() {
                "rename_all" => told.rename_all = text()?,
                "rename" => told.rename = text()?,
                "tag" => told.tag = text()?,
                "into" => told.into = text()?,
                "with" => told.with = text()?,
                "transparent" => told.is_transparent = true,
                "skip" => told.is_skipped = true,
                "skip_serializing_if" => {
                    text()?;
                    told.may_be_left_out = true;
                }
                // How it is read back says nothing of what is written.
                "default" | "from" | "alias" | "deserialize_with" => {
                    if meta.input.peek(syn::Token![=]) {
                        text()?;
                    }
                }
                other => return Err(meta.error(format!("serde's `{other}` is not known here"))),
            }
            Ok(())
        });
        read.map_err(|error| error.to_string())?;
    }
    Ok(told)
}

/// The doc comment as one text, without the brackets of links.
fn doc(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(text) = &literal.lit
        {
            lines.push(text.value().trim().to_owned());
        }
    }
    lines.join(" ").trim().replace("[`", "`").replace("`]", "`")
}

/// A name as serde writes it.
fn renamed(ident: &syn::Ident, rename_all: Option<&str>) -> String {
    let name = ident.to_string();
    match rename_all {
        Some("lowercase") => name.to_lowercase(),
        Some("snake_case") => {
            let mut out = String::new();
            for (nth, letter) in name.chars().enumerate() {
                if letter.is_uppercase() && nth > 0 {
                    out.push('_');
                }
                out.extend(letter.to_lowercase());
            }
            out
        }
        _ => name,
    }
}

/// JSON, on one line where it is short.
fn print(value: &Value, indent: usize, out: &mut String) {
    let flat = flat(value);
    let is_short = indent + flat.chars().count() <= WIDTH;
    match value {
        Value::Object(map) if !is_short => {
            out.push_str("{\n");
            for (nth, (key, value)) in map.iter().enumerate() {
                let key = format!("{}{}: ", " ".repeat(indent + 2), Value::from(key.as_str()));
                out.push_str(&key);
                print(value, indent + 2, out);
                out.push_str(if nth + 1 < map.len() { ",\n" } else { "\n" });
            }
            out.push_str(&format!("{}}}", " ".repeat(indent)));
        }
        Value::Array(items) if !is_short => {
            out.push_str("[\n");
            for (nth, value) in items.iter().enumerate() {
                out.push_str(&" ".repeat(indent + 2));
                print(value, indent + 2, out);
                out.push_str(if nth + 1 < items.len() { ",\n" } else { "\n" });
            }
            out.push_str(&format!("{}]", " ".repeat(indent)));
        }
        _ => out.push_str(&flat),
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let inner = map
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), flat(value)));
            format!("{{{}}}", inner.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(source: &str) -> Types {
        let mut types = Types::default();
        types.take(syn::parse_file(source).expect("it is Rust").items);
        types
    }

    /// Claim: fields, words, alternatives, what is written as another type and what may be left out come out as serde
    /// writes them, with their documents.
    #[test]
    fn forms() {
        let source = r#"
            /// The form's name.
            pub const SCHEMA: &str = "x/1";
            /// A run.
            pub struct RunResult {
                /// [`SCHEMA`].
                pub schema: String,
                /// How long.
                #[serde(default)]
                pub ns: Option<i64>,
                /// Pairs.
                pub pairs: Vec<(String, f64)>,
                /// What was said, see [`Said`].
                #[serde(skip_serializing_if = "Option::is_none")]
                pub said: Option<Said>,
                /// By name.
                pub by_name: BTreeMap<String, Unit>,
            }
            /// One of two.
            #[serde(tag = "what", rename_all = "snake_case")]
            pub enum Said {
                /// Nothing.
                NotAThing,
                /// Something.
                Thing {
                    /// The word.
                    word: Word,
                },
            }
            /// A word.
            #[serde(rename_all = "lowercase")]
            pub enum Word {
                A,
                Bc,
                #[serde(rename = "d.e")]
                De,
            }
            #[serde(into = "String")]
            pub enum Unit { A }
        "#;
        let made = types(source).document().expect("all of it is known");
        assert_eq!(made["title"], "x/1");
        assert_eq!(made["required"], json!(["schema", "ns", "pairs", "by_name"]));
        let keys = &made["properties"];
        assert_eq!(keys["schema"], json!({ "description": "The form's name.", "const": "x/1" }));
        assert_eq!(keys["ns"], json!({ "description": "How long.", "type": ["integer", "null"] }));
        let pair = json!([{ "type": "string" }, { "type": ["number", "null"] }]);
        assert_eq!(keys["pairs"]["items"]["prefixItems"], pair);
        let said = json!([{ "$ref": "#/$defs/Said" }, { "type": "null" }]);
        assert_eq!(keys["said"]["anyOf"], said);
        assert_eq!(keys["said"]["description"], "What was said, see `Said`.");
        assert_eq!(keys["by_name"]["additionalProperties"], json!({ "type": "string" }));
        let thing = &made["$defs"]["SaidThing"];
        assert_eq!(thing["required"], json!(["what", "word"]));
        assert_eq!(thing["properties"]["what"]["const"], "thing");
        assert_eq!(made["$defs"]["SaidNotAThing"]["properties"]["what"]["const"], "not_a_thing");
        assert_eq!(made["$defs"]["Word"]["enum"], json!(["a", "bc", "d.e"]));
    }

    /// Claim: a type or an attribute that the schema would have to guess at is an error that names it.
    #[test]
    fn nothing_is_guessed() {
        for (field, named) in [
            ("pub a: Instant", "`Instant`"),
            ("#[serde(flatten)] pub a: u64", "`flatten`"),
            ("#[serde(with = \"x\")] pub a: u64", "`x`"),
        ] {
            let source = format!("const SCHEMA: &str = \"x\"; pub struct RunResult {{ {field} }}");
            let error = types(&source).document().expect_err("it is not known");
            assert!(error.contains(named), "{error}");
        }
    }

    /// Claim: the published schema is what the types say.
    #[test]
    fn the_schema_is_current() {
        let root = crate::workspace_root();
        let published =
            fs::read_to_string(root.join("instrument/report/schema/result.schema.json"));
        let made = result(&root).expect("the types are known");
        assert!(published.expect("it is there") == made, "run: cargo xtask docs --write");
    }
}
