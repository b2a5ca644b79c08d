//! Flows of users: which transactions began one, which followed an answer, and how long each flow took. The rows of a user
//! come in their order, because each is due after the end of the one before.

use std::collections::{BTreeMap, HashMap};

use model::facts::{KindFacts, StepFacts};
use model::result::{FlowResult, FlowsResult, TrialResult};
use model::{NO_STAMP, Outcome, Row, Stamp};
use stats::SparseHistogram;
use stats::carry::Carry;

use crate::figures::float::to_f64;
use crate::figures::grid::Grid;
use crate::figures::known::Known;
use crate::figures::part::Part;

/// The stream of the main load.
const MAIN: u8 = 0;
/// Users who are on their way at once, of whom is known how far they are: 160 MB of them.
const ON_THE_WAY_MAX: usize = 1 << 22;

/// Counts of all flows.
#[derive(Clone)]
pub(crate) struct UserFlows {
    /// By kind; none: the trial has no flows.
    steps: Vec<Option<Place>>,
    flows: Vec<(String, Flow)>,
    grid: Grid,
    on_the_way: HashMap<u32, OnTheWay>,
    begun: u64,
    begun_sent: u64,
    followed: u64,
    left_out: u64,
}

/// A kind's place in a flow.
#[derive(Clone, Copy)]
struct Place {
    flow: usize,
    is_first: bool,
    is_last: bool,
}

/// A user within his flow.
#[derive(Clone)]
struct OnTheWay {
    flow: usize,
    due: Stamp,
    end: Stamp,
    outcome: Outcome,
}

#[derive(Clone, Default)]
struct Flow {
    begun: u64,
    completed: u64,
    rejected: BTreeMap<&'static str, u64>,
    unknown: u64,
    shed: u64,
    times: SparseHistogram,
}

impl Part for UserFlows {
    fn of_trial(trial: &Known<'_>) -> Self {
        let kinds = &trial.facts.declared.kinds;
        let mut flows: Vec<(String, Flow)> = Vec::new();
        let mut place = |step: &StepFacts| {
            let flow = flows.iter().position(|(name, _)| *name == step.flow).unwrap_or_else(|| {
                flows.push((step.flow.clone(), Flow::default()));
                flows.len() - 1
            });
            Place { flow, is_first: step.is_first, is_last: step.is_last }
        };
        let has_flows = kinds.iter().any(|kind| kind.step.is_some());
        let steps = match has_flows {
            true => {
                kinds.iter().map(|kind: &KindFacts| kind.step.as_ref().map(&mut place)).collect()
            }
            false => Vec::new(),
        };
        Self {
            steps,
            flows,
            grid: trial.grid,
            on_the_way: HashMap::new(),
            begun: 0,
            begun_sent: 0,
            followed: 0,
            left_out: 0,
        }
    }

    fn block(&mut self, rows: &[&Row]) {
        if !self.steps.is_empty() {
            rows.iter().filter(|row| row.stream == MAIN).for_each(|row| self.row(row));
        }
    }

    /// A user's rows are followed from one to the next: where there are flows, there are no shares.
    fn carry(&mut self, _: &mut Carry<'_>) {}

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        if self.steps.is_empty() {
            return;
        }
        let users: Vec<OnTheWay> = self.on_the_way.drain().map(|(_, user)| user).collect();
        let facts = trial.facts;
        let is_cut = !facts.complete
            || !facts.interrupted().is_empty()
            || facts.load.agents.iter().any(|agent| !agent.lost.is_empty());
        for user in &users {
            // All of them may have had a step to come: a trial that was cut does not tell.
            match is_cut {
                true => self.left_out += u64::from(self.grid.holds(user.due)),
                false => self.arrived(user),
            }
        }
        let seconds = to_f64(result.window_ns.unsigned_abs()) / 1e9;
        let mut all = Flow::default();
        for (_, flow) in &self.flows {
            all.add(flow);
        }
        let flows = self.flows.iter().map(|(name, flow)| flow.result(name.clone(), seconds));
        result.flows = Some(FlowsResult {
            begun: self.begun,
            begun_sent: self.begun_sent,
            followed: self.followed,
            all: all.result("all".to_owned(), seconds),
            flows: flows.collect(),
            left_out: self.left_out,
        });
    }
}

impl UserFlows {
    fn row(&mut self, row: &Row) {
        let step = self.steps.get(row.kind as usize).copied().flatten();
        let is_begun = step.is_none_or(|step| step.is_first);
        if self.grid.holds(row.due) {
            self.begun += u64::from(is_begun);
            self.begun_sent += u64::from(is_begun && row.sent != NO_STAMP);
            self.followed += u64::from(!is_begun);
        }
        let Some(step) = step else { return };
        let end = row.end;
        if step.is_first {
            // The one before was left at a step that another one may follow: it came to its end there.
            if let Some(user) = self.on_the_way.remove(&row.client) {
                self.arrived(&user);
            }
            let user = OnTheWay { flow: step.flow, due: row.due, end, outcome: row.outcome };
            if step.is_last || row.outcome != Outcome::Committed {
                self.arrived(&user);
            } else if self.on_the_way.len() < ON_THE_WAY_MAX {
                self.on_the_way.insert(row.client, user);
            } else {
                self.left_out += 1;
            }
            return;
        }
        let Some(user) = self.on_the_way.get_mut(&row.client) else { return };
        (user.end, user.outcome) = (end, row.outcome);
        if (step.is_last || row.outcome != Outcome::Committed)
            && let Some(user) = self.on_the_way.remove(&row.client)
        {
            self.arrived(&user);
        }
    }

    /// A user's flow has ended.
    fn arrived(&mut self, user: &OnTheWay) {
        if !self.grid.holds(user.due) {
            return;
        }
        let (_, flow) = &mut self.flows[user.flow];
        flow.begun += 1;
        match user.outcome {
            Outcome::Committed => {
                flow.completed += 1;
                flow.times.record_all(&[user.end - user.due]);
            }
            Outcome::Rejected(class) => *flow.rejected.entry(class.word()).or_default() += 1,
            Outcome::Unknown => flow.unknown += 1,
            Outcome::Shed => flow.shed += 1,
        }
    }
}

impl Flow {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.completed += other.completed;
        for (class, count) in &other.rejected {
            *self.rejected.entry(class).or_default() += count;
        }
        self.unknown += other.unknown;
        self.shed += other.shed;
        self.times.merge(&other.times);
    }

    fn result(&self, name: String, seconds: f64) -> FlowResult {
        let of_completed = 0.99 * to_f64(self.begun) / to_f64(self.completed.max(1));
        FlowResult {
            name,
            begun: self.begun,
            completed: self.completed,
            rejected: self.rejected.values().sum(),
            rejected_by_class: self
                .rejected
                .iter()
                .map(|(word, count)| ((*word).to_owned(), *count))
                .collect(),
            unknown: self.unknown,
            shed: self.shed,
            completed_per_s: if seconds > 0.0 { to_f64(self.completed) / seconds } else { 0.0 },
            p50_ns: self.times.quantile(0.5),
            p99_ns: self.times.quantile(0.99),
            max_ns: self.times.moments().max(),
            p99_of_all_ns: Some(of_completed)
                .filter(|q| *q <= 1.0)
                .and_then(|q| self.times.quantile(q)),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Class;

    use super::*;
    use crate::testing::{Trial, row};

    const MS: i64 = 1_000_000;

    fn step(is_first: bool, is_last: bool) -> KindFacts {
        let step = StepFacts { flow: "buy".into(), is_first, is_last };
        KindFacts::of_flow(format!("{is_first} {is_last}"), step)
    }

    /// Claim: a flow takes from when its first transaction was due to its last answer, whoever else is on the way; one that
    /// fails, is left unanswered or is cut off counts as such; users who begin are told from what follows, and the audit of
    /// the offered rate judges those who begin alone.
    #[test]
    fn flows_are_put_together() {
        let mut trial = Trial::clean();
        trial.facts.declared.kinds = vec![step(true, false), step(false, false), step(false, true)];
        let mut rows = Vec::new();
        // 1,000 users a second: three transactions each, the n-th of a user due 40 ms after the one before.
        for user in 0..10_000_u64 {
            let begins = i64::try_from(user).unwrap() * MS;
            for nth in 0..3 {
                let outcome = match (user % 100, nth) {
                    (0, 1) => Outcome::Rejected(Class::Server),
                    (1, 2) => Outcome::Unknown,
                    (2, 1) => Outcome::Shed,
                    _ => Outcome::Committed,
                };
                let client = u32::try_from(user).unwrap();
                let due = begins + nth * 40 * MS;
                let kind = u32::try_from(nth).unwrap();
                rows.push(Row { client, kind, ..row(rows.len() as u64, due, 2 * MS, outcome) });
                if outcome != Outcome::Committed {
                    break;
                }
                // Some leave after their second step.
                if nth == 1 && user % 10 == 5 {
                    break;
                }
            }
        }
        rows.sort_by_key(|row| (row.end, row.tx));
        (0..).zip(&mut rows).for_each(|(tx, row)| row.tx = tx);
        trial.rows = rows;
        let result = trial.result();
        let flows = result.flows.as_ref().unwrap();
        assert_eq!((flows.begun, flows.begun_sent, flows.left_out), (10_000, 10_000, 0));
        let due = result.counts.due;
        assert_eq!(flows.begun + flows.followed, due);
        assert!(due > 28_000, "{due}");
        let [of] = flows.flows.as_slice() else { panic!("{flows:?}") };
        assert_eq!(
            (of.begun, of.completed, of.rejected, of.unknown, of.shed),
            (10_000, 9_700, 100, 100, 100)
        );
        let near = |ns: Option<i64>, ms: i64| (ns.unwrap() - ms * MS).abs() < MS;
        assert!(near(of.p50_ns, 82) && near(of.max_ns, 82), "{of:?}");
        assert_eq!(of.p99_of_all_ns, None, "three of a hundred took for ever");
        let audit = result.audits.iter().find(|audit| audit.name == "offered_rate").unwrap();
        assert!(audit.detail.contains("due 1000.0/s"), "{audit:?}");
    }

    /// Claim: a trial without flows has none.
    #[test]
    fn no_flows() {
        assert_eq!(Trial::clean().result().flows, None);
    }

    /// Claim: of a user whom the end of a cut trial found between two steps nothing is told; a trial that came to its end takes
    /// him for one who left early.
    #[test]
    fn cut_between_two_steps() {
        let of = |cut: fn(&mut Trial)| {
            let mut trial = Trial::clean();
            trial.facts.declared.kinds =
                vec![step(true, false), step(false, false), step(false, true)];
            let begun = row(0, 9_000 * MS, 2 * MS, Outcome::Committed);
            trial.rows = vec![Row { client: 7, ..begun }];
            cut(&mut trial);
            let flows = trial.result().flows.unwrap();
            (flows.all.begun, flows.all.completed, flows.left_out)
        };
        assert_eq!(of(|_| {}), (1, 1, 0));
        assert_eq!(of(|it| it.facts.load.interrupted = "stopped by Ctrl-C".into()), (0, 0, 1));
        assert_eq!(of(|it| it.facts.complete = false), (0, 0, 1));
    }
}
