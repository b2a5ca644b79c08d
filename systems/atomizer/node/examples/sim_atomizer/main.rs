//! The atomizer in virtual time: three replicas, an archiver, a watchtower and senders, in all weather, from seeds.
//!
//! `sim SEED [--seeds N] [--broken WHAT] [--transactions N]` runs N worlds from SEED on. In each, senders follow the blocks
//! and send transactions, each eighth with a rival for one of its inputs, again until a block has one of them. At every step
//! replicas behind the same entry must hold the same, one leads in a ballot, a block says the same wherever it is seen, and
//! no input is spent twice over the whole chain; at the end every transaction is in a block or has lost an input to one that
//! is, and the archiver, started anew from its disk after a loss of power, has every block that anybody saw. It prints how
//! often what happened. `--broken` (acknowledges, order, promises, window, snapshot, archiver) breaks something on purpose and
//! succeeds if that is found.

mod sender;
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
        (first, number("--seeds", 1), number("--transactions", 2_000))
    else {
        eprintln!("sim SEED [--seeds N] [--transactions N] [--broken WHAT]");
        return ExitCode::from(2);
    };
    let Some(broken) = value("--broken").map_or(Some(Broken::Nothing), Broken::of) else {
        eprintln!("--broken takes one of: {}", Broken::NAMES.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    };
    run(first, seeds, &Plan { transactions, broken })
}

fn run(first: u64, seeds: u64, plan: &Plan) -> ExitCode {
    let (mut coverage, mut steps) = (Coverage::default(), 0);
    let (mut leaders_min, mut done_min) = (u64::MAX, u64::MAX);
    for seed in first..first + seeds {
        match world::run(seed, plan) {
            Ok(ran) => {
                steps += ran.steps;
                leaders_min = leaders_min.min(ran.coverage.of(world::LED));
                done_min = done_min.min(ran.coverage.of(world::DONE));
                coverage.merge(&ran.coverage);
            }
            Err(wrong) if plan.broken == Broken::Nothing => {
                println!("{wrong}\nto repeat it: cargo xtask sim atomizer {seed}");
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
    println!(
        "{seeds} seeds, {steps} steps, {ms} ms of processor time; of each seed at least {done_min} transactions, {leaders_min} \
         times that an atomizer began to lead"
    );
    if plan.broken == Broken::Nothing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
