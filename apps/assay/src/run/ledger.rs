//! The ledger, read after the drain by its own way, every entry kept. One that lacks what was acknowledged is read once more
//! a stated time later: what is there by then was acknowledged early, and only what is not is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use model::check::{CheckInput, Entries};
use model::facts::{
    DeclaredFacts, EARLY_EXAMPLES_MAX, LEDGER_CONTENT_BYTES_MAX, LedgerEntry, LedgerFacts,
    LedgerFault, SecondReading,
};
use model::quantity::{show_count, show_duration};
use model::{FinalStages, Outcome, Row, TxId};
use record::TrialFolder;
use sut::{Deployment, Ledger, SutError};

use super::inputs::Trial;
use crate::systems;
use crate::terminal::say;

/// The time that a reading has once the run is told to stop, before it or meanwhile.
const STOPPED_READ_MAX: Duration = Duration::from_secs(30);

/// How often it is looked whether the run is to stop, while the second reading is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Transactions that were acknowledged and that no entry has shown yet: a bit each, in pages by number.
#[derive(Default)]
pub(super) struct Acknowledged {
    pages: BTreeMap<TxId, Box<[u64; PAGE_WORDS]>>,
    count: u64,
}

/// 65,536 transactions a page.
const PAGE_WORDS: usize = 1 << 10;

impl Acknowledged {
    /// Takes up the acknowledged ones among rows, of kinds that the ledger records.
    pub(super) fn rows(&mut self, rows: &[Row], of: &DeclaredFacts) {
        let is_recorded = |row: &Row| {
            let kind = usize::try_from(row.kind).ok().and_then(|kind| of.kinds.get(kind));
            kind.is_none_or(|kind| kind.is_recorded)
        };
        let owed = rows.iter().filter(|row| row.outcome == Outcome::Committed && is_recorded(row));
        owed.for_each(|row| self.insert(row.tx));
    }

    fn insert(&mut self, tx: TxId) {
        let (page, word, bit) = place(tx);
        let page = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_WORDS]));
        self.count += u64::from(page[word] & bit == 0);
        page[word] |= bit;
    }

    /// Whether it was among them; it is not any more.
    fn remove(&mut self, tx: TxId) -> bool {
        let (page, word, bit) = place(tx);
        let Some(page) = self.pages.get_mut(&page).filter(|page| page[word] & bit != 0) else {
            return false;
        };
        page[word] &= !bit;
        self.count -= 1;
        true
    }
}

/// Whether nothing can be concluded from the order of a ledger that fixes it from a stage on.
fn is_unordered(ordered_from: Option<usize>, ends: FinalStages) -> bool {
    ordered_from.is_none_or(|stage| ends.load.min(ends.probe) < stage)
}

/// Page, word in it, bit in that.
fn place(tx: TxId) -> (TxId, usize, u64) {
    let word = usize::try_from(tx >> 6 & 0x3ff).expect("ten bits");
    (tx >> 16, word, 1 << (tx & 63))
}

/// Reads it and keeps every entry; `missing` are the transactions that were acknowledged.
pub(super) fn read(
    trial: &Trial<'_>,
    folder: &TrialFolder,
    deployment: &Deployment,
    of: &DeclaredFacts,
    mut missing: Acknowledged,
) -> LedgerFacts {
    if !trial.setting.measure.ledger {
        let detail = "the experiment does not ask for it".to_owned();
        return LedgerFacts { detail, ..LedgerFacts::default() };
    }
    let reading = Reading { trial, folder, deployment, keeps_content: reads_content(trial, of) };
    let first = reading.once(|tx| {
        missing.remove(tx);
    });
    let settle = trial.setting.measure.settle;
    if !first.read || missing.count == 0 || settle.is_zero() || !reading.wait(settle, &missing) {
        return first;
    }
    let after_ns = u64::try_from(settle.as_nanos()).unwrap_or(u64::MAX);
    let mut second = SecondReading { after_ns, ..SecondReading::default() };
    let again = reading.once(|tx| {
        if missing.remove(tx) {
            second.early += 1;
            if second.early_examples.len() < EARLY_EXAMPLES_MAX {
                second.early_examples.push(tx);
            }
        }
    });
    if again.was_cut {
        // It says nothing of what the first reading lacked, whose file is overwritten.
        return again;
    }
    LedgerFacts { second: Some(second), ..again }
}

/// The inputs of one reading.
struct Reading<'a> {
    trial: &'a Trial<'a>,
    folder: &'a TrialFolder,
    deployment: &'a Deployment,
    /// Whether a check asks for what entries hold.
    keeps_content: bool,
}

/// Why a reading did not come to its end.
enum Failure {
    Of(SutError),
    /// The record's.
    Own(String),
    /// The run was told to stop.
    Cut(String),
}

impl Reading<'_> {
    /// Reads all of it, in place of what was kept before, and passes on each transaction that stands there and was not
    /// refused.
    fn once(&self, seen: impl FnMut(TxId)) -> LedgerFacts {
        let mut facts = LedgerFacts::default();
        let (fault, why) = match self.entries(&mut facts, seen) {
            Ok(()) => return facts,
            Err(Failure::Of(error @ SutError::Refused(_))) => {
                (LedgerFault::Refused, error.to_string())
            }
            Err(Failure::Of(error)) => (LedgerFault::Unreadable, error.to_string()),
            Err(Failure::Own(why)) => (LedgerFault::Unreadable, why),
            Err(Failure::Cut(why)) => {
                facts.was_cut = true;
                (LedgerFault::Unreadable, why)
            }
        };
        LedgerFacts { fault: Some(fault), detail: why, read: false, ..facts }
    }

    fn entries(&self, facts: &mut LedgerFacts, mut seen: impl FnMut(TxId)) -> Result<(), Failure> {
        let own = |error: record::RecordError| Failure::Own(error.to_string());
        let ledger = self.trial.system.ledger(self.deployment).map_err(Failure::Of)?;
        let Some(mut ledger) = ledger else {
            facts.detail = "the system keeps nothing that can be read".to_owned();
            return Ok(());
        };
        facts.detail = ledger.way();
        let ends = self.trial.setting.final_stages(&self.trial.system.stages());
        facts.is_unordered = is_unordered(ledger.ordered_from(), ends);
        let mut writer = self.folder.ledger_writer().map_err(own)?;
        let (clock, interrupt) = (self.deployment.clock, self.trial.interrupt);
        let mut stopped_at = None;
        let is_over = || {
            interrupt.is_set() && {
                let now = clock.now();
                now.saturating_since(*stopped_at.get_or_insert(now)) >= STOPPED_READ_MAX
            }
        };
        each(&mut *ledger, is_over, |entry, content| {
            let is_kept = self.keeps_content && content.len() <= LEDGER_CONTENT_BYTES_MAX;
            writer.push(entry, is_kept.then_some(content)).map_err(own)?;
            facts.contents_left_out += u64::from(self.keeps_content && !is_kept);
            facts.entries += u64::from(!entry.is_waiting);
            if entry.ours && !entry.is_waiting && !entry.is_refused {
                seen(entry.tx);
            }
            Ok(())
        })?;
        writer.close().map_err(own)?;
        facts.read = true;
        Ok(())
    }

    /// Waits for the second reading; `false`: the run is to stop.
    fn wait(&self, settle: Duration, missing: &Acknowledged) -> bool {
        let again = match missing.count {
            1 => "1 acknowledged transaction is".to_owned(),
            count => format!("{} acknowledged transactions are", show_count(count)),
        };
        let settle_words = show_duration(settle);
        say!("assay: {again} not in the ledger; it is read again in {settle_words}");
        let clock = self.deployment.clock;
        let until = clock.now().plus(settle);
        while clock.now() < until {
            if self.trial.interrupt.is_set() {
                return false;
            }
            clock.sleep_until(clock.now().plus(LOOK_EVERY).min(until));
        }
        true
    }
}

/// Takes each entry with what it holds, until the last or until the reading is over.
fn each(
    ledger: &mut dyn Ledger,
    mut is_over: impl FnMut() -> bool,
    mut take: impl FnMut(LedgerEntry, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut content, mut count) = (Vec::new(), 0);
    while let Some(entry) = ledger.next(&mut content).map_err(Failure::Of)? {
        if is_over() {
            let count = show_count(count);
            return Err(Failure::Cut(format!(
                "the run was stopped when {count} entries were read"
            )));
        }
        take(entry, &content)?;
        content.clear();
        count += 1;
    }
    Ok(())
}

/// Whether a check that has something to say of this trial reads what entries hold.
fn reads_content(trial: &Trial<'_>, facts: &DeclaredFacts) -> bool {
    let input = CheckInput {
        seed: trial.seed,
        deploy: &trial.setting.system.deploy,
        workload: &trial.setting.system.workload,
        kinds: &facts.kinds,
        stages: &facts.stages,
        final_stages: facts.final_stages(),
        states: &[],
    };
    let checks = systems::checks(&trial.setting.system.kind).iter();
    let mut asking = checks.filter(|check| check.reads.entries == Entries::WithContent);
    asking.any(|check| (check.applies)(&input))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a ledger's order is judged by acknowledgements of the stage that fixes it, or a later one.
    #[test]
    fn order_is_of_a_stage() {
        let both = |load, probe| FinalStages { load, probe };
        assert!(!is_unordered(Some(0), both(0, 0)) && !is_unordered(Some(1), both(1, 2)));
        assert!(is_unordered(Some(1), both(0, 0)) && is_unordered(Some(1), both(0, 1)));
        assert!(is_unordered(None, both(1, 1)));
    }

    /// Claim: a ledger without an end is left when its reading is over, and the error says how far that came.
    #[test]
    fn a_reading_that_is_stopped() {
        struct Endless;
        impl Ledger for Endless {
            fn next(&mut self, _: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
                Ok(Some(LedgerEntry::new(0, 0, true)))
            }

            fn way(&self) -> String {
                String::new()
            }
        }
        let (mut looks, mut taken) = (0, 0);
        let is_over = || {
            looks += 1;
            looks > 3
        };
        let ended = each(&mut Endless, is_over, |_, _| {
            taken += 1;
            Ok(())
        });
        let Err(Failure::Cut(why)) = ended else { panic!("it came to an end") };
        assert!(why.contains("stopped when 3 entries"), "{why}");
        assert_eq!(taken, 3);
    }

    /// Claim: each acknowledged transaction is owed once, wherever its number lies, until an entry shows it; what the
    /// ledger does not record and what was not acknowledged is not owed.
    #[test]
    fn what_is_owed() {
        let of = DeclaredFacts {
            kinds: vec![sut::Kind::recorded("put"), sut::Kind::read("get")],
            ..DeclaredFacts::default()
        };
        let row = |tx, kind, outcome| Row { tx, kind, outcome, ..Row::EMPTY };
        let probe = model::PROBE_BASE;
        let mut owed = Acknowledged::default();
        owed.rows(
            &[
                row(0, 0, Outcome::Committed),
                row(65_536, 0, Outcome::Committed),
                row(probe, 0, Outcome::Committed),
                row(0, 0, Outcome::Committed),
                row(7, 1, Outcome::Committed),
                row(8, 0, Outcome::Unknown),
            ],
            &of,
        );
        assert_eq!(owed.count, 3);
        assert!(owed.remove(0) && !owed.remove(0) && !owed.remove(7) && !owed.remove(u64::MAX));
        assert!(owed.remove(probe) && owed.remove(65_536));
        assert_eq!(owed.count, 0);
    }
}
