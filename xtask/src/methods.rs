//! `cargo xtask theory search` and `theory compare`: methods against a system whose truth is known, in virtual time. An
//! example of the crate prints the table and fails if what is promised of it does not hold; this keeps it in the page.

use std::path::Path;
use std::process::Command;

/// A table that a program of ours makes.
pub struct Methods {
    package: &'static str,
    example: &'static str,
    page: &'static str,
    command: &'static str,
    seeds: u32,
}

/// Methods that find the highest rate.
pub const SEARCH: Methods = Methods {
    package: "search",
    example: "methods",
    page: "docs/how-to/highest-rate.md",
    command: "cargo xtask theory search",
    seeds: 200,
};

/// Designs of a comparison.
pub const COMPARE: Methods = Methods {
    package: "compare",
    example: "pairs",
    page: "results/compare.md",
    command: "cargo xtask theory compare",
    seeds: 100,
};

/// Makes the table anew, between the two comments of its page.
pub fn run(root: &Path, of: &Methods) -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["run", "--release", "-q", "-p", of.package, "--example", of.example, "--"])
        .arg(of.seeds.to_string())
        .current_dir(root)
        .output()
        .map_err(|error| format!("starting cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        return Err(format!("{}: {}", of.command, String::from_utf8_lossy(&output.stderr)));
    }
    let table: String =
        text.lines().filter(|it| it.starts_with('|')).map(|it| format!("{it}\n")).collect();
    let path = root.join(of.page);
    let page = std::fs::read_to_string(&path)
        .map_err(|error| format!("reading {}: {error}", path.display()))?;
    let (from, to) = (format!("<!-- {} -->\n", of.command), "<!-- until here -->\n");
    let (head, rest) = page
        .split_once(&from)
        .ok_or_else(|| format!("{}: expected the line {from}", path.display()))?;
    let (_, tail) =
        rest.split_once(to).ok_or_else(|| format!("{}: expected the line {to}", path.display()))?;
    let machine = crate::bench::machine();
    let page = format!(
        "{head}{from}\n{table}\n{machine} `{}`, {} seeds a row.\n\n{to}{tail}",
        of.command, of.seeds
    );
    std::fs::write(&path, page).map_err(|error| format!("writing {}: {error}", path.display()))
}
