//! What the report says of series by what was declared of them: the words, the unit, which come first; and the order of
//! sources.
//!
//! It must never look into a name: an undeclared one is shown as such.

use std::borrow::Cow;

use model::picture::{is_node, natural_order};
use model::series::{self, SaidBy, SeriesFacts, SeriesUnit};

use crate::paint::clean;
use crate::svg::scale::Unit;

/// Declarations of the series of a trial, in the order in which they are shown.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'a>(pub(crate) &'a [SeriesFacts]);

impl<'a> Declared<'a> {
    /// The declaration of a series.
    pub(crate) fn of(self, name: &str) -> Cow<'a, SeriesFacts> {
        match series::declared(self.0, name) {
            Some(facts) => Cow::Borrowed(facts),
            None => Cow::Owned(SeriesFacts::undeclared(name)),
        }
    }

    /// Where a series stands among the charts: those that every reader looks at first, then the rest, each in the order of
    /// their declarations, then undeclared ones.
    pub(crate) fn rank(self, name: &str) -> usize {
        let count = self.0.len();
        match self.0.iter().position(|it| it.name == name) {
            Some(at) if self.0[at].is_foremost => at,
            Some(at) => count + at,
            None => 2 * count,
        }
    }

    /// Whether it is of what the host says, of itself or of processes.
    pub(crate) fn is_of_the_host(self, name: &str) -> bool {
        self.of(name).said_by == SaidBy::Host
    }

    /// Whether a series is one of those that every reader looks at; what else nodes say of themselves is for those who
    /// look for it.
    pub(crate) fn is_foremost(self, name: &str) -> bool {
        self.of(name).is_foremost
    }

    /// A series in words, its unit, and the unit's word for the axis.
    pub(crate) fn named(self, name: &str) -> (String, Unit, String) {
        let facts = self.of(name);
        let (unit, word) = unit(&facts.unit);
        (clean(&facts.label), unit, clean(word))
    }
}

/// How values of a unit are written, and its word for the axis.
pub(crate) fn unit(of: &SeriesUnit) -> (Unit, &str) {
    match of {
        SeriesUnit::Number => (Unit::Number, ""),
        SeriesUnit::Of(what) => (Unit::Number, what),
        SeriesUnit::Share => (Unit::Share, ""),
        SeriesUnit::Bytes => (Unit::Bytes, ""),
        SeriesUnit::BytesPerSecond => (Unit::Bytes, "per second"),
        SeriesUnit::Ns => (Unit::Ns, ""),
        SeriesUnit::PerSecond => (Unit::Number, "per second"),
        SeriesUnit::PerMinute => (Unit::Number, "per minute"),
    }
}

/// Generator, host, then the nodes, node-2 before node-10, then what is said of all of them.
pub(crate) fn source_rank(source: &str) -> (u8, String, u64) {
    let kind = match source {
        "generator" => 0,
        "host" => 1,
        _ if is_node(source) => 2,
        _ => 3,
    };
    let (stem, number) = natural_order(source);
    (kind, stem, number)
}
