//! A copy of the checkout gets a new system with a node, whose tests pass before its first line is changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::stamps::files_of;

/// The copy's system.
const NAME: &str = "sample";

/// The most lines that a new system adds outside its own folder: one in the list, one in the manifest of the app.
const LINES_OUTSIDE: usize = 2;

/// `cargo xtask newcomer`: makes the copy and runs the new system's tests.
pub fn run(root: &Path) -> Result<(), String> {
    let copy = root.join("target/newcomer");
    copy_checkout(root, &copy)?;
    let (written, changed) = crate::new_system::run(&copy, NAME, true)?;
    only_its_folder(&copy, root, &written, &changed)?;
    let (adapter, node) = (format!("{NAME}-adapter"), format!("{NAME}-node"));
    // The same target folder and the same times of files: of the copy only what is new is compiled.
    let status = Command::new("cargo")
        .args(["test", "--release", "--offline", "--package", &adapter, "--package", &node])
        .arg("--target-dir")
        .arg(root.join("target"))
        .current_dir(&copy)
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the tests of a new system fail".to_owned()) }
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
    for name in files_of(root)? {
        let (from, to) = (root.join(&name), copy.join(&name));
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
