//! What became of transfers in the terms of the chain: nonces with gaps, replaced, dropped, reverted, left in the pool, taken
//! by another client of the same account. Of each transaction the course says account and nonce, the rows what the client
//! was told, the ledger what stands in the chain and what waits.

use std::collections::{BTreeMap, HashMap};

use model::check::{Check, CheckFinding, CheckInput, CheckState, EXAMPLES_MAX, Entries, Reads};
use model::facts::LedgerEntry;
use model::options::Problems;
use model::{NO_STAMP, Row, TxId};

use crate::course::{Course, Walk};
use crate::options;

/// All of them, alphabetical.
pub(crate) const ALL: &[Check] = &[
    check(
        "dropped",
        "Every transfer that the node accepted is mined, or waits in its pool",
        dropped,
    ),
    check("left_in_pool", "No transfer waits in the pool that could have been mined", left_in_pool),
    check("nonce_gap", "No transfer waits for one of its account that never came", nonce_gap),
    check("replaced", "No accepted transfer had to give way to another of its nonce", replaced),
    check("reverted", "Every mined transfer had its effect", reverted),
    check("shared_account", "No two clients gave one nonce of one account", shared_account),
];

const fn check(
    name: &'static str,
    summary: &'static str,
    start: fn(&CheckInput<'_>) -> Box<dyn CheckState>,
) -> Check {
    let reads = Reads { rows: true, observations: false, entries: Entries::WithContent };
    Check { name, summary, reads, applies: |_| true, start }
}

fn dropped(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    state(input, Fate::Dropped, "were accepted and are neither in the chain nor in the pool")
}

fn left_in_pool(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    let words = "wait in the pool, and nothing of their accounts is missing below them";
    state(input, Fate::Left, words)
}

fn nonce_gap(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    let words = "wait in the pool behind a nonce of their accounts that is not in the chain: one was refused, lost or never sent";
    state(input, Fate::Gap, words)
}

fn replaced(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    let words = "were accepted, and another with their account and nonce was mined";
    state(input, Fate::Replaced, words)
}

fn reverted(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    state(input, Fate::Reverted, "were mined and reverted: paid for, and without effect")
}

fn shared_account(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    state(input, Fate::Shared, "have a nonce that another client of their account gave, too")
}

fn state(input: &CheckInput<'_>, wanted: Fate, words: &'static str) -> Box<dyn CheckState> {
    // As the engine splits it for the workload.
    let seed = input.seed.split("workload");
    let course = options::course(input.workload, seed, &mut Problems::default());
    let (stands, names) = (HashMap::new(), HashMap::new());
    Box::new(Trial { course, wanted, words, rows: Vec::new(), stands, names })
}

/// What can have become of a transfer that is not simply mined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Dropped,
    Gap,
    Left,
    Replaced,
    Reverted,
    Shared,
}

/// What the ledger says of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Mined,
    Reverted,
    Waiting,
}

/// What of a row is used.
#[derive(Clone, Copy, Debug)]
struct Sent {
    client: u32,
    is_accepted: bool,
    tx: TxId,
}

/// A transfer with its place in the order of its account.
#[derive(Clone, Copy, Debug)]
struct Placed {
    sent: Sent,
    nonce: u64,
}

/// A trial as it streams past.
struct Trial {
    course: Course,
    wanted: Fate,
    words: &'static str,
    rows: Vec<Sent>,
    stands: HashMap<TxId, Stands>,
    /// Contents of entries that are not simply mined: each ends with the transaction's hash.
    names: HashMap<TxId, Box<str>>,
}

impl CheckState for Trial {
    fn row(&mut self, row: &Row) {
        // The probe walks a course of its own.
        if row.stream == 0 {
            let is_accepted = row.marks[0] != NO_STAMP;
            self.rows.push(Sent { client: row.client, is_accepted, tx: row.tx });
        }
    }

    fn entry(&mut self, entry: &LedgerEntry, content: &[u8]) {
        if !entry.ours {
            return;
        }
        let stands = match (entry.is_waiting, entry.is_refused) {
            (true, _) => Stands::Waiting,
            (false, true) => Stands::Reverted,
            (false, false) => Stands::Mined,
        };
        if stands != Stands::Mined {
            self.names.insert(entry.tx, String::from_utf8_lossy(content).into());
        }
        if stands == Stands::Waiting {
            // The pool was listed before the last blocks were read: what stands in one does not wait any more.
            self.stands.entry(entry.tx).or_insert(stands);
        } else {
            self.stands.insert(entry.tx, stands);
        }
    }

    fn finish(mut self: Box<Self>) -> CheckFinding {
        let total = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        let mut found = self.found();
        found.sort_unstable();
        let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
        found.truncate(EXAMPLES_MAX);
        let holds = found.is_empty();
        // By this name the node and every explorer know it.
        let first = found.first().and_then(|tx| self.names.get(tx));
        let first = first.map(|name| format!("; the first: {name}")).unwrap_or_default();
        CheckFinding {
            holds,
            count: if holds { total } else { count },
            examples: found,
            words: if holds {
                "transfers were looked at".to_owned()
            } else {
                format!("{}{first}", self.words)
            },
            ..CheckFinding::default()
        }
    }
}

impl Trial {
    fn found(&mut self) -> Vec<TxId> {
        let mut found = Vec::new();
        for list in self.by_account().into_values() {
            self.of_account(list, &mut found);
        }
        found
    }

    /// Each transfer with its nonce, by account: clients walked their courses in the order of their transactions' numbers.
    fn by_account(&mut self) -> BTreeMap<u32, Vec<Placed>> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by_key(|sent| (sent.client, sent.tx));
        let mut accounts: BTreeMap<u32, Vec<Placed>> = BTreeMap::new();
        let (mut client, mut walk) = (None, Walk::default());
        for sent in rows {
            if client != Some(sent.client) {
                (client, walk) = (Some(sent.client), Walk::default());
            }
            let nonce = self.course.step(sent.client, &mut walk).nonce;
            let account = self.course.account(sent.client);
            accounts.entry(account).or_default().push(Placed { sent, nonce });
        }
        accounts
    }

    /// Those of one account that came to what is looked for.
    fn of_account(&self, mut list: Vec<Placed>, found: &mut Vec<TxId>) {
        list.sort_unstable_by_key(|one| (one.nonce, one.sent.tx));
        let mut has_gap = false;
        for same in list.chunk_by(|one, other| one.nonce == other.nonce) {
            let stands = |one: &Placed| self.stands.get(&one.sent.tx).copied();
            let is_mined = same
                .iter()
                .any(|one| matches!(stands(one), Some(Stands::Mined | Stands::Reverted)));
            let first = same[0].sent.client;
            let is_shared = same.iter().any(|one| one.sent.client != first);
            for one in same {
                let fate = match stands(one) {
                    Some(Stands::Mined) => None,
                    Some(Stands::Reverted) => Some(Fate::Reverted),
                    _ if is_mined => one.sent.is_accepted.then_some(Fate::Replaced),
                    Some(Stands::Waiting) if has_gap => Some(Fate::Gap),
                    Some(Stands::Waiting) => Some(Fate::Left),
                    None => one.sent.is_accepted.then_some(Fate::Dropped),
                };
                let is_it = match self.wanted {
                    Fate::Shared => is_shared,
                    wanted => fate == Some(wanted),
                };
                found.extend(is_it.then_some(one.sent.tx));
            }
            let waits = same.iter().any(|one| stands(one) == Some(Stands::Waiting));
            // What waits with nothing missing below it is no gap for those above: they wait for it.
            has_gap |= !is_mined && !waits;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::options::{Options, Span, Value};
    use model::{Outcome, Seed};

    use super::*;

    fn workload(clients_per_account: i64, replacing: &str) -> Options {
        let mut workload = Options::empty();
        let mut set =
            |key: &str, value| workload.set(key, Options { value, span: Span::default() });
        set("accounts", Value::Integer(1));
        set("clients_per_account", Value::Integer(clients_per_account));
        set("replacing", Value::String(replacing.to_owned()));
        workload
    }

    /// What each check finds of transfers: client, whether it was accepted, and how it stands.
    fn found(
        workload: &Options,
        told: &[(u32, bool, Option<Stands>)],
    ) -> Vec<(&'static str, Vec<TxId>)> {
        let deploy = Options::empty();
        let input = CheckInput {
            seed: Seed(3),
            deploy: &deploy,
            workload,
            kinds: &[],
            stages: &[],
            final_stages: model::FinalStages::all(1),
            states: &[],
        };
        let finding = |check: &Check| {
            let mut state = (check.start)(&input);
            for (tx, (client, is_accepted, _)) in (0..).zip(told) {
                let mut row = Row { tx, client: *client, outcome: Outcome::Unknown, ..Row::EMPTY };
                row.marks[0] = if *is_accepted { 5 } else { NO_STAMP };
                state.row(&row);
            }
            for (tx, (.., stands)) in (0..).zip(told) {
                let Some(stands) = stands else { continue };
                let entry = LedgerEntry {
                    is_refused: *stands == Stands::Reverted,
                    is_waiting: *stands == Stands::Waiting,
                    ..LedgerEntry::new(tx, tx, true)
                };
                state.entry(&entry, format!("0x{tx:064x}").as_bytes());
            }
            let finding = state.finish();
            assert_eq!(finding.holds, finding.examples.is_empty());
            // A transaction of the ledger is named by its hash.
            let is_named = finding.words.contains("; the first: 0x");
            let first = finding.examples.first();
            let stands = first.and_then(|tx| told[usize::try_from(*tx).unwrap()].2);
            assert_eq!(is_named, matches!(stands, Some(Reverted | Waiting)), "{}", finding.words);
            (check.name, finding.examples)
        };
        ALL.iter().map(finding).filter(|(_, list)| !list.is_empty()).collect()
    }

    use Stands::{Mined, Reverted, Waiting};

    /// Claim: a trial in which all is mined has nothing to name, nor has one in which what was refused is not there.
    #[test]
    fn nothing_to_name() {
        let plain = workload(1, "0%");
        assert_eq!(found(&plain, &[(0, true, Some(Mined)), (0, true, Some(Mined))]), []);
        assert_eq!(found(&plain, &[(0, true, Some(Mined)), (0, false, None)]), []);
    }

    /// Claim: each fate is named for what it is, and nothing else is.
    #[test]
    fn each_fate() {
        let plain = workload(1, "0%");
        let reverted = [(0, true, Some(Mined)), (0, true, Some(Reverted)), (0, true, Some(Mined))];
        assert_eq!(found(&plain, &reverted), [("reverted", vec![1])]);
        let gap = [
            (0, true, Some(Mined)),
            (0, false, None),
            (0, true, Some(Waiting)),
            (0, true, Some(Waiting)),
        ];
        assert_eq!(found(&plain, &gap), [("nonce_gap", vec![2, 3])]);
        let left = [(0, true, Some(Mined)), (0, true, Some(Waiting)), (0, true, Some(Waiting))];
        assert_eq!(found(&plain, &left), [("left_in_pool", vec![1, 2])]);
        let dropped = [(0, true, Some(Mined)), (0, true, None)];
        assert_eq!(found(&plain, &dropped), [("dropped", vec![1])]);
    }

    /// Claim: a transfer that stands in the chain has been mined, also where the pool still listed it.
    #[test]
    fn mined_while_the_pool_was_listed() {
        let (plain, deploy) = (workload(1, "0%"), Options::empty());
        let input = CheckInput {
            seed: Seed(3),
            deploy: &deploy,
            workload: &plain,
            kinds: &[],
            stages: &[],
            final_stages: model::FinalStages::all(1),
            states: &[],
        };
        for check in ALL {
            let mut state = (check.start)(&input);
            let mut row = Row { tx: 0, client: 0, outcome: Outcome::Committed, ..Row::EMPTY };
            row.marks[0] = 5;
            state.row(&row);
            let mined = LedgerEntry::new(7, 0, true);
            state.entry(&mined, b"");
            state.entry(&LedgerEntry { is_waiting: true, ..LedgerEntry::new(9, 0, true) }, b"");
            assert!(state.finish().holds, "{}", check.name);
        }
    }

    /// Claim: two clients of one account are both named where they gave one nonce, and of the two the one that was
    /// accepted and gave way is replaced.
    #[test]
    fn clients_that_share() {
        let shared = workload(2, "0%");
        let told =
            [(0, true, Some(Mined)), (1, true, None), (0, true, Some(Mined)), (1, false, None)];
        let expected = [("replaced", vec![1]), ("shared_account", vec![0, 1, 2, 3])];
        assert_eq!(found(&shared, &told), expected);
    }

    /// Claim: a nonce that its own client gave again is no gap and is not shared; what it replaced is named.
    #[test]
    fn replacements() {
        let replacing = workload(1, "100%");
        let told = [(0, true, None), (0, true, Some(Mined))];
        assert_eq!(found(&replacing, &told), [("replaced", vec![0])]);
    }
}
