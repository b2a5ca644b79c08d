//! A simulation as a program: `PROGRAM SEED [--seeds N] [--COUNTED N] [--broken WHAT]` runs N worlds from SEED on, prints how
//! often what happened, and ends with 0 if all of them held. With `--broken` something is broken on purpose: it ends with 0 if
//! that is found, and with 1 if it is not. 2 stands for words that mean nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clock::{CpuTime, Instant};

use crate::{Coverage, Wrong};

/// A run that held.
pub struct Ran {
    /// Steps of the world.
    pub steps: u64,
    /// What happened in it.
    pub coverage: Coverage,
}

/// What is said of a simulation, and asked of it.
pub struct Command<'a, B> {
    /// Its name for `cargo xtask sim`, which repeats a seed.
    pub name: &'a str,
    /// What a world has so many of, and the name of that option: `operations`.
    pub counted: &'a str,
    /// How many, where it is not said.
    pub count: u64,
    /// What may be broken on purpose, by name.
    pub broken: &'a [(&'a str, B)],
    /// Seeds that have found something once, one a line: they run before several others.
    pub kept: &'a str,
    /// What of the coverage is also told of the seed that had the least of it: as it is counted, and in words.
    pub least: &'a [(&'a str, &'a str)],
}

impl<B: Copy> Command<'_, B> {
    /// Reads the program's words and runs the worlds. `world` runs one: of a seed, of so many of what is counted, and with
    /// something broken or not.
    pub fn run(&self, world: impl Fn(u64, u64, Option<B>) -> Result<Ran, Wrong>) -> ExitCode {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let asked = match self.asked(&words) {
            Ok(asked) => asked,
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::from(2);
            }
        };
        let (mut coverage, mut steps) = (Coverage::default(), 0);
        let mut least = vec![u64::MAX; self.least.len()];
        let kept = kept_seeds(self.kept).filter(|_| asked.seeds > 1);
        for seed in kept.chain(asked.first..asked.first.saturating_add(asked.seeds)) {
            let once = || world(seed, asked.count, asked.broken);
            match caught(seed, once) {
                Ok(ran) => {
                    steps += ran.steps;
                    for (least, (what, _)) in least.iter_mut().zip(self.least) {
                        *least = ran.coverage.of(what).min(*least);
                    }
                    coverage.merge(&ran.coverage);
                }
                Err(wrong) if asked.broken.is_none() => {
                    // The last line is for programs.
                    println!("{wrong}\nto repeat it: cargo xtask sim {} {seed}", self.name);
                    println!("seed={seed}");
                    return ExitCode::FAILURE;
                }
                Err(wrong) => {
                    println!("found with seed {seed}: {}", wrong.what);
                    return ExitCode::SUCCESS;
                }
            }
        }
        let least =
            least.iter().zip(self.least).map(|(least, (_, words))| format!("{least} {words}"));
        let least = least.collect::<Vec<_>>().join(", ");
        let least =
            if least.is_empty() { least } else { format!("; of each seed at least {least}") };
        let ms = CpuTime::of_this_process().as_ns() / 1_000_000;
        print!("{coverage}");
        println!("{} seeds, {steps} steps, {ms} ms of processor time{least}", asked.seeds);
        if asked.broken.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn asked(&self, words: &[String]) -> Result<Asked<B>, String> {
        let usage = || {
            format!("sim SEED [--seeds N] [--{} N] [--broken WHAT], in whole numbers", self.counted)
        };
        let value = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            Some(words.get(at + 1).map_or("", String::as_str))
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| usage());
        let or = |name: &str, other: u64| value(name).map_or(Ok(other), number);
        let broken = match value("--broken") {
            None => None,
            Some(name) => {
                let found = self.broken.iter().find(|(known, _)| *known == name);
                let names: Vec<&str> = self.broken.iter().map(|(name, _)| *name).collect();
                let (_, broken) =
                    found.ok_or_else(|| format!("--broken takes one of: {}", names.join(", ")))?;
                Some(*broken)
            }
        };
        Ok(Asked {
            first: number(words.first().ok_or_else(usage)?)?,
            seeds: or("--seeds", 1)?,
            count: or(&format!("--{}", self.counted), self.count)?,
            broken,
        })
    }
}

/// The seeds of a file of kept ones: one a line, beside lines that begin with `#`.
pub fn kept_seeds(text: &str) -> impl Iterator<Item = u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.parse().expect("a kept seed is a number"))
}

/// A world, in which an assertion of a node is a finding like any other.
fn caught(seed: u64, world: impl FnOnce() -> Result<Ran, Wrong>) -> Result<Ran, Wrong> {
    catch_unwind(AssertUnwindSafe(world)).unwrap_or_else(|_| {
        let what = "a node panicked".to_owned();
        Err(Wrong { seed, step: 0, at: Instant::ZERO, what, trace: String::new() })
    })
}

/// The first of a thousand seeds that finds something that is broken on purpose, and in which words. A panic counts: a node
/// that is not what it promised may also leave a disk from which it refuses to start.
///
/// # Panics
/// If none of them does.
pub fn first_wrong(name: &str, run: impl Fn(u64) -> Result<Ran, Wrong>) -> (u64, String) {
    let once = |seed| match catch_unwind(AssertUnwindSafe(|| run(seed))) {
        Ok(ran) => ran.err().map(|wrong| wrong.what),
        Err(_) => Some("it refuses to start from its disk".to_owned()),
    };
    let found = (0..1_000).find_map(|seed| Some((seed, once(seed)?)));
    found.unwrap_or_else(|| panic!("`{name}` is not found within 1,000 seeds"))
}

/// What the words ask for.
#[derive(Debug, PartialEq)]
struct Asked<B> {
    first: u64,
    seeds: u64,
    count: u64,
    broken: Option<B>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the seed comes first, everything else has a name and may be left out; what means nothing is said.
    #[test]
    fn words() {
        let command = Command {
            name: "kv",
            counted: "operations",
            count: 30,
            broken: &[("order", 'o'), ("reads", 'r')],
            kept: "",
            least: &[],
        };
        let asked = |words: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            command.asked(&words)
        };
        let plain = Asked { first: 7, seeds: 1, count: 30, broken: None };
        assert_eq!(asked("7"), Ok(plain));
        let all = Asked { first: 7, seeds: 9, count: 5, broken: Some('r') };
        assert_eq!(asked("7 --operations 5 --broken reads --seeds 9"), Ok(all));
        for wrong in ["", "x", "7 --seeds", "7 --seeds x", "--seeds 7"] {
            assert!(asked(wrong).unwrap_err().contains("--operations N"), "{wrong}");
        }
        let error = asked("7 --broken clocks").unwrap_err();
        assert_eq!(error, "--broken takes one of: order, reads");
    }
}
