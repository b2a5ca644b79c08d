//! Counts and latencies by kind, by code and by error text.

use std::collections::BTreeMap;

use model::facts::KindFacts;
use model::result::{ErrorResult, GroupResult, TrialResult};
use model::{Outcome, Row, Stamp};
use stats::SparseHistogram;
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::latency::is_answer;
use crate::figures::part::Part;
use crate::figures::tally::Tally;
use crate::figures::told;

/// Kinds beyond this many share one group. A file that names more is not one that a person will read by kind.
const KINDS_MAX: usize = 100_000;

/// Response times of a group that wait to be counted together.
const WAITING_MAX: usize = 64;

/// One group.
#[derive(Clone, Debug, Default)]
struct Group {
    tally: Tally,
    response: SparseHistogram,
    /// Times that are not in `response` yet: several at once cost less.
    waiting: Vec<i64>,
}

impl Group {
    #[inline]
    fn row(&mut self, row: &Row) {
        self.tally.row(row);
        if is_answer(row.outcome) {
            if self.waiting.len() == WAITING_MAX {
                self.response.record_all(&self.waiting);
                self.waiting.clear();
            }
            self.waiting.push(row.end - row.due);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.tally.merge(&other.tally);
        self.response.merge(&other.response);
        self.response.record_all(&other.waiting);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.response.record_all(&std::mem::take(&mut self.waiting));
        self.tally.carry(it);
        self.response.carry(it);
    }

    fn response(&self) -> SparseHistogram {
        let mut all = self.response.clone();
        all.record_all(&self.waiting);
        all
    }

    fn result(&self, name: String) -> GroupResult {
        let response = self.response();
        GroupResult {
            name,
            counts: self.tally.counts(),
            p50_ns: response.quantile(0.5),
            p99_ns: response.quantile(0.99),
            max_ns: response.moments().max(),
        }
    }
}

/// A kind: nearly all of one have the same code, so that those count once, for the kind and for the code.
#[derive(Clone, Debug)]
struct Kind {
    code: u16,
    /// With this code.
    main: Group,
    /// With any other.
    other: Option<Box<Group>>,
}

impl Kind {
    fn of_code(code: u16) -> Box<Self> {
        Box::new(Self { code, main: Group::default(), other: None })
    }

    fn all(&self) -> Group {
        let mut all = self.main.clone();
        if let Some(other) = &self.other {
            all.merge(other);
        }
        all
    }
}

/// How often an error text came.
#[derive(Clone, Debug)]
struct ErrorTally {
    count: u64,
    outcome: Outcome,
    first: Stamp,
    last: Stamp,
    example: u64,
}

impl ErrorTally {
    /// Keeps the example that is before the other.
    fn consider(&mut self, (first, example): (Stamp, u64), outcome: Outcome) {
        // Rows come in the order of the record, which workers share: the earliest is looked for, not taken.
        if (first, example) < (self.first, self.example) {
            (self.first, self.example, self.outcome) = (first, example, outcome);
        }
    }

    /// The tallies of a list, by their places.
    fn carry(all: &mut [Option<Self>], it: &mut Carry<'_>) {
        let mine = all.iter().enumerate().filter(|(_, tally)| tally.is_some());
        for at in it.places(mine.map(|(at, _)| at), all.len()) {
            let none = Self { count: 0, outcome: Outcome::Shed, first: 0, last: 0, example: 0 };
            let mine = all[at].as_ref().unwrap_or(&none);
            let theirs = Self {
                count: it.told(mine.count),
                outcome: told::outcome(it, mine.outcome),
                first: it.told(mine.first),
                last: it.told(mine.last),
                example: it.told(mine.example),
            };
            it.adding(|| match &mut all[at] {
                None => all[at] = Some(theirs),
                Some(mine) => {
                    mine.count = mine.count.saturating_add(theirs.count);
                    mine.last = mine.last.max(theirs.last);
                    mine.consider((theirs.first, theirs.example), theirs.outcome);
                }
            });
        }
    }
}

/// Groups of the measured stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    kinds: Vec<Option<Box<Kind>>>,
    other_kinds: Group,
    /// Of the rows whose code is not the main one of their kind.
    codes: Vec<Option<Box<Group>>>,
    /// By error index.
    errors: Vec<Option<ErrorTally>>,
    /// Failures without a text, by outcome code.
    wordless: [Option<ErrorTally>; 18],
}

impl Part for Groups {
    fn of_trial(_: &Known<'_>) -> Self {
        Self::default()
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        let mine = self.kinds.iter().enumerate().filter(|(_, kind)| kind.is_some());
        for place in it.places(mine.map(|(place, _)| place), KINDS_MAX) {
            self.carry_kind(place, it);
        }
        self.other_kinds.carry(it);
        let mine = self.codes.iter().enumerate().filter(|(_, group)| group.is_some());
        for code in it.places(mine.map(|(code, _)| code), usize::from(u16::MAX) + 1) {
            at(&mut self.codes, code, Box::default).carry(it);
        }
        let count = it.length(self.errors.len(), usize::from(u16::MAX) + 1);
        if count > self.errors.len() {
            self.errors.resize(count, None);
        }
        ErrorTally::carry(&mut self.errors, it);
        ErrorTally::carry(&mut self.wordless, it);
    }

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        result.kinds = self.kinds(&trial.facts.declared.kinds);
        result.codes = self.codes();
        result.errors = self.errors(&trial.facts.load.errors);
    }
}

impl Groups {
    #[inline]
    pub fn row(&mut self, row: &Row) {
        match usize::try_from(row.kind) {
            Ok(kind) if kind < KINDS_MAX => {
                let kind = at(&mut self.kinds, kind, || Kind::of_code(row.code));
                if kind.code == row.code {
                    kind.main.row(row);
                } else {
                    kind.other.get_or_insert_default().row(row);
                    self.code(row);
                }
            }
            _ => {
                self.other_kinds.row(row);
                self.code(row);
            }
        }
        if row.outcome != Outcome::Committed || row.error != 0 {
            self.error(row);
        }
    }

    /// Where the other took another code for the main one of a kind, its rows are of any other code here.
    fn carry_kind(&mut self, place: usize, it: &mut Carry<'_>) {
        let code =
            it.told(self.kinds.get(place).and_then(Option::as_ref).map_or(0, |kind| kind.code));
        let kind = at(&mut self.kinds, place, || Kind::of_code(code));
        if kind.code == code {
            kind.main.carry(it);
        } else {
            let mut theirs = Group::default();
            theirs.carry(it);
            kind.other.get_or_insert_default().merge(&theirs);
            at(&mut self.codes, usize::from(code), Box::default).merge(&theirs);
        }
        if it.told(u8::from(kind.other.is_some())) != 0 {
            kind.other.get_or_insert_default().carry(it);
        }
    }

    fn code(&mut self, row: &Row) {
        at(&mut self.codes, usize::from(row.code), Box::default).row(row);
    }

    fn error(&mut self, row: &Row) {
        let slot = if row.error == 0 {
            &mut self.wordless[usize::from(row.outcome.code())]
        } else {
            let index = usize::from(row.error);
            if index >= self.errors.len() {
                self.errors.resize(index + 1, None);
            }
            &mut self.errors[index]
        };
        let tally = slot.get_or_insert(ErrorTally {
            count: 0,
            outcome: row.outcome,
            first: row.end,
            last: row.end,
            example: row.tx,
        });
        tally.count += 1;
        tally.last = tally.last.max(row.end);
        tally.consider((row.end, row.tx), row.outcome);
    }

    /// By kind, in the order of the trial's list of kinds; kinds that never came are left out.
    pub fn kinds(&self, known: &[KindFacts]) -> Vec<GroupResult> {
        let mut results: Vec<_> = self
            .kinds
            .iter()
            .enumerate()
            .filter_map(|(index, group)| group.as_ref().map(|group| (index, group)))
            .map(|(index, group)| {
                let name = known.get(index).map(|kind| kind.name.clone());
                let name = name.unwrap_or_else(|| format!("kind {index}"));
                group.all().result(name)
            })
            .collect();
        if self.other_kinds.tally.due() > 0 {
            results.push(self.other_kinds.result(format!("kinds beyond {KINDS_MAX}")));
        }
        results
    }

    /// By the system's own code, ascending.
    pub fn codes(&self) -> Vec<GroupResult> {
        let mut codes: BTreeMap<usize, Group> = BTreeMap::new();
        for (code, group) in self.codes.iter().enumerate() {
            if let Some(group) = group {
                codes.entry(code).or_default().merge(group);
            }
        }
        for kind in self.kinds.iter().flatten() {
            codes.entry(usize::from(kind.code)).or_default().merge(&kind.main);
        }
        codes.into_iter().map(|(code, group)| group.result(code.to_string())).collect()
    }

    /// By error text, most frequent first.
    pub fn errors(&self, texts: &[String]) -> Vec<ErrorResult> {
        let worded = self.errors.iter().enumerate().filter_map(|(index, tally)| {
            tally.as_ref().map(|tally| error_result(error_text(texts, index), tally))
        });
        let wordless = self
            .wordless
            .iter()
            .flatten()
            .map(|tally| error_result(format!("no text ({})", tally.outcome), tally));
        let mut results: Vec<_> = worded.chain(wordless).collect();
        results.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
        results
    }
}

/// The entry at an index, made where there was none.
#[inline]
fn at<T>(all: &mut Vec<Option<Box<T>>>, index: usize, new: impl FnOnce() -> Box<T>) -> &mut T {
    if index >= all.len() {
        all.resize_with(index + 1, || None);
    }
    all[index].get_or_insert_with(new)
}

fn error_result(text: String, tally: &ErrorTally) -> ErrorResult {
    let class = match tally.outcome {
        Outcome::Committed => "committed",
        Outcome::Rejected(class) => class.word(),
        Outcome::Unknown => "unknown",
        Outcome::Shed => "shed",
    };
    ErrorResult {
        text,
        class: class.to_owned(),
        count: tally.count,
        first_ns: tally.first,
        last_ns: tally.last,
        example_tx: tally.example,
    }
}

/// The text of an error index, or a name for one that the trial's table lacks.
pub(crate) fn error_text(texts: &[String], index: usize) -> String {
    texts.get(index).cloned().unwrap_or_else(|| format!("error {index}, whose text is missing"))
}

#[cfg(test)]
mod tests {
    use model::Class;

    use super::*;
    use crate::testing::row;

    /// Claim: whatever codes the rows of a kind have, each kind and each code counts all of its own rows once, with
    /// their outcomes and times, whichever code came first.
    #[test]
    fn kinds_and_codes_count_each_row_once() {
        let rows: Vec<Row> = (0..3_000_u64)
            .map(|tx| {
                let failed = tx % 7 == 0;
                let outcome =
                    if failed { Outcome::Rejected(Class::Limited) } else { Outcome::Committed };
                let time = i64::try_from(tx % 500 + 1).unwrap() * 1_000_000;
                let kind = if tx % 11 == 0 { u32::MAX } else { u32::try_from(tx % 3).unwrap() };
                Row { kind, code: if failed { 429 } else { 200 }, ..row(tx, 0, time, outcome) }
            })
            .collect();
        let mut groups = Groups::default();
        rows.iter().for_each(|row| groups.row(row));
        let check = |found: &GroupResult, is_of: &dyn Fn(&Row) -> bool| {
            let of: Vec<&Row> = rows.iter().filter(|row| is_of(row)).collect();
            let committed = of.iter().filter(|row| row.outcome == Outcome::Committed).count();
            let slowest = of.iter().map(|row| row.end - row.due).max();
            let mut times: Vec<i64> = of.iter().map(|row| row.end - row.due).collect();
            times.sort_unstable();
            let median = times[times.len().div_ceil(2) - 1] as f64;
            assert_eq!(found.counts.due, of.len() as u64, "{}", found.name);
            assert_eq!(found.counts.committed, committed as u64, "{}", found.name);
            assert_eq!(found.max_ns, slowest, "{}", found.name);
            let error = found.p50_ns.unwrap() as f64 / median - 1.0;
            assert!(error.abs() < 0.008, "{}: {error}", found.name);
        };
        let codes = groups.codes();
        let names: Vec<&str> = codes.iter().map(|code| code.name.as_str()).collect();
        assert_eq!(names, ["200", "429"]);
        check(&codes[0], &|row| row.code == 200);
        check(&codes[1], &|row| row.code == 429);
        let kinds = groups.kinds(&[]);
        assert_eq!(kinds.len(), 4);
        for (kind, found) in kinds[..3].iter().enumerate() {
            check(found, &|row| row.kind as usize == kind);
        }
        check(&kinds[3], &|row| row.kind == u32::MAX);
    }
}
