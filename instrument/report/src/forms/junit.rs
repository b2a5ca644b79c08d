//! A result as JUnit XML, for build servers: a suite for each setting, a case for each threshold that was written or
//! that failed, and for each check. What the audits found stands in the suite's output: none of them is a test by itself.
//!
//! The suites must agree with the run's exit code: there is a failure or an error exactly if it is not 0. What only
//! warns, or what a setting declares, passes and says so in its output.
//!
//! Form: the schema that Jenkins' xUnit plugin publishes (jenkins-junit.xsd).

use std::fmt::Write as _;

use model::result::{
    Answer, AuditOutcome, AuditResult, CheckResult, RunResult, SettingResult, ThresholdResult,
    TrialResult, Verdict,
};

use crate::svg::escape;
use crate::tables;

/// The run as JUnit XML.
#[must_use]
pub fn junit(run: &RunResult) -> String {
    junit_of(std::slice::from_ref(run))
}

/// Several runs as one document.
#[must_use]
pub fn junit_of(runs: &[RunResult]) -> String {
    let suites: Vec<Suite> = runs.iter().flat_map(suites).collect();
    let sum = |of: fn(&Suite) -> usize| suites.iter().map(of).sum::<usize>();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        escape(&names.join(" ")),
        sum(|suite| suite.cases.len()),
        sum(|suite| suite.count(|end| matches!(end, End::Failure(_)))),
        sum(|suite| suite.count(|end| matches!(end, End::Error(..)))),
        seconds(suites.iter().map(|suite| suite.window_ns).sum()),
    );
    for (index, suite) in suites.iter().enumerate() {
        push_suite(&mut text, index, suite);
    }
    text.push_str("</testsuites>\n");
    text
}

/// The word of an error that no threshold has.
const INVALID: &str = Verdict::Invalid.word();

/// How a case came out.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// It passed; with a text, if there is something to read.
    Passed(String),
    Skipped(String),
    Failure(String),
    /// It cannot be told: undecided or invalid, in that word.
    Error(&'static str, String),
}

struct Case {
    class: String,
    name: String,
    end: End,
}

struct Suite {
    name: String,
    started: String,
    properties: Vec<(String, String)>,
    window_ns: i64,
    cases: Vec<Case>,
    /// The audits' findings, a line each.
    output: Vec<String>,
}

impl Suite {
    fn count(&self, is: fn(&End) -> bool) -> usize {
        self.cases.iter().filter(|case| is(&case.end)).count()
    }
}

fn suites(run: &RunResult) -> Vec<Suite> {
    let mut suites: Vec<Suite> =
        run.settings.iter().map(|setting| of_setting(run, setting)).collect();
    // One across trials makes a run invalid of which each trial holds.
    let voids = |audit: &&AuditResult| {
        run.verdict == Verdict::Invalid && audit.outcome == AuditOutcome::Failed
    };
    let of_audit = |audit: &AuditResult| Case {
        class: run.name.clone(),
        name: format!("audit {}", audit.name),
        end: End::Error(INVALID, format!("{}{}", audit.detail, tables::voids(audit))),
    };
    let mut cases: Vec<Case> = run.audits.iter().filter(voids).map(of_audit).collect();
    let output: Vec<String> = run.audits.iter().map(|audit| audit_line("", audit)).collect();
    if run.interrupted {
        let end = End::Error("interrupted", run.reason.clone());
        cases.push(Case { class: run.name.clone(), name: "run to its end".to_owned(), end });
    }
    if run.settings.iter().all(|setting| setting.trials.is_empty()) {
        let end = End::Error(INVALID, "the run has no trial".to_owned());
        cases.push(Case { class: run.name.clone(), name: "trials".to_owned(), end });
    }
    if cases.is_empty() {
        // A suite without a case is none to some servers.
        suites.last_mut().into_iter().for_each(|last| last.output.extend_from_slice(&output));
    } else {
        suites.push(Suite {
            name: format!("{} (run)", run.name),
            started: run.started.clone(),
            properties: Vec::new(),
            window_ns: 0,
            cases,
            output,
        });
    }
    suites
}

fn of_setting(run: &RunResult, setting: &SettingResult) -> Suite {
    let many = setting.trials.len() > 1;
    let (mut cases, mut output) = (Vec::new(), Vec::new());
    for trial in &setting.trials {
        let number = if many { format!(".trial-{}", trial.trial) } else { String::new() };
        // A point parts packages in a class name.
        let class = format!("{}.{}{number}", run.name, setting.key.replace('.', "_"));
        cases.extend(of_trial(&class, trial));
        let which = if many { format!("trial {}, ", trial.trial) } else { String::new() };
        output.extend(trial.audits.iter().map(|audit| audit_line(&which, audit)));
    }
    let class = format!("{}.{}", run.name, setting.key.replace('.', "_"));
    if setting.trials.is_empty() {
        let end = End::Skipped("no trial of this setting was run".to_owned());
        cases.push(Case { class, name: "trials".to_owned(), end });
    } else if let Some(expected) = setting.expect {
        declared(&mut cases, class, expected, setting.verdict);
    }
    let mut properties: Vec<(String, String)> = setting
        .values
        .iter()
        .map(|(axis, label)| (format!("axis.{axis}"), label.clone()))
        .collect();
    properties.push(("verdict".to_owned(), setting.verdict.word().to_owned()));
    properties.push(("seed".to_owned(), run.seed.to_string()));
    Suite {
        name: format!("{}: {}", run.name, setting.key),
        started: run.started.clone(),
        properties,
        window_ns: setting.trials.iter().map(|trial| trial.window_ns.max(0)).sum(),
        cases,
        output,
    }
}

/// A setting that declares its verdict is judged by that alone.
fn declared(cases: &mut Vec<Case>, class: String, expected: Verdict, came: Verdict) {
    for case in cases.iter_mut() {
        if let End::Failure(text) | End::Error(_, text) = &case.end {
            let text = format!("of a setting that declares {}: {text}", expected.word());
            case.end = End::Passed(text);
        }
    }
    let said = format!("declared {}, came out {}", expected.word(), came.word());
    let end = match came {
        _ if came == expected => End::Passed(said),
        Verdict::Undecided | Verdict::Invalid => End::Error(came.word(), said),
        Verdict::Fail | Verdict::Pass => End::Failure(said),
    };
    cases.push(Case { class, name: "declared verdict".to_owned(), end });
}

fn of_trial(class: &str, trial: &TrialResult) -> Vec<Case> {
    let is_told = |it: &&ThresholdResult| !it.implicit || it.answer != Answer::Met;
    let thresholds = trial.thresholds.iter().filter(is_told).map(|it| of_threshold(class, it));
    let checks = trial.checks.iter().map(|check| of_check(class, check));
    let mut cases: Vec<Case> = thresholds.chain(checks).collect();
    // A verdict that no case explains must not get lost.
    let is_said = match trial.verdict {
        Verdict::Pass => true,
        Verdict::Fail => cases.iter().any(|case| matches!(case.end, End::Failure(_))),
        Verdict::Undecided | Verdict::Invalid => {
            cases.iter().any(|case| matches!(case.end, End::Error(..)))
        }
    };
    if !is_said || cases.is_empty() {
        let end = match trial.verdict {
            Verdict::Pass => End::Passed(trial.reason.clone()),
            Verdict::Fail => End::Failure(trial.reason.clone()),
            Verdict::Undecided | Verdict::Invalid => {
                End::Error(trial.verdict.word(), trial.reason.clone())
            }
        };
        cases.push(Case { class: class.to_owned(), name: "verdict".to_owned(), end });
    }
    cases
}

fn of_threshold(class: &str, threshold: &ThresholdResult) -> Case {
    let ThresholdResult { expr, level, answer, .. } = threshold;
    let words = tables::threshold_words(threshold);
    let decides = level == "fail" || level == "invalid";
    let end = match answer {
        Answer::Met => End::Passed(words),
        _ if !decides => End::Passed(format!("{level}: {expr} is {words}")),
        Answer::Failed if level == "fail" => {
            End::Failure(format!("{expr} {}: {words}", answer.word()))
        }
        Answer::Failed => End::Error(INVALID, format!("{expr} {}: {words}", answer.word())),
        Answer::Undecided | Answer::Invalid => {
            End::Error(answer.word(), format!("{expr} is {words}"))
        }
    };
    Case { class: class.to_owned(), name: format!("threshold {expr}"), end }
}

/// The finding of an audit, with its trial where there are several.
fn audit_line(which: &str, audit: &AuditResult) -> String {
    let outcome = match audit.outcome {
        AuditOutcome::Ok => "ok",
        AuditOutcome::Skipped => "skipped",
        AuditOutcome::Warn => "worth reading",
        AuditOutcome::Failed => "failed",
    };
    let AuditResult { name, detail, .. } = audit;
    format!("{which}audit {name}, {outcome}: {detail}{}", tables::voids(audit))
}

fn of_check(class: &str, check: &CheckResult) -> Case {
    let sentence = check.sentence();
    let end = match check.outcome {
        AuditOutcome::Ok => End::Passed(sentence),
        AuditOutcome::Skipped => End::Skipped(sentence),
        AuditOutcome::Warn => End::Passed(format!("worth reading: {sentence}")),
        AuditOutcome::Failed => End::Failure(sentence),
    };
    Case { class: class.to_owned(), name: format!("check {}", check.name), end }
}

fn push_suite(text: &mut String, index: usize, suite: &Suite) {
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" id=\"{index}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" \
         time=\"{}\" timestamp=\"{}\">",
        escape(&suite.name),
        suite.cases.len(),
        suite.count(|end| matches!(end, End::Failure(_))),
        suite.count(|end| matches!(end, End::Error(..))),
        suite.count(|end| matches!(end, End::Skipped(_))),
        seconds(suite.window_ns),
        escape(&suite.started),
    );
    if !suite.properties.is_empty() {
        text.push_str("    <properties>\n");
        for (name, value) in &suite.properties {
            let (name, value) = (escape(name), escape(value));
            let _ = writeln!(text, "      <property name=\"{name}\" value=\"{value}\"/>");
        }
        text.push_str("    </properties>\n");
    }
    for case in &suite.cases {
        push_case(text, case);
    }
    if !suite.output.is_empty() {
        let output = escape(&suite.output.join("\n"));
        let _ = writeln!(text, "    <system-out>{output}</system-out>");
    }
    text.push_str("  </testsuite>\n");
}

fn push_case(text: &mut String, case: &Case) {
    let (class, name) = (escape(&case.class), escape(&case.name));
    let _ = write!(text, "    <testcase classname=\"{class}\" name=\"{name}\"");
    let _ = match &case.end {
        End::Passed(said) if said.is_empty() => writeln!(text, "/>"),
        End::Passed(said) => {
            writeln!(text, "><system-out>{}</system-out></testcase>", escape(said))
        }
        End::Skipped(why) => writeln!(text, "><skipped message=\"{}\"/></testcase>", escape(why)),
        End::Failure(why) => {
            let why = escape(why);
            writeln!(
                text,
                "><failure type=\"{}\" message=\"{why}\">{why}</failure></testcase>",
                Answer::Failed.word()
            )
        }
        End::Error(word, why) => {
            let why = escape(why);
            writeln!(text, "><error type=\"{word}\" message=\"{why}\">{why}</error></testcase>")
        }
    };
}

/// Seconds with milliseconds, as the form asks for.
fn seconds(ns: i64) -> String {
    let ms = ns.max(0) / 1_000_000;
    format!("{}.{:03}", ms / 1000, ms % 1000)
}
