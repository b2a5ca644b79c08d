//! Which numbers a metric rests on, and what it means for it that an audit voids them.
//!
//! It must never let a number pass as sound that is made of one that is not.

use model::result::{AuditResult, Direction, Family, TrialResult, Voided};

use crate::names::metric_names::{Name, Of, OfStage, Word, parse};
use crate::names::need::Need;

/// The error that a number may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Which way it may be wrong; `None` = it holds.
    pub may_be: Option<Direction>,
    /// The audits that say so.
    pub by: Vec<String>,
}

/// The doubt that the audits of a trial cast on the number called `name`.
pub(crate) fn doubt(name: &str, trial: &TrialResult) -> Doubt {
    doubt_without("", name, trial)
}

/// The same without one audit, where what it objects to is not in the number.
pub(crate) fn doubt_without(except: &str, name: &str, trial: &TrialResult) -> Doubt {
    let needs = needs(name, trial);
    let mut doubt = Doubt::default();
    for audit in trial.audits.iter().filter(|audit| audit.name != except) {
        let errors = |voided: &Voided| needs.iter().filter_map(|it| it.error(voided)).collect();
        let found: Vec<Direction> =
            audit.voids.iter().flat_map(|it| -> Vec<_> { errors(it) }).collect();
        if !found.is_empty() {
            doubt.by.push(audit.name.clone());
        }
        for error in found {
            doubt.may_be = Some(doubt.may_be.map_or(error, |known| known.and(error)));
        }
    }
    doubt
}

/// Whether an audit voids a family.
pub(crate) fn is_void(family: Family, trial: &TrialResult) -> bool {
    trial.audits.iter().flat_map(|audit| &audit.voids).any(|it| it.family == family)
}

/// Audits that void what a trial without thresholds is read for; none where a part of it holds.
pub(crate) fn of_the_headline(trial: &TrialResult) -> Vec<&AuditResult> {
    if !Family::OF_THE_HEADLINE.iter().all(|family| is_void(*family, trial)) {
        return Vec::new();
    }
    let is_among = |audit: &&AuditResult| audit.voids.iter().any(Voided::is_of_the_headline);
    trial.audits.iter().filter(is_among).collect()
}

fn needs(name: &str, trial: &TrialResult) -> Vec<Need> {
    let is_of_the_ladder =
        |stage: &str| trial.rates.reached_per_s.iter().any(|(known, _)| known == stage);
    match parse(name) {
        // A stage's own name is the rate at which it is reached.
        None => vec![Need::of(Family::Committed)],
        Some(Name::Plain(entry)) => entry.needs.to_vec(),
        Some(Name::RejectedClass(class)) => vec![Need::of(match class.is_of_time() {
            true => Family::Timeouts,
            false => Family::Failures,
        })],
        Some(Name::Stage { stage, .. }) if !is_of_the_ladder(&stage) => {
            vec![Need::of(Family::NodeStages)]
        }
        Some(Name::Stage { number: OfStage::Latency(word), .. }) => {
            vec![of_word(Family::Response, word)]
        }
        Some(Name::Stage { .. }) => vec![Need::of(Family::Committed)],
        Some(Name::Distribution { of, word, .. }) => vec![match of {
            Of::Committed | Of::Answered | Of::Due => of_word(Family::Response, word),
            Of::Service => of_word(Family::Service, word),
            Of::SendLag | Of::OwnLag => of_word(Family::SendLag, word),
        }],
        Some(Name::Resource { .. }) => vec![Need::of(Family::Series)],
        Some(Name::Audit { .. }) => Vec::new(),
    }
}

fn of_word(family: Family, word: Word) -> Need {
    let need = Need::of(family);
    match word {
        // A lag that makes some times longer may bring them nearer to each other.
        Word::Moment("stddev" | "variance") => need.either_way(),
        Word::Percentile(_) | Word::Moment(_) => need,
    }
}

#[cfg(test)]
mod tests {
    use model::result::AuditOutcome;

    use super::*;
    use crate::names::metric_list::ENTRIES;
    use crate::testing::Trial;

    /// Claim: a number is in doubt where a family that it is made of is voided, the way that it moves with it; what it is
    /// not made of leaves it alone.
    #[test]
    fn what_is_in_doubt() {
        let mut trial = Trial::clean().result();
        let mut doubt_of = |name: &str, voids: &[Voided]| {
            trial.audits[0].voids = voids.to_vec();
            trial.audits[0].outcome = AuditOutcome::Failed;
            doubt(name, &trial).may_be
        };
        let late = Voided::too_high(Family::Response);
        for (name, voids, expected) in [
            ("p99", late, Some(Direction::TooHigh)),
            ("max", late, Some(Direction::TooHigh)),
            ("mean", late, Some(Direction::TooHigh)),
            ("stddev", late, Some(Direction::Either)),
            ("stage.committed.p99", late, Some(Direction::TooHigh)),
            ("service.p99", late, None),
            ("success", late, None),
            ("success", Voided::too_high(Family::Failures), Some(Direction::TooLow)),
            ("success", Voided::too_high(Family::Timeouts), Some(Direction::TooLow)),
            ("rejected", Voided::too_high(Family::Timeouts), Some(Direction::TooHigh)),
            ("unknown", Voided::too_high(Family::Timeouts), Some(Direction::TooHigh)),
            ("unknown", Voided::too_high(Family::Failures), None),
            ("rejected.server", Voided::too_high(Family::Timeouts), None),
            ("rejected.overloaded", Voided::too_high(Family::Timeouts), Some(Direction::TooHigh)),
            ("goodput", Voided::too_low(Family::Committed), Some(Direction::TooLow)),
            ("committed", Voided::either(Family::Committed), Some(Direction::Either)),
            ("lost", Voided::either(Family::Fates), Some(Direction::Either)),
            ("host.cpu_cores.max", late, None),
        ] {
            assert_eq!(doubt_of(name, &[voids]), expected, "{name} {voids:?}");
        }
        let both = [Voided::too_high(Family::Response), Voided::too_low(Family::Response)];
        assert_eq!(doubt_of("p99", &both), Some(Direction::Either));
    }

    /// Claim: every number that stands alone is made of something that an audit can void, but what was only planned and
    /// what happened to connections.
    #[test]
    fn every_number_is_made_of_something() {
        let is_sound = |name: &str| name == "planned" || name.starts_with("connections.");
        for entry in ENTRIES.iter().filter(|entry| !is_sound(entry.name)) {
            assert!(!entry.needs.is_empty(), "{}", entry.name);
        }
    }
}
