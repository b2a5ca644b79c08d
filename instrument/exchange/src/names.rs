//! What rows refer to by number: stages, kinds, error texts. Bounded, because a file may name any number of
//! them: what is beyond the bound is counted under one name.

use std::collections::HashMap;

use clock::WallTime;
use model::facts::{DeclaredFacts, KindFacts, LoadFacts, TrialFacts};
use model::{FinalStages, Row, STAGES_MAX, Stamp};

/// The most kinds that are told apart; a file of a million different URLs would otherwise be kept in memory.
const KINDS_MAX: usize = 16_384;
/// The most error texts that are told apart; rows have 16 bits for them.
const ERRORS_MAX: usize = 4096;
/// Longer names are truncated.
const NAME_BYTES_MAX: usize = 1024;

/// Names and facts of the rows of one trial.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Wall time of stamp 0, nanoseconds after the Unix epoch; 0: the input does not say.
    pub started_unix_ns: i64,
    /// The stages, in order.
    pub stages: Vec<String>,
    /// Which of them counts as committed, by stream.
    pub final_stages: FinalStages,
    /// Due times of the measured window, where the input has them.
    pub window: Option<(Stamp, Stamp)>,
    pub(crate) kinds: Table,
    pub(crate) errors: Table,
}

impl Names {
    /// No names yet, room for them.
    pub(crate) fn empty() -> Self {
        let mut errors = Table::new(ERRORS_MAX, "other errors");
        errors.names.push(String::new());
        Self { kinds: Table::new(KINDS_MAX, "other kinds"), errors, ..Self::default() }
    }

    /// As a trial has them.
    pub(crate) fn of_facts(facts: &TrialFacts) -> Self {
        let has_window = facts.measure_end() > facts.measure_start();
        Self {
            started_unix_ns: facts.load.started.unix_ns(),
            stages: facts.declared.stages.iter().take(STAGES_MAX).cloned().collect(),
            final_stages: facts.declared.final_stages(),
            window: has_window.then_some((facts.measure_start(), facts.measure_end())),
            kinds: Table::of(&KindFacts::names(&facts.declared.kinds)),
            errors: Table::of(&facts.load.errors),
        }
    }

    /// Takes names of stages; the final one is `committed`, or the last if none is called so.
    pub(crate) fn set_stages(&mut self, stages: Vec<String>) {
        let committed = stages.iter().position(|name| name == "committed");
        let last = committed.unwrap_or(stages.len().saturating_sub(1));
        self.final_stages = FinalStages::all(last);
        self.stages = stages;
    }

    /// Rows that were due outside the measured window, where the input says what it is.
    pub(crate) fn outside(&self, rows: &[Row]) -> u64 {
        let Some((start, end)) = self.window else { return 0 };
        rows.iter().filter(|row| row.due < start || row.due >= end).count() as u64
    }

    /// What was changed of the names, in sentences.
    pub(crate) fn losses(&self) -> Vec<String> {
        let tables = [(&self.kinds, "kinds", KINDS_MAX), (&self.errors, "error texts", ERRORS_MAX)];
        let mut lines = Vec::new();
        for (table, word, max) in tables {
            if table.has_cut {
                lines.push(format!("{word} longer than {NAME_BYTES_MAX} bytes were cut"));
            }
            if table.has_beyond {
                let beyond = table.beyond;
                lines.push(format!(
                    "there are more than {max} different {word}; the rest of them are called `{beyond}`"
                ));
            }
        }
        lines
    }

    /// The name of a stream's final stage.
    #[must_use]
    pub fn final_stage_name(&self, stream: u8) -> &str {
        self.stages.get(self.final_stages.of(stream)).map_or("the final stage", String::as_str)
    }

    /// The name of a kind.
    #[must_use]
    pub fn kind(&self, index: u32) -> &str {
        self.kinds.name(index)
    }

    /// An error text; empty for none.
    #[must_use]
    pub fn error(&self, index: u16) -> &str {
        self.errors.name(u32::from(index))
    }

    /// As trial.json has them, for sealing.
    pub(crate) fn facts(&self) -> TrialFacts {
        TrialFacts {
            declared: DeclaredFacts {
                stages: self.stages.clone(),
                final_stage: self.final_stages.load,
                probe_final_stage: self.final_stages.differ().then_some(self.final_stages.probe),
                // A file of rows does not say what a ledger would record; nothing that is converted has one.
                kinds: self.kinds.names.iter().map(KindFacts::recorded).collect(),
                ..DeclaredFacts::default()
            },
            load: LoadFacts {
                started: WallTime::from_unix_ns(self.started_unix_ns),
                errors: self.errors.names.clone(),
                ..LoadFacts::default()
            },
            ..TrialFacts::default()
        }
    }
}

/// Names by number, and numbers by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    /// Looked up, never walked.
    numbers: HashMap<String, u32>,
    max: usize,
    beyond: &'static str,
    /// Names were cut; names found no place.
    has_cut: bool,
    has_beyond: bool,
}

impl Table {
    fn new(max: usize, beyond: &'static str) -> Self {
        Self { max, beyond, ..Self::default() }
    }

    pub(crate) fn of(names: &[String]) -> Self {
        Self { names: names.to_vec(), ..Self::default() }
    }

    fn name(&self, index: u32) -> &str {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.names.get(index))
            .map_or("", String::as_str)
    }

    /// The number of a name, given to it now if it has none.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        self.has_cut |= name.len() > NAME_BYTES_MAX;
        let name = cut(name);
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // The last place is kept for everything that finds no other.
        let is_beyond = self.names.len() + 1 >= self.max;
        self.has_beyond |= is_beyond;
        let name = if is_beyond { self.beyond } else { name };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).expect("bounded by `max`");
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a name keeps its number, and more names than the bound share the last one.
    #[test]
    fn names_are_bounded() {
        let mut names = Names::empty();
        assert_eq!(
            (names.errors.number("a"), names.errors.number("b"), names.errors.number("a")),
            (1, 2, 1)
        );
        for index in 0..ERRORS_MAX * 2 {
            names.errors.number(&format!("error {index}"));
        }
        assert_eq!(names.errors.names.len(), ERRORS_MAX);
        let last = names.errors.number("one more");
        assert_eq!((last as usize, names.error(last as u16)), (ERRORS_MAX - 1, "other errors"));
        let beyond = "there are more than 4096 different error texts; the rest of them are called `other errors`";
        assert_eq!(names.losses(), [beyond]);
        assert_eq!(names.kinds.number(&"ü".repeat(2000)), 0);
        assert_eq!(names.losses()[0], "kinds longer than 1024 bytes were cut");
        assert_eq!(names.kind(0).len(), NAME_BYTES_MAX);
    }
}
