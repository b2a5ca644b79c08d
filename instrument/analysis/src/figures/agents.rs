//! The share of each agent in the lateness of the instrument: of hosts that are merged, one may be late where the others are
//! not, and the figures of all together would hide it.

use std::collections::BTreeMap;

use model::facts::AgentFacts;
use model::{Row, Stamp};
use stats::Histogram;

use crate::figures::known::Known;
use crate::figures::part::Part;

/// A thread that is so late with a transaction has stalled: others that fell due meanwhile were late by the same, also
/// where they then had to wait for each other on the connections.
const STALL_NS: i64 = 10_000_000;

/// The measured transactions by agent; empty where one host sent all.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentShares {
    final_stage: usize,
    /// In the order of their workers.
    pub all: Vec<AgentShare>,
}

/// The measured transactions of one agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentShare {
    pub name: String,
    first_worker: u32,
    /// The last stall of each of its threads: from when to when it did nothing.
    stalls: BTreeMap<u8, (Stamp, Stamp)>,
    /// How late it was in sending, with what its stalls made of others that fell due in them.
    pub own_lag: Histogram,
    /// Response times.
    pub response: Histogram,
}

impl Part for AgentShares {
    fn of_trial(trial: &Known<'_>) -> Self {
        let share = |agent: &AgentFacts| AgentShare {
            name: agent.name.clone(),
            first_worker: agent.first_worker,
            ..AgentShare::default()
        };
        let mut all: Vec<_> = trial.facts.load.agents.iter().map(share).collect();
        all.sort_by_key(|share| share.first_worker);
        Self { final_stage: trial.final_stage, all }
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        if self.all.is_empty() {
            return;
        }
        for row in rows {
            let worker = u32::from(row.worker);
            let next = self.all.partition_point(|share| share.first_worker <= worker);
            let Some(share) = next.checked_sub(1).map(|at| &mut self.all[at]) else { continue };
            if let Some(ns) = row.own_lag_ns() {
                share.sent(row, ns);
            }
            if let Some(ns) = row.response_ns(self.final_stage) {
                share.response.record(ns);
            }
        }
    }
}

impl AgentShare {
    fn sent(&mut self, row: &Row, own_lag_ns: i64) {
        let stall = self.stalls.entry(row.worker).or_insert((0, 0));
        if own_lag_ns > STALL_NS && row.sent > stall.1 {
            *stall = (row.ready, row.sent);
        }
        let is_within = (stall.0..stall.1).contains(&row.due);
        let by_stall = if is_within { (stall.1.min(row.sent) - row.due).max(0) } else { 0 };
        self.own_lag.record(own_lag_ns.max(by_stall));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what fell due while a thread stalled was late by the rest of the stall, whatever it then waited for; what
    /// fell due after it, or on another thread, was not.
    #[test]
    fn stalls_are_shared() {
        let mut share = AgentShare::default();
        let mut sent = |worker, due, ready, sent| {
            let row = Row { worker, due, ready, sent, ..Row::EMPTY };
            share.sent(&row, sent - ready);
            share.own_lag.moments().max()
        };
        let ms = 1_000_000;
        assert_eq!(sent(0, 100 * ms, 150 * ms, 151 * ms), Some(ms), "waiting is the system's");
        assert_eq!(sent(0, 200 * ms, 200 * ms, 220 * ms), Some(20 * ms));
        assert_eq!(sent(1, 201 * ms, 223 * ms, 223 * ms), Some(20 * ms));
        let all = |share: &AgentShare| share.own_lag.moments().mean().unwrap_or(0.0);
        assert_eq!(sent(0, 210 * ms, 223 * ms, 223 * ms), Some(20 * ms));
        assert_eq!(sent(0, 221 * ms, 224 * ms, 224 * ms), Some(20 * ms));
        assert_eq!(all(&share), 31.0 / 5.0 * 1e6);
    }
}
