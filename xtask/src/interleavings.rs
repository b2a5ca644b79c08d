//! `cargo xtask interleavings`: the sampler's ring in every order in which its two threads can meet, by loom.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs fuzz/interleavings, a workspace of its own.
pub fn run(root: &Path) -> Result<(), String> {
    let status = Command::new("cargo")
        .args(["test", "--release", "--locked", "--manifest-path"])
        .arg(root.join("fuzz/interleavings/Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target/interleavings"))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("an order of steps breaks the ring".to_owned()) }
}
