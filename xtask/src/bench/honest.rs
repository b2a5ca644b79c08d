//! `cargo xtask bench honest`: an honest server on a machine that compiles at the same time. A server of 3 ms is asked to
//! keep `p99 < 100ms` at rates at which an idle machine would not notice it; what the exit codes are is counted. An innocent
//! server must never be failed, and on most occasions it must be found innocent.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::measure::Server;

/// Requests a second, each so often.
const RATES: [u32; 3] = [20, 50, 100];
const RUNS_EACH: usize = 20;
const SECONDS: u32 = 5;
/// Of all runs so many must end with 0, and none with 99.
const MET_MIN: usize = 55;
/// Exit codes: met, not to be said, failed.
const CODES: [i32; 3] = [0, 97, 99];

/// Heads the part of the document.
const HEAD: &str = "## An honest server beside a compilation\n\n";

/// Runs all of them, prints a table and (not at toy size) puts it into results/bench-load.md.
///
/// # Errors
/// When a run cannot be made, or when too few end with 0 or one with 99.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let machine = super::machine();
    let assay = super::workbench::built_assay(root)?;
    let folder = root.join("target/bench/honest");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("making {}: {error}", folder.display()))?;
    let options = ["serve", "echo", "--http", "127.0.0.1:0", "--service", "3ms", "--servers", "64"];
    let (_server, address) = Server::start(&assay, &options, "0-1023")?;
    let is_over = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        scope.spawn(|| compile_until(root, &folder, &is_over));
        let counts = count(&assay, &folder, &address, if toy { 1 } else { RUNS_EACH });
        is_over.store(true, Ordering::Relaxed);
        counts
    });
    let counts = counts?;
    let mut text = format!(
        "Made by `cargo xtask bench honest`. {machine}\n\nA server that takes 3 ms, on a machine that compiles at the same time: {} runs of {SECONDS} s at each rate, for `p99 < 100ms`.\n\n| rate | met (0) | invalid or undecided (97) | failed (99) | other |\n| --- | --- | --- | --- | --- |\n",
        if toy { 1 } else { RUNS_EACH }
    );
    for (rate, [met, unknown, failed, other]) in RATES.iter().zip(&counts) {
        let _ = writeln!(text, "| {rate}/s | {met} | {unknown} | {failed} | {other} |");
    }
    if toy {
        print!("{text}");
    } else {
        super::put(root, HEAD, &text)?;
    }
    let sum = |index: usize| counts.iter().map(|of_rate| of_rate[index]).sum::<usize>();
    if sum(2) + sum(3) > 0 || (!toy && sum(0) < MET_MIN) {
        let (met, failed) = (sum(0), sum(2));
        return Err(format!(
            "expected at least {MET_MIN} of {} runs to end with 0 and none with 99, got {met} and {failed}; the runs lie in {}",
            RATES.len() * RUNS_EACH,
            folder.join("runs").display()
        ));
    }
    Ok(())
}

/// How many runs at each rate ended with each of [`CODES`], and with another.
fn count(
    assay: &Path,
    folder: &Path,
    address: &str,
    runs_each: usize,
) -> Result<Vec<[usize; 4]>, String> {
    let mut counts = vec![[0; 4]; RATES.len()];
    for _ in 0..runs_each {
        for (rate, counts) in RATES.iter().zip(&mut counts) {
            let status = Command::new(assay)
                .args(["run", &format!("http://{address}/"), "--rate", &format!("{rate}/s")])
                .args(["--duration", &format!("{SECONDS}s"), "--threshold", "p99 < 100ms"])
                .args(["--no-calibration", "--progress", "none", "--runs"])
                .arg(folder.join("runs"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .map_err(|error| format!("starting {}: {error}", assay.display()))?;
            let at = CODES.iter().position(|code| status.code() == Some(*code));
            counts[at.unwrap_or(CODES.len())] += 1;
        }
    }
    Ok(counts)
}

/// Compiles a part of the workspace anew, over and over.
fn compile_until(root: &Path, folder: &Path, is_over: &AtomicBool) {
    let target = folder.join("compiled");
    while !is_over.load(Ordering::Relaxed) {
        let _ = std::fs::remove_dir_all(&target);
        let started = Command::new("cargo")
            .args(["build", "--release", "-q", "-p", "record", "--target-dir"])
            .arg(&target)
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else { return };
        wait_until(child, is_over);
    }
    let _ = std::fs::remove_dir_all(&target);
}

/// Waits for a compilation, and ends it when everything else is over.
fn wait_until(mut child: Child, is_over: &AtomicBool) {
    while matches!(child.try_wait(), Ok(None)) {
        if is_over.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
