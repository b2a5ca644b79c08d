//! From audits, checks and thresholds to pass, undecided, invalid or fail; from verdicts to an exit code.

use model::result::{
    Answer, AuditOutcome, AuditResult, CheckResult, Exit, SettingResult, ThresholdResult,
    TrialResult, Verdict, Voided,
};

use crate::names::doubt;

/// A trial's verdict and the sentence that explains it.
///
/// It fails if a threshold or a check failed: what is not known beside it changes nothing. Else it is invalid if a threshold
/// is, or, where nobody wrote a threshold that decides, if nothing of the headline holds; and undecided if a threshold is.
pub(crate) fn of_trial(trial: &TrialResult) -> (Verdict, String) {
    let decides = |it: &&ThresholdResult| it.level == "fail" || it.level == "invalid";
    let is_told = |it: &&ThresholdResult| !it.implicit || it.answer != Answer::Met;
    let mut told: Vec<&ThresholdResult> =
        trial.thresholds.iter().filter(decides).filter(is_told).collect();
    // The promises of every ledger come first.
    told.sort_by_key(|it| !it.implicit);
    let failed_checks: Vec<&CheckResult> =
        trial.checks.iter().filter(|it| it.outcome == AuditOutcome::Failed).collect();
    let gravest = told.iter().map(|it| of_threshold(it)).max().unwrap_or(Verdict::Pass);
    let counted = counted(&told, failed_checks.len());
    let first = || {
        let threshold = told.iter().find(|it| of_threshold(it) == gravest);
        threshold.map(|it| in_words(it, trial)).unwrap_or_default()
    };
    let with_counts = |said: String| match told.len() + failed_checks.len() {
        1 => said,
        _ => format!("{counted}: {said}"),
    };
    let implicit_failed = told.iter().any(|it| it.implicit && of_threshold(it) == Verdict::Fail);
    if let (Some(check), false) = (failed_checks.first(), implicit_failed) {
        let said = format!("check {}: {}", check.name, check.sentence());
        return (Verdict::Fail, with_counts(said));
    }
    if gravest != Verdict::Pass {
        return (gravest, with_counts(first()));
    }
    if let Some(reason) = headline(trial).filter(|_| told.is_empty()) {
        return (Verdict::Invalid, reason);
    }
    (Verdict::Pass, remarks(&counted, trial))
}

/// How many thresholds and checks of a trial failed.
pub(crate) fn failures_of(trial: &TrialResult) -> usize {
    let checks = trial.checks.iter().filter(|it| it.outcome == AuditOutcome::Failed).count();
    let thresholds = trial.thresholds.iter();
    checks + thresholds.filter(|it| of_threshold(it) == Verdict::Fail).count()
}

/// The verdict that a threshold gives its trial.
fn of_threshold(threshold: &ThresholdResult) -> Verdict {
    match threshold.answer {
        Answer::Met => Verdict::Pass,
        Answer::Undecided => Verdict::Undecided,
        Answer::Failed if threshold.level == "fail" => Verdict::Fail,
        Answer::Failed | Answer::Invalid => Verdict::Invalid,
    }
}

/// `1 check failed, 1 threshold met, 1 undecided`.
fn counted(told: &[&ThresholdResult], failed_checks: usize) -> String {
    let mut parts = Vec::new();
    if failed_checks > 0 {
        parts.push(format!("{} failed", plural(failed_checks, "check")));
    }
    let mut is_first = true;
    for answer in Answer::ALL {
        let count = told.iter().filter(|it| it.answer == answer).count();
        if count > 0 {
            let what = if is_first { plural(count, "threshold") } else { count.to_string() };
            parts.push(format!("{what} {}", answer.word()));
            is_first = false;
        }
    }
    if parts.is_empty() { "no thresholds".to_owned() } else { parts.join(", ") }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn in_words(threshold: &ThresholdResult, trial: &TrialResult) -> String {
    let ThresholdResult { expr, answer, actual, detail, .. } = threshold;
    if threshold.implicit && *answer == Answer::Failed {
        return detail.clone();
    }
    let parts = [actual, detail].into_iter().filter(|it| !it.is_empty());
    let verb = if *answer == Answer::Failed { "" } else { "is " };
    let said = format!(
        "`{expr}` {verb}{}: {}",
        answer.word(),
        parts.map(String::as_str).collect::<Vec<_>>().join(", ")
    );
    if *answer != Answer::Invalid {
        return said;
    }
    // The audit says why, with its figures.
    let audits = trial.audits.iter().filter(|it| threshold.voided_by.contains(&it.name));
    let why = audits.map(|it| format!("{}: {}", it.name, it.detail));
    std::iter::once(said).chain(why).collect::<Vec<_>>().join("; ")
}

/// Why a trial without thresholds decides nothing.
fn headline(trial: &TrialResult) -> Option<String> {
    let voiding = doubt::of_the_headline(trial);
    let first = voiding.first()?;
    Some(more(format!("{}: {}", first.name, first.detail), voiding.len()))
}

/// The reason of a trial that passes, with remarks for its reader.
fn remarks(counted: &str, trial: &TrialResult) -> String {
    let of = |outcome| trial.audits.iter().filter(move |audit| audit.outcome == outcome);
    let failed: Vec<&str> = of(AuditOutcome::Failed).map(|audit| audit.name.as_str()).collect();
    let audits = match failed.as_slice() {
        [] => "no audit failed".to_owned(),
        names => format!("no answer depends on what is not valid ({})", names.join(", ")),
    };
    let warnings = match of(AuditOutcome::Warn).count() {
        0 => String::new(),
        count => format!(", {}", plural(count, "warning")),
    };
    format!("{counted}; {audits}{warnings}")
}

/// Whether a threshold of level `saturated` broke.
pub(crate) fn is_saturated(trial: &TrialResult) -> bool {
    let broke = |t: &ThresholdResult| t.level == "saturated" && t.answer == Answer::Failed;
    trial.thresholds.iter().any(broke)
}

/// The run's verdict and its reason: the worst of its settings, and of the audits across trials. A setting that came out
/// as declared counts as met; one that did not is a failure, unless it is invalid.
pub(crate) fn of_run(settings: &[SettingResult], across: &[AuditResult]) -> (Verdict, String) {
    let judged = settings.iter().map(|setting| (setting, judge(setting)));
    let worst = judged
        .filter(|(_, (verdict, _))| *verdict != Verdict::Pass)
        .reduce(|worst, next| if next.1.0 > worst.1.0 { next } else { worst });
    if let Some((setting, (verdict, ref reason))) = worst {
        return (verdict, placed(settings, setting, reason));
    }
    let voids = |audit: &&AuditResult| audit.voids.iter().any(Voided::is_of_the_headline);
    if let Some(audit) = across.iter().find(voids) {
        return (Verdict::Invalid, format!("{}: {}", audit.name, audit.detail));
    }
    let trials: usize = settings.iter().map(|setting| setting.trials.len()).sum();
    match (settings, trials) {
        ([setting], 1) => (Verdict::Pass, setting.trials[0].reason.clone()),
        (_, 0) => (Verdict::Invalid, "the run has no trial".to_owned()),
        _ => (Verdict::Pass, all_passed(settings, trials)),
    }
}

/// Why a run of several trials passed.
fn all_passed(settings: &[SettingResult], trials: usize) -> String {
    let who = match settings.len() {
        1 => format!("all {trials} trials"),
        count if count == trials => format!("all {count} settings"),
        count => format!("all {trials} trials of {count} settings"),
    };
    let all = || settings.iter().flat_map(|setting| &setting.trials);
    if settings.iter().any(|it| it.expect.is_some_and(|expected| expected != Verdict::Pass)) {
        return format!("{who} met their thresholds or came out as declared");
    }
    if all().all(|trial| trial.thresholds.is_empty()) {
        return format!("{who} were measured, without thresholds; no audit failed");
    }
    let limits = settings.iter().filter(|setting| setting.saturated).count();
    if limits > 0 {
        let met = settings.len() - limits;
        return format!(
            "{met} of {} met their thresholds; {limits} found the limit, as intended",
            plural(settings.len(), "setting")
        );
    }
    format!("{who} met their thresholds")
}

fn judge(setting: &SettingResult) -> (Verdict, String) {
    if setting.trials.is_empty() {
        return (Verdict::Pass, String::new());
    }
    match setting.expect {
        Some(expected) if expected == setting.verdict => (Verdict::Pass, String::new()),
        Some(expected) => {
            let verdict = match setting.verdict {
                unknown @ (Verdict::Undecided | Verdict::Invalid) => unknown,
                Verdict::Pass | Verdict::Fail => Verdict::Fail,
            };
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

/// The exit code; interrupted is said whatever else came out, because the run that was asked for did not take place.
pub(crate) fn exit_of(verdict: Verdict, interrupted: bool) -> Exit {
    if interrupted { Exit::Interrupted } else { verdict.exit() }
}

fn more(text: String, count: usize) -> String {
    if count > 1 { format!("{text} (and {} more)", count - 1) } else { text }
}
