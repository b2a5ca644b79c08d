//! From audits, checks and thresholds to pass, fail or invalid; from verdicts to an exit code.

use model::result::{
    AuditOutcome, AuditResult, CheckResult, Exit, SettingResult, TrialResult, Verdict,
};

/// A trial's verdict and the sentence that explains it. Invalid outranks fail.
///
/// A threshold that cannot be evaluated makes the trial invalid at the levels fail and invalid: a promise that
/// nobody could look at was not kept, and was not broken either.
pub(crate) fn of_trial(trial: &TrialResult) -> (Verdict, String) {
    if let Some(audit) = first_failed(&trial.audits) {
        return (
            Verdict::Invalid,
            more(format!("{}: {}", audit.name, audit.detail), failures(&trial.audits)),
        );
    }
    let has_failed = |check: &&CheckResult| check.outcome == AuditOutcome::Failed;
    if let Some(check) = trial.checks.iter().find(has_failed) {
        return (Verdict::Invalid, format!("check {}: {}", check.name, check.sentence()));
    }
    let at = |level: &'static str| {
        trial.thresholds.iter().filter(move |threshold| threshold.level == level)
    };
    let blind = at("fail").chain(at("invalid")).find(|threshold| threshold.holds.is_none());
    if let Some(threshold) = blind {
        return (
            Verdict::Invalid,
            format!("`{}` could not be evaluated: {}", threshold.expr, threshold.detail),
        );
    }
    if let Some(broken) = at("invalid").find(|threshold| threshold.holds == Some(false)) {
        return (Verdict::Invalid, format!("`{}` does not hold: {}", broken.expr, broken.actual));
    }
    if let Some(broken) = at("fail").find(|threshold| threshold.holds == Some(false)) {
        let count = at("fail").filter(|threshold| threshold.holds == Some(false)).count();
        return (
            Verdict::Fail,
            more(format!("`{}` does not hold: {}", broken.expr, broken.actual), count),
        );
    }
    let warnings = trial.audits.iter().filter(|audit| audit.outcome == AuditOutcome::Warn).count();
    let kept = trial.thresholds.iter().filter(|threshold| threshold.holds == Some(true)).count();
    let promises = match trial.thresholds.len() {
        0 => "no thresholds".to_owned(),
        all if kept == all => format!("all {all} thresholds hold"),
        all => format!("{kept} of {all} thresholds hold, the others do not decide"),
    };
    let worth_reading =
        if warnings == 0 { String::new() } else { format!(", {warnings} worth reading") };
    (Verdict::Pass, format!("{promises}; no audit failed{worth_reading}"))
}

/// Whether a threshold of level `saturated` broke.
pub(crate) fn is_saturated(trial: &TrialResult) -> bool {
    let broke =
        |t: &model::result::ThresholdResult| t.level == "saturated" && t.holds == Some(false);
    trial.thresholds.iter().any(broke)
}

/// The run's verdict and its reason. A setting that came out as declared counts as met; one that did not is a
/// failure, unless it is invalid.
pub(crate) fn of_run(settings: &[SettingResult], across: &[AuditResult]) -> (Verdict, String) {
    let judged = settings.iter().map(|setting| (setting, judge(setting)));
    let worst = judged
        .filter(|(_, (verdict, _))| *verdict != Verdict::Pass)
        .reduce(|worst, next| if next.1.0 > worst.1.0 { next } else { worst });
    if let Some((setting, (verdict, ref reason))) = worst
        && verdict == Verdict::Invalid
    {
        return (verdict, placed(settings, setting, reason));
    }
    if let Some(audit) = first_failed(across) {
        return (Verdict::Invalid, format!("{}: {}", audit.name, audit.detail));
    }
    if let Some((setting, (verdict, ref reason))) = worst {
        return (verdict, placed(settings, setting, reason));
    }
    let trials: usize = settings.iter().map(|setting| setting.trials.len()).sum();
    match (settings, trials) {
        ([setting], 1) => (Verdict::Pass, setting.trials[0].reason.clone()),
        (_, 0) => (Verdict::Invalid, "the run holds no trial".to_owned()),
        _ => (
            Verdict::Pass,
            format!("{trials} trials of {} settings hold what they promise", settings.len()),
        ),
    }
}

fn judge(setting: &SettingResult) -> (Verdict, String) {
    if setting.trials.is_empty() {
        return (Verdict::Pass, String::new());
    }
    match setting.expect {
        Some(expected) if expected == setting.verdict => (Verdict::Pass, String::new()),
        Some(expected) => {
            let verdict = setting.verdict.max(Verdict::Fail);
            (verdict, format!("expected {}, came out {}", expected.word(), setting.verdict.word()))
        }
        None => {
            let worst = setting.trials.iter().find(|trial| trial.verdict == setting.verdict);
            (setting.verdict, worst.map(|trial| trial.reason.clone()).unwrap_or_default())
        }
    }
}

fn placed(settings: &[SettingResult], setting: &SettingResult, reason: &str) -> String {
    if settings.len() == 1 { reason.to_owned() } else { format!("{}: {reason}", setting.key) }
}

/// The exit code: invalid before failed; interrupted is said whatever else came out, because the run that was
/// asked for did not take place.
pub(crate) fn exit_of(verdict: Verdict, interrupted: bool) -> Exit {
    match verdict {
        _ if interrupted => Exit::Interrupted,
        Verdict::Invalid => Exit::Invalid,
        Verdict::Fail => Exit::Failed,
        Verdict::Pass => Exit::Ok,
    }
}

fn first_failed(audits: &[AuditResult]) -> Option<&AuditResult> {
    audits.iter().find(|audit| audit.outcome == AuditOutcome::Failed)
}

fn failures(audits: &[AuditResult]) -> usize {
    audits.iter().filter(|audit| audit.outcome == AuditOutcome::Failed).count()
}

fn more(text: String, count: usize) -> String {
    if count > 1 { format!("{text} (and {} more)", count - 1) } else { text }
}
