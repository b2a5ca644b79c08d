//! A copy of the checkout gets a new system with a node, whose tests pass before its first line is changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::tally::{Tally, uptime_s};

/// The copy's system.
const NAME: &str = "sample";

/// The most lines that a new system adds outside its own folder: one in the list, one in the manifest of the app.
const LINES_OUTSIDE: usize = 2;

/// Makes the copy and runs the new system's tests.
pub fn newcomer(tally: &mut Tally, root: &Path) {
    let before = uptime_s();
    let copy = root.join("target/newcomer");
    let made = copy_checkout(root, &copy)
        .and_then(|()| crate::new_system::run(&copy, NAME, true))
        .and_then(|(written, changed)| only_its_folder(&copy, root, &written, &changed));
    tally.done("new system: its files", made.clone(), uptime_s() - before);
    if made.is_err() {
        return;
    }
    let manifest = copy.join("Cargo.toml").display().to_string();
    let target = root.join("target").display().to_string();
    // The same target folder and the same times of files: of the copy only what is new is compiled.
    let (adapter, node) = (format!("{NAME}-adapter"), format!("{NAME}-node"));
    let test = [
        "cargo",
        "test",
        "--release",
        "--offline",
        "--manifest-path",
        &manifest,
        "--target-dir",
        &target,
        "--package",
        &adapter,
        "--package",
        &node,
    ];
    tally.step(root, "new system", &test);
}

/// A system is its folder and a line in the list.
fn only_its_folder(
    copy: &Path,
    root: &Path,
    written: &[std::path::PathBuf],
    changed: &[std::path::PathBuf],
) -> Result<(), String> {
    let folder = copy.join("systems").join(NAME);
    if let Some(outside) = written.iter().find(|path| !path.starts_with(&folder)) {
        return Err(format!("{} is outside the system's folder", outside.display()));
    }
    let mut lines = 0;
    for path in changed {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
        let before = root.join(path.strip_prefix(copy).unwrap_or(path));
        lines += read(path) - read(&before);
    }
    println!(
        "=== new system: {} files in its folder, {lines} lines in {} others",
        written.len(),
        changed.len()
    );
    if lines == LINES_OUTSIDE { Ok(()) } else { Err(format!("{lines} lines outside its folder")) }
}

/// Copies what git knows of the checkout, as it stands, with the times of its files.
fn copy_checkout(root: &Path, copy: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(copy);
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("running git: {error}"))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    for name in text.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), copy.join(name));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|e| format!("making {}: {e}", folder.display()))?;
        }
        if from.is_file() {
            copy_file(&from, &to).map_err(|e| format!("copying {name}: {e}"))?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to)?;
    let modified = fs::metadata(from)?.modified()?;
    fs::File::options().write(true).open(to)?.set_modified(modified)
}
