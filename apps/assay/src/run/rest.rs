//! The rest of a system that outlives a trial of a search: it is probed by passes of the preflight until it is as calm as
//! before the first trial. What calm is, [`Calm`] decides.

use std::time::Duration;

use clock::Clock;
use model::facts::RestFacts;
use model::quantity::show_duration;
use search::{Calm, PROBES_BEFORE, Probed};
use sut::Deployment;

use super::inputs::Trial;
use crate::terminal::say;

/// No further probe is made before the first trial after this: a long list of targets has long passes.
const BEFORE_MAX: Duration = Duration::from_secs(5);
/// The terminal names a wait that is longer.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// The rests of one search.
#[derive(Debug, Default)]
pub struct Rests {
    /// The time of each probe before the first trial.
    before: Vec<Duration>,
}

impl Rests {
    /// Waits until the trial's system is calm; before the first trial, learns what that is. `None` where there was no wait.
    pub fn rest(&mut self, trial: &Trial<'_>, deployment: &Deployment) -> Option<RestFacts> {
        // A user who wants no preflight pass wants no probe.
        if !trial.has_preflight {
            return None;
        }
        let clock = deployment.clock;
        let begun = clock.now();
        if self.before.is_empty() {
            while self.before.len() < PROBES_BEFORE
                && clock.now().saturating_since(begun) < BEFORE_MAX
                && !trial.interrupt.is_set()
            {
                // A system that does not answer before the first trial has none, which its own preflight says.
                self.before.push(probe(trial, deployment, clock)?);
            }
            return None;
        }
        let mut calm = Calm::new(&self.before);
        loop {
            let took = probe(trial, deployment, clock);
            let waited = clock.now().saturating_since(begun);
            match calm.observe(took, waited) {
                Probed::Again(pause) if !trial.interrupt.is_set() => {
                    clock.sleep_until(clock.now().plus(pause));
                }
                Probed::Again(_) | Probed::Over => break,
            }
        }
        let facts = calm.facts();
        let waited = Duration::from_nanos(facts.waited_ns.unsigned_abs());
        if !facts.is_calm {
            say!(
                "assay: search: the system is not as calm as before the first trial after {}; the next trial begins all the same",
                show_duration(waited)
            );
        } else if waited >= TOLD_AFTER {
            say!("assay: search: the system was calm again after {}", show_duration(waited));
        }
        Some(facts)
    }
}

/// The time of a pass of the preflight; `None` where nothing answers.
fn probe(trial: &Trial<'_>, deployment: &Deployment, clock: Clock) -> Option<Duration> {
    let begun = clock.now();
    let found = trial.system.preflight(deployment).ok()?;
    let took = clock.now().saturating_since(begun);
    let mut tried = found.iter().filter(|it| !it.is_note).peekable();
    let answers = tried.peek().is_none() || tried.any(|it| it.ok);
    answers.then_some(took)
}
