//! What the steps need beside a compiler, as the suites declare it: got where it is not there yet. What cannot be had is
//! said by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::declared::Suite;
use super::stamps::changed;
use super::turns;

/// What was got.
pub struct Prepared {
    pub python: Option<PathBuf>,
    pub skipped: Vec<String>,
}

/// Gets what waits for a network and not for our own binary.
pub fn prepare(root: &Path, suites: &[Suite], wants_browser: bool) -> Prepared {
    let mut skipped = Vec::new();
    let packages: Vec<&str> =
        suites.iter().flat_map(|suite| &suite.needs.python).map(String::as_str).collect();
    let python = match packages.as_slice() {
        [] => None,
        packages => python(root, packages).map_err(|reason| skipped.push(reason)).ok(),
    };
    let programs = suites.iter().flat_map(|suite| &suite.needs.distribution);
    skipped.extend(programs.filter_map(|(program, package)| distribution(program, package).err()));
    if wants_browser {
        if let Some(reason) = crate::docs::missing(root) {
            skipped.push(format!("building the book and looking at its anchors: {reason}"));
        }
        if crate::web::missing().is_none() {
            // The step that needs them says what is wrong with them.
            let _ = crate::web::install(root, &root.join("web"));
        }
    }
    Prepared { python, skipped }
}

/// Installs the systems that tests start; a test whose system is missing says so by name. A program that has a workspace of
/// its own here takes minutes to build: one that was built before is brought up to date, and of the others a commit draws
/// one; `is_all` builds each. Gives what is skipped.
pub fn systems(root: &Path, suites: &[Suite], is_all: bool) -> Vec<String> {
    let assay = root.join("target/release/assay");
    let mut skipped = Vec::new();
    let mut names: Vec<&str> =
        suites.iter().flat_map(|suite| &suite.needs.doctor).map(String::as_str).collect();
    if is_all {
        names.extend(suites.iter().flat_map(|suite| &suite.needs.doctor_all).map(String::as_str));
    }
    let is_changed = |name: &str, changed: &[String]| {
        changed.iter().any(|path| Path::new(path).starts_with(Path::new("programs").join(name)))
    };
    if !is_all {
        let changed = changed(root);
        let not_built = names
            .iter()
            .copied()
            .filter(|name| !is_built(root, name) && !is_changed(name, &changed));
        let of_others: Vec<&str> =
            turns::in_order(&turns::commit(root), not_built).into_iter().skip(1).collect();
        names.retain(|name| !of_others.contains(name));
        let reason = "it takes turns with the other programs, and --all builds each";
        skipped.extend(of_others.iter().map(|name| format!("tests that start {name}: {reason}")));
    }
    for name in names {
        println!("=== {name}: assay doctor --install {name}");
        if !succeeds(Command::new(&assay).args(["doctor", "--install", name])) {
            skipped.push(format!("tests that start {name}: it could not be installed"));
        }
    }
    skipped
}

/// Whether a program that has a workspace of its own is built; so is whatever has none.
pub fn is_built(root: &Path, name: &str) -> bool {
    let has_workspace = root.join("programs").join(name).is_dir();
    !has_workspace || root.join("target/release").join(name).is_file()
}

/// A Python with the readers, or why there is none.
fn python(root: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let home = root.join("target/python");
    let python = home.join("bin/python3");
    let stamp = home.join("installed");
    let found = std::fs::read_to_string(&stamp).unwrap_or_default();
    if packages.iter().all(|wanted| found.lines().any(|found| found == *wanted)) {
        return Ok(python);
    }
    println!("=== readers in other languages: {}", packages.join(" "));
    let lock = root.join("xtask/python.lock");
    let locked = std::fs::read_to_string(&lock).unwrap_or_default();
    let is_locked =
        |wanted: &&str| locked.lines().any(|line| line.starts_with(&format!("{wanted} ")));
    if let Some(other) = packages.iter().find(|wanted| !is_locked(wanted)) {
        return Err(format!("readers in Python: xtask/python.lock has no digests of {other}"));
    }
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&home))
        && succeeds(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(["--require-hashes", "--requirement"])
                .arg(&lock),
        );
    if made && std::fs::write(&stamp, packages.join("\n")).is_ok() {
        return Ok(python);
    }
    Err(format!(
        "reading the run folder with readers in Python: could not install {}",
        packages.join(" ")
    ))
}

/// Where a program is, if it is installed. Servers lie where only root looks.
pub fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut known = std::env::split_paths(&paths).chain([PathBuf::from("/usr/sbin")]);
    known.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

/// Installs a program of the distribution if it is missing; or why it cannot be had.
fn distribution(program: &str, package: &str) -> Result<(), String> {
    if self::program(program).is_some() {
        return Ok(());
    }
    println!("=== {program}: apt-get install {package}");
    let quiet = ["install", "-y", "-qq", "--no-install-recommends", package];
    let installed = succeeds(Command::new("apt-get").args(quiet))
        || (succeeds(Command::new("apt-get").args(["update", "-qq"]))
            && succeeds(Command::new("apt-get").args(quiet)));
    if installed {
        return Ok(());
    }
    Err(format!("tests that need {program}: could not install {package}"))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}
