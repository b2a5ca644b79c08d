//! The atomizer in virtual time: three replicas, an archiver, a watchtower and senders, in all weather, from seeds.
//!
//! `sim SEED [--seeds N] [--broken WHAT] [--transactions N]` runs N worlds from SEED on. In each, senders follow the blocks
//! and send transactions, each eighth with a rival for one of its inputs, again until a block has one of them. Each
//! input has a shard of its own that vouches for it, the second one later, and neither knows of the other. Now and then somebody
//! has half a transaction vouched for whose other input is spent long ago, or says that all blocks can be forgotten. At every step
//! replicas behind the same entry must hold the same, one leads in a ballot, a block says the same wherever it is seen, and
//! no input is spent twice over the whole chain; at the end every transaction is in a block or has lost an input to one that
//! is, and the archiver, started anew from its disk after a loss of power, has every block that anybody saw. It prints how
//! often what happened. `--broken` (acknowledges, order, promises, window, snapshot, one-attestation, highest-height, prune, archiver) breaks something on purpose and
//! succeeds if that is found.

mod sender;
mod world;

use std::process::ExitCode;

use sim::Command;
use world::{Broken, Plan};

const COMMAND: Command<'_, Broken> = Command {
    name: "atomizer",
    counted: "transactions",
    count: 2_000,
    broken: &Broken::NAMES,
    kept: include_str!("kept_seeds.txt"),
    least: &[(world::DONE, "transactions"), (world::LED, "times that an atomizer began to lead")],
};

fn main() -> ExitCode {
    COMMAND.run(|seed, transactions, broken| {
        world::run(seed, &Plan { transactions, broken: broken.unwrap_or(Broken::Nothing) })
    })
}
