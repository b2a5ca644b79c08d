//! The share of each agent in the lateness of the instrument: of hosts that are merged, one may be late where the others are
//! not, and the figures of all together would hide it.

use std::collections::BTreeMap;

use model::facts::AgentFacts;
use model::{Row, Stamp};
use stats::Histogram;
use stats::carry::Carry;

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
    threads: BTreeMap<u8, Thread>,
    /// How late it was in sending, with what its stalls made of others that fell due in them.
    pub own_lag: Histogram,
    /// Response times.
    pub response: Histogram,
}

/// A thread of an agent.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// Its last stall: from when to when it did nothing.
    stall: (Stamp, Stamp),
    first_due: Stamp,
}

impl Default for Thread {
    fn default() -> Self {
        Self { stall: (0, 0), first_due: Stamp::MAX }
    }
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

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.all.iter_mut().for_each(|share| share.carry(it));
    }
}

impl AgentShare {
    fn carry(&mut self, it: &mut Carry<'_>) {
        let mine = self.threads.keys().map(|worker| usize::from(*worker));
        for worker in it.places(mine, usize::from(u8::MAX) + 1) {
            let worker = u8::try_from(worker).expect("below the bound");
            let mine = self.threads.entry(worker).or_default();
            let stall = (it.told(mine.stall.0), it.told(mine.stall.1));
            let first_due = it.told(mine.first_due);
            // A stall reaches into the other's rows: who was late by it is only known row by row.
            if it.is_adding() && mine.stall.1 > first_due {
                it.is_foreign();
            }
            it.adding(|| {
                mine.stall = if stall == (0, 0) { mine.stall } else { stall };
                mine.first_due = mine.first_due.min(first_due);
            });
        }
        self.own_lag.carry(it);
        self.response.carry(it);
    }

    fn sent(&mut self, row: &Row, own_lag_ns: i64) {
        let Thread { stall, first_due } = self.threads.entry(row.worker).or_default();
        *first_due = row.due.min(*first_due);
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
