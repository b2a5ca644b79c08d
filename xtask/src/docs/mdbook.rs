//! The pinned mdbook, in the target folder. It must never use another version that happens to be installed:
//! the shape of anchors and paths is the version's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = "0.5.4";

/// The program, built once if it is not there. Neither the distribution nor PyPI carries it, so it is built:
/// without features and without optimisation, which takes about half a minute on two processors and builds
/// this book in a second.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn program(root: &Path) -> Result<PathBuf, String> {
    let home = root.join("target/mdbook");
    let program = home.join("bin/mdbook");
    if version(&program).as_deref() == Some(VERSION) {
        return Ok(program);
    }
    println!("=== mdbook {VERSION}: cargo install, without features, unoptimised");
    let status = Command::new("cargo")
        .args(["install", "mdbook", "--version", VERSION, "--locked", "--no-default-features"])
        .args(["--debug", "--force", "--quiet", "--root"])
        .arg(&home)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(root)
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(program),
        Ok(status) => Err(format!("mdbook {VERSION} could not be installed ({status})")),
        Err(error) => Err(format!("mdbook {VERSION} could not be installed: cargo: {error}")),
    }
}

/// What a program says of itself: `mdbook v0.5.4`.
fn version(program: &Path) -> Option<String> {
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.split_whitespace().last().map(|word| word.trim_start_matches('v').to_owned())
}
