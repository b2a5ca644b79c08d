//! The replicated database in virtual time: three replicas and clients, in all weather, from seeds.
//!
//! `sim SEED [--seeds N] [--broken WHAT] [--operations N]` runs N worlds from SEED on. In each, clients append numbers to
//! lists of their own, one after the other, sending again what was not answered, and read them back without the log. At
//! every step replicas that stand at the same entry must hold the same, and one leads in a ballot; at every answer nothing
//! acknowledged may be missing from what is read; at the end each list has each number once, in order. It prints how often
//! what happened. `--broken` (acknowledges, reads, order, promises, results) breaks something on purpose and succeeds if
//! that is found.

mod client;
mod world;

use std::process::ExitCode;

use clock::CpuTime;
use sim::Coverage;
use world::{Broken, Plan};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).map(String::as_str)
    };
    let number = |name: &str, other: u64| value(name).map_or(Some(other), |text| text.parse().ok());
    let first = words.first().and_then(|word| word.parse().ok());
    let (Some(first), Some(seeds), Some(operations)) =
        (first, number("--seeds", 1), number("--operations", 2_000))
    else {
        eprintln!("sim SEED [--seeds N] [--operations N] [--broken WHAT]");
        return ExitCode::from(2);
    };
    let Some(broken) = value("--broken").map_or(Some(Broken::Nothing), Broken::of) else {
        eprintln!("--broken takes one of: {}", Broken::NAMES.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    };
    run(first, seeds, &Plan { operations, broken })
}

fn run(first: u64, seeds: u64, plan: &Plan) -> ExitCode {
    let (mut coverage, mut steps) = (Coverage::default(), 0);
    let (mut leaders_min, mut crashes_min, mut done_min) = (u64::MAX, u64::MAX, u64::MAX);
    for seed in first..first + seeds {
        match world::run(seed, plan) {
            Ok(ran) => {
                steps += ran.steps;
                leaders_min = leaders_min.min(ran.coverage.of(world::LED));
                crashes_min = crashes_min.min(ran.coverage.of("crashes between write and sync"));
                done_min = done_min.min(ran.coverage.of(world::DONE));
                coverage.merge(&ran.coverage);
            }
            Err(wrong) if plan.broken == Broken::Nothing => {
                println!("{wrong}\nto repeat it: cargo xtask sim kv {seed}");
                return ExitCode::FAILURE;
            }
            Err(wrong) => {
                println!("found with seed {seed}: {}", wrong.what);
                return ExitCode::SUCCESS;
            }
        }
    }
    print!("{coverage}");
    let seconds = CpuTime::of_this_process().as_ns() / 1_000_000;
    println!(
        "{seeds} seeds, {steps} steps, {} ms of processor time; of each seed at least {done_min} operations, {leaders_min} \
         times that a replica began to lead, {crashes_min} crashes between write and sync",
        seconds
    );
    if plan.broken == Broken::Nothing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
