//! `cargo xtask new-system NAME`: the folder, the line in the list and the row in the arrow table of a system
//! whose adapter passes the conformance suite before its first line is changed.

use std::fs;
use std::path::Path;

const MANIFEST: &str = include_str!("new_system/Cargo.toml.txt");
const LIBRARY: &str = include_str!("new_system/lib.rs.txt");
const README: &str = include_str!("new_system/README.md.txt");

/// Writes the system called `name` into the checkout at `root`.
pub fn run(root: &Path, name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!(
            "`{name}` is no name for a system: lower-case letters, digits and hyphens, a letter first"
        ));
    }
    let folder = root.join("systems").join(name);
    if folder.exists() {
        return Err(format!("systems/{name} exists already"));
    }
    let fill =
        |text: &str| text.replace("NAME_SNAKE", &name.replace('-', "_")).replace("NAME", name);
    write(&folder.join("adapter/Cargo.toml"), &fill(MANIFEST))?;
    write(&folder.join("adapter/src/lib.rs"), &fill(LIBRARY))?;
    write(&folder.join("README.md"), &fill(README))?;
    let snake = name.replace('-', "_");
    insert(
        &root.join("apps/assay/src/systems.rs"),
        "// new-system: above this line",
        &format!("    {snake}_adapter::ADAPTER,"),
    )?;
    insert(
        &root.join("apps/assay/Cargo.toml"),
        "# new-system: above this line",
        &format!("{name}-adapter.workspace = true"),
    )?;
    insert(
        &root.join("Cargo.toml"),
        "# new-system: above this line",
        &format!("{name}-adapter = {{ path = \"systems/{name}/adapter\" }}"),
    )?;
    insert(
        &root.join("ARCHITECTURE.md"),
        "<!-- new-system: above this line -->",
        &format!("| {name}-adapter | model sut |"),
    )?;
    allow_arrow(root, name)?;
    println!("systems/{name} is ready: cargo test --release -p {name}-adapter");
    Ok(())
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

/// Adds the adapter to what `assay` may use.
fn allow_arrow(root: &Path, name: &str) -> Result<(), String> {
    let path = root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).map_err(|e| format!("reading {}: {e}", path.display()))?;
    let row = text
        .lines()
        .find(|line| line.starts_with("| assay |"))
        .ok_or("the arrow table of ARCHITECTURE.md has no row `assay`")?;
    let longer = format!("{} {name}-adapter |", row.trim_end_matches('|').trim_end());
    write(&path, &text.replace(row, &longer))
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
}
