//! The test programs of the workspace: built once, run several at a time, those that start processes one by one beside them. A
//! program that passed before with the same code and the same files is not run again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

use super::stamps::{Sources, Stamps, digest};
use super::tally::{Tally, uptime_s};

/// The most seconds that one program may take: the longest takes a minute on an idle machine.
const SECONDS_MAX: &str = "900";

/// Tests of this module's name judge real time: `cargo xtask test --timing` runs and repeats them, and no other run does.
pub const TIMING: &str = "timing::";

/// Folders of the checkout that tests read files of, as their sources write them.
const READ: [&str; 4] = ["docs", "experiments", "fuzz/seeds", "web/dist"];

/// A test program that cargo has built.
pub struct Program {
    pub name: String,
    pub path: PathBuf,
    /// Folder of its package, in which cargo would run it.
    pub folder: PathBuf,
}

impl Program {
    /// Folder and name: several packages have a program of the same name.
    pub fn label(&self, root: &Path) -> String {
        let folder = self.folder.strip_prefix(root).unwrap_or(&self.folder);
        format!("{}: {}", folder.display(), self.name)
    }

    /// Whether it has tests that judge real time: their names stand in it. One that has none gets no arguments, because it
    /// may be a harness of its own.
    pub fn has_timing(&self) -> bool {
        let code = std::fs::read(&self.path).unwrap_or_default();
        code.windows(TIMING.len()).any(|part| part == TIMING.as_bytes())
    }

    /// The digest of the program and of the files that its tests read.
    fn key(&self, root: &Path, sources: &Sources) -> u64 {
        let code = std::fs::read(&self.path).unwrap_or_default();
        let folders = self.folders(root);
        let is_read = |path: &str| {
            let is_data = !path.ends_with(".rs") && !path.ends_with("README.md");
            is_data && folders.iter().any(|folder| Path::new(path).starts_with(folder))
        };
        digest([code.as_slice(), &sources.key(is_read).to_le_bytes()])
    }

    /// Folders that its tests read: its package's, for a system's crate the system's, and what its sources name of others.
    fn folders(&self, root: &Path) -> BTreeSet<String> {
        let own = self.folder.strip_prefix(root).unwrap_or(&self.folder);
        let own = if own.starts_with("systems") { own.parent().unwrap_or(own) } else { own };
        let mut folders = BTreeSet::from([own.display().to_string()]);
        crate::tidy::walk(&self.folder, &mut |path| {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let named = READ.iter().filter(|folder| text.contains(&format!("../{folder}")));
                folders.extend(named.map(|folder| (*folder).to_owned()));
            }
        });
        folders
    }
}

/// Builds all test programs of the workspace. Examples are linted and not linked: what needs one builds it.
pub fn built(tally: &mut Tally, root: &Path) -> Vec<Program> {
    let mut command = Command::new("cargo");
    command.args(["test", "--release", "--workspace", "--lib", "--bins", "--tests", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics").current_dir(root);
    println!("\n=== build of the tests: {command:?}");
    let before = uptime_s();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let result = match &output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(output.status.to_string()),
        Err(error) => Err(format!("could not start: {error}")),
    };
    let is_built = result.is_ok();
    tally.done("build of the tests", result, uptime_s() - before);
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if is_built { text.lines().filter_map(program).collect() } else { Vec::new() }
}

/// The test program that a message of cargo's is of.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Program {
        name: message["target"]["name"].as_str()?.to_owned(),
        path: PathBuf::from(message["executable"].as_str()?),
        folder: manifest.parent()?.to_owned(),
    })
}

/// Where and with what tests run.
pub struct Setting<'a> {
    pub root: &'a Path,
    pub env: Vec<(&'a str, &'a Path)>,
    /// Packages whose tests start processes, networks or disks: one program at a time.
    pub alone: &'a [String],
}

/// Runs the programs, those that did not change since they passed left out.
pub fn run(
    tally: &mut Tally,
    setting: &Setting<'_>,
    programs: &[&Program],
    stamps: &mut Stamps,
    sources: &Sources,
) {
    let root = setting.root;
    let keyed = programs.iter().map(|program| (*program, program.key(root, sources)));
    let (unchanged, wanted): (Vec<_>, Vec<_>) =
        keyed.partition(|(program, key)| stamps.holds(&program.label(root), *key));
    tally.unchanged.extend(unchanged.iter().map(|(program, _)| program.label(root)));
    let (alone, beside): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(program, _)| is_alone(setting, program));
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    for (program, key, ended) in in_lanes(setting, vec![(beside, lanes), (alone, 1)]) {
        let label = program.label(root);
        if let Err(why) = &ended.result {
            println!("\n=== {label}: {why}\n{}", ended.said);
        } else {
            stamps.passed(&label, key);
        }
        tally.done(&format!("tests {label}"), ended.result, ended.seconds);
    }
}

fn is_alone(setting: &Setting<'_>, program: &Program) -> bool {
    setting.alone.iter().any(|package| setting.root.join(package) == program.folder)
}

/// The end of one program.
struct Ended {
    result: Result<(), String>,
    said: String,
    seconds: f64,
}

/// A program and the digest under which it is known to have passed.
type Keyed<'a> = (&'a Program, u64);

/// Runs groups of programs beside each other, of each so many programs at a time.
fn in_lanes<'a>(
    setting: &Setting<'_>,
    groups: Vec<(Vec<Keyed<'a>>, usize)>,
) -> Vec<(&'a Program, u64, Ended)> {
    let groups: Vec<_> =
        groups.into_iter().map(|(all, lanes)| (Mutex::new(all.into_iter()), lanes)).collect();
    let ended = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for waiting in groups.iter().flat_map(|(all, lanes)| std::iter::repeat_n(all, *lanes)) {
            let ended = &ended;
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().expect("no lane panics with the lock").next();
                    let Some((program, key)) = next else { break };
                    let end = one(setting, program);
                    println!("=== {}: {:.0} s", program.label(setting.root), end.seconds);
                    ended.lock().expect("no lane panics with the lock").push((program, key, end));
                }
            });
        }
    });
    ended.into_inner().expect("no lane panics with the lock")
}

fn one(setting: &Setting<'_>, program: &Program) -> Ended {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", SECONDS_MAX]).arg(&program.path);
    if is_alone(setting, program) && program.has_timing() {
        command.args(["--skip", TIMING]);
    }
    command.current_dir(&program.folder).envs(setting.env.iter().copied());
    let before = uptime_s();
    let output = command.stdin(Stdio::null()).output();
    let seconds = uptime_s() - before;
    let (result, said) = match output {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let result =
                if output.status.success() { Ok(()) } else { Err(output.status.to_string()) };
            (result, String::from_utf8_lossy(&said).into_owned())
        }
        Err(error) => (Err(format!("could not start: {error}")), String::new()),
    };
    Ended { result, said, seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of cargo's messages those are taken that are of a test program, with the folder of its package.
    #[test]
    fn messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/systems/kv/node/Cargo.toml","target":{"name":"kv_node"},"profile":{"test":true},"executable":"/w/target/release/deps/kv_node-1"}"#;
        let found = program(line).unwrap();
        assert_eq!(found.label(Path::new("/w")), "systems/kv/node: kv_node");
        assert!(program(&line.replace("\"test\":true", "\"test\":false")).is_none());
        assert!(program(&line.replace("\"/w/target/release/deps/kv_node-1\"", "null")).is_none());
        assert!(program("{\"reason\":\"build-finished\",\"success\":true}").is_none());
    }

    /// Claim: a program that passed is not run again until it changes, and is named as unchanged; one that failed is run
    /// again; and of both the time is kept.
    #[test]
    fn what_passed_is_not_run_again() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = std::env::temp_dir().join(format!("assay-programs-{}", std::process::id()));
        std::fs::create_dir_all(root.join("target")).unwrap();
        let program = |name: &str, ends: &str| {
            let path = root.join(name);
            std::fs::write(&path, format!("#!/bin/sh\necho ran >> {name}.ran\n{ends}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            Program { name: name.to_owned(), path, folder: root.clone() }
        };
        let (good, bad) = (program("good", "exit 0"), program("bad", "exit 3"));
        let sources = Sources::read(&root).unwrap();
        let setting = Setting { root: &root, env: Vec::new(), alone: &[] };
        let suite = |are_ignored: bool| {
            let (mut tally, mut stamps) = (Tally::default(), Stamps::of(&root, are_ignored));
            run(&mut tally, &setting, &[&good, &bad], &mut stamps, &sources);
            let said = tally.conclude(0.0).unwrap_err();
            assert!(said.contains("bad (exit status: 3)") && !said.contains("good"), "{said}");
            tally.unchanged
        };
        let ran = |name: &str| {
            std::fs::read_to_string(root.join(format!("{name}.ran"))).unwrap().lines().count()
        };
        assert!(suite(false).is_empty());
        assert_eq!(suite(false), [good.label(&root)]);
        assert_eq!((ran("good"), ran("bad")), (1, 2));
        program("good", "true");
        assert!(suite(false).is_empty(), "it has changed");
        assert!(suite(true).is_empty(), "all are asked for");
        assert_eq!((ran("good"), ran("bad")), (3, 4));
        std::fs::remove_dir_all(root).unwrap();
    }

    /// Claim: the files that a package's tests read are found in its sources: seeds, documents and its system's examples.
    #[test]
    fn folders_that_tests_read() {
        let root = crate::workspace_root();
        let folders = |folder: &str| {
            let folder = root.join(folder);
            let program = Program { name: String::new(), path: PathBuf::new(), folder };
            program.folders(&root).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(folders("systems/exec/adapter"), ["docs", "fuzz/seeds", "systems/exec"]);
        assert_eq!(folders("instrument/stats"), ["instrument/stats"]);
        assert!(folders("instrument/plan").contains(&"experiments".to_owned()));
    }
}
