//! Checks that the documents and the code still say the same, and the rules of STYLE.md that a program can
//! check. Every finding is printed; nothing is repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longer files have a seam that wants finding; STYLE.md says about 600.
const FILE_LINES_MAX: usize = 700;

/// Names that say nothing. A thing has a name or is not a thing.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "shared"];

/// What reads a clock; allowed in base/clock alone.
const CLOCK_READERS: [&str; 4] =
    ["Instant::now(", "SystemTime::now(", "SystemTime::UNIX_EPOCH", "clock_gettime("];

/// Runs all checks on the checkout at `root`.
pub fn run(root: &Path) -> Result<(), String> {
    let mut findings = arrows(root)?;
    findings.extend(sources(root)?);
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() {
        println!("tidy: the arrow table and the rules hold");
        return Ok(());
    }
    Err(format!("{} findings", findings.len()))
}

/// The arrow table against the manifests, both ways.
fn arrows(root: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md"))
        .map_err(|error| format!("reading ARCHITECTURE.md: {error}"))?;
    let written = written_arrows(&text);
    let built = built_arrows(root)?;
    Ok(compare(&written, &built))
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Rows of the table under the heading that contains "Arrows": `| crate | may use |`.
fn written_arrows(text: &str) -> Arrows {
    let mut arrows = Arrows::new();
    let section =
        text.lines().skip_while(|line| !(line.starts_with('#') && line.contains("Arrows")));
    for line in section.skip(1).take_while(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, uses] = cells.as_slice() else { continue };
        if *name == "crate" || name.starts_with('-') {
            continue;
        }
        let uses = uses.split_whitespace().filter(|word| *word != "–").map(str::to_owned).collect();
        arrows.insert((*name).to_owned(), uses);
    }
    arrows
}

/// `[dependencies]` on crates of the workspace, by crate.
fn built_arrows(root: &Path) -> Result<Arrows, String> {
    let manifests = manifests(root);
    let mut names = BTreeSet::new();
    let mut parsed = Vec::new();
    for path in &manifests {
        let text =
            fs::read_to_string(path).map_err(|e| format!("reading {}: {e}", path.display()))?;
        let table: toml::Table =
            text.parse().map_err(|e| format!("parsing {}: {e}", path.display()))?;
        if let Some(name) =
            table.get("package").and_then(|p| p.get("name")).and_then(|n| n.as_str())
        {
            names.insert(name.to_owned());
            parsed.push((name.to_owned(), table));
        }
    }
    let mut arrows = Arrows::new();
    for (name, table) in parsed {
        let uses = table
            .get("dependencies")
            .and_then(|d| d.as_table())
            .into_iter()
            .flat_map(|d| d.keys().cloned())
            .filter(|dependency| names.contains(dependency))
            .collect();
        arrows.insert(name, uses);
    }
    Ok(arrows)
}

fn compare(written: &Arrows, built: &Arrows) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, uses) in built {
        let Some(allowed) = written.get(name) else {
            findings.push(format!("crate `{name}` is not in the arrow table of ARCHITECTURE.md"));
            continue;
        };
        for used in uses.difference(allowed) {
            findings.push(format!("`{name}` uses `{used}`, which the arrow table does not allow"));
        }
        for unused in allowed.difference(uses) {
            findings.push(format!("the arrow table lets `{name}` use `{unused}`, but it does not"));
        }
    }
    for name in written.keys().filter(|name| !built.contains_key(*name)) {
        findings.push(format!("the arrow table has `{name}`, which is no crate of the workspace"));
    }
    findings
}

fn manifests(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(root, &mut |path| {
        if path.file_name().is_some_and(|name| name == "Cargo.toml") && path.parent() != Some(root)
        {
            found.push(path.to_path_buf());
        }
    });
    found.retain(|path| !path.starts_with(root.join("fuzz")));
    found.sort();
    found
}

/// Rules for source files.
fn sources(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    walk(root, &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.to_path_buf());
        }
    });
    files.sort();
    let mut findings = Vec::new();
    for path in files {
        let text =
            fs::read_to_string(&path).map_err(|e| format!("reading {}: {e}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        findings.extend(source(&shown, &text));
    }
    Ok(findings)
}

/// Rules for one source file.
fn source(shown: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(format!("{shown}: {lines} lines; where is the seam?"));
    }
    let opens = text.lines().find(|line| !line.starts_with("#!["));
    if !opens.is_some_and(|line| line.starts_with("//!")) {
        findings.push(format!("{shown}: does not open with `//!`"));
    }
    let stem = Path::new(shown).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem) {
        findings.push(format!("{shown}: `{stem}` says nothing; name the thing"));
    }
    let reads_clock_lawfully = shown.starts_with("base/clock/") || shown.starts_with("xtask/");
    if !reads_clock_lawfully {
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(reader) = CLOCK_READERS.iter().find(|reader| code.contains(**reader)) {
                findings.push(format!("{shown}:{}: `{reader}` outside base/clock", index + 1));
            }
        }
    }
    findings
}

/// Every file below `folder`, hidden and built folders left out.
fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" || name == "runs" || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            walk(&path, visit);
        } else {
            visit(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows_of(text: &str) -> Arrows {
        written_arrows(text)
    }

    /// Claim: a use that the table does not allow, an arrow that nobody uses, an unlisted crate and a
    /// vanished crate are each found, and a table that agrees is not.
    #[test]
    fn arrow_table_finds_every_difference() {
        let table = "## Arrows\n| crate | may use |\n| --- | --- |\n| a | – |\n| b | a |\n| gone | – |\n## Next\n| c | d |\n";
        let written = arrows_of(table);
        assert_eq!(written.len(), 3);
        let built = |pairs: &[(&str, &[&str])]| -> Arrows {
            pairs
                .iter()
                .map(|(n, u)| ((*n).to_owned(), u.iter().map(|s| (*s).to_owned()).collect()))
                .collect()
        };
        assert!(compare(&written, &built(&[("a", &[]), ("b", &["a"]), ("gone", &[])])).is_empty());
        let findings = compare(&written, &built(&[("a", &["b"]), ("b", &[]), ("new", &[])]));
        assert_eq!(
            findings,
            [
                "`a` uses `b`, which the arrow table does not allow",
                "the arrow table lets `b` use `a`, but it does not",
                "crate `new` is not in the arrow table of ARCHITECTURE.md",
                "the arrow table has `gone`, which is no crate of the workspace",
            ]
        );
    }

    /// Claim: a source file is found for an empty name, a missing purpose, a clock and its length, and base/clock may read clocks.
    #[test]
    fn source_rules() {
        let clock = "//! x\nlet t = std::time::Instant::now();\n";
        assert_eq!(source("base/clock/src/lib.rs", clock), Vec::<String>::new());
        assert_eq!(
            source("instrument/load/src/lib.rs", clock),
            ["instrument/load/src/lib.rs:2: `Instant::now(` outside base/clock"]
        );
        assert_eq!(
            source("a/util.rs", "//! x\n"),
            ["a/util.rs: `util` says nothing; name the thing"]
        );
        assert_eq!(source("a/b.rs", "use x;\n"), ["a/b.rs: does not open with `//!`"]);
        let long = format!("//! x\n{}", "\n".repeat(FILE_LINES_MAX + 1));
        assert_eq!(source("a/b.rs", &long).len(), 1);
    }

    /// Claim: this checkout is tidy.
    #[test]
    fn this_checkout_is_tidy() {
        let root = crate::workspace_root();
        let mut findings = arrows(&root).expect("the table can be read");
        findings.extend(sources(&root).expect("sources can be read"));
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
