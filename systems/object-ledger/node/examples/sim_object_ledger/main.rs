//! The ledger in virtual time: queue, timestamp service, sequencer, two pipelines, six buckets and clients, in all weather, from
//! seeds.
//!
//! `sim SEED [--seeds N] [--transactions N] [--broken WHAT]` runs N worlds from SEED on. At every step pipelines that know the
//! same height must have the same block there; at the end a verifier that reads nothing but the buckets must find every
//! acknowledged transaction once on the main chain, every other one once at most, and none that nobody submitted. It prints
//! how often what happened. `--broken` (acknowledges, gives, numbers, hasty) breaks something on purpose and succeeds if that
//! is found.

mod bucket;
mod client;
mod lines;
mod maker;
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
    let (Some(first), Some(seeds), Some(transactions)) =
        (first, number("--seeds", 1), number("--transactions", 300))
    else {
        eprintln!("sim SEED [--seeds N] [--transactions N] [--broken WHAT]");
        return ExitCode::from(2);
    };
    let Some(broken) = value("--broken").map_or(Some(Broken::Nothing), Broken::of) else {
        let names = Broken::NAMES.map(|(name, _)| name).join(", ");
        eprintln!("--broken takes one of: {names}");
        return ExitCode::from(2);
    };
    run(first, seeds, &Plan { transactions, broken })
}

fn run(first: u64, seeds: u64, plan: &Plan) -> ExitCode {
    let (mut coverage, mut steps) = (Coverage::default(), 0);
    for seed in first..first + seeds {
        match world::run(seed, plan) {
            Ok(ran) => {
                steps += ran.steps;
                coverage.merge(&ran.coverage);
            }
            Err(wrong) if plan.broken == Broken::Nothing => {
                println!("{wrong}\nto repeat it: cargo xtask sim object-ledger {seed}");
                return ExitCode::FAILURE;
            }
            Err(wrong) => {
                println!("found with seed {seed}: {}", wrong.what);
                return ExitCode::SUCCESS;
            }
        }
    }
    print!("{coverage}");
    let ms = CpuTime::of_this_process().as_ns() / 1_000_000;
    println!("{seeds} seeds, {steps} steps, {ms} ms of processor time");
    if plan.broken == Broken::Nothing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
