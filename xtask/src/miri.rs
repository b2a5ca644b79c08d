//! `cargo xtask miri`: the tests of the buffers that the kernel fills, each access looked at by Miri. It is part of Rust's nightly
//! compiler, which this project does not need otherwise: nothing is downloaded for it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Says what is skipped where there is no Miri.
pub fn run(root: &Path) -> Result<(), String> {
    if !has_miri() {
        println!(
            "SKIPPED raw memory under Miri: this nightly compiler lacks it, or there is none (rustup component add miri \
             rust-src --toolchain nightly)"
        );
        return Ok(());
    }
    let status = Command::new("cargo")
        .args(["+nightly", "miri", "test", "--package=load", "--lib", "driver::ring::buffers::"])
        .arg("--target-dir")
        .arg(root.join("target/miri"))
        .current_dir(root)
        // The kernel's side gets addresses as numbers.
        .env("MIRIFLAGS", "-Zmiri-permissive-provenance")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("raw memory under Miri".to_owned()) }
}

fn has_miri() -> bool {
    let mut asked = Command::new("cargo");
    asked.args(["+nightly", "miri", "--version"]).stdin(Stdio::null());
    asked.output().is_ok_and(|said| said.status.success())
}
