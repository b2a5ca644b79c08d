//! `cargo xtask image`: the Ethereum gateway as its container has it: static, with gRPC, without symbols. Its size is
//! looked at, and the tests that are about what only this build has are run against it.
//!
//! It has a target folder of its own, apart from that of programs which are not static.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package's manifest, and the program in it.
const MANIFEST: &str = "programs/eth-gateway/Cargo.toml";
const PROGRAM: &str = "eth-gateway";

/// The published image had less; this one holds the program and the certificates of the web's roots, about 0.2 MB.
const BYTES_MAX: u64 = 12_000_000 - 250_000;

/// Of a program's header in the ELF format: the kind of a segment that names who loads the program.
const PT_INTERP: u32 = 3;

/// Builds, looks, and tests.
pub fn run(root: &Path) -> Result<(), String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if !has_target(&target)? {
        println!("SKIPPED the static gateway: run rustup target add {target}");
        return Ok(());
    }
    let common = [
        "--release",
        "--locked",
        "--manifest-path",
        MANIFEST,
        "--features",
        "grpc",
        "--target",
        &target,
    ];
    cargo(root, "build", &common, &[])?;
    let program = root.join("target/image").join(&target).join("release").join(PROGRAM);
    let bytes = std::fs::read(&program)
        .map_err(|error| format!("reading {}: {error}", program.display()))?;
    let size = bytes.len() as u64;
    if names_loader(&bytes).ok_or("what was built is no program of 64 bits")? {
        return Err(format!("{} is not static", program.display()));
    }
    println!("{}: {size} bytes, static", program.display());
    if size > BYTES_MAX {
        return Err(format!("more than {BYTES_MAX} bytes"));
    }
    // Unit tests of gRPC, grpcurl, TLS, and a whole request.
    cargo(root, "test", &common, &["--", "grpc", "tls", "what_is_kept"])
}

/// Whether the compiler can build for the target.
pub fn has_target(target: &str) -> Result<bool, String> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let output = output.map_err(|error| format!("running rustc: {error}"))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(sysroot.join("lib/rustlib").join(target).join("lib").is_dir())
}

fn cargo(root: &Path, what: &str, common: &[&str], more: &[&str]) -> Result<(), String> {
    let status = Command::new("cargo")
        .arg(what)
        .args(common)
        .arg("--target-dir")
        .arg(root.join("target/image"))
        .args(more)
        .current_dir(root)
        // As the container's recipe has it.
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        // It would be stripped again.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cargo {what} of the static gateway failed"))
    }
}

/// Whether a program names a loader, which one that is static does not; `None` for what is no program of 64 bits.
pub fn names_loader(elf: &[u8]) -> Option<bool> {
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = elf.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let is_64_bits_little_endian = elf.get(..6)? == b"\x7fELF\x02\x01";
    if !is_64_bits_little_endian {
        return None;
    }
    let (first, each, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let segment = |index: u64| usize::try_from(first + index * each).ok();
    for index in 0..count {
        if number(segment(index)?, 4)? == u64::from(PT_INTERP) {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: this test, which is loaded by the system's loader, names it; what is cut short or no program is told.
    #[test]
    fn loaders() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(names_loader(&own), Some(cfg!(not(target_feature = "crt-static"))));
        assert_eq!(names_loader(&own[..60]), None);
        assert_eq!(names_loader(b"#!/bin/sh"), None);
    }
}
