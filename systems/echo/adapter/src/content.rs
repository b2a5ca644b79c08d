//! The check `content`: does the ledger hold what was submitted? An entry holds the checksum that its transaction was
//! submitted with; the transaction itself is made again from the trial's seed and its number. Only where the workload
//! asks for it, since it makes every transaction of the trial once more.

use echo_node::protocol::submit_checksum;
use model::facts::LedgerEntry;
use model::options::{Problems, Section};
use model::{Seed, TxId};
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

/// Where the numbers of the probe begin, and from where on no transaction has any.
const PROBE_BASE: TxId = 1 << 40;
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
            return CheckFinding { holds: true, count: looked_at, examples, words };
        }
        let words = format!("of {looked_at} entries hold something else than was submitted");
        CheckFinding { holds: false, count: broken, examples, words }
    }
}
