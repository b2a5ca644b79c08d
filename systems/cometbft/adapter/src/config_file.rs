//! A node's `config.toml`, changed key by key: what the program wrote for its version stays as it is, comments
//! too, and a key that it does not have is an error and not a new line that no node would read.

use model::options::Value;

/// One setting: its table (`""` for the beginning of the file), its key, its value as TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Setting {
    /// Text.
    pub(crate) fn text(table: &str, key: &str, value: &str) -> Self {
        Self::raw(table, key, &quoted(value))
    }

    /// A number, or true or false.
    pub(crate) fn raw(table: &str, key: &str, value: &str) -> Self {
        Self { table: table.to_owned(), key: key.to_owned(), value: value.to_owned() }
    }

    /// From a user's value; `None` for what no setting of a node is.
    pub(crate) fn of_value(table: &str, key: &str, value: &Value) -> Option<Self> {
        let value = match value {
            Value::String(text) => quoted(text),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(is_on) => is_on.to_string(),
            Value::Float(_) | Value::Array(_) | Value::Table(_) => return None,
        };
        Some(Self::raw(table, key, &value))
    }

    /// `mempool.size`.
    pub(crate) fn path(&self) -> String {
        if self.table.is_empty() {
            return self.key.clone();
        }
        format!("{}.{}", self.table, self.key)
    }
}

/// A basic string of TOML. Control characters are escaped by number.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The file with `settings` changed.
///
/// # Errors
/// With the path of a setting that the file does not have.
pub(crate) fn changed(file: &str, settings: &[Setting]) -> Result<String, String> {
    let mut lines: Vec<String> = file.lines().map(str::to_owned).collect();
    for setting in settings {
        let line = find(&lines, setting).ok_or_else(|| setting.path())?;
        lines[line] = format!("{} = {}", setting.key, setting.value);
    }
    Ok(lines.join("\n") + "\n")
}

fn find(lines: &[String], setting: &Setting) -> Option<usize> {
    let mut table = "";
    lines.iter().position(|line| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = name;
        }
        let key = line.split_once('=').map(|(key, _)| key.trim());
        let is_comment = line.starts_with('#');
        !is_comment && table == setting.table && key == Some(setting.key.as_str())
    })
}

/// The text of a key, without its quotes; for what the program itself wrote.
pub(crate) fn value_of<'a>(file: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let lines: Vec<String> = file.lines().map(str::to_owned).collect();
    let at = find(&lines, &Setting::raw(table, key, ""))?;
    let (_, value) = file.lines().nth(at)?.split_once('=')?;
    Some(value.trim().trim_matches('"'))
}
