//! The system's own checks while a trial streams past them: who is shown what, and what they found.
//!
//! It decides nothing that a check decides, and it never lets a check pass that was not shown what it asks for.

use model::Row;
use model::check::{Check, CheckInput, CheckState, EXAMPLES_MAX, Entries, Reads};
use model::facts::{LedgerEntry, TrialFacts};
use model::observation::Observation;
use model::plan::SettingPlan;
use model::result::{AuditOutcome, CheckResult};

/// The checks of one trial that have something to say of it.
#[derive(Default)]
pub struct Checks {
    running: Vec<Running>,
}

struct Running {
    check: Check,
    state: Box<dyn CheckState>,
}

impl Checks {
    /// Starts those that apply to a trial.
    #[must_use]
    pub fn start(checks: &[Check], setting: &SettingPlan, facts: &TrialFacts) -> Self {
        let input = CheckInput {
            seed: facts.declared.seed,
            deploy: &setting.system.deploy,
            workload: &setting.system.workload,
            kinds: &facts.declared.kinds,
            stages: &facts.declared.stages,
            final_stages: facts.declared.final_stages(),
            states: &facts.after.states,
        };
        let applying = checks.iter().filter(|check| (check.applies)(&input));
        let running = applying.map(|check| Running { check: *check, state: (check.start)(&input) });
        Self { running: running.collect() }
    }

    /// Whether any asks for observations.
    #[must_use]
    pub fn read_observations(&self) -> bool {
        self.running.iter().any(|one| one.check.reads.observations)
    }

    /// Whether any asks for rows, which it is shown one after another.
    pub(crate) fn read_rows(&self) -> bool {
        self.running.iter().any(|one| one.check.reads.rows)
    }

    pub(crate) fn rows(&mut self, rows: &[Row]) {
        for state in self.that(|reads| reads.rows) {
            rows.iter().for_each(|row| state.row(row));
        }
    }

    pub(crate) fn observation(&mut self, observation: &Observation<'_>) {
        self.that(|reads| reads.observations).for_each(|state| state.observation(observation));
    }

    pub(crate) fn entry(&mut self, entry: &LedgerEntry, content: &[u8]) {
        for one in &mut self.running {
            match one.check.reads.entries {
                Entries::Unread => {}
                Entries::Bare => one.state.entry(entry, &[]),
                Entries::WithContent => one.state.entry(entry, content),
            }
        }
    }

    /// Their findings.
    pub(crate) fn finish(self, facts: &TrialFacts) -> Vec<CheckResult> {
        self.running.into_iter().map(|one| one.finish(facts)).collect()
    }

    fn that(
        &mut self,
        wanted: fn(Reads) -> bool,
    ) -> impl Iterator<Item = &mut Box<dyn CheckState>> {
        let wanted = self.running.iter_mut().filter(move |one| wanted(one.check.reads));
        wanted.map(|one| &mut one.state)
    }
}

impl Running {
    fn finish(self, facts: &TrialFacts) -> CheckResult {
        let Check { name, summary, reads, .. } = self.check;
        let mut result = CheckResult {
            name: name.to_owned(),
            summary: summary.to_owned(),
            outcome: AuditOutcome::Skipped,
            count: 0,
            examples: Vec::new(),
            words: String::new(),
            left_out: 0,
        };
        if reads.entries != Entries::Unread && !facts.after.ledger.read {
            result.words = match facts.after.ledger.detail.as_str() {
                "" => "the ledger was not read: the system has none that can be read".to_owned(),
                why => format!("the ledger was not read: {why}"),
            };
            return result;
        }
        result.left_out = left_out(reads, facts);
        let finding = self.state.finish();
        result.outcome = match (finding.holds, result.left_out + finding.missing) {
            (false, _) => AuditOutcome::Failed,
            (true, 0) if finding.saw_nothing => AuditOutcome::Skipped,
            (true, 0) => AuditOutcome::Ok,
            (true, _) => AuditOutcome::Warn,
        };
        result.count = finding.count;
        result.examples = finding.examples;
        result.examples.truncate(EXAMPLES_MAX);
        result.words = finding.words;
        result
    }
}

/// The number of observations and contents that a check asks for and could not be shown.
fn left_out(reads: Reads, facts: &TrialFacts) -> u64 {
    let observations = match reads.observations {
        true => facts.load.workers.iter().map(|worker| worker.observations_left_out).sum(),
        false => 0,
    };
    let contents = match reads.entries {
        Entries::WithContent => facts.after.ledger.contents_left_out,
        Entries::Bare | Entries::Unread => 0,
    };
    observations + contents
}
