//! Everything that has a name here, as `assay list` and completions show it: numbers and audits, each from its own list.

use model::Class;

use crate::audits::{self, Audit};
use crate::names::metric_list::ENTRIES;
use crate::names::metric_names::{DISTRIBUTION, Of, PREFIXES};
use crate::names::unit::Unit;

/// A number that thresholds and tables may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberListed {
    /// Its name; words in capitals stand for a name of the system's own.
    pub name: String,
    /// One word for a value in its unit.
    pub unit: &'static str,
    /// Its meaning, without a final stop.
    pub meaning: String,
}

impl NumberListed {
    /// Whether the name is one, and not a pattern of names.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.name.contains(|c: char| c.is_ascii_uppercase())
    }
}

/// An audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditListed {
    /// Its name.
    pub name: &'static str,
    /// Its question, in one line.
    pub question: &'static str,
    /// Its figures as thresholds name them, `audit.NAME.FIGURE`, and what each is. Those of an audit across trials stand
    /// in no trial, so that no threshold names them.
    pub figures: Vec<(String, &'static str)>,
}

/// Percentiles that are named where any may be.
const PERCENTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

/// Numbers of the system's own stages and series, by pattern.
const PATTERNS: [(&str, Unit, &str); 5] = [
    ("p99.STAGE", Unit::Ns, "response time to another stage, by the name that the system gives it"),
    ("stage.STAGE.count", Unit::Count, "how many reached it"),
    ("stage.STAGE.p99", Unit::Ns, "time in a stage that nodes stamp, or to one of the ladder"),
    (
        "stage.STAGE.throughput",
        Unit::PerSecond,
        "rate at which it was reached; .min and .max are of the windows",
    ),
    (
        "SOURCE.SERIES.mean",
        Unit::Number,
        "of what host, generator, a node or nodes.sum was sampled for; .min, .max, .last",
    ),
];

/// All numbers, latencies first, then by name, then the figures of audits.
#[must_use]
pub fn numbers() -> Vec<NumberListed> {
    let number = |name: String, unit: Unit, meaning: String| NumberListed {
        name,
        unit: unit.word(),
        meaning,
    };
    let mut all: Vec<NumberListed> =
        latencies().map(|(name, unit, meaning)| number(name, unit, meaning.to_owned())).collect();
    all.extend(ENTRIES.iter().map(|it| number(it.name.to_owned(), it.unit, it.meaning.to_owned())));
    all.extend(Class::ALL.into_iter().map(|class| {
        let word = class.word();
        number(format!("rejected.{word}"), Unit::Count, format!("refused or failed as {word}"))
    }));
    let patterns = PATTERNS.into_iter();
    all.extend(patterns.map(|(name, unit, meaning)| number(name.into(), unit, meaning.into())));
    all.extend(audits_listed().into_iter().flat_map(|audit| {
        let meaning = format!("as the audit {} computed it", audit.name);
        audit.figures.into_iter().map(move |(name, unit)| NumberListed {
            name,
            unit,
            meaning: meaning.clone(),
        })
    }));
    all
}

/// Every audit, those across trials last.
#[must_use]
pub fn audits_listed() -> Vec<AuditListed> {
    let listed = |audit: Audit| AuditListed {
        name: audit.name,
        question: audit.question,
        figures: audit
            .figures
            .iter()
            .filter_map(|(figure, _)| {
                let unit = Unit::from(audits::figure_unit(audit.name, figure)?);
                Some((format!("audit.{}.{figure}", audit.name), unit.word()))
            })
            .collect(),
    };
    audits::all_audits().map(listed).collect()
}

/// Latencies by name, with what each is of.
pub(crate) fn latencies() -> impl Iterator<Item = (String, Unit, &'static str)> {
    let bare = [("", Of::Due)].into_iter();
    // A bare word means all due: written out it is the same number.
    let prefixes = bare.chain(PREFIXES.into_iter().filter(|(_, of)| *of != Of::Due));
    prefixes.flat_map(|(prefix, of)| {
        let percentiles = PERCENTILES.into_iter().map(|word| (word, Unit::Ns));
        let words = percentiles.chain(DISTRIBUTION);
        words.map(move |(word, unit)| (format!("{prefix}{word}"), unit, meaning(of)))
    })
}

const fn meaning(of: Of) -> &'static str {
    match of {
        Of::Committed => "response time of the committed",
        Of::Answered => "response time of the answered, refused ones by the time to that answer",
        Of::Due => "response time of all due, no answer counting as infinitely long",
        Of::Service => "service time, from the send, of all due",
        Of::SendLag => "sent − due",
        Of::OwnLag => "sent − ready: the instrument's own part",
    }
}

#[cfg(test)]
mod tests {
    use model::names::DeclaredNames;

    use super::*;

    /// Claim: each number that is listed may be named in a threshold and is of the unit that is said; none is listed
    /// twice, and each entry of the list and each figure of an audit of trials is among them.
    #[test]
    fn what_is_listed_is_known() {
        let names =
            DeclaredNames { stages: vec!["committed".to_owned()], ..DeclaredNames::default() };
        let all = numbers();
        for number in all.iter().filter(|it| it.is_whole()) {
            assert_eq!(
                crate::names::check_metric::check_metric(&number.name, Some(&names)),
                Ok(()),
                "{number:?}"
            );
            let parsed = crate::names::metric_names::parse(&number.name).expect("a name");
            assert_eq!(parsed.unit().word(), number.unit, "{number:?}");
            assert!(!number.meaning.is_empty() && !number.meaning.ends_with('.'), "{number:?}");
        }
        let mut listed: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        for name in
            ENTRIES.iter().map(|entry| entry.name.to_owned()).chain(crate::audits::figure_names())
        {
            assert!(listed.contains(&name.as_str()), "{name}");
        }
        listed.sort_unstable();
        assert!(listed.windows(2).all(|pair| pair[0] != pair[1]), "a name twice");
        let asked: Vec<String> = audits::audits_asked().into_iter().map(|it| it.name).collect();
        assert_eq!(audits_listed().iter().map(|it| it.name).collect::<Vec<_>>(), asked);
    }
}
