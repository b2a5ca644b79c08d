//! The end-to-end tests: one program, whose modules are told apart by what reaches them. A module that a system declares is
//! run again when the instrument, the app or that system changed; one that nobody declares is run each time.

use std::path::Path;
use std::process::Command;

use super::declared::{Suite, WORKSPACE};
use super::stamps::{Sources, Stamps, digest};
use super::tally::Tally;
use super::test_programs::{Program, Setting, TIMING};

/// Systems whose adapters the harness of all modules uses.
const EVERYWHERE: [&str; 2] = ["echo", "http"];

/// Files that no end-to-end test of a system reads.
const ASIDE: [&str; 5] = ["docs/", "results/", "xtask/", "fuzz/", ".ci/"];

/// Runs all modules but those that passed with the same sources and programs.
pub fn run(
    tally: &mut Tally,
    setting: &Setting<'_>,
    suites: &[Suite],
    program: &Program,
    stamps: &mut Stamps,
    sources: &Sources,
) {
    let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
    let tests = listed(program);
    let threads = threads();
    let mut words: Vec<String> =
        [program.path.to_str().unwrap_or_default(), &threads, "--skip", TIMING]
            .map(str::to_owned)
            .into();
    let mut reached = Vec::new();
    for suite in suites.iter().filter(|suite| !suite.tests.end_to_end.is_empty()) {
        let used = used(setting.root, &suite.name, &names);
        let code = sources.key(|path| reaches(path, &used, &names));
        let key = digest([code.to_le_bytes().as_slice(), installed().as_bytes()]);
        let name = format!("end-to-end tests of {}", suite.name);
        let modules = &suite.tests.end_to_end;
        if stamps.holds(&name, key) && modules.iter().all(|module| is_exact(module, &tests)) {
            tally.unchanged.push(name);
            let skips = modules.iter().flat_map(|module| ["--skip".to_owned(), module.clone()]);
            words.extend(skips);
        } else {
            reached.push((name, key));
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if tally.step_with(&program.folder, "end-to-end tests", &words, &setting.env) {
        for (name, key) in reached {
            stamps.passed(&name, key);
        }
    }
}

/// Runs the modules of one system.
pub fn of(tally: &mut Tally, setting: &Setting<'_>, suite: &Suite, program: &Program) {
    if suite.tests.end_to_end.is_empty() {
        return;
    }
    let (path, threads) = (program.path.display().to_string(), threads());
    let mut words = vec![path.as_str(), threads.as_str(), "--skip", TIMING];
    words.extend(suite.tests.end_to_end.iter().map(String::as_str));
    tally.step_with(&program.folder, "end-to-end tests", &words, &setting.env);
}

/// Four tests a processor: they wait for loads to end most of the time (two took 476 s of 310 s of processor time), and no
/// assertion of theirs depends on how busy the machine is.
fn threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("--test-threads={}", 4 * processors)
}

/// Names of all tests of the program.
fn listed(program: &Program) -> Vec<String> {
    let said = Command::new(&program.path).arg("--list").current_dir(&program.folder).output();
    let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let names = text.unwrap_or_default();
    names.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Whether a module's name stands in no other test's name: the program leaves out every test whose name contains it.
fn is_exact(module: &str, tests: &[String]) -> bool {
    tests.iter().all(|test| test.starts_with(module) || !test.contains(module))
}

/// The systems whose code the tests of this one run: its own, those that its adapter builds on, and the harness's.
fn used(root: &Path, system: &str, systems: &[&str]) -> Vec<String> {
    let manifest = root.join("systems").join(system).join("adapter/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap_or_default();
    let is_used = |other: &&&str| {
        **other == system
            || EVERYWHERE.contains(*other)
            || manifest.contains(&format!("/{other}/adapter"))
    };
    systems.iter().filter(is_used).map(|name| (*name).to_owned()).collect()
}

/// Whether a file can change what the tests of a system find that uses these systems.
fn reaches(path: &str, used: &[String], systems: &[&str]) -> bool {
    if path.ends_with(".md") || ASIDE.iter().any(|folder| path.starts_with(folder)) {
        return false;
    }
    let of_a_system = ["systems/", "experiments/", "programs/"]
        .iter()
        .find_map(|folder| path.strip_prefix(folder)?.split('/').next());
    match of_a_system.filter(|name| *name != WORKSPACE && systems.contains(name)) {
        Some(name) => used.iter().any(|used| used == name),
        None => true,
    }
}

/// The programs in the cache folder, with their versions.
fn installed() -> String {
    let folders = |folder: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    };
    let versions = folders(&super::cache()).into_iter().flat_map(|program| folders(&program));
    let mut names: Vec<String> = versions.map(|path| path.display().to_string()).collect();
    names.retain(|name| !name.starts_with(&super::kept().display().to_string()));
    names.sort();
    names.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a file of a system reaches the tests of those that use it and of no other; one of the instrument reaches all;
    /// documents and this program reach none.
    #[test]
    fn what_a_change_reaches() {
        let root = crate::workspace_root();
        let systems = ["workspace", "echo", "http", "ethereum", "eth-gateway", "kv"];
        let reached = |path: &str| -> Vec<&str> {
            let of = |system: &&&str| reaches(path, &used(&root, system, &systems), &systems);
            systems.iter().filter(of).copied().collect()
        };
        assert_eq!(reached("systems/kv/adapter/src/lib.rs"), ["kv"]);
        assert_eq!(reached("systems/ethereum/adapter/src/lib.rs"), ["ethereum", "eth-gateway"]);
        assert_eq!(reached("programs/eth-gateway/src/lib.rs"), ["eth-gateway"]);
        for path in ["systems/http/adapter/src/lib.rs", "instrument/load/src/lib.rs", "Cargo.lock"]
        {
            assert_eq!(reached(path), systems, "{path}");
        }
        for path in ["docs/exec.md", "xtask/src/main.rs", "systems/kv/README.md"] {
            assert!(reached(path).is_empty(), "{path}");
        }
    }

    /// Claim: a module is left out by its name only where no other module's name ends as it does.
    #[test]
    fn modules_are_left_out_exactly() {
        let tests = ["reads::a".to_owned(), "spreads::b".to_owned(), "kv::c".to_owned()];
        assert!(is_exact("kv::", &tests) && !is_exact("reads::", &tests));
    }
}
