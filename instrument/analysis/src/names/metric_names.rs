//! A name of a number, taken apart. Thresholds and table columns use the same names.

use model::{Class, quantity};

use crate::audits;
use crate::names::metric_list::{self, Entry};
use crate::names::unit::Unit;

/// Words of a distribution.
pub(crate) const DISTRIBUTION: [(&str, Unit); 5] = [
    ("max", Unit::Ns),
    ("mean", Unit::Ns),
    ("min", Unit::Ns),
    ("stddev", Unit::Ns),
    ("variance", Unit::NsSquared),
];

/// A name, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Name {
    /// One that stands alone.
    Plain(&'static Entry),
    /// `rejected.CLASS`.
    RejectedClass(Class),
    /// `stage.NAME.throughput`, `stage.NAME.p99`, …: of a stage of the ladder, or of one that nodes stamp.
    Stage { stage: String, number: OfStage },
    /// `[committed. | answered. | due. | service. | send_lag. | own_lag.] WORD [.STAGE]`.
    Distribution { of: Of, word: Word, stage: Option<String> },
    /// `SOURCE.METRIC.min|mean|max|last`: a series of the host, the generator, a node, or of all nodes.
    Resource { key: String, end: End },
    /// `audit.NAME.FIGURE`.
    Audit { audit: String, figure: String, unit: Unit },
}

/// Which number of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OfStage {
    Throughput,
    ThroughputMin,
    ThroughputMax,
    Count,
    Latency(Word),
}

/// The samples of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Response time of those that reached the stage.
    Committed,
    /// The same with those that were refused, by the time to that answer.
    Answered,
    /// The same with those that were never answered or never sent, as infinite. A bare word means this.
    Due,
    /// Service time of all due.
    Service,
    SendLag,
    OwnLag,
}

/// Which number of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Word {
    Percentile(f64),
    Moment(&'static str),
}

/// Which number of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Min,
    Mean,
    Max,
    Last,
}

impl Name {
    pub fn unit(&self) -> Unit {
        match self {
            Self::Plain(entry) => entry.unit,
            Self::RejectedClass(_) => Unit::Count,
            Self::Stage { number: OfStage::Count, .. } => Unit::Count,
            Self::Stage { number: OfStage::Latency(word), .. } => word.unit(),
            Self::Stage { .. } => Unit::PerSecond,
            Self::Distribution { word, .. } => word.unit(),
            Self::Resource { .. } => Unit::Number,
            Self::Audit { unit, .. } => *unit,
        }
    }
}

impl Word {
    pub fn unit(self) -> Unit {
        if self == Self::Moment("variance") { Unit::NsSquared } else { Unit::Ns }
    }
}

/// Takes a name apart. Stage names are not checked here.
pub(crate) fn parse(name: &str) -> Option<Name> {
    if let Some(entry) = metric_list::find(name) {
        return Some(Name::Plain(entry));
    }
    if let Some(class) = name.strip_prefix("rejected.") {
        return Class::from_word(class).map(Name::RejectedClass);
    }
    if let Some(rest) = name.strip_prefix("stage.") {
        return of_stage(rest);
    }
    if let Some(rest) = name.strip_prefix("audit.") {
        return of_audit(rest);
    }
    distribution(name).or_else(|| resource(name))
}

/// The rest of a name after `audit.`: an audit of the list and a figure of its own.
fn of_audit(rest: &str) -> Option<Name> {
    let (audit, figure) = rest.split_once('.')?;
    let unit = audits::figure_unit(audit, figure)?.into();
    Some(Name::Audit { audit: audit.to_owned(), figure: figure.to_owned(), unit })
}

/// The rest of a name after `stage.`. The name of a stage may have points, as `p99.9` has.
fn of_stage(rest: &str) -> Option<Name> {
    let numbers = [
        (".throughput.min", OfStage::ThroughputMin),
        (".throughput.max", OfStage::ThroughputMax),
        (".throughput", OfStage::Throughput),
        (".count", OfStage::Count),
    ];
    let named = |stage: &str, number| {
        (!stage.is_empty()).then(|| Name::Stage { stage: stage.to_owned(), number })
    };
    for (suffix, number) in numbers {
        if let Some(stage) = rest.strip_suffix(suffix) {
            return named(stage, number);
        }
    }
    let (stage, word) =
        rest.match_indices('.').find_map(|(at, _)| Some((&rest[..at], word(&rest[at + 1..])?)))?;
    named(stage, OfStage::Latency(word))
}

fn distribution(name: &str) -> Option<Name> {
    let (of, rest) = PREFIXES
        .into_iter()
        .find_map(|(prefix, of)| name.strip_prefix(prefix).map(|rest| (of, rest)))
        .unwrap_or((Of::Due, name));
    if let Some(word) = word(rest) {
        return Some(Name::Distribution { of, word, stage: None });
    }
    if matches!(of, Of::SendLag | Of::OwnLag) {
        return None;
    }
    // The longest word that fits, because `p99.9` has a point of its own.
    let (word, stage) = rest
        .match_indices('.')
        .filter_map(|(at, _)| Some((word(&rest[..at])?, &rest[at + 1..])))
        .rfind(|(_, stage)| stage.starts_with(|c: char| c.is_alphabetic()))?;
    Some(Name::Distribution { of, word, stage: Some(stage.to_owned()) })
}

/// The prefix of each distribution.
pub(crate) const PREFIXES: [(&str, Of); 6] = [
    ("committed.", Of::Committed),
    ("answered.", Of::Answered),
    ("due.", Of::Due),
    ("service.", Of::Service),
    ("send_lag.", Of::SendLag),
    ("own_lag.", Of::OwnLag),
];

fn word(text: &str) -> Option<Word> {
    if let Some((word, _)) = DISTRIBUTION.iter().find(|(word, _)| *word == text) {
        return Some(Word::Moment(word));
    }
    let digits = text.strip_prefix('p')?;
    let numeric = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    numeric.then(|| quantity::parse_percent(text).ok()).flatten().map(Word::Percentile)
}

fn resource(name: &str) -> Option<Name> {
    let (key, end) = name.rsplit_once('.')?;
    let end = match end {
        "min" => End::Min,
        "mean" => End::Mean,
        "max" => End::Max,
        "last" => End::Last,
        _ => return None,
    };
    let (source, metric) = key.split_once('.')?;
    (!source.is_empty() && !metric.is_empty()).then(|| Name::Resource { key: key.to_owned(), end })
}

/// The percentiles that metric names ask for, so that they are computed although the plan does not list them.
#[must_use]
pub fn percentiles_named<'a>(names: impl Iterator<Item = &'a str>) -> Vec<f64> {
    names
        .filter_map(parse)
        .filter_map(|name| match name {
            Name::Distribution { word: Word::Percentile(q), .. }
            | Name::Stage { number: OfStage::Latency(Word::Percentile(q)), .. } => Some(q),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the percentile keeps its own point, and the stage comes after it.
    #[test]
    fn points_in_percentiles() {
        let stage = Some("accepted".to_owned());
        let word = Word::Percentile(0.999);
        assert_eq!(parse("p99.9.accepted"), Some(Name::Distribution { of: Of::Due, word, stage }));
        assert_eq!(percentiles_named(["p99.9", "mean", "service.p75"].into_iter()), [0.999, 0.75]);
    }
}
