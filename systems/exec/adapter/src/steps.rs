//! The inner steps that a program timed, kept until the load is over. Their times are the program's own and of this
//! host's monotonic clock; nothing of a row is made of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clock::{Clock, Instant};
use model::TxId;
use sut::{NodeEvent, NodeEvents, NodeSpan};

use crate::line::StepLine;

/// The most steps that are kept in memory, 40 bytes each. What is beyond is counted, and said.
const STEPS_MAX: usize = 4_000_000;

/// The most names of nodes in steps.
const NODES_MAX: usize = 1_000;

/// All of them.
#[derive(Debug, Default)]
pub struct Steps {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    list: Vec<Step>,
    nodes: Vec<String>,
    numbers: HashMap<String, u32>,
    left_out: u64,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    tx: TxId,
    /// Beginning, by CLOCK_MONOTONIC.
    at_ns: i64,
    took_ns: u64,
    stage: u32,
    /// Index into the names of nodes.
    node: u32,
}

impl Steps {
    /// Keeps one step of a transaction.
    ///
    /// # Errors
    /// When there is no such step.
    pub(crate) fn keep(&self, tx: TxId, step: &StepLine, names: &[String]) -> Result<(), String> {
        let (name, at_ns, took_ns, node) = match step {
            StepLine::Own(name, at, took) => (name, *at, *took, ""),
            StepLine::Of(name, at, took, node) => (name, *at, *took, node.as_str()),
        };
        let Some(stage) = names.iter().position(|known| known == name) else {
            return Err(format!("a step `{}` that there is not", sut::cut(name)));
        };
        let stage = u32::try_from(stage).expect("few steps");
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let node = match kept.numbers.get(node) {
            Some(number) => Some(*number),
            None if kept.nodes.len() < NODES_MAX => {
                let number = u32::try_from(kept.nodes.len()).expect("bounded");
                kept.nodes.push(sut::cut(node).to_owned());
                kept.numbers.insert(node.to_owned(), number);
                Some(number)
            }
            None => None,
        };
        match node.filter(|_| kept.list.len() < STEPS_MAX) {
            Some(node) => kept.list.push(Step { tx, at_ns, took_ns, stage, node }),
            None => kept.left_out += 1,
        }
        Ok(())
    }

    /// Hands all of them over; steps that name no node are of the one called `own`.
    pub(crate) fn hand_over(&self, own: &str, clock: Clock, to: &mut dyn NodeEvents) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let wall = |at_ns: i64| {
            clock.wall_at(Instant::from_ns(at_ns.saturating_sub(clock.origin_monotonic_ns())))
        };
        // Beyond this no trial lies, and times could not be reckoned with: the record leaves out what is outside.
        let sane = i64::MIN / 4..=i64::MAX / 4;
        let mut strange = 0_u64;
        for step in &kept.list {
            let took_ns = i64::try_from(step.took_ns).unwrap_or(i64::MAX);
            if !sane.contains(&step.at_ns) || !sane.contains(&took_ns) {
                strange += 1;
                continue;
            }
            let name = &kept.nodes[step.node as usize];
            let node = if name.is_empty() { own } else { name };
            let (from, until) = (wall(step.at_ns), wall(step.at_ns + took_ns));
            let took = Some(Duration::from_nanos(step.took_ns));
            to.event(NodeEvent { stage: step.stage, node, at: until, count: 1, took });
            to.span(NodeSpan { tx: step.tx, stage: step.stage, node, from, to: until });
        }
        if strange > 0 {
            to.problem(format!("{strange} steps had times that no clock shows"));
        }
        if kept.left_out > 0 {
            let count = kept.left_out;
            to.problem(format!(
                "{count} steps were left out: at most {STEPS_MAX}, of at most {NODES_MAX} nodes, are kept"
            ));
        }
    }
}
