//! Counts and latencies by kind, by code and by error text.

use model::facts::KindFacts;
use model::result::{ErrorResult, GroupResult};
use model::{Outcome, Row, Stamp};
use stats::SparseHistogram;

use crate::latency::is_answer;
use crate::tally::Tally;

/// Kinds beyond this many share one group. A file that names more is not one that a person will read by kind.
const KINDS_MAX: usize = 100_000;

/// One group.
#[derive(Debug, Default)]
struct Group {
    tally: Tally,
    response: SparseHistogram,
}

impl Group {
    #[inline]
    fn row(&mut self, row: &Row) {
        self.tally.row(row);
        if is_answer(row.outcome) {
            self.response.record(row.end - row.due);
        }
    }

    fn result(&self, name: String) -> GroupResult {
        GroupResult {
            name,
            counts: self.tally.counts(),
            p50_ns: self.response.quantile(0.5),
            p99_ns: self.response.quantile(0.99),
            max_ns: self.response.moments().max(),
        }
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

/// Groups of the measured stream.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    kinds: Vec<Option<Box<Group>>>,
    other_kinds: Group,
    codes: Vec<Option<Box<Group>>>,
    /// By error index.
    errors: Vec<Option<ErrorTally>>,
    /// Failures without a text, by outcome code.
    wordless: [Option<ErrorTally>; 18],
}

impl Groups {
    #[inline]
    pub fn row(&mut self, row: &Row) {
        match usize::try_from(row.kind) {
            Ok(kind) if kind < KINDS_MAX => group_at(&mut self.kinds, kind).row(row),
            _ => self.other_kinds.row(row),
        }
        group_at(&mut self.codes, usize::from(row.code)).row(row);
        if row.outcome != Outcome::Committed || row.error != 0 {
            self.error(row);
        }
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
        // Rows come in the order of the record, which workers share: the earliest is looked for, not taken.
        if row.end < tally.first || (row.end == tally.first && row.tx < tally.example) {
            tally.first = row.end;
            tally.example = row.tx;
            tally.outcome = row.outcome;
        }
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
                group.result(name)
            })
            .collect();
        if self.other_kinds.tally.due() > 0 {
            results.push(self.other_kinds.result(format!("kinds beyond {KINDS_MAX}")));
        }
        results
    }

    /// By the system's own code, ascending.
    pub fn codes(&self) -> Vec<GroupResult> {
        let groups = self.codes.iter().enumerate();
        groups.filter_map(|(code, group)| Some(group.as_ref()?.result(code.to_string()))).collect()
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

#[inline]
fn group_at(groups: &mut Vec<Option<Box<Group>>>, index: usize) -> &mut Group {
    if index >= groups.len() {
        groups.resize_with(index + 1, || None);
    }
    groups[index].get_or_insert_default()
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
