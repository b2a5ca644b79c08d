//! `cargo xtask program NAME`: format, lints and tests of a program that is a workspace of its own.

use std::path::Path;
use std::process::Command;

/// Checks `programs/NAME`, in the target folder that `assay doctor --install NAME` builds it in.
pub fn run(root: &Path, name: &str) -> Result<(), String> {
    let folder = root.join("programs").join(name);
    if !folder.join("Cargo.toml").is_file() {
        return Err(format!("expected a program in programs/, got `{name}`; see: ls programs"));
    }
    let target = root.join("target/programs").display().to_string();
    let clippy =
        ["clippy", "--release", "--all-targets", "--target-dir", &target, "--", "-D", "warnings"];
    let test = [
        "test",
        "--release",
        "--lib",
        "--bins",
        "--tests",
        "--no-fail-fast",
        "--target-dir",
        &target,
    ];
    for words in [&["fmt", "--check"][..], &clippy, &test] {
        let status = Command::new("cargo").args(words).current_dir(&folder).status();
        let status = status.map_err(|error| format!("running cargo: {error}"))?;
        if !status.success() {
            return Err(format!("cargo {} failed in {}", words[0], folder.display()));
        }
    }
    Ok(())
}
