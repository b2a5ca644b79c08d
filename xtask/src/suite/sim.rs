//! `cargo xtask sim`: a system in virtual time, from seeds.

use std::path::Path;
use std::process::Command;

use super::Turn;
use super::declared::{self, Sim};

/// Runs so many seeds of a system's simulation, from `first` on, and prints what they print.
pub fn run(root: &Path, system: &str, first: u64, seeds: u32) -> Result<(), String> {
    let suites = declared::read(root)?;
    let suite = super::named(&suites, system)?;
    let sim = suite.sim.as_ref().ok_or_else(|| {
        let with = suites.iter().filter(|suite| suite.sim.is_some());
        let names: Vec<&str> = with.map(|suite| suite.name.as_str()).collect();
        format!("`{system}` declares no simulation; these do: {}", names.join(", "))
    })?;
    done(root, &sim.build_words())?;
    done(root, &sim.words(first, seeds))
}

/// New seeds of a night.
const OF_A_NIGHT: u32 = 10_000;

/// Runs so many seeds that no run has had before.
pub fn night(root: &Path, system: &str) -> Result<(), String> {
    let first = crate::mutants::Seeds::of_a_night()?.first;
    println!("{OF_A_NIGHT} seeds from {first} on");
    run(root, system, first, OF_A_NIGHT)
}

fn done(root: &Path, words: &[String]) -> Result<(), String> {
    let status = Command::new(&words[0])
        .args(&words[1..])
        .current_dir(root)
        .status()
        .map_err(|error| format!("starting `{}`: {error}", words.join(" ")))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed", words.join(" "))) }
}

/// The suite's share: as many seeds as the system declares.
pub(super) fn turn(system: &str, sim: &Sim) -> Turn {
    let words = format!("cargo xtask sim {system} 0 --seeds {}", sim.seeds);
    Turn {
        name: format!("simulation of {system}"),
        words: words.split(' ').map(str::to_owned).collect(),
        seconds: sim.seconds,
        reach: Vec::new(),
    }
}
