//! Nodes of this project's own that are programs by themselves, because they are too heavy to be part of `assay`:
//! built from the checkout, where there is one, with the cargo that is there. Light ones are crates of the checkout's
//! workspace (`systems/NAME/node`); heavy ones are workspaces of their own (`programs/NAME`), with a target folder of
//! their own.
//!
//! It must never build anything else, and never fetch a checkout.

use std::path::{Path, PathBuf};

use super::carry_out::{Step, VERIFY_MAX, carry_out, run};
use super::{InstallError, Shelf, is_program};

/// The end of each package's name, and of a light program's: `systems/NAME/node` makes `NAME-node`, `programs/NAME` makes
/// `NAME`.
const SUFFIX: &str = "-node";

/// Folder of the heavy programs in a checkout, and of what they are built into in a target folder.
const PROGRAMS: &str = "programs";

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
    let (checkout, source) = find(shelf, name, told)?;
    let cache_error = |folder: &Path| {
        let (name, folder) = (name.to_owned(), folder.to_owned());
        move |source| InstallError::Cache { name, folder, source }
    };
    let ours = shelf.beside.as_deref().and_then(|folder| target_of(folder, &checkout));
    let own = match &ours {
        Some(target) => target.clone(),
        None => shelf.cache_for(name)?.join("build").join("checkout"),
    };
    let target = if source.is_apart { own.join(PROGRAMS) } else { own };
    let client = shelf.which("cargo").ok_or_else(|| InstallError::NoClient {
        name: name.to_owned(),
        client: "cargo".to_owned(),
    })?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (manifest, package) = (text(&source.manifest), package_of(name));
    let step = Step::new(
        client,
        ["build", "--release", "--manifest-path", &manifest, "--package", &package, "--bin", name],
    );
    let step = step.arg("--target-dir").arg(text(&target));
    carry_out(shelf, name, &step, log)?;
    let built = target.join("release").join(name);
    verify(shelf, name, &built, log)?;
    let release = ours.map(|target| target.join("release"));
    let folder = release.or_else(|| shelf.folder_of_ours(name)).expect("one of them was built in");
    let program = folder.join(name);
    if program != built {
        std::fs::create_dir_all(&folder).map_err(cache_error(&folder))?;
        let new = folder.join(format!("{name}.new"));
        // A node that runs keeps the file that it was started from.
        let put = std::fs::copy(&built, &new).and_then(|_| std::fs::rename(&new, &program));
        put.map_err(cache_error(&folder))?;
    }
    log(&format!("{name} is there: {}", program.display()));
    Ok(program)
}

/// One program of a checkout.
struct Source {
    name: String,
    manifest: PathBuf,
    /// Whether it is a workspace of its own.
    is_apart: bool,
}

/// The checkout that has this node, and the node: the checkout that was told, else one around `assay` or around the
/// working folder.
fn find(shelf: &Shelf, name: &str, told: Option<&Path>) -> Result<(PathBuf, Source), InstallError> {
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
    let checkout = std::path::absolute(&checkout).unwrap_or(checkout);
    let mut known = sources(&checkout);
    if let Some(place) = known.iter().position(|known| known.name == name) {
        return Ok((checkout, known.swap_remove(place)));
    }
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    Err(InstallError::Unknown {
        name: name.to_owned(),
        known: format!("in {}: {}", checkout.display(), names.join(", ")),
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

/// The programs of a checkout, by name.
fn sources(checkout: &Path) -> Vec<Source> {
    let light = folders(&checkout.join("systems")).into_iter().filter_map(|(system, folder)| {
        let is_program = folder.join("node/src/main.rs").is_file();
        let manifest = is_program.then(|| checkout.join("Cargo.toml"))?;
        Some(Source { name: format!("{system}{SUFFIX}"), manifest, is_apart: false })
    });
    let heavy = folders(&checkout.join(PROGRAMS)).into_iter().filter_map(|(name, folder)| {
        let manifest = Some(folder.join("Cargo.toml")).filter(|manifest| manifest.is_file())?;
        Some(Source { name, manifest, is_apart: true })
    });
    let mut sources: Vec<Source> = light.chain(heavy).collect();
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    sources
}

/// What lies in a folder, with its name.
fn folders(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |entry: std::fs::DirEntry| (entry.file_name().into_string().ok(), entry.path());
    entries.map(named).filter_map(|(name, path)| Some((name?, path))).collect()
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
