//! The arrow table of ARCHITECTURE.md against the manifests, both ways.
//!
//! A row with `*-` in front is of every system's crates, and says at most what they may use, so that a new system needs no
//! row of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::walk;

/// The arrow table against the manifests, both ways.
pub(super) fn arrows(root: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md"))
        .map_err(|error| format!("reading ARCHITECTURE.md: {error}"))?;
    let written = written_arrows(&text);
    let built = built_arrows(root)?;
    Ok(compare(&written, &built))
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The first characters of a pattern: `*-adapter` is every system's adapter.
const EACH: &str = "*-";

/// Rows of the table under the heading that contains "Arrows": `| crate | purpose | may use |`.
fn written_arrows(text: &str) -> Arrows {
    let mut arrows = Arrows::new();
    let section =
        text.lines().skip_while(|line| !(line.starts_with('#') && line.contains("Arrows")));
    for line in section.skip(1).take_while(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses] = cells.as_slice() else { continue };
        if *name == "crate" || name.starts_with('-') {
            continue;
        }
        // `at most: a b, and the node beside it`: words after the comma are for people.
        let uses = uses.split_once(',').map_or(*uses, |(uses, _)| uses);
        let uses = uses.strip_prefix("at most:").unwrap_or(uses);
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
    let is_of = |name: &str, pattern: &str| {
        pattern.strip_prefix(EACH).is_some_and(|kind| {
            name.strip_suffix(kind).is_some_and(|rest| rest.len() > 1 && rest.ends_with('-'))
        })
    };
    for (name, uses) in built {
        let Some(allowed) = written.get(name) else {
            let Some((_, allowed)) = written.iter().find(|(pattern, _)| is_of(name, pattern))
            else {
                findings
                    .push(format!("crate `{name}` is not in the arrow table of ARCHITECTURE.md"));
                continue;
            };
            // Of the systems' crates an adapter may use one: the node beside it.
            let node = name.strip_suffix("adapter").map(|system| format!("{system}node"));
            for used in uses.difference(allowed).filter(|used| Some(*used) != node.as_ref()) {
                findings
                    .push(format!("`{name}` uses `{used}`, which the arrow table does not allow"));
            }
            continue;
        };
        let allowed: BTreeSet<String> = allowed
            .iter()
            .flat_map(|word| match word.strip_prefix(EACH) {
                Some(_) => built.keys().filter(|name| is_of(name, word)).cloned().collect(),
                None => vec![word.clone()],
            })
            .collect();
        for used in uses.difference(&allowed) {
            findings.push(format!("`{name}` uses `{used}`, which the arrow table does not allow"));
        }
        for unused in allowed.difference(uses) {
            findings.push(format!("the arrow table lets `{name}` use `{unused}`, but it does not"));
        }
    }
    let is_known =
        |name: &str| built.contains_key(name) || built.keys().any(|built| is_of(built, name));
    for name in written.keys().filter(|name| !is_known(name)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a use that the table does not allow, an arrow that nobody uses, an unlisted crate and a
    /// vanished crate are each found, and a table that agrees is not.
    #[test]
    fn arrow_table_finds_every_difference() {
        let table = "## Arrows\n| crate | purpose | may use |\n| --- | --- | --- |\n| a | x | – |\n| b | y | a |\n| gone | z | – |\n## Next\n| c | w | d |\n";
        let written = written_arrows(table);
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

    /// Claim: a row for every system's crates allows at most what it says, lets an adapter use its own node and no other,
    /// and stands for all of them in the row of the app.
    #[test]
    fn rows_for_every_system() {
        let written = written_arrows(
            "## Arrows\n| wire | x | – |\n| *-node | x | at most: wire |\n| *-adapter | x | at most: wire sut, and the node beside it |\n| sut | x | – |\n| app | x | sut *-adapter |\n",
        );
        let built = |pairs: &[(&str, &[&str])]| -> Arrows {
            let fixed: &[(&str, &[&str])] = &[("wire", &[]), ("sut", &[])];
            pairs
                .iter()
                .chain(fixed)
                .map(|(n, u)| ((*n).to_owned(), u.iter().map(|s| (*s).to_owned()).collect()))
                .collect()
        };
        let good = built(&[
            ("kv-node", &[]),
            ("kv-adapter", &["sut", "kv-node"]),
            ("http-adapter", &["wire"]),
            ("app", &["sut", "kv-adapter", "http-adapter"]),
        ]);
        assert_eq!(compare(&written, &good), Vec::<String>::new());
        let bad = built(&[
            ("kv-node", &["sut"]),
            ("kv-adapter", &["echo-node"]),
            ("app", &["sut", "kv-node"]),
        ]);
        assert_eq!(
            compare(&written, &bad),
            [
                "`app` uses `kv-node`, which the arrow table does not allow",
                "the arrow table lets `app` use `kv-adapter`, but it does not",
                "`kv-adapter` uses `echo-node`, which the arrow table does not allow",
                "`kv-node` uses `sut`, which the arrow table does not allow",
            ]
        );
    }
}
