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

use sim::Command;
use world::{Broken, Plan};

const COMMAND: Command<'_, Broken> = Command {
    name: "kv",
    counted: "operations",
    count: 2_000,
    broken: &Broken::NAMES,
    kept: include_str!("kept_seeds.txt"),
    least: &[
        (world::DONE, "operations"),
        (world::LED, "times that a replica began to lead"),
        ("crashes between write and sync", "crashes between write and sync"),
    ],
};

fn main() -> ExitCode {
    COMMAND.run(|seed, operations, broken| {
        world::run(seed, &Plan { operations, broken: broken.unwrap_or(Broken::Nothing) })
    })
}
