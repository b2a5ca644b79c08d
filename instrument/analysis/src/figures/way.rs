//! The way of each followed transaction, from when it was due to the mark of the final stage, divided into legs.
//!
//! A leg ends where a node has passed the transaction through a stage that the system declares to end one; the first leg ends
//! where it was sent, and the last is what remains until the mark. The next leg begins where one ends, so the legs of a
//! transaction are its time, to the nanosecond. Nothing is clamped: whatever does not divide so is counted and left out.

use model::node_events::{NodeStage, Span};
use model::result::{LegResult, TrialResult, WayResult};
use model::{NO_STAMP, Row, Stamp, TxId};
use stats::Histogram;
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::part::Part;

/// The first leg: from due to sent.
const SEND: &str = "send";
/// The last leg: until the mark of the final stage.
const SEEN: &str = "seen";

/// The ways of followed transactions so far.
#[derive(Clone)]
pub(crate) struct Way {
    /// Stages that end a leg, in their order.
    ends: Vec<NodeStage>,
    /// By stage: its place among these.
    places: Vec<Option<usize>>,
    final_stage: usize,
    /// By transaction: where in `stamps` its stamps are.
    followed: Vec<(TxId, std::ops::Range<usize>)>,
    /// Ends of spans: the place of the stage, and when.
    stamps: Vec<(usize, Stamp)>,
    incomplete: u64,
    disordered: u64,
    total_ns: u64,
    legs: Vec<Leg>,
}

#[derive(Clone, Default)]
struct Leg {
    sum_ns: u64,
    max_ns: Option<i64>,
    lengths: Histogram,
}

/// Why a way is not divided.
#[derive(Clone)]
enum Undivided {
    /// A span is not there.
    Incomplete,
    /// The stamps are not in the order of the legs.
    Disordered,
}

impl Part for Way {
    fn of_trial(trial: &Known<'_>) -> Self {
        let declared = &trial.facts.declared.node_stages;
        let ends: Vec<NodeStage> =
            declared.iter().filter(|it| !it.leg.is_empty()).cloned().collect();
        let place = |of: &NodeStage| ends.iter().position(|it| it.name == of.name);
        Self {
            places: declared.iter().map(place).collect(),
            // And the two at its ends.
            legs: vec![Leg::default(); if ends.is_empty() { 0 } else { ends.len() + 2 }],
            ends,
            final_stage: trial.final_stage,
            followed: Vec::new(),
            stamps: Vec::new(),
            incomplete: 0,
            disordered: 0,
            total_ns: 0,
        }
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        if !self.followed.is_empty() {
            rows.iter().for_each(|row| self.row(row));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.incomplete);
        it.sum(&mut self.disordered);
        it.saturating(&mut self.total_ns, u64::MAX);
        for leg in &mut self.legs {
            it.saturating(&mut leg.sum_ns, u64::MAX);
            leg.lengths.carry(it);
            // The largest is that of the lengths.
            leg.max_ns = leg.lengths.moments().max();
        }
    }

    fn add_to(&mut self, _trial: &Known<'_>, result: &mut TrialResult) {
        if let Some(stages) = &mut result.node_stages {
            stages.way = self.result();
        }
    }
}

impl Way {
    /// Follows the transactions of these spans, which come by transaction, and before the rows.
    pub fn follow(&mut self, spans: &[Span]) {
        if self.ends.is_empty() {
            return;
        }
        for of in spans.chunk_by(|a, b| a.tx == b.tx) {
            let start = self.stamps.len();
            let place = |span: &Span| *self.places.get(usize::try_from(span.stage).ok()?)?;
            let ends = of.iter().filter_map(|span| Some((place(span)?, span.to)));
            self.stamps.extend(ends);
            self.followed.push((of[0].tx, start..self.stamps.len()));
        }
        self.followed.sort_unstable_by_key(|(tx, _)| *tx);
    }

    fn row(&mut self, row: &Row) {
        let mark = row.marks[self.final_stage];
        let place = self.followed.binary_search_by_key(&row.tx, |(tx, _)| *tx);
        let Ok(place) = place else { return };
        if mark == NO_STAMP {
            return;
        }
        match self.divided(row, mark, &self.stamps[self.followed[place].1.clone()]) {
            Err(Undivided::Incomplete) => self.incomplete += 1,
            Err(Undivided::Disordered) => self.disordered += 1,
            Ok(lengths) => {
                for (leg, ns) in self.legs.iter_mut().zip(lengths) {
                    leg.sum_ns = leg.sum_ns.saturating_add(ns.unsigned_abs());
                    leg.max_ns = leg.max_ns.max(Some(ns));
                    leg.lengths.record(ns);
                }
                let total = mark.saturating_sub(row.due).unsigned_abs();
                self.total_ns = self.total_ns.saturating_add(total);
            }
        }
    }

    /// How long each leg of a transaction took.
    fn divided(
        &self,
        row: &Row,
        mark: Stamp,
        stamps: &[(usize, Stamp)],
    ) -> Result<Vec<i64>, Undivided> {
        if row.sent == NO_STAMP || row.sent < row.due {
            return Err(Undivided::Disordered);
        }
        let mut lengths = vec![row.sent - row.due];
        let mut at = row.sent;
        for place in 0..self.ends.len() {
            let of_it = || stamps.iter().filter(|(it, _)| *it == place).map(|(_, to)| *to);
            // Where several nodes pass it, or one does again, the way goes on with the first that can have been on it.
            let Some(end) = of_it().filter(|to| *to >= at).min() else {
                let is_there = of_it().next().is_some();
                return Err(if is_there { Undivided::Disordered } else { Undivided::Incomplete });
            };
            lengths.push(end - at);
            at = end;
        }
        if mark < at {
            return Err(Undivided::Disordered);
        }
        lengths.push(mark - at);
        Ok(lengths)
    }

    #[expect(clippy::cast_precision_loss, reason = "shares and means")]
    fn result(&self) -> Option<WayResult> {
        let transactions = self.legs.first()?.lengths.count();
        if transactions + self.incomplete + self.disordered == 0 {
            return None;
        }
        let names = std::iter::once((SEND, ""))
            .chain(self.ends.iter().map(|it| (&*it.leg, &*it.name)))
            .chain([(SEEN, "")]);
        let share = |ns: u64| (self.total_ns > 0).then(|| ns as f64 / self.total_ns as f64);
        let leg = |((leg, stage), of): ((&str, &str), &Leg)| LegResult {
            leg: leg.to_owned(),
            stage: stage.to_owned(),
            sum_ns: of.sum_ns,
            share: share(of.sum_ns),
            mean_ns: (transactions > 0).then(|| of.sum_ns as f64 / transactions as f64),
            p50_ns: of.lengths.quantile(0.5),
            p99_ns: of.lengths.quantile(0.99),
            max_ns: of.max_ns,
        };
        Some(WayResult {
            transactions,
            incomplete: self.incomplete,
            disordered: self.disordered,
            total_ns: self.total_ns,
            legs: names.zip(&self.legs).map(leg).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::result::NodeStagesResult;

    use super::*;
    use crate::testing::Trial;

    const MS: i64 = 1_000_000;

    /// A trial of a system whose way is queue, then storing; some transactions are followed.
    fn followed(stored_after: &dyn Fn(u64) -> Option<i64>) -> (Trial, NodeStagesResult) {
        let mut trial = Trial::clean();
        trial.facts.declared.node_stages = vec![
            NodeStage::new("taken", "").ending("queue"),
            NodeStage::new("looked", ""),
            NodeStage::new("stored", "").ending("storing"),
        ];
        for tx in (0..1_000).step_by(100) {
            let due = trial.rows[tx].due;
            let span = |stage, node: &str, to: i64| model::node_events::Span {
                tx: tx as u64,
                stage,
                node: node.to_owned(),
                from: due,
                to,
            };
            trial.spans.push(span(0, "a", due + MS));
            trial.spans.push(span(1, "a", due + 5 * MS));
            // It was there before the other had taken it, and is not on the way.
            trial.spans.push(span(2, "b", due + MS / 2));
            trial.spans.extend(stored_after(tx as u64).map(|ns| span(2, "a", due + ns)));
        }
        let result = trial.clone().result().node_stages.expect("it declares stages");
        (trial, result)
    }

    /// Claim: the legs of followed transactions are their time from due to the mark, to the nanosecond; a stage of no leg
    /// divides nothing, and a node that was there before the leg began does not count.
    #[test]
    fn legs_are_the_whole() {
        let (trial, result) = followed(&|_| Some(2 * MS));
        let way = result.way.expect("some are followed");
        assert_eq!((way.transactions, way.incomplete, way.disordered), (10, 0, 0));
        let names: Vec<(&str, &str)> = way.legs.iter().map(|it| (&*it.leg, &*it.stage)).collect();
        assert_eq!(names, [("send", ""), ("queue", "taken"), ("storing", "stored"), ("seen", "")]);
        let rows = trial.rows.iter().take(1_000).step_by(100);
        let total: i64 = rows.clone().filter_map(|row| row.response_ns(0)).sum();
        assert_eq!(way.total_ns, total.unsigned_abs());
        assert_eq!(way.legs.iter().map(|it| it.sum_ns).sum::<u64>(), way.total_ns);
        let sent: i64 = rows.map(|row| row.sent - row.due).sum();
        let expected = [sent, 10 * MS - sent, 10 * MS, total - 20 * MS].map(i64::unsigned_abs);
        assert_eq!(way.legs.iter().map(|it| it.sum_ns).collect::<Vec<_>>(), expected);
        let shares: f64 = way.legs.iter().filter_map(|it| it.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        assert_eq!(way.legs[2].max_ns, Some(MS));
    }

    /// Claim: one that lacks a span and one whose stamps are in no order are counted and not divided.
    #[test]
    fn what_does_not_divide() {
        let after = |tx| match tx {
            0 => None,
            100 => Some(9 * MS),
            _ => Some(2 * MS),
        };
        let (mut trial, result) = followed(&after);
        let way = result.way.expect("some are followed");
        assert_eq!((way.transactions, way.incomplete, way.disordered), (8, 0, 2));
        trial.spans.retain(|span| span.tx != 0 || span.stage != 2);
        let way = trial.result().node_stages.and_then(|it| it.way).expect("some are followed");
        assert_eq!((way.transactions, way.incomplete, way.disordered), (8, 1, 1));
        assert_eq!(way.legs.iter().map(|it| it.sum_ns).sum::<u64>(), way.total_ns);
    }

    /// Claim: a system that declares no legs has no way.
    #[test]
    fn no_legs() {
        let mut trial = Trial::clean();
        trial.facts.declared.node_stages = vec![NodeStage::new("taken", "")];
        assert!(trial.result().node_stages.expect("it declares a stage").way.is_none());
    }
}
