//! `cargo xtask soak`: a system's long parts, for their own time; in the suite they take turns, cut to a bound.

use std::path::Path;

use super::Turn;
use super::declared::{self, Part};
use super::tally::Tally;

/// What a soak may take beyond the seconds that it is told: it starts, drains, reads back and reports.
const AROUND_SECONDS: u32 = 30;

/// Seconds that one takes in the suite.
const SUITE_SECONDS: u32 = 60;

/// Runs all soaks of a system, each for `seconds`, or for as long as it declares.
pub fn run(root: &Path, system: &str, seconds: Option<u32>) -> Result<(), String> {
    let suites = declared::read(root)?;
    let suite = super::named(&suites, system)?;
    if suite.soaks.is_empty() {
        let with: Vec<&str> =
            suites.iter().filter(|s| !s.soaks.is_empty()).map(|s| s.name.as_str()).collect();
        return Err(format!("`{system}` declares no soak; these do: {}", with.join(", ")));
    }
    let began_s = super::tally::uptime_s();
    let mut tally = Tally::default();
    for soak in &suite.soaks {
        let seconds = seconds.unwrap_or(soak.seconds);
        tally.bounded(root, &id(system, soak), &soak.words(seconds), seconds + AROUND_SECONDS);
    }
    tally.conclude(began_s)
}

/// The suite's share: the first minute of it.
pub(super) fn turn(system: &str, soak: &Part) -> Turn {
    let seconds = SUITE_SECONDS.min(soak.seconds);
    Turn {
        name: id(system, soak),
        words: soak.words(seconds),
        seconds: seconds + AROUND_SECONDS,
        reach: Vec::new(),
    }
}

fn id(system: &str, soak: &Part) -> String {
    format!("soak {system}: {}", soak.name)
}
