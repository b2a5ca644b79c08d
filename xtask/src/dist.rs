//! `cargo xtask dist`: a release. The program as one static file for any Linux of this processor, without debugging
//! information (names of functions stay, so that a panic says where it was); with it a package for Debian, an image for
//! containers, completions and the manual page, a list of what is in it, what it was built from, and checksums of all. The
//! program is asked to run a trial, on a bare Debian too, where one can be had.
//!
//! It has a target folder of its own, and is no part of the suite: it builds everything once more. What it cannot make here it
//! names.

mod bare;
mod bill;
mod debian;
mod oci;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::image::{has_target, names_loader};

/// What runs everywhere is no larger than this: what it was when this was written, and a quarter more.
const BYTES_MAX: usize = 40_000_000;

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

/// The parts of a release.
struct Release<'a> {
    root: &'a Path,
    /// Where its files go.
    folder: PathBuf,
    program: PathBuf,
    target: String,
    version: String,
    /// The commit, with `-dirty` where the checkout has changes.
    commit: String,
}

/// Builds it, looks at it, runs a trial with it, packs it; says what there is. With `is_built` the program that lies there
/// from before is packed.
pub fn run(root: &Path, is_built: bool) -> Result<(), String> {
    let (target, flags) = target()?;
    let build_folder = root.join("target/dist");
    if !is_built {
        build(root, &target, &flags, &build_folder)?;
    }
    let program = build_folder.join(&target).join("release/assay");
    let bytes = std::fs::read(&program)
        .map_err(|error| format!("reading {}: {error}", program.display()))?;
    looked_at(&bytes).map_err(|reason| format!("{}: {reason}", program.display()))?;
    tried(&program, &build_folder)?;
    println!("{}: {} bytes, static, function names kept", program.display(), bytes.len());
    let release = Release {
        root,
        folder: build_folder.join("release"),
        version: said(Command::new(&program).arg("--version"))?
            .split_whitespace()
            .nth(1)
            .ok_or("the program does not say its version")?
            .to_owned(),
        commit: said(
            Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(root),
        )?,
        program,
        target,
    };
    let mut made = pack(&release, &flags)?;
    let mut skipped = Vec::new();
    for (what, step) in STEPS {
        match step(&release) {
            Ok(Made::File(name)) => made.push(name),
            Ok(Made::Tried) => println!("{what}: tried"),
            Ok(Made::Skipped(why)) => skipped.push(format!("{what}: {why}")),
            Err(error) => return Err(format!("{what}: {error}")),
        }
    }
    checksums(&release, &made)?;
    println!("{}:", release.folder.display());
    made.iter().for_each(|name| println!("  {name}"));
    skipped.iter().for_each(|line| println!("SKIPPED {line}"));
    println!(
        "NOT MADE here: aarch64 Linux (it is checked: rustup target add aarch64-unknown-linux-musl, a C compiler for it in CC_aarch64_unknown_linux_musl, cargo check -p assay --target aarch64-unknown-linux-musl); macOS (a run drives Linux, so the program is not for it; what reads and writes records is checked: cargo check -p record -p analysis -p report -p compare -p exchange -p plan --target aarch64-apple-darwin, with a C compiler for it)"
    );
    Ok(())
}

/// The outcome of a step.
enum Made {
    File(String),
    Tried,
    Skipped(String),
}

type Step = fn(&Release<'_>) -> Result<Made, String>;

/// The steps after the program is built.
const STEPS: [(&str, Step); 4] = [
    ("the list of what is in it", bill::write),
    ("the package for Debian", debian::pack),
    ("the image for containers", oci::pack),
    ("a bare Debian", bare::run),
];

/// The target, and the flags that make a program for it static. musl where its standard library is installed, else the C
/// library of this host, linked in: its resolver reads /etc/hosts and asks name servers without another file since 2.34.
fn target() -> Result<(String, String), String> {
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if has_target(&musl)? {
        return Ok((musl, String::new()));
    }
    println!(
        "{musl} is not installed (rustup target add {musl}); linking the C library of this host"
    );
    let gnu = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    Ok((gnu, "-C target-feature=+crt-static".to_owned()))
}

fn build(root: &Path, target: &str, flags: &str, folder: &Path) -> Result<(), String> {
    let args = ["build", "--release", "--locked", "-p", "assay", "--target", target];
    let built = Command::new("cargo")
        .args(args)
        .arg("--target-dir")
        .arg(folder)
        .current_dir(root)
        // As the container's recipe has it.
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "false")
        .env("RUSTFLAGS", flags)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if built.success() { Ok(()) } else { Err("cargo build of the static assay failed".to_owned()) }
}

/// The archive of the program with what belongs to it; gives the names of files made.
fn pack(release: &Release<'_>, flags: &str) -> Result<Vec<String>, String> {
    let name = format!("assay-{}-{}", release.version, release.target);
    let inside = release.folder.join(&name);
    let _ = std::fs::remove_dir_all(&release.folder);
    let failed = |error: std::io::Error| format!("writing {}: {error}", inside.display());
    std::fs::create_dir_all(&inside).map_err(failed)?;
    std::fs::copy(&release.program, inside.join("assay")).map_err(failed)?;
    for page in ["LICENSE", "README.md", "SECURITY.md", "CHANGELOG.md"] {
        std::fs::copy(release.root.join(page), inside.join(page)).map_err(failed)?;
    }
    for (file, words) in [
        ("assay.1", &["man"][..]),
        ("assay.bash", &["completions", "bash"]),
        ("_assay", &["completions", "zsh"]),
        ("assay.fish", &["completions", "fish"]),
    ] {
        let text = said(Command::new(&release.program).args(words))?;
        std::fs::write(inside.join(file), text + "\n").map_err(failed)?;
    }
    std::fs::write(inside.join("PROVENANCE.json"), bill::provenance(release, flags)?)
        .map_err(failed)?;
    let archive = format!("{name}.tar.gz");
    // The same files give the same archive: no times, no owners, one order.
    let tar = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-I"];
    succeeds(
        Command::new("tar")
            .args(tar)
            .args(["gzip -n", "-cf"])
            .args([&archive, &name])
            .current_dir(&release.folder),
    )?;
    Ok(vec![archive])
}

fn checksums(release: &Release<'_>, made: &[String]) -> Result<(), String> {
    let sums = said(Command::new("sha256sum").args(made).current_dir(&release.folder))?;
    let path = release.folder.join("SHA256SUMS");
    std::fs::write(&path, sums + "\n")
        .map_err(|error| format!("writing {}: {error}", path.display()))
}

/// Runs a command; gives what it printed, without the white space around it.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{command:?}: {}: {why}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    said(command).map(|_| ())
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
