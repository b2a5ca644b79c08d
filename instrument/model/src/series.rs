//! The declaration of a series of samples: its words, its unit, whether that of several nodes adds up, whether it is progress.
//!
//! Who samples or serves a series declares this; it is kept with the trial, and everything else reads it. Nobody may
//! look into a name: an undeclared series is shown as such, and nothing is made of it.

use serde::{Deserialize, Serialize};

/// The instrument's own use of the processor: the first question of a reader.
pub const OWN_PROCESSOR: (&str, &str) = ("generator", "cpu_cores");

/// A series, as it is declared. All sources that have it mean the same by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesFacts {
    /// As in the record, in thresholds and in tables: lower case, digits and `_`.
    pub name: String,
    /// In words, for titles.
    pub label: String,
    /// The unit of its values.
    pub unit: SeriesUnit,
    /// Whether those of several nodes together are something.
    pub aggregate: Aggregate,
    /// Whether it is progress.
    pub role: SeriesRole,
    /// Who says it.
    pub said_by: SaidBy,
    /// Whether every reader looks at it; others are folded, and go first where there is no room.
    pub is_foremost: bool,
}

/// The relation of several nodes' values at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// Each has its own, and the sum is what all have: queues, memory, processors.
    Sum,
    /// Each says the same thing, or of another thing: a sum would be nothing.
    Each,
}

/// The role of a series for the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum SeriesRole {
    /// Nothing more than its values.
    Plain,
    /// How far a node has come in what all of them go through: it never goes back, the highest leads, and who is far
    /// behind catches up.
    Progress {
        /// The things counted, in words: `blocks`.
        unit: String,
        /// At most so far behind the highest a node is with the others: they are not asked at one instant.
        with_max: u32,
        /// At most so far behind it is near them.
        near_max: u32,
    },
    /// How much of that a node gets through each second; a node that catches up says more than the others.
    Throughput {
        /// The things counted, in words: `committed transactions`.
        unit: String,
    },
}

/// Who says a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaidBy {
    /// The host, of itself or of a process.
    Host,
    /// A node of itself.
    Node,
    /// Nobody: it is made of what nodes say.
    Analysis,
    /// It is not declared.
    Undeclared,
}

/// The unit of values. In files it is its word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum SeriesUnit {
    /// A number of nothing in particular.
    Number,
    /// A number of these: `blocks`, `cores`, `MHz`.
    Of(String),
    /// A fraction of one.
    Share,
    /// Bytes.
    Bytes,
    /// Bytes each second.
    BytesPerSecond,
    /// Nanoseconds.
    Ns,
    /// Each second, what the label says.
    PerSecond,
    /// Each minute, what the label says.
    PerMinute,
}

/// Units that have a word of their own, in files.
const UNITS: [(&str, SeriesUnit); 7] = [
    ("", SeriesUnit::Number),
    ("share", SeriesUnit::Share),
    ("bytes", SeriesUnit::Bytes),
    ("bytes/s", SeriesUnit::BytesPerSecond),
    ("ns", SeriesUnit::Ns),
    ("/s", SeriesUnit::PerSecond),
    ("/min", SeriesUnit::PerMinute),
];

impl From<String> for SeriesUnit {
    fn from(word: String) -> Self {
        let known = UNITS.into_iter().find(|(known, _)| *known == word);
        known.map_or(Self::Of(word), |(_, unit)| unit)
    }
}

impl From<SeriesUnit> for String {
    fn from(unit: SeriesUnit) -> Self {
        match &unit {
            SeriesUnit::Of(what) => what.clone(),
            unit => {
                let known = UNITS.iter().find(|(_, known)| known == unit);
                known.map_or("", |(word, _)| word).to_owned()
            }
        }
    }
}

impl SeriesUnit {
    /// A number of `what`.
    #[must_use]
    pub fn of(what: &str) -> Self {
        Self::Of(what.to_owned())
    }
}

impl SeriesFacts {
    /// A series that nodes serve of themselves: of each alone, plain, and for those who look for it.
    #[must_use]
    pub fn of_node(name: &str, label: &str, unit: SeriesUnit) -> Self {
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            unit,
            aggregate: Aggregate::Each,
            role: SeriesRole::Plain,
            said_by: SaidBy::Node,
            is_foremost: false,
        }
    }

    /// One that the host says of itself or of a process.
    #[must_use]
    pub fn of_host(name: &str, label: &str, unit: SeriesUnit) -> Self {
        Self { said_by: SaidBy::Host, ..Self::of_node(name, label, unit) }
    }

    /// One that is made of what nodes say.
    #[must_use]
    pub fn of_analysis(name: &str, label: &str, unit: SeriesUnit) -> Self {
        let said_by = SaidBy::Analysis;
        Self { said_by, is_foremost: true, ..Self::of_node(name, label, unit) }
    }

    /// An undeclared one: its name is all that is known of it.
    #[must_use]
    pub fn undeclared(name: &str) -> Self {
        let label = format!("{name} (undeclared)");
        Self { said_by: SaidBy::Undeclared, ..Self::of_node(name, &label, SeriesUnit::Number) }
    }

    /// That of several nodes adds up.
    #[must_use]
    pub fn adding_up(self) -> Self {
        Self { aggregate: Aggregate::Sum, ..self }
    }

    /// Every reader looks at it.
    #[must_use]
    pub fn foremost(self) -> Self {
        Self { is_foremost: true, ..self }
    }

    /// How far a node has come, counted in `unit`; see [`SeriesRole::Progress`] for the bounds. It is foremost.
    #[must_use]
    pub fn progress(self, unit: &str, with_max: u32, near_max: u32) -> Self {
        let role = SeriesRole::Progress { unit: unit.to_owned(), with_max, near_max };
        Self { role, is_foremost: true, ..self }
    }

    /// How much a node gets through each second, counted in `unit`.
    #[must_use]
    pub fn throughput(self, unit: &str) -> Self {
        Self { role: SeriesRole::Throughput { unit: unit.to_owned() }, ..self }
    }

    /// Whether the sum over nodes is something.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.aggregate == Aggregate::Sum
    }
}

/// The declaration of the series called `name`.
#[must_use]
pub fn declared<'a>(all: &'a [SeriesFacts], name: &str) -> Option<&'a SeriesFacts> {
    all.iter().find(|it| it.name == name)
}

/// Adds declarations to those of a trial. Several sources may declare the same; two that differ under one name are a
/// mistake, and so is a name that thresholds and pages cannot write.
///
/// # Errors
/// A sentence that names the series.
pub fn declare<'a>(
    all: &mut Vec<SeriesFacts>,
    more: impl IntoIterator<Item = &'a SeriesFacts>,
) -> Result<(), String> {
    for it in more {
        let name = &it.name;
        let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_good) {
            return Err(format!(
                "a series cannot be called `{name}`: thresholds write SOURCE.NAME.max; use lower case, digits and `_`"
            ));
        }
        if it.label.trim().is_empty() {
            return Err(format!("the series `{name}` has no label: say in words what it is"));
        }
        match declared(all, name) {
            None => all.push(it.clone()),
            Some(known) if known == it => {}
            Some(_) => {
                return Err(format!(
                    "the series `{name}` is declared twice, and not the same; give one of them another name"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length() -> SeriesFacts {
        SeriesFacts::of_node("queue_length", "queue", SeriesUnit::of("slips")).adding_up()
    }

    /// Claim: a declaration comes back from a file as it went in, whatever its unit.
    #[test]
    fn there_and_back() {
        let units = UNITS.into_iter().map(|(_, unit)| unit).chain([SeriesUnit::of("blocks")]);
        for unit in units {
            let facts = SeriesFacts { unit, ..length().progress("slips", 1, 10) };
            let text = serde_json::to_string(&facts).expect("plain data");
            assert_eq!(
                serde_json::from_str::<SeriesFacts>(&text).expect("the same"),
                facts,
                "{text}"
            );
        }
    }

    /// Claim: every node may declare the same; what differs under one name, or cannot be written in a threshold, is
    /// refused by name.
    #[test]
    fn declarations_agree() {
        let mut all = Vec::new();
        declare(&mut all, [&length(), &length()]).expect("the same twice");
        assert_eq!(all, [length()]);
        let other = SeriesFacts { aggregate: Aggregate::Each, ..length() };
        let unwritable = SeriesFacts { name: "queue.length".to_owned(), ..length() };
        let wordless = SeriesFacts { name: "queue".to_owned(), label: " ".to_owned(), ..length() };
        for (bad, words) in [
            (other, "`queue_length` is declared twice"),
            (unwritable, "cannot be called `queue.length`"),
            (wordless, "`queue` has no label"),
        ] {
            let said = declare(&mut all, [&bad]).expect_err("a mistake");
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(all, [length()]);
    }
}
