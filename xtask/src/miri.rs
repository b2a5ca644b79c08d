//! `cargo xtask miri`: the tests of what handles raw memory, each access looked at by Miri. It is part of Rust's nightly
//! compiler, which this project does not need otherwise: nothing is downloaded for it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Crates, and the tests of theirs: the buffers that the kernel fills, and what a caller in C gives pointers to.
const TESTS: [(&str, &str); 2] = [("load", "driver::ring::buffers::"), ("sampler_c", "")];

/// Says what is skipped where there is no Miri.
pub fn run(root: &Path) -> Result<(), String> {
    if !has_miri() {
        println!(
            "SKIPPED raw memory under Miri: this nightly compiler lacks it, or there is none (rustup component add miri \
             rust-src --toolchain nightly)"
        );
        return Ok(());
    }
    let failed = |(package, test): &(&str, &str)| {
        let status = Command::new("cargo")
            .args(["+nightly", "miri", "test", "--package", package, "--lib", test])
            .arg("--target-dir")
            .arg(root.join("target/miri"))
            .current_dir(root)
            // Tests write files and read clocks; the kernel's side gets addresses as numbers.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance")
            .stdin(Stdio::null())
            .status();
        !status.is_ok_and(|status| status.success())
    };
    match TESTS.iter().find(|test| failed(test)) {
        None => Ok(()),
        Some((package, _)) => Err(format!("raw memory of {package} under Miri")),
    }
}

fn has_miri() -> bool {
    let mut asked = Command::new("cargo");
    asked.args(["+nightly", "miri", "--version"]).stdin(Stdio::null());
    asked.output().is_ok_and(|said| said.status.success())
}
