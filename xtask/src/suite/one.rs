//! `cargo xtask test --system NAME`: one system's crates, its end-to-end tests and its toys, of the same build as the
//! whole suite's, so that after that nothing is compiled for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::declared::Suite;
use super::tally::Tally;

/// A test program that cargo has built.
struct Program {
    name: String,
    path: PathBuf,
    /// Where cargo would run it.
    folder: PathBuf,
}

/// Builds all tests and runs those of this system.
pub fn run(
    tally: &mut Tally,
    root: &Path,
    suite: &Suite,
    python: Option<&Path>,
) -> Result<(), String> {
    // Of the whole workspace: built for some of its crates alone, what they share would have other features.
    let programs = built(root)?;
    let own = root.join("systems").join(&suite.name);
    let env: Vec<(&str, &Path)> =
        python.map(|python| ("ASSAY_TEST_PYTHON", python)).into_iter().collect();
    for program in programs.iter().filter(|program| program.folder.starts_with(&own)) {
        let path = program.path.display().to_string();
        tally.step_with(&program.folder, &format!("tests: {}", program.name), &[&path], &env);
    }
    let end_to_end = programs.iter().find(|program| program.name == "end_to_end");
    let filters = &suite.tests.end_to_end;
    if let Some(program) = end_to_end.filter(|_| !filters.is_empty()) {
        let path = program.path.display().to_string();
        let words: Vec<&str> =
            std::iter::once(path.as_str()).chain(filters.iter().map(String::as_str)).collect();
        tally.step_with(&program.folder, "end-to-end tests", &words, &env);
    }
    Ok(())
}

fn built(root: &Path) -> Result<Vec<Program>, String> {
    let output = Command::new("cargo")
        .args(["test", "--release", "--workspace", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("running cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(program).collect())
}

/// The test program that a message of cargo's is of.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Program {
        name: message["target"]["name"].as_str()?.to_owned(),
        path: PathBuf::from(message["executable"].as_str()?),
        folder: manifest.parent()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of cargo's messages those are taken that are of a test program, with the folder of its package.
    #[test]
    fn messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/systems/kv/node/Cargo.toml","target":{"name":"kv_node"},"profile":{"test":true},"executable":"/w/target/release/deps/kv_node-1"}"#;
        let found = program(line).unwrap();
        assert_eq!(
            (found.name.as_str(), found.folder.as_path()),
            ("kv_node", Path::new("/w/systems/kv/node"))
        );
        assert!(program(&line.replace("\"test\":true", "\"test\":false")).is_none());
        assert!(program(&line.replace("\"/w/target/release/deps/kv_node-1\"", "null")).is_none());
        assert!(program("{\"reason\":\"build-finished\",\"success\":true}").is_none());
    }
}
