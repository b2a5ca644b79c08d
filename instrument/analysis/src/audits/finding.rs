//! The words of an audit: its declaration, its finding, and the sets of numbers that several audits void.

use model::result::{AuditOutcome, AuditResult, Family, Figure, FigureUnit, Voided};

/// All there is to say of an audit but what it computes; documents, glossary and thresholds are told from here.
#[derive(Clone, Copy)]
pub(crate) struct Audit {
    pub name: &'static str,
    /// Its question, in one line.
    pub question: &'static str,
    /// The numbers that it voids where it fails and does not say otherwise.
    pub voids: &'static [Voided],
    /// The numbers that it may compute, with their units.
    pub figures: &'static [(&'static str, FigureUnit)],
}

/// The outcome of an audit, with its sentence and its figures.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub outcome: AuditOutcome,
    /// The sentence with the figures.
    pub detail: String,
    figures: Vec<(&'static str, f64)>,
    /// Where it failed: other numbers than the audit's own list has.
    voids: Option<Vec<Voided>>,
}

impl Finding {
    fn new(outcome: AuditOutcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: detail.into(), figures: Vec::new(), voids: None }
    }

    /// Adds a number that was computed; one that is not finite is none.
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        if value.is_finite() {
            self.figures.push((name, value));
        }
        self
    }

    /// Says which numbers do not hold, instead of all that the audit may void.
    pub fn voiding(mut self, voids: impl IntoIterator<Item = Voided>) -> Self {
        self.voids = Some(voids.into_iter().collect());
        self
    }

    /// The result of an audit.
    pub fn of(self, audit: &Audit) -> AuditResult {
        let voids = match self.outcome {
            AuditOutcome::Failed => self.voids.unwrap_or_else(|| audit.voids.to_vec()),
            AuditOutcome::Ok | AuditOutcome::Skipped | AuditOutcome::Warn => Vec::new(),
        };
        let figure = |(name, value): (&str, f64)| {
            let (_, unit) = audit.figures.iter().find(|(known, _)| *known == name)?;
            Some(Figure { name: name.to_owned(), value, unit: *unit })
        };
        let figures = self.figures.iter().map(|it| figure(*it));
        AuditResult {
            name: audit.name.to_owned(),
            outcome: self.outcome,
            detail: self.detail,
            voids,
            figures: figures.map(|it| it.expect("the audit's list has its figures")).collect(),
        }
    }
}

pub(crate) fn ok(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Ok, detail)
}

pub(crate) fn skipped(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Skipped, detail)
}

pub(crate) fn warn(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Warn, detail)
}

pub(crate) fn failed(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Failed, detail)
}

/// All that is computed from rows, wrong in whatever way.
pub(super) const ALL_OF_ROWS: [Voided; 10] = {
    let mut all = [Voided::either(Family::Response); 10];
    let mut at = 0;
    while at < all.len() {
        all[at] = Voided::either(Family::OF_ROWS[at]);
        at += 1;
    }
    all
};

/// The numbers of which a trial of another load, or of another network, than was asked for says nothing.
pub(super) const NOT_AS_ASKED: &[Voided] = &[
    Voided::either(Family::Response),
    Voided::either(Family::Service),
    Voided::either(Family::Committed),
    Voided::either(Family::Failures),
    Voided::either(Family::Timeouts),
    Voided::either(Family::Outstanding),
    Voided::either(Family::NodeStages),
];

/// The effect of delays outside the system on its numbers: response times and timeouts can only be too high, commits only too
/// low. Errors that it answered and connections that it refused are its own.
pub(super) const SLOWED: &[Voided] = &[
    Voided::too_high(Family::Response),
    Voided::too_high(Family::Service),
    Voided::too_high(Family::Outstanding),
    Voided::too_high(Family::Timeouts),
    Voided::too_low(Family::Committed),
    Voided::too_high(Family::NodeStages),
];
