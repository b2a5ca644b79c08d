//! `cargo xtask test --timing`: the tests that judge real time, those of modules called `timing`. Each program runs them
//! several times, one test at a time; what came of it is reported and fails nothing, because a busy machine is nobody's
//! mistake.

use std::path::Path;
use std::process::{Command, Stdio};

use super::tally::Tally;
use super::test_programs::{TIMING, built};

/// Runs of each program.
const REPEATS: usize = 3;

/// Runs the timing tests of all packages whose tests run alone.
pub fn run(root: &Path) -> Result<(), String> {
    let suites = super::declared::read(root)?;
    let mut tally = Tally::default();
    let began_s = super::tally::uptime_s();
    let programs = built(&mut tally, root);
    let is_alone = |folder: &Path| super::alone(&suites).iter().any(|own| root.join(own) == folder);
    println!("| program | run | said |\n| --- | --- | --- |");
    let has = |program: &&super::test_programs::Program| {
        is_alone(&program.folder) && program.has_timing()
    };
    for program in programs.iter().filter(has) {
        for repeat in 1..=REPEATS {
            let mut command = Command::new(&program.path);
            command.args([TIMING, "--test-threads=1"]).current_dir(&program.folder);
            let Ok(output) = command.stdin(Stdio::null()).output() else { continue };
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let result = said.lines().find(|line| line.starts_with("test result: "));
            let Some(result) = result.filter(|line| !line.contains(" 0 passed; 0 failed")) else {
                break;
            };
            println!("| {} | {repeat} | {result} |", program.label(root));
            for failed in said.lines().filter(|line| line.ends_with("... FAILED")) {
                println!("| | {repeat} | {failed} |");
            }
        }
    }
    tally.conclude(began_s)
}
