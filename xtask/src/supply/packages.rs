//! The packages of our crates, as cargo makes them: each with a version beside each path, and nothing that is compiled in from
//! outside its own folder, which a package does not have.

use std::path::{Component, Path};
use std::process::{Command, Stdio};

/// Constructions that compile another file in.
const TAKES: [&str; 3] = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];

/// Makes all packages, without building them, into target/packages.
pub(super) fn run(root: &Path) -> Result<(), String> {
    let outside = reach_outside(root)?;
    if !outside.is_empty() {
        return Err(format!(
            "a package has the files of its own folder alone; link these into it: {}",
            outside.join(", ")
        ));
    }
    let output = Command::new("cargo")
        .args(["package", "--workspace", "--exclude", "xtask", "--no-verify", "--allow-dirty"])
        .args(["--exclude-lockfile", "--no-metadata", "--target-dir"])
        .arg(root.join("target/packages"))
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("running cargo package: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("cargo package: {said}"));
    }
    let made = said.lines().filter(|line| line.trim_start().starts_with("Packaged ")).count();
    println!("cargo package: {made} packages in target/packages");
    Ok(())
}

/// Files of what is shipped that are compiled in from outside their crate, as `file: path`.
fn reach_outside(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for top in ["apps", "base", "instrument", "systems"] {
        crate::tidy::walk(&root.join(top), &mut |path| {
            let Ok(short) = path.strip_prefix(root) else { return };
            let Some(depth) = depth_in_crate(short) else { return };
            // One that cannot be read is told of by the compiler.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            found.extend(
                taken(&text)
                    .filter(|taken| climbs(taken, depth))
                    .map(|taken| format!("{}: {taken}", short.display())),
            );
        });
    }
    Ok(found)
}

/// How many folders below its crate's a shipped source lies; `None` for tests, and for what is no source.
fn depth_in_crate(path: &Path) -> Option<usize> {
    let is_source = path.extension().is_some_and(|it| it == "rs");
    let folders: Vec<String> = path
        .parent()?
        .components()
        .map(|it| it.as_os_str().to_string_lossy().into_owned())
        .collect();
    let source = folders.iter().position(|it| it == "src")?;
    let is_test = folders.iter().any(|it| it == "tests") || path.ends_with("tests.rs");
    (is_source && !is_test).then(|| folders.len() - source)
}

fn taken(text: &str) -> impl Iterator<Item = &str> {
    TAKES.into_iter().flat_map(move |word| {
        text.match_indices(word)
            .filter_map(move |(at, _)| text[at + word.len()..].split('"').next())
    })
}

/// Whether a path from a folder so far below the crate's leaves the crate.
fn climbs(path: &str, depth: usize) -> bool {
    let up = Path::new(path).components().take_while(|it| *it == Component::ParentDir).count();
    up > depth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a source that takes a file from outside its crate is found, one that takes a file of its crate is not; nor is a
    /// test. Nothing that is shipped here does.
    #[test]
    fn what_reaches_outside() {
        let deep = depth_in_crate(Path::new("instrument/report/src/html/mod.rs"));
        assert_eq!(deep, Some(2));
        assert_eq!(depth_in_crate(Path::new("instrument/report/src/tests/one.rs")), None);
        assert!(climbs("../../../../GLOSSARY.md", 2) && !climbs("../../data/GLOSSARY.md", 2));
        let word = TAKES[0];
        let text = format!("{word}../a\"); {word}b\")");
        assert_eq!(taken(&text).collect::<Vec<_>>(), ["../a", "b"]);
        assert_eq!(reach_outside(&crate::workspace_root()), Ok(Vec::new()));
    }
}
