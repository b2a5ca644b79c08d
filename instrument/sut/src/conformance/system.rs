//! Questions to a [`System`] without starting it: its ladder, its kinds and its source of transactions.

use std::collections::BTreeSet;

use model::facts::KindFacts;
use model::node_events::NODE_STAGES_MAX;
use model::{STAGES_MAX, Seed};

use super::{Breach, Breaches, guarded};
use crate::System;

/// Transactions drawn from each source.
const DRAWN: u64 = 500;
/// The order of clients in a closed loop: none that a workload could guess.
const CLIENTS: [u32; 5] = [3, 0, 3, 70_000, 1];

type Scenario = fn(&dyn System) -> Result<(), String>;

const ALL: &[(&str, Scenario)] = &[
    ("the ladder", ladder),
    ("the node stages", node_stages),
    ("the kinds", kinds),
    ("the workload", workload),
];

/// Tests the parts of a system that need no deployment.
///
/// # Errors
/// With every rule that was broken.
pub fn system_conformance(system: &dyn System) -> Result<(), Breaches> {
    let breaches = ALL.iter().filter_map(|(scenario, work)| {
        guarded(|| work(system)).err().map(|words| Breach { scenario, words })
    });
    Breaches::unless_empty(breaches.collect())
}

/// Stage names become columns of a file and words of threshold expressions.
fn ladder(system: &dyn System) -> Result<(), String> {
    let stages = system.stages();
    if stages.is_empty() || stages.len() > STAGES_MAX {
        return Err(format!("has {} stages; 1 to {STAGES_MAX} are possible", stages.len()));
    }
    let is_word = |name: &&String| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if let Some(name) = stages.iter().find(|name| !is_word(name)) {
        return Err(format!(
            "calls a stage `{name}`; lower-case letters, digits and `_`, a letter first"
        ));
    }
    distinct("stage", &stages)
}

/// Node stages are words of threshold expressions, in one namespace with the ladder: `stage.NAME.p99`.
fn node_stages(system: &dyn System) -> Result<(), String> {
    let stages = system.node_stages();
    if stages.len() > NODE_STAGES_MAX {
        let count = stages.len();
        return Err(format!("has {count} node stages; at most {NODE_STAGES_MAX} are possible"));
    }
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if let Some(stage) = stages.iter().find(|stage| !stage.name.split('.').all(is_word)) {
        return Err(format!(
            "calls a node stage `{}`; lower-case letters, digits, `_` and `.`, a letter first in each part",
            stage.name
        ));
    }
    if let Some(stage) = stages.iter().find(|stage| stage.label.trim().is_empty()) {
        return Err(format!("does not say in words what its node stage `{}` is", stage.name));
    }
    let mut names = system.stages();
    names.extend(stages.into_iter().map(|stage| stage.name));
    distinct("stage", &names)
}

fn kinds(system: &dyn System) -> Result<(), String> {
    let kinds = system.kinds();
    if kinds.is_empty() {
        return Err("has no kind of transaction".to_owned());
    }
    let names = KindFacts::names(&kinds);
    if names.iter().any(|name| name.trim().is_empty()) {
        return Err("has a kind without a name".to_owned());
    }
    distinct("kind", &names)
}

fn distinct(what: &str, names: &[String]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(format!("has two {what}s called `{twice}`")),
        None => Ok(()),
    }
}

/// Same seed, same worker, same transactions; each of a kind that exists; each in a buffer that it may only
/// fill.
fn workload(system: &dyn System) -> Result<(), String> {
    let kinds = system.kinds().len();
    // As arrivals are open, and as clients take turns.
    for (worker, is_closed) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut first = system.workload(Seed(7), worker, 2);
        let mut second = system.workload(Seed(7), worker, 2);
        for tx in 0..DRAWN {
            let (mut payload, mut again) = (Vec::new(), Vec::with_capacity(4096));
            let client =
                is_closed.then(|| CLIENTS[usize::try_from(tx).expect("few") % CLIENTS.len()]);
            let made = first.next(tx, client, &mut payload);
            if second.next(tx, client, &mut again) != made || payload != again {
                return Err(format!(
                    "made another transaction {tx} from the same seed for the same worker"
                ));
            }
            if usize::try_from(made.kind).is_ok_and(|kind| kind >= kinds) {
                return Err(format!(
                    "made transaction {tx} of kind {}, but there are {kinds} kinds, counted from 0",
                    made.kind
                ));
            }
            if let Some(client) = client.filter(|client| *client != made.client) {
                return Err(format!(
                    "was asked for transaction {tx} of client {client} and made one of client {}",
                    made.client
                ));
            }
        }
    }
    Ok(())
}
