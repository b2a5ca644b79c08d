//! Nodes of this project's own that are programs by themselves, because they are too heavy to be part of `assay`:
//! built from the checkout, where there is one, with the cargo that is there.
//!
//! It must never build anything but `systems/*/node`, and never fetch a checkout.

use std::path::{Path, PathBuf};

use super::carry_out::{Step, VERIFY_MAX, carry_out, run};
use super::{InstallError, Shelf, is_program};

/// What the name of such a program ends with, unless its manifest gives it the system's own: `NAME-node` or `NAME`, built
/// from `systems/NAME/node`, which is the package `NAME-node`.
const SUFFIX: &str = "-node";

/// The system whose node is called so, if it may be one.
fn system_of(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let system = name.strip_suffix(SUFFIX).unwrap_or(name);
    Some(system).filter(|system| !system.is_empty() && system.chars().all(is_plain))
}

/// Whether a name can only be that of a node.
pub(super) fn is_node(name: &str) -> bool {
    name.ends_with(SUFFIX) && system_of(name).is_some()
}

/// Whether there is a checkout, told or around, that has a node of this name.
pub(super) fn has(shelf: &Shelf, name: &str, told: Option<&Path>) -> bool {
    find(shelf, name, told).is_ok()
}

/// Builds the node and puts it where [`crate::program::find`] looks: beside `assay` if that was built in the same
/// target folder, else into the cache folder. Always built: cargo knows whether there is anything to do.
pub(super) fn install(
    shelf: &Shelf,
    name: &str,
    told: Option<&Path>,
    log: &mut dyn FnMut(&str),
) -> Result<PathBuf, InstallError> {
    let checkout = find(shelf, name, told)?;
    let cache_error = |folder: &Path| {
        let (name, folder) = (name.to_owned(), folder.to_owned());
        move |source| InstallError::Cache { name, folder, source }
    };
    let ours = shelf.beside.as_deref().and_then(|folder| target_of(folder, &checkout));
    let is_beside = ours.is_some();
    let target = ours.unwrap_or_else(|| shelf.cache.join("build").join("checkout"));
    let client = shelf.which("cargo").ok_or_else(|| InstallError::NoClient {
        name: name.to_owned(),
        client: "cargo".to_owned(),
    })?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let manifest = text(&checkout.join("Cargo.toml"));
    let package = package_of(name);
    let step = Step::new(
        client,
        ["build", "--release", "--manifest-path", &manifest, "--package", &package, "--bin", name],
    );
    let step = step.arg("--target-dir").arg(text(&target));
    carry_out(shelf, name, &step, log)?;
    let built = target.join("release").join(name);
    verify(shelf, name, &built, log)?;
    let program = if is_beside {
        built
    } else {
        let folder = shelf.folder_of_ours(name);
        std::fs::create_dir_all(&folder).map_err(cache_error(&folder))?;
        let (new, program) = (folder.join(format!("{name}.new")), folder.join(name));
        // A node that runs keeps the file that it was started from.
        let put = std::fs::copy(&built, &new).and_then(|_| std::fs::rename(&new, &program));
        put.map_err(cache_error(&folder))?;
        program
    };
    log(&format!("{name} is there: {}", program.display()));
    Ok(program)
}

/// The checkout that has this node: the one that was told, else one around `assay` or around the working folder.
fn find(shelf: &Shelf, name: &str, told: Option<&Path>) -> Result<PathBuf, InstallError> {
    let around = shelf.beside.iter().chain(&shelf.here).flat_map(|folder| folder.ancestors());
    let found = match told {
        Some(told) => Some(told.to_owned()).filter(|told| is_checkout(told)),
        None => around.map(Path::to_owned).find(|folder| is_checkout(folder)),
    };
    let Some(checkout) = found else {
        let looked = match told {
            Some(told) => format!("{} is none", told.display()),
            None => "neither this program nor the working folder is in one".to_owned(),
        };
        let package = package_of(name);
        return Err(InstallError::NoCheckout { name: name.to_owned(), package, looked });
    };
    let known = nodes(&checkout);
    if known.iter().any(|known| known == name) {
        return Ok(std::path::absolute(&checkout).unwrap_or(checkout));
    }
    Err(InstallError::Unknown {
        name: name.to_owned(),
        known: format!("in {}: {}", checkout.display(), known.join(", ")),
    })
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file()
        && folder.join("systems").is_dir()
        && folder.join("apps/assay").is_dir()
}

/// The package that a node of this name is built from.
fn package_of(name: &str) -> String {
    format!("{}{SUFFIX}", system_of(name).unwrap_or(name))
}

/// Names of the nodes in a checkout.
fn nodes(checkout: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(checkout.join("systems")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| program_in(&entry.path())).collect();
    names.sort();
    names
}

/// What the node of the system in this folder is called, if it is a program by itself.
fn program_in(folder: &Path) -> Option<String> {
    let node = folder.join("node");
    let system = folder.file_name()?.to_string_lossy().into_owned();
    let manifest = std::fs::read_to_string(node.join("Cargo.toml")).ok()?;
    // Manifests are the checkout's own: the package's name has the suffix, so this is the program's.
    let own = format!("name = \"{system}\"");
    let is_own = manifest.lines().any(|line| line == own);
    let is_program = node.join("src/main.rs").is_file();
    is_program.then(|| if is_own { system } else { format!("{system}{SUFFIX}") })
}

/// The target folder that `assay` in `folder` was built into, if it was in this checkout: building there uses again what
/// it was made of.
fn target_of(folder: &Path, checkout: &Path) -> Option<PathBuf> {
    let is_release = folder.ends_with("release") && folder.join("deps").is_dir();
    folder.parent().filter(|target| is_release && target.starts_with(checkout)).map(Path::to_owned)
}

/// A node says how it is used, and that is all that is asked of it here.
fn verify(
    shelf: &Shelf,
    name: &str,
    program: &Path,
    log: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let step = Step::new(program.to_owned(), ["--help"]);
    let mut said = String::new();
    let ran = run(shelf, &step, VERIFY_MAX, &mut |line| {
        if said.len() < 64 << 10 {
            said.push_str(line);
            said.push('\n');
        }
    });
    if is_program(program) && ran == Ok(true) {
        return Ok(());
    }
    log(&format!("$ {}", step.in_words()));
    Err(InstallError::NotIt {
        name: name.to_owned(),
        command: step.in_words(),
        wanted: "how it is used, and end well".to_owned(),
        said: ran.err().unwrap_or(said),
    })
}
