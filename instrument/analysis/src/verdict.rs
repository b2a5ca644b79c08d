//! From audits, checks and thresholds to pass, fail or invalid; from verdicts to an exit code.

use model::result::{
    Answer, AuditOutcome, AuditResult, CheckResult, Exit, SettingResult, ThresholdResult,
    TrialResult, Verdict, Voided,
};

use crate::families;

/// A trial's verdict and the sentence that explains it.
///
/// It fails if a threshold failed whose number holds: what does not hold beside it changes nothing. Else it is invalid
/// if a threshold rests on a number that does not hold or that is not there (it was not met, and did not fail either), or,
/// where nobody wrote a threshold that decides, if the headline does not hold.
pub(crate) fn of_trial(trial: &TrialResult) -> (Verdict, String) {
    let broken = broken(trial);
    if let Some(first) = broken.first() {
        return (Verdict::Fail, more(first.clone(), broken.len()));
    }
    match void(trial) {
        Some(reason) => (Verdict::Invalid, reason),
        None => (Verdict::Pass, remarks(trial)),
    }
}

/// What is broken, in words: the ledger's thresholds first, then the system's own checks, then what was written.
fn broken(trial: &TrialResult) -> Vec<String> {
    let is_broken = |it: &&ThresholdResult| it.level == "fail" && fails(it);
    let thresholds = || trial.thresholds.iter().filter(is_broken);
    let has_failed = |check: &&CheckResult| check.outcome == AuditOutcome::Failed;
    let checks = trial.checks.iter().filter(has_failed);
    let mut all: Vec<String> = thresholds().filter(|it| it.implicit).map(in_words).collect();
    all.extend(checks.map(|check| format!("check {}: {}", check.name, check.sentence())));
    all.extend(thresholds().filter(|it| !it.implicit).map(in_words));
    all
}

/// Whether a threshold is broken, or not as sure as it was asked to be.
fn fails(threshold: &ThresholdResult) -> bool {
    match threshold.answer {
        Answer::Broken => true,
        Answer::NotResolved => threshold.confidence.is_some(),
        Answer::Holds | Answer::Void | Answer::Unknown => false,
    }
}

fn in_words(threshold: &ThresholdResult) -> String {
    let ThresholdResult { expr, actual, detail, .. } = threshold;
    match threshold.answer {
        Answer::NotResolved => format!("`{expr}` is not resolved: {actual}, {detail}"),
        Answer::Void => format!("`{expr}` is void: {detail}"),
        Answer::Unknown => format!("`{expr}` could not be evaluated: {detail}"),
        _ if threshold.implicit => detail.clone(),
        _ if detail.is_empty() => format!("`{expr}` is not met: {actual}"),
        _ => format!("`{expr}` is not met: {detail}"),
    }
}

/// Why the trial decides nothing.
fn void(trial: &TrialResult) -> Option<String> {
    let decides = |it: &&ThresholdResult| it.level == "fail" || it.level == "invalid";
    let promises = || trial.thresholds.iter().filter(decides);
    let blind = |it: &&ThresholdResult| matches!(it.answer, Answer::Void | Answer::Unknown);
    let breaks = |it: &&ThresholdResult| it.level == "invalid" && fails(it);
    if let Some(promise) = promises().find(|it| blind(it) || breaks(it)) {
        let said = in_words(promise);
        // The audit says why, with its figures.
        let audits = trial.audits.iter().filter(|it| promise.voided_by.contains(&it.name));
        let why: Vec<String> = match promise.answer {
            Answer::Void => audits.map(|it| format!("{}: {}", it.name, it.detail)).collect(),
            _ => Vec::new(),
        };
        return Some(if why.is_empty() { said } else { format!("{said}; {}", why.join("; ")) });
    }
    if promises().any(|it| !it.implicit) {
        return None;
    }
    let voiding: Vec<&AuditResult> = families::of_the_headline(trial).collect();
    let first = voiding.first()?;
    Some(more(format!("{}: {}", first.name, first.detail), voiding.len()))
}

/// What a reader of a trial that passes should know.
fn remarks(trial: &TrialResult) -> String {
    let written = || trial.thresholds.iter().filter(|it| !it.implicit);
    let count = |answer: Answer| written().filter(|it| it.answer == answer).count();
    let (all, kept, open) = (written().count(), count(Answer::Holds), count(Answer::NotResolved));
    let promises = match all {
        0 => "no thresholds".to_owned(),
        all if kept == all => format!("all {all} thresholds are met"),
        all if kept + open == all => {
            format!("{kept} of {all} thresholds are met, {open} not resolved")
        }
        all if open > 0 => {
            format!(
                "{kept} of {all} thresholds are met, {open} not resolved, the others do not decide"
            )
        }
        all => format!("{kept} of {all} thresholds are met, the others do not decide"),
    };
    let of = |outcome| trial.audits.iter().filter(move |audit| audit.outcome == outcome);
    let failed: Vec<&str> = of(AuditOutcome::Failed).map(|audit| audit.name.as_str()).collect();
    let audits = match failed.as_slice() {
        [] => "no audit failed".to_owned(),
        names => format!("no threshold depends on what is void ({})", names.join(", ")),
    };
    let warnings = of(AuditOutcome::Warn).count();
    let worth_reading =
        if warnings == 0 { String::new() } else { format!(", {warnings} worth reading") };
    format!("{promises}; {audits}{worth_reading}")
}

/// Whether a threshold of level `saturated` broke.
pub(crate) fn is_saturated(trial: &TrialResult) -> bool {
    let broke = |t: &ThresholdResult| t.level == "saturated" && t.answer == Answer::Broken;
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
                Verdict::Invalid => Verdict::Invalid,
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

/// The exit code; interrupted is said whatever else came out, because the run that was
/// asked for did not take place.
pub(crate) fn exit_of(verdict: Verdict, interrupted: bool) -> Exit {
    match verdict {
        _ if interrupted => Exit::Interrupted,
        Verdict::Invalid => Exit::Invalid,
        Verdict::Fail => Exit::Failed,
        Verdict::Pass => Exit::Ok,
    }
}

fn more(text: String, count: usize) -> String {
    if count > 1 { format!("{text} (and {} more)", count - 1) } else { text }
}
