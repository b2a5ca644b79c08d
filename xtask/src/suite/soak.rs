//! `cargo xtask soak`: long parts. A system's by name and for its own time, or, in the suite, the one whose turn it is, cut
//! to a bound.

use std::path::Path;

use super::declared::{self, Part, Suite};
use super::tally::Tally;
use super::turns::Turns;

/// What a soak may take beyond the seconds that it is told: it starts, drains, reads back and reports.
const AROUND_SECONDS: u32 = 120;

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
        one(&mut tally, root, suite, soak, seconds.unwrap_or(soak.seconds));
    }
    tally.conclude(began_s)
}

/// Runs the one that was run least recently, for at most `seconds`.
pub fn next(tally: &mut Tally, root: &Path, suites: &[Suite], seconds: u32) {
    let soaks: Vec<(String, &Suite, &Part)> = suites
        .iter()
        .flat_map(|suite| suite.soaks.iter().map(move |soak| (id(suite, soak), suite, soak)))
        .collect();
    let turns = Turns::of("soak");
    let order = turns.in_order(soaks.iter().map(|(id, ..)| id.as_str()));
    let Some(first) = order.first() else { return };
    if let Some((_, suite, soak)) = soaks.iter().find(|(id, ..)| id == first) {
        one(tally, root, suite, soak, seconds.min(soak.seconds));
    }
}

fn one(tally: &mut Tally, root: &Path, suite: &Suite, soak: &Part, seconds: u32) {
    let name = format!("soak {}", id(suite, soak));
    tally.bounded(root, &name, &soak.words(seconds), seconds + AROUND_SECONDS);
    Turns::of("soak").had(&id(suite, soak));
}

fn id(suite: &Suite, soak: &Part) -> String {
    format!("{}: {}", suite.name, soak.name)
}
