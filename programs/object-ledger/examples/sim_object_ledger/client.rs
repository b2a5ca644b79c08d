//! A client: it submits transactions, each once, and keeps which were acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clock::Instant;
use object_ledger_node::protocol::kind;
use process::{Input, Node, Outputs};

use crate::lines::{Came, Lines};

const EVERY: Duration = Duration::from_millis(9);

pub struct Client {
    name: usize,
    pub left: u64,
    next: u64,
    submit_at: Instant,
    lines: Lines,
    asked: BTreeMap<u64, Vec<u8>>,
    pub submitted: BTreeSet<Vec<u8>>,
    pub acknowledged: BTreeSet<Vec<u8>>,
}

impl Client {
    pub fn new(name: usize, left: u64) -> Self {
        Self {
            name,
            left,
            next: 0,
            submit_at: Instant::ZERO,
            lines: Lines::to(1),
            asked: BTreeMap::new(),
            submitted: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
        }
    }
}

impl Node for Client {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.lines.happened(now, &input, out);
        for came in self.lines.take() {
            if let Came::Answer { question, kind: kind::ACCEPTED, .. } = came
                && let Some(transaction) = self.asked.remove(&question)
            {
                self.acknowledged.insert(transaction);
            }
        }
        if self.left > 0 && now >= self.submit_at {
            self.submit_at = now.plus(EVERY);
            if self.lines.is_up(0) {
                self.left -= 1;
                self.next += 1;
                let transaction = format!("{}:{}", self.name, self.next).into_bytes();
                let question = self.lines.ask(now, 0, kind::SUBMIT, &[&transaction], out);
                self.submitted.insert(transaction.clone());
                self.asked.insert(question, transaction);
            }
        }
        let submits = Some(self.submit_at).filter(|_| self.left > 0);
        if let Some(at) = self.lines.wake().into_iter().chain(submits).min() {
            out.wake_at(at);
        }
    }
}
