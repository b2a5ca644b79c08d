//! What the steps need beside a compiler, as the suites declare it: got where it is not there yet. What cannot be had is
//! said by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::declared::Suite;

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

/// Installs the systems that tests start; a test whose system is missing says so by name. Gives what is skipped.
pub fn systems(root: &Path, suites: &[Suite]) -> Vec<String> {
    let assay = root.join("target/release/assay");
    let mut skipped = Vec::new();
    for name in suites.iter().flat_map(|suite| &suite.needs.doctor) {
        println!("=== {name}: assay doctor --install {name}");
        if !succeeds(Command::new(&assay).args(["doctor", "--install", name])) {
            skipped.push(format!("tests that start {name}: it could not be installed"));
        }
    }
    skipped
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
