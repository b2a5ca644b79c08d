//! Fates of all transactions by the ledger.
//!
//! It must never soften a fate: a transaction that was acknowledged and is not there is lost, whatever the rates.

use model::quantity::show_count;
use model::result::Fates;

use super::Shown;
use crate::grid::{Cell, Grid};
use crate::paint::Paint;

/// The most example ids that are shown for a fate.
const EXAMPLES_MAX: usize = 6;

/// One line of the ledger section.
pub(crate) struct FateLine {
    /// The word.
    pub(crate) word: &'static str,
    /// How many.
    pub(crate) count: u64,
    /// Its meaning.
    pub(crate) meaning: &'static str,
    /// Ids, printed; empty if there are none.
    pub(crate) examples: String,
    /// Whether it is a broken promise of the system.
    pub(crate) is_broken: bool,
}

/// All fates in the order of the glossary; those that say nothing bad and did not occur are left out.
pub(crate) fn fate_lines(fates: &Fates) -> Vec<FateLine> {
    let line = |word, key: &str, count, meaning, is_bad: bool| FateLine {
        word,
        count,
        meaning,
        examples: examples(fates, key, count),
        is_broken: is_bad && count > 0,
    };
    let all = [
        line("once", "once", fates.once, "acknowledged, and in the ledger once", false),
        line(
            "early",
            "acknowledged_early",
            fates.acknowledged_early,
            "acknowledged before they were in the ledger: only its second reading has them",
            false,
        ),
        line("lost", "lost", fates.lost, lost_meaning(fates), true),
        line("duplicate", "duplicate", fates.duplicate, "in the ledger more than once", true),
        line("phantom", "phantom", fates.phantom, phantom_meaning(fates), true),
        line("late", "late", fates.late, "no answer in time, in the ledger all the same", false),
        line(
            "refused",
            "refused_yet_present",
            fates.refused_yet_present,
            "refused, and in the ledger all the same",
            true,
        ),
        line(
            "logged",
            "refused_as_logged",
            fates.refused_as_logged,
            "refused, and logged as such: it had no effect",
            false,
        ),
        line(
            "reordered",
            "reordered",
            fates.reordered,
            "placed before what was acknowledged before it was sent",
            true,
        ),
    ];
    let is_shown = |fate: &FateLine| {
        fate.count > 0 || ["once", "lost", "duplicate", "phantom"].contains(&fate.word)
    };
    all.into_iter().filter(is_shown).collect()
}

/// The meaning of *lost*. Those that the ledger holds as refused are as lost as those that it does not hold.
fn lost_meaning(fates: &Fates) -> &'static str {
    match fates.lost_as_refused {
        0 => "acknowledged, and not in the ledger",
        some if some == fates.lost => "acknowledged, and in the ledger only as refused",
        _ => "acknowledged, and not in the ledger or there only as refused",
    }
}

fn phantom_meaning(fates: &Fates) -> &'static str {
    match fates.phantom_unrecorded {
        0 => "in the ledger, never submitted",
        some if some == fates.phantom => "in the ledger, of a kind that it does not record",
        _ => "in the ledger, never submitted or of a kind that it does not record",
    }
}

fn examples(fates: &Fates, key: &str, count: u64) -> String {
    let Some(ids) = fates.examples.get(key).filter(|ids| !ids.is_empty()) else {
        return String::new();
    };
    let shown: Vec<String> = ids.iter().take(EXAMPLES_MAX).map(u64::to_string).collect();
    let more = count > u64::try_from(shown.len()).unwrap_or(u64::MAX);
    format!("tx {}{}", shown.join(", "), if more { ", …" } else { "" })
}

/// Counts by fate, one row a trial.
pub(crate) fn fates_of_several(shown: &[Shown<'_>]) -> Grid {
    let mut grid = Grid::new().pin("setting").number(1, "entries");
    for head in ["once", "lost", "duplicate", "phantom", "late", "refused", "reordered"] {
        grid = grid.number(1, head);
    }
    for row in shown {
        let Some(fates) = &row.trial.fates else { continue };
        let count = |key: &str, count: u64, is_bad: bool| {
            let paint = match count {
                0 => Paint::Dim,
                _ if is_bad => Paint::Bad,
                _ => Paint::Plain,
            };
            Cell::painted(show_count(count), paint).at(row.at(&format!("fates/{key}")))
        };
        grid.row(vec![
            Cell::new(row.label.as_str()),
            count("entries", fates.entries, false),
            count("once", fates.once, false),
            count("lost", fates.lost, true),
            count("duplicate", fates.duplicate, true),
            count("phantom", fates.phantom, true),
            count("late", fates.late, false),
            count("refused_yet_present", fates.refused_yet_present, true),
            count("reordered", fates.reordered, true),
        ]);
    }
    grid
}
