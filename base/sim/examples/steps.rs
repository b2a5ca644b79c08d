//! How many steps the simulator takes in a second: the toy of its tests, in all weather.
//!
//! `cargo run --release -p sim --example steps`

#[path = "../tests/toy/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod toy;

use std::time::Duration;

use clock::{CpuTime, Instant};
use sim::Weather;
use toy::Broken;

fn main() {
    let before = CpuTime::of_this_process();
    let mut steps = 0;
    for seed in 0..20 {
        let mut world = toy::world(seed, Broken::Nothing);
        let quiet = Instant::ZERO.plus(Duration::from_secs(4));
        world.begin_weather(Weather::all(2, quiet));
        if let Err(wrong) = world.run(quiet.plus(Duration::from_secs(2)), |_, _| Ok(())) {
            println!("{wrong}");
            std::process::exit(1);
        }
        steps += world.steps();
    }
    let ns = CpuTime::of_this_process().since(before).as_nanos();
    println!("{steps} steps, {} ns each", ns / u128::from(steps));
}
