//! `cargo xtask dist`: assay as one file for any Linux of this processor: static (musl), without debugging information.
//! Names of functions stay, so that a panic says where it was (its own file and line are in its message), and with
//! `RUST_BACKTRACE=1` through which functions. It is then asked to run a trial.
//!
//! It has a target folder of its own, and is no part of the suite: it builds everything once more.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::image::{has_target, names_loader};

/// What runs everywhere is no larger than this: what it was when this was written, and a quarter more.
const BYTES_MAX: usize = 32_000_000;

/// A trial that needs nothing but the program.
const TRIAL: &str = r#"
name = "dist"
[system]
kind = "echo"
[load]
rate     = "200/s"
warmup   = "0s"
duration = "1s"
[[threshold]]
expr = "success == 100%"
"#;

/// Passed, and a machine too busy for its times: what is asked is whether it works.
const EXITS: [i32; 2] = [0, 97];

/// Builds it, looks at it, runs a trial with it; says where it is and how large.
pub fn run(root: &Path) -> Result<(), String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if !has_target(&target)? {
        return Err(format!("the compiler lacks {target}; run: rustup target add {target}"));
    }
    let folder = root.join("target/dist");
    let build = ["build", "--release", "--locked", "-p", "assay", "--target", &target];
    let built = Command::new("cargo")
        .args(build)
        .arg("--target-dir")
        .arg(&folder)
        .current_dir(root)
        // As the container's recipe has it.
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "false")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if !built.success() {
        return Err("cargo build of the static assay failed".to_owned());
    }
    let program = folder.join(&target).join("release/assay");
    let bytes = std::fs::read(&program)
        .map_err(|error| format!("reading {}: {error}", program.display()))?;
    looked_at(&bytes).map_err(|reason| format!("{}: {reason}", program.display()))?;
    tried(&program, &folder)?;
    println!("{}: {} bytes, static, function names kept", program.display(), bytes.len());
    Ok(())
}

/// Whether it is what it is to be, by what stands in it.
fn looked_at(bytes: &[u8]) -> Result<(), String> {
    if names_loader(bytes).ok_or("it is no program of 64 bits")? {
        return Err("it is not static".to_owned());
    }
    let has = |section: &[u8]| bytes.windows(section.len()).any(|part| part == section);
    if !has(b"\0.symtab\0") {
        return Err("it has no names of functions: a backtrace would say nothing".to_owned());
    }
    if has(b"\0.debug_info\0") {
        return Err("it carries debugging information".to_owned());
    }
    if bytes.len() > BYTES_MAX {
        return Err(format!("{} bytes, more than {BYTES_MAX}", bytes.len()));
    }
    Ok(())
}

/// A trial with nothing of the host but the kernel: no path, no home.
fn tried(program: &Path, folder: &Path) -> Result<(), String> {
    let runs = folder.join("runs");
    let experiment = folder.join("dist.toml");
    std::fs::write(&experiment, TRIAL)
        .map_err(|error| format!("writing {}: {error}", experiment.display()))?;
    let output = Command::new(program)
        .args(["run", "--progress", "none", "--runs"])
        .args([&runs, &experiment])
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("running {}: {error}", program.display()))?;
    let _ = std::fs::remove_dir_all(&runs);
    if output.status.code().is_some_and(|code| EXITS.contains(&code)) {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Err(format!("a trial ended with {}:\n{}", output.status, said.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: this test, which the system's loader loads, is not taken for a static program, nor is a text.
    #[test]
    fn what_is_looked_at() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        if !cfg!(target_feature = "crt-static") {
            assert_eq!(looked_at(&own), Err("it is not static".to_owned()));
        }
        assert_eq!(looked_at(b"#!/bin/sh"), Err("it is no program of 64 bits".to_owned()));
    }
}
