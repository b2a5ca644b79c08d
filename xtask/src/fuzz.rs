//! Coverage-guided fuzzing with libFuzzer on the stable compiler: the flags are those that cargo-fuzz gives
//! for `--sanitizer none`. Findings are left in target/fuzz/artifacts/ and fail the command.
//!
//! What was learnt is kept: each target's corpus lies in the cache folder, apart from any checkout. Where there is none, a
//! target starts from the seeds that are checked in.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::suite::{kept, turns};

/// Targets that run at a time: two for each processor of the machine that this is sized for.
const PARALLEL: usize = 4;

/// What one target gets of a shared budget: less finds little beyond the corpus that it begins with.
const TURN_SECONDS: u32 = 60;

/// A corpus of more files is cut down to those that cover something that no other does.
const CORPUS_FILES_MAX: usize = 2000;

/// How long that may take.
const MERGE_SECONDS: u32 = 60;

const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";

/// Builds the targets and runs each for `seconds`.
pub fn run(root: &Path, seconds: u32) -> Result<(), String> {
    let targets = targets(root)?;
    let all: Vec<&str> = targets.iter().map(String::as_str).collect();
    run_these(root, &all, seconds)
}

/// Runs as many targets as the budget has turns for, those that this commit draws.
pub fn run_within(root: &Path, budget_seconds: u32) -> Result<(), String> {
    let targets = targets(root)?;
    let wanted = usize::try_from(budget_seconds / TURN_SECONDS).unwrap_or(usize::MAX).max(1);
    let commit = turns::commit(root);
    let mut order = turns::in_order(&commit, targets.iter().map(String::as_str));
    let others = order.split_off(wanted.min(order.len()));
    if !others.is_empty() {
        println!("fuzz: not drawn by this commit: {}", others.join(", "));
    }
    run_these(root, &order, TURN_SECONDS)
}

/// The targets, as in fuzz/Cargo.toml.
pub fn targets(root: &Path) -> Result<Vec<String>, String> {
    let path = root.join("fuzz/Cargo.toml");
    let text =
        std::fs::read_to_string(&path).map_err(|e| format!("reading {}: {e}", path.display()))?;
    let table: toml::Table = text.parse().map_err(|e| format!("{}: {e}", path.display()))?;
    let bins = table.get("bin").and_then(|bins| bins.as_array()).into_iter().flatten();
    let names = bins.filter_map(|bin| bin.get("name")).filter_map(|name| name.as_str());
    Ok(names.map(str::to_owned).collect())
}

fn run_these(root: &Path, targets: &[&str], seconds: u32) -> Result<(), String> {
    let home = root.join("target/fuzz");
    build(root, &home)?;
    let place = Place { root, home: &home, programs: home.join(host_triple()?).join("release") };
    let mut failed = Vec::new();
    for group in targets.chunks(PARALLEL) {
        let running: Vec<(&str, Result<Child, String>)> =
            group.iter().map(|target| (*target, place.start(target, seconds))).collect();
        for (target, child) in running {
            let status = child?.wait().map_err(|error| format!("waiting for {target}: {error}"))?;
            let inputs = files(&place.corpus(target));
            println!("fuzz {target}: {seconds} s, {status}, {inputs} inputs kept");
            if !status.success() {
                failed.push(target);
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("{} found inputs; see {}", failed.join(", "), home.join("artifacts").display()))
}

fn build(root: &Path, home: &Path) -> Result<(), String> {
    // A target triple keeps the coverage flags away from build scripts and procedural macros.
    let status = Command::new("cargo")
        .args(["build", "--release", "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .args(["--target", &host_triple()?, "--target-dir"])
        .arg(home)
        .env("RUSTFLAGS", FLAGS)
        .status()
        .map_err(|error| format!("running cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the fuzz targets do not build".to_owned()) }
}

/// Where things are.
struct Place<'a> {
    root: &'a Path,
    home: &'a Path,
    programs: PathBuf,
}

impl Place<'_> {
    fn corpus(&self, target: &str) -> PathBuf {
        kept().join("fuzz").join(target)
    }

    fn start(&self, target: &str, seconds: u32) -> Result<Child, String> {
        let corpus = self.corpus(target);
        let artifacts = self.home.join("artifacts").join(target);
        for folder in [&corpus, &artifacts] {
            std::fs::create_dir_all(folder)
                .map_err(|e| format!("making {}: {e}", folder.display()))?;
        }
        let log = std::fs::File::create(self.home.join(format!("{target}.log")))
            .map_err(|error| format!("making {target}.log: {error}"))?;
        if files(&corpus) > CORPUS_FILES_MAX {
            self.cut_down(target, &corpus);
        }
        let program = self.programs.join(target);
        let mut command = Command::new(&program);
        command
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1"])
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(&corpus)
            .stderr(log)
            .stdout(Stdio::null());
        let seeds = self.root.join("fuzz/seeds").join(target);
        if seeds.is_dir() {
            command.arg(seeds);
        }
        command.spawn().map_err(|error| format!("starting {}: {error}", program.display()))
    }

    /// Replaces a corpus by the part of it that covers as much. If that fails it stays as it is.
    fn cut_down(&self, target: &str, corpus: &Path) {
        let smaller = corpus.with_extension("smaller");
        let _ = std::fs::remove_dir_all(&smaller);
        let merged = std::fs::create_dir_all(&smaller).and_then(|()| {
            Command::new(self.programs.join(target))
                .args(["-merge=1", &format!("-max_total_time={MERGE_SECONDS}")])
                .args([&smaller, &corpus.to_owned()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
        });
        let is_good = merged.is_ok_and(|status| status.success()) && files(&smaller) > 0;
        if is_good && std::fs::remove_dir_all(corpus).is_ok() {
            let _ = std::fs::rename(&smaller, corpus);
        }
    }
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn host_triple() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|error| format!("running rustc: {error}"))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every target of the manifest has its file, and seeds to begin with on a fresh machine; no file and no seeds
    /// are of a target that is gone.
    #[test]
    fn targets_have_files_and_seeds() {
        let root = crate::workspace_root();
        let targets = targets(&root).unwrap();
        assert!(targets.len() >= 9, "{targets:?}");
        let named = |folder: &str| {
            let entries = std::fs::read_dir(root.join("fuzz").join(folder)).unwrap().flatten();
            let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut names: Vec<String> = entries.map(|entry| stem(entry.path())).collect();
            names.sort();
            names
        };
        let mut wanted = targets.clone();
        wanted.sort();
        assert_eq!(named("targets"), wanted);
        assert_eq!(named("seeds"), wanted);
        for target in targets {
            assert!(files(&root.join("fuzz/seeds").join(&target)) > 0, "{target}");
        }
    }
}
