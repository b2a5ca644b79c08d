//! Coverage-guided fuzzing with libFuzzer on the stable compiler: the flags are those that cargo-fuzz gives
//! for `--sanitizer none`. Findings are left in target/fuzz/artifacts/ and fail the command.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The targets, as in fuzz/Cargo.toml.
pub const TARGETS: [&str; 8] = [
    "experiment_file",
    "http_response",
    "import_file",
    "node_metrics",
    "result_file",
    "run_folder",
    "target_file",
    "websocket_frames",
];

/// Targets that run at a time: two for each processor of the machine that this is sized for, so that a minute each
/// takes two.
const PARALLEL: usize = 4;

const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";

/// Builds and runs each target for `seconds`.
pub fn run(root: &Path, seconds: u32) -> Result<(), String> {
    let home = root.join("target/fuzz");
    build(root, &home)?;
    let mut failed = Vec::new();
    for group in TARGETS.chunks(PARALLEL) {
        let running: Vec<(&str, Result<Child, String>)> =
            group.iter().map(|target| (*target, start(root, &home, target, seconds))).collect();
        for (target, child) in running {
            let status = child?.wait().map_err(|error| format!("waiting for {target}: {error}"))?;
            println!("fuzz {target}: {seconds} s, {status}");
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

fn start(root: &Path, home: &Path, target: &str, seconds: u32) -> Result<Child, String> {
    let corpus = home.join("corpus").join(target);
    let artifacts = home.join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder).map_err(|e| format!("making {}: {e}", folder.display()))?;
    }
    let log = std::fs::File::create(home.join(format!("{target}.log")))
        .map_err(|error| format!("making {target}.log: {error}"))?;
    let seeds = root.join("fuzz/seeds").join(target);
    let program = home.join(host_triple()?).join("release").join(target);
    let mut command = Command::new(&program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .stderr(log)
        .stdout(Stdio::null());
    if seeds.is_dir() {
        command.arg(seeds);
    }
    command.spawn().map_err(|error| format!("starting {}: {error}", program.display()))
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
