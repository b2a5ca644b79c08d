//! The ledger in virtual time: queue, timestamp service, sequencer, two pipelines, six buckets and clients, in all weather, from
//! seeds.
//!
//! `sim SEED [--seeds N] [--transactions N] [--broken WHAT]` runs N worlds from SEED on. At every step pipelines that know the
//! same height must have the same block there; at the end a verifier that reads nothing but the buckets must find every
//! acknowledged transaction, and every one that a reader verified meanwhile, once on the main chain, every other one once at most, and none that was never submitted. It prints
//! how often what happened. `--broken` (acknowledges, gives, numbers, hasty, credulous) breaks something on purpose and succeeds if that
//! is found.

mod bucket;
mod client;
mod lines;
mod maker;
mod world;

use std::process::ExitCode;

use sim::Command;
use world::{Broken, Plan};

const COMMAND: Command<'_, Broken> = Command {
    name: "object-ledger",
    counted: "transactions",
    count: 300,
    broken: &Broken::NAMES,
    least: &[],
    kept: "",
};

fn main() -> ExitCode {
    COMMAND.run(|seed, transactions, broken| {
        world::run(seed, &Plan { transactions, broken: broken.unwrap_or(Broken::Nothing) })
    })
}
