//! `cargo xtask new-system NAME [--node]`: the folder of a system whose adapter passes the conformance suite before its
//! first line is changed, and its line in the list of systems. With `--node` a node of ours is written beside the
//! adapter, which starts it; `assay serve NAME` runs it by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of every system, and what they begin as.
const FILES: [(&str, &str); 4] = [
    ("adapter/Cargo.toml", include_str!("new_system/Cargo.toml.txt")),
    ("adapter/src/lib.rs", include_str!("new_system/lib.rs.txt")),
    ("README.md", include_str!("new_system/README.md.txt")),
    ("suite.toml", include_str!("new_system/suite.toml.txt")),
];

/// And of one with a node.
const NODE_FILES: [(&str, &str); 2] = [
    ("node/Cargo.toml", include_str!("new_system/node_Cargo.toml.txt")),
    ("node/src/lib.rs", include_str!("new_system/node_lib.rs.txt")),
];

/// Writes the system called `name` into the checkout at `root`. Gives the files that were written and those that got a
/// line.
pub fn run(
    root: &Path,
    name: &str,
    has_node: bool,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), String> {
    if !is_name(name) {
        return Err(format!(
            "`{name}` is no name for a system: lower-case letters, digits and hyphens, a letter first"
        ));
    }
    let folder = root.join("systems").join(name);
    if folder.exists() {
        return Err(format!("systems/{name} exists already"));
    }
    let mut written = Vec::new();
    for (path, text) in FILES.iter().chain(NODE_FILES.iter().filter(|_| has_node)) {
        let path = folder.join(path);
        write(&path, &fill(text, name, has_node))?;
        written.push(path);
    }
    // As the checkout is formatted: the length of a name moves lines.
    let sources = written.iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let _ = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .args(sources)
        .current_dir(root)
        .status();
    let list = root.join("apps/assay/src/systems.rs");
    let adapter = format!("    {}_adapter::ADAPTER,", name.replace('-', "_"));
    insert(&list, "// new-system: above this line", &adapter)?;
    let manifest = root.join("apps/assay/Cargo.toml");
    let line = format!(
        "{name}-adapter = {{ path = \"../../systems/{name}/adapter\", version = \"0.1.0\" }}"
    );
    insert(&manifest, "# new-system: above this line", &line)?;
    let node = if has_node { format!(" -p {name}-node") } else { String::new() };
    println!("systems/{name} is ready: cargo test --release -p {name}-adapter{node}");
    Ok((written, vec![list, manifest]))
}

/// A template with its name; lines that begin with `+node` are for a system with a node, those with `-node` for one
/// without.
fn fill(template: &str, name: &str, has_node: bool) -> String {
    let (ours, others) = if has_node { ("+node", "-node") } else { ("-node", "+node") };
    let mut text = String::new();
    for line in template.lines().filter(|line| !line.starts_with(others)) {
        text.push_str(line.strip_prefix(ours).unwrap_or(line));
        text.push('\n');
    }
    text.replace("NAME_SNAKE", &name.replace('-', "_")).replace("NAME", name)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("making {}: {e}", folder.display()))?;
    }
    fs::write(path, text).map_err(|e| format!("writing {}: {e}", path.display()))
}

fn insert(path: &Path, marker: &str, line: &str) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("reading {}: {e}", path.display()))?;
    let at = text
        .lines()
        .position(|l| l.trim() == marker)
        .ok_or_else(|| format!("{} has lost its line `{marker}`", path.display()))?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(at, line);
    write(path, &(lines.join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: names that would not be a crate's or a folder's are refused.
    #[test]
    fn names() {
        for good in ["kv", "object-ledger", "s3"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Kv", "3s", "a/b", "..", "a b"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    /// Claim: a template keeps what is for its kind of system, without marks.
    #[test]
    fn templates() {
        let text = "a NAME\n+nodeb NAME_SNAKE\n-node c\n+node\n";
        assert_eq!(fill(text, "k-v", true), "a k-v\nb k_v\n\n");
        assert_eq!(fill(text, "k-v", false), "a k-v\n c\n");
        for (_, text) in FILES.iter().chain(&NODE_FILES) {
            for has_node in [true, false] {
                let filled = fill(text, "kv", has_node);
                assert!(!filled.contains("NAME") && !filled.contains("+node"), "{filled}");
            }
        }
    }
}
