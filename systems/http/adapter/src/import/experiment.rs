//! The experiment file that an import makes: the targets, a low rate, a threshold, and comments on what was left
//! out, changed or made up.

use super::{Imported, counted};

/// Notes in the file; a description can have one for each of thousands of operations.
const NOTES_MAX: usize = 60;

pub(super) fn text(imported: &Imported, name: &str, targets_file: Option<&str>) -> String {
    let mut text = format!(
        "# {} from {}.\n",
        counted(imported.target_count, if imported.steps.is_some() { "step" } else { "target" }),
        comment(&imported.form)
    );
    for note in imported.notes.iter().take(NOTES_MAX) {
        text.push_str(&format!("# {}\n", comment(note)));
    }
    if imported.notes.len() > NOTES_MAX {
        text.push_str(&format!("# and {} more\n", imported.notes.len() - NOTES_MAX));
    }
    text.push_str(&format!("name     = {}\n", quoted(name)));
    text.push_str("question = \"Which request rate can we promise with no errors and response times under 1 s?\"\n\n");
    text.push_str("[system]\nkind = \"http\"\n[system.deploy]\n");
    match &imported.url {
        Some(url) => text.push_str(&format!("url = {}\n", quoted(url))),
        None => text.push_str(
            "url = \"http://127.0.0.1:8080\"   # the file names no server: put yours here\n",
        ),
    }
    text.push_str(&imported.deploy);
    if let Some(steps) = &imported.steps {
        text.push_str(&format!("\n[workload]\nkind = \"flow\"\n{steps}"));
        text.push_str(imported.load.as_deref().unwrap_or(LOAD_OF_USERS));
        return text;
    }
    text.push_str("\n[workload]\nkind    = \"targets\"\n");
    match (targets_file, &imported.targets) {
        (Some(path), _) => text.push_str(&format!("targets = {}\n", quoted(path))),
        (None, Some(targets)) => {
            text.push_str("format  = \"json\"\n");
            text.push_str(&format!("targets_text = '''\n{}'''\n", literal(targets)));
        }
        (None, None) => {}
    }
    for header in &imported.secret_headers {
        let variable: String = header
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        text.push_str(&format!(
            "# headers.{} = \"env:{variable}\"   # was left out; read from the environment, never stored\n",
            quoted(&comment(header))
        ));
    }
    text.push_str(LOAD);
    text
}

const LOAD: &str = r#"
[load]
model    = "open"                 # arrivals do not wait for answers
arrival  = "poisson"
rate     = "10/s"
warmup   = "2s"
duration = "30s"
timeout  = "30s"

[[threshold]]
expr = "success == 100%"
[[threshold]]
expr = "p99 < 1s"
"#;

const LOAD_OF_USERS: &str = r#"
[load]
model    = "open"                 # users come by this rate, and do not wait for each other
arrival  = "poisson"
rate     = "5/s"
warmup   = "2s"
duration = "30s"
timeout  = "30s"

[[threshold]]
expr = "flow.success == 100%"
"#;

/// On one line, and nothing that a terminal or a parser would obey.
pub(super) fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// JSON as it may stand in a TOML literal: an apostrophe stands in JSON within texts only, where it can be
/// escaped, and so does the one control character that JSON leaves as it is.
fn literal(json: &str) -> String {
    let json = json.replace('\u{7f}', "\\u007f");
    if json.contains("''") { json.replace('\'', "\\u0027") } else { json }
}
