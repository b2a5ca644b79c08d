//! The check `content`: does the ledger hold what was submitted? An entry holds the checksum that its transaction was
//! submitted with; the transaction itself is made again from the trial's seed and its number. Only where the workload
//! asks for it, since it makes every transaction of the trial once more.

use echo_node::protocol::submit_checksum;
use model::facts::LedgerEntry;
use model::options::{Problems, Section};
use model::{PROBE_BASE, Seed, TxId};
use sut::{Check, CheckFinding, CheckInput, CheckState, Entries, Reads, Workload as _};

use crate::options::{keys, payload_bytes, verifies_content};
use crate::workload::Payloads;

/// The line in the adapter's list.
pub(crate) const CHECK: Check = Check {
    name: "content",
    summary: "entries of the ledger hold what was submitted",
    reads: Reads { rows: false, observations: false, entries: Entries::WithContent },
    applies: |input| {
        let mut problems = Problems::default();
        let mut workload = Section::open(input.workload, "workload", &mut problems);
        verifies_content(&mut workload, &mut problems)
    },
    start: |input| Box::new(Content::new(input)),
};

/// No transaction has this number or a higher one.
const BEYOND: TxId = 1 << 41;
/// What an entry holds: the run's mark and the checksum of the submission.
pub(crate) const CONTENT_BYTES: usize = 12;

/// The state of the check.
struct Content {
    /// The main load's transactions, and the probe's.
    made: [Payloads; 2],
    payload: Vec<u8>,
    looked_at: u64,
    broken: u64,
    examples: Vec<TxId>,
}

impl Content {
    fn new(input: &CheckInput<'_>) -> Self {
        let mut problems = Problems::default();
        let mut workload = Section::open(input.workload, "workload", &mut problems);
        let payload_bytes = payload_bytes(&mut workload, &mut problems);
        let payload_bytes = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        let reads = input.kinds.iter().any(|kind| !kind.is_recorded);
        let keys = reads.then(|| keys(&mut workload, &mut problems));
        let made = |seed: Seed| Payloads::new(seed, payload_bytes, input.kinds.len(), keys);
        Self {
            made: [made(input.seed.split("workload")), made(input.seed.split("probe"))],
            payload: Vec::new(),
            looked_at: 0,
            broken: 0,
            examples: Vec::new(),
        }
    }

    /// The checksum that a transaction was submitted with.
    fn expected(&mut self, run: u64, tx: TxId) -> u32 {
        self.payload.clear();
        let made = self.made[usize::from(tx >= PROBE_BASE)].next(tx, None, &mut self.payload);
        let kind = u16::try_from(made.kind).expect("few kinds");
        submit_checksum(run, tx, kind, &self.payload)
    }
}

impl CheckState for Content {
    fn entry(&mut self, entry: &LedgerEntry, content: &[u8]) {
        // What was never submitted is for the fates.
        if !entry.ours || entry.tx >= BEYOND {
            return;
        }
        self.looked_at += 1;
        let holds = content.len() == CONTENT_BYTES && {
            let (run, checksum) = content.split_at(8);
            let run = u64::from_le_bytes(run.try_into().expect("eight bytes"));
            checksum == self.expected(run, entry.tx).to_le_bytes()
        };
        if !holds {
            self.broken += 1;
            if self.examples.len() < model::check::EXAMPLES_MAX {
                self.examples.push(entry.tx);
            }
        }
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        let Self { looked_at, broken, examples, .. } = *self;
        if broken == 0 {
            let words = "entries made again: each holds what was submitted".to_owned();
            return CheckFinding {
                holds: true,
                count: looked_at,
                examples,
                words,
                ..CheckFinding::default()
            };
        }
        let words = format!("of {looked_at} entries hold something else than was submitted");
        CheckFinding { holds: false, count: broken, examples, words, ..CheckFinding::default() }
    }
}

#[cfg(test)]
mod tests {
    use model::facts::KindFacts;
    use model::options::{Options, Span, Value};

    use super::*;

    const RUN: u64 = 77;
    const SEED: Seed = Seed(5);

    fn entry(tx: TxId) -> LedgerEntry {
        LedgerEntry::new(tx, tx, true)
    }

    /// What the ledger holds of a transaction of this seed and kind.
    fn held(seed: Seed, tx: TxId, kind: u16) -> Vec<u8> {
        let mut payload = Vec::new();
        let made = Payloads::new(seed, 40, 2, None).next(tx, None, &mut payload);
        assert_eq!(made.kind, u32::from(kind));
        let checksum = submit_checksum(RUN, tx, kind, &payload);
        [&RUN.to_le_bytes()[..], &checksum.to_le_bytes()].concat()
    }

    fn look(entries: &[(LedgerEntry, Vec<u8>)]) -> CheckFinding {
        let mut workload = Options::empty();
        let value = |value| Options { value, span: Span::default() };
        workload.set("payload", value(Value::String("40B".to_owned())));
        let kinds = [KindFacts::recorded("put"), KindFacts::recorded("post")];
        let deploy = Options::empty();
        let mut input = CheckInput {
            seed: SEED,
            deploy: &deploy,
            workload: &workload,
            kinds: &kinds,
            stages: &["committed".to_owned()],
            final_stages: model::FinalStages::all(0),
            states: &[],
        };
        assert!(!(CHECK.applies)(&input), "only where it is asked for");
        let mut asking = workload.clone();
        asking.set("verify_content", value(Value::Boolean(true)));
        input.workload = &asking;
        assert!((CHECK.applies)(&input));
        let mut check = (CHECK.start)(&input);
        entries.iter().for_each(|(entry, content)| check.entry(entry, content));
        check.finish()
    }

    /// Claim: entries of the load and of the probe that hold what was submitted are right, each made from its own part of
    /// the seed; entries of others and of nobody are not looked at.
    #[test]
    fn what_was_submitted() {
        let [load, probe] = ["workload", "probe"].map(|name| SEED.split(name));
        let other = LedgerEntry::new(9, 9, false);
        let finding = look(&[
            (entry(0), held(load, 0, 0)),
            (entry(7), held(load, 7, 1)),
            (entry(PROBE_BASE + 2), held(probe, PROBE_BASE + 2, 0)),
            (other, vec![0; CONTENT_BYTES]),
            (entry(BEYOND + 3), vec![0; CONTENT_BYTES]),
        ]);
        assert!(finding.holds, "{}", finding.words);
        assert_eq!((finding.count, finding.examples.len()), (3, 0));
    }

    /// Claim: another checksum, another transaction's content, another run's, the probe's seed for one of the load, and
    /// a content that is cut off are each named by id; the others are not.
    #[test]
    fn something_else() {
        let [load, probe] = ["workload", "probe"].map(|name| SEED.split(name));
        let mut altered = held(load, 2, 0);
        altered[8] ^= 1;
        let mut of_other_run = held(load, 5, 1);
        of_other_run[0] ^= 1;
        let finding = look(&[
            (entry(1), held(load, 1, 1)),
            (entry(2), altered),
            (entry(3), held(load, 13, 1)),
            (entry(4), held(probe, 4, 0)),
            (entry(5), of_other_run),
            (entry(6), held(load, 6, 0)[..CONTENT_BYTES - 1].to_vec()),
            (entry(7), Vec::new()),
            (entry(8), held(load, 8, 0)),
        ]);
        assert!(!finding.holds);
        assert_eq!((finding.count, finding.examples), (6, vec![2, 3, 4, 5, 6, 7]));
        assert!(finding.words.starts_with("of 8 entries"), "{}", finding.words);
    }
}
