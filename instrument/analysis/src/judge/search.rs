//! The search, replayed from its trials: what each of them answered, and what follows.

use model::plan::{Level, Plan};
use model::result::{
    AuditOutcome, SearchClass, SearchCollapse, SearchEnd, SearchLimit, SearchResult, SearchTrial,
    SettingResult, TrialResult, Verdict,
};
use search::{Search, Seen};

use crate::audits::GENERATOR_BUSY;
use crate::judge::knee;

/// The class of what a rate limiter refused.
const LIMITED: &str = "limited";
/// Less goodput than this share of the most is a collapse, and no noise.
const COLLAPSED: f64 = 0.9;
/// From this share of what was due on, it is what limits.
const LIMIT_SHARE: f64 = 0.01;
/// The same of refusals, which say themselves what limits: a search ends so near the limit that few are refused.
const REFUSED_SHARE: f64 = 0.001;

/// The answer of one trial of a search, by its own counts: chance is what the trials that confirm and refute are for, and a
/// trial that was repeated until chance favours it would make the result too high.
#[must_use]
pub fn seen(trial: &TrialResult) -> Seen {
    let class = match trial.verdict {
        Verdict::Fail | Verdict::Undecided => SearchClass::Failed,
        Verdict::Pass if knee::keeps_up(trial, false) => SearchClass::Kept,
        Verdict::Pass if is_of_the_client(trial) => SearchClass::Untold,
        Verdict::Pass => SearchClass::Failed,
        Verdict::Invalid => SearchClass::Untold,
    };
    Seen { class, through_per_s: trial.rates.goodput_per_s }
}

/// The result of the plan's search, if it has one. Of an interrupted run the last trial has no answer.
pub(crate) fn result(
    plan: &Plan,
    settings: &[SettingResult],
    interrupted: bool,
) -> Option<SearchResult> {
    let answered = plan.order.len().saturating_sub(usize::from(interrupted));
    let wanted = plan.search.as_ref()?;
    let mut search = Search::new(wanted);
    let mut trials = Vec::new();
    let mut last_bad: Option<(f64, &TrialResult)> = None;
    let mut end = None;
    for (setting, index) in &plan.order[..answered] {
        let Some(ask) = search.next() else { break };
        let setting = &plan.settings[*setting];
        if !ask.is_of(wanted.find, &setting.load) {
            end = Some(SearchEnd::OtherTrials);
            break;
        }
        let key = &setting.key;
        let of = settings.iter().find(|setting| setting.key == *key);
        let found = of.and_then(|it| it.trials.iter().find(|trial| trial.trial == *index));
        // The record ends here.
        let Some(trial) = found else { break };
        let seen = seen(trial);
        search.observe(seen);
        let (setting, value, role, class) = (key.clone(), ask.value, ask.role, seen.class);
        let goodput_per_s = trial.rates.goodput_per_s;
        let rest = trial.rest;
        let of = SearchTrial { setting, trial: *index, role, value, class, goodput_per_s, rest };
        trials.push(of);
        let is_lowest = last_bad.is_none_or(|(lowest, _)| value <= lowest);
        if class != SearchClass::Kept && is_lowest {
            last_bad = Some((value, trial));
        }
    }
    let asked = plan.thresholds.iter().filter(|it| it.level == Level::Fail);
    Some(SearchResult {
        asked: asked.map(|it| it.expr.clone()).collect(),
        end: end.or_else(|| search.end()),
        find: wanted.find,
        confirmed: search.confirmed(),
        refuted: search.refuted(),
        deploy: wanted.deploy,
        hold_ns: i64::try_from(wanted.hold.as_nanos()).unwrap_or(i64::MAX),
        confirmations: wanted.confirmations,
        limit: last_bad.map(|(_, trial)| limit(trial)),
        collapse: collapse(&trials),
        trials,
    })
}

/// The verdict of a run that searches: its trials fail on purpose.
pub(crate) fn verdict(search: &SearchResult) -> Verdict {
    match (search.confirmed, search.end) {
        (Some(_), Some(SearchEnd::Found | SearchEnd::AtLeast)) => Verdict::Pass,
        (_, Some(SearchEnd::NotEven)) => Verdict::Fail,
        _ => Verdict::Undecided,
    }
}

/// The part that reached its limit first at a value that failed.
fn limit(trial: &TrialResult) -> SearchLimit {
    let counts = &trial.counts;
    #[expect(clippy::cast_precision_loss, reason = "shares of counts")]
    let is_beyond = |count: u64, share: f64| count as f64 > share * counts.due.max(1) as f64;
    let limited = counts.rejected_by_class.get(LIMITED).copied().unwrap_or(0);
    let disagrees = |it: &model::result::Fates| it.lost + it.duplicate + it.phantom > 0;
    if trial.fates.as_ref().is_some_and(disagrees) {
        SearchLimit::Loss
    } else if is_of_the_client(trial) {
        SearchLimit::Generator
    } else if is_beyond(limited, REFUSED_SHARE) {
        SearchLimit::Limiter
    } else if is_beyond(counts.rejected, REFUSED_SHARE) {
        SearchLimit::Admission
    } else if is_beyond(counts.unknown, LIMIT_SHARE) {
        SearchLimit::Failures
    } else if !knee::keeps_up(trial, false) {
        SearchLimit::Backlog
    } else {
        SearchLimit::Latency
    }
}

/// Where more load brings less: goodput below nine tenths of the most that a lower value brought, at the highest value, too.
fn collapse(trials: &[SearchTrial]) -> Option<SearchCollapse> {
    let told = || trials.iter().filter(|trial| trial.class != SearchClass::Untold);
    let highest = told().max_by(|one, other| one.value.total_cmp(&other.value))?;
    let most_below = |value: f64| {
        told().filter(|it| it.value < value).map(|it| it.goodput_per_s).fold(0.0, f64::max)
    };
    let is_less = |it: &&SearchTrial| it.goodput_per_s < COLLAPSED * most_below(it.value);
    let first = told()
        .filter(is_less)
        .filter(|_| is_less(&highest))
        .min_by(|one, other| one.value.total_cmp(&other.value))?;
    Some(SearchCollapse {
        from: first.value,
        most_per_s: most_below(highest.value),
        least_per_s: highest.goodput_per_s,
        at: highest.value,
    })
}

/// Whether the generator, and not the system, was at its end.
fn is_of_the_client(trial: &TrialResult) -> bool {
    let audit = trial.audits.iter().find(|audit| audit.name == GENERATOR_BUSY);
    audit.is_some_and(|audit| audit.outcome == AuditOutcome::Failed)
        || knee::is_of_the_client(trial)
}
