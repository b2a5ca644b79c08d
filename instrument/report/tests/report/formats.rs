//! CSV and JUnit XML: that other programs can read them, and that they say what the result says.

use model::result::{Answer, AuditOutcome, RunResult, ThresholdResult, TrialResult, Verdict};

use crate::figure_samples::study;
use crate::sample_runs;
use crate::xml::{Element, read};

/// Reads CSV as RFC 4180 describes it.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => assert_eq!(chars.peek(), Some(&'\n'), "lines end with CRLF"),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(record.is_empty() && field.is_empty(), "the last line ends");
    records
}

fn trials(run: &RunResult) -> usize {
    run.settings.iter().map(|setting| setting.trials.len()).sum()
}

/// Claim: each trial is a row with as many fields as there are heads, and the numbers are the result's, raw.
#[test]
fn csv_has_a_row_a_trial() {
    for (name, run) in sample_runs::all() {
        let records = records(&report::csv(&run));
        assert_eq!(records.len(), 1 + trials(&run), "{name}");
        let heads = &records[0];
        assert!(records.iter().all(|record| record.len() == heads.len()), "{name}");
        let unique: std::collections::BTreeSet<_> = heads.iter().collect();
        assert_eq!(unique.len(), heads.len(), "{name}");
        let all = run.settings.iter().flat_map(|s| s.trials.iter().map(move |trial| (s, trial)));
        for (record, (setting, trial)) in records[1..].iter().zip(all) {
            let field = |head: &str| {
                let at = heads.iter().position(|it| it == head).unwrap_or_else(|| panic!("{head}"));
                record[at].as_str()
            };
            assert_eq!(field("setting"), setting.key);
            assert_eq!(field("verdict"), trial.verdict.word());
            assert_eq!(field("due"), trial.counts.due.to_string());
            assert_eq!(field("goodput_per_s").parse(), Ok(trial.rates.goodput_per_s));
            let latency = &trial.latency[0];
            let q = &latency.response.quantiles[0];
            let p50 = field(&format!("{}.response.p50_ns", latency.stage));
            assert_eq!(p50, q.value_ns.map_or(String::new(), |ns| ns.to_string()));
        }
    }
}

/// Claim: commas and quotation marks in a text stay in their field, and line ends are shown by their code; several runs share
/// their heads.
#[test]
fn csv_survives_texts() {
    let mut first = sample_runs::clean();
    let text = "said \"no\", then\r\nleft; =1+1";
    first.settings[0].trials[0].reason = text.to_owned();
    let records = records(&report::csv_of(&[first, study().0]));
    assert_eq!(records.len(), 17);
    let at = records[0].iter().position(|head| head == "reason").expect("a head");
    assert_eq!(records[1][at], "said \"no\", then\\u{d}\\u{a}left; =1+1");
    let axis = records[0].iter().position(|head| head == "axis.set").expect("a head");
    assert_eq!((records[1][axis].as_str(), records[2][axis].as_str()), ("", "all"));
}

/// Claim: no text of CSV is a formula of a spreadsheet or drives a terminal, wherever it stands; numbers below zero stay numbers.
#[test]
fn csv_computes_nothing() {
    let mut run = sample_runs::clean();
    let setting = &mut run.settings[0];
    let label = "=1+1\u{1b}[2J";
    setting.values = [("a".to_owned(), label.to_owned())].into();
    let trial = &mut setting.trials[0];
    trial.reason = "@SUM(A1)".to_owned();
    trial.latency[0].stage = "+done\u{202e}".to_owned();
    trial.latency[0].response.min_ns = Some(-5);
    let text = report::csv(&run);
    assert!(text.chars().all(|c| matches!(c, '\r' | '\n') || !c.is_control()), "{text:?}");
    let records = records(&text);
    let field = |head: &str| {
        let at = records[0].iter().position(|it| it == head).unwrap_or_else(|| panic!("{head}"));
        records[1][at].as_str()
    };
    assert_eq!(field("axis.a"), "'=1+1\\u{1b}[2J");
    assert_eq!(field("reason"), "'@SUM(A1)");
    assert_eq!(field("'+done\\u{202e}.response.min_ns"), "-5");
}

/// Claim: a status code that another tool's report claims drives no terminal.
#[test]
fn codes_of_vegeta_are_shown() {
    let mut run = sample_runs::clean();
    let trial = &mut run.settings[0].trials[0];
    trial.vegeta.status_codes = [("\u{1b}[2J".to_owned(), 1)].into();
    for text in [report::vegeta(trial), report::vegeta_12_7(trial)] {
        assert!(text.contains("\\u{1b}[2J:1"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}

/// The structure of jenkins-junit.xsd: which elements stand in which, and what they must carry.
fn check_structure(elements: &[Element]) {
    let mut path: Vec<&str> = Vec::new();
    for element in elements {
        path.truncate(element.depth);
        let parent = path.last().copied().unwrap_or("");
        let (parents, required, allowed): (&[&str], &[&str], &[&str]) = match element.name.as_str()
        {
            "testsuites" => {
                (&[""], &[], &["name", "time", "tests", "failures", "disabled", "errors"])
            }
            "testsuite" => (
                &["testsuites"],
                &["name", "tests"],
                &["name", "tests", "failures", "errors", "time", "skipped", "timestamp", "id"],
            ),
            "properties" => (&["testsuite"], &[], &[]),
            "property" => (&["properties"], &["name", "value"], &["name", "value"]),
            "testcase" => (&["testsuite"], &["name"], &["name", "classname", "time"]),
            "skipped" => (&["testcase"], &[], &["message", "type"]),
            "error" | "failure" => (&["testcase"], &[], &["message", "type"]),
            "system-out" => (&["testcase", "testsuite"], &[], &[]),
            other => panic!("<{other}> is no element of the form"),
        };
        assert!(parents.contains(&parent), "<{}> in <{parent}>", element.name);
        assert!(required.iter().all(|key| element.attribute(key).is_some()), "<{}>", element.name);
        let keys = element.attributes.iter().map(|(key, _)| key.as_str());
        assert!(keys.into_iter().all(|key| allowed.contains(&key)), "<{}>", element.name);
        path.push(&element.name);
    }
}

fn count(elements: &[Element], name: &str) -> usize {
    elements.iter().filter(|element| element.name == name).count()
}

/// Claim: the document has the form that build servers read, its sums are right, and it has a case for each threshold that
/// was written or failed and for each check, and none for an audit, which stand in the output of their suite.
#[test]
fn junit_has_the_form() {
    let mut runs = sample_runs::all();
    runs.push(("study", study().0));
    for (name, run) in runs {
        let elements = read(&report::junit(&run)).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_structure(&elements);
        let sum = |key: &str| -> usize {
            elements[0].attribute(key).and_then(|value| value.parse().ok()).expect("a count")
        };
        assert_eq!(sum("tests"), count(&elements, "testcase"), "{name}");
        assert_eq!(sum("failures"), count(&elements, "failure"), "{name}");
        assert_eq!(sum("errors"), count(&elements, "error"), "{name}");
        let all = run.settings.iter().flat_map(|setting| &setting.trials);
        let is_told = |it: &&ThresholdResult| !it.implicit || it.answer != Answer::Met;
        let told = |trial: &TrialResult| trial.thresholds.iter().filter(is_told).count();
        let cases: usize = all.clone().map(|trial| told(trial) + trial.checks.len()).sum();
        let cased: Vec<&str> = elements
            .iter()
            .filter(|it| it.name == "testcase")
            .filter_map(|it| it.attribute("name"))
            .collect();
        let of_promises =
            |name: &&&str| name.starts_with("threshold ") || name.starts_with("check ");
        assert_eq!(cased.iter().filter(of_promises).count(), cases, "{name}: {cased:?}");
        let text = report::junit(&run);
        for audit in all.flat_map(|trial| &trial.audits) {
            assert!(text.contains(&format!("audit {}, ", audit.name)), "{name}: {}", audit.name);
        }
    }
}

/// Claim: a build server stops exactly where the exit code says so; a verdict that was declared does not stop it.
#[test]
fn junit_agrees_with_the_verdict() {
    let ends = |run: &RunResult| {
        let elements = read(&report::junit(run)).expect("well-formed");
        (count(&elements, "failure"), count(&elements, "error"))
    };
    assert_eq!(ends(&sample_runs::clean()), (0, 0));
    let (failures, errors) = ends(&sample_runs::failed());
    assert_eq!((failures, errors), (2, 0), "two broken thresholds");
    let (failures, errors) = ends(&sample_runs::invalid());
    assert!(failures == 0 && errors > 0, "{failures} {errors}");
    assert!(ends(&sample_runs::interrupted()).1 > 0);

    let mut declared = sample_runs::declared();
    let met = declared.settings[0].clone();
    assert_eq!((met.expect, met.verdict), (Some(Verdict::Invalid), Verdict::Invalid));
    assert_eq!(ends(&declared), (1, 0), "the setting that passed against its declaration");
    declared.settings = vec![met];
    assert_eq!(ends(&declared), (0, 0));

    let mut blind = sample_runs::clean();
    blind.settings[0].trials[0].thresholds[0].answer = Answer::Invalid;
    assert_eq!(ends(&blind), (0, 1), "a promise that nobody could look at");
    let mut warned = sample_runs::clean();
    warned.settings[0].trials[0].audits[0].outcome = AuditOutcome::Warn;
    warned.settings[0].trials[0].thresholds[0].level = "saturated".to_owned();
    warned.settings[0].trials[0].thresholds[0].answer = Answer::Failed;
    assert_eq!(ends(&warned), (0, 0));
    let mut lost = sample_runs::clean();
    lost.settings[0].trials[0].verdict = Verdict::Fail;
    assert_eq!(ends(&lost), (1, 0), "a verdict that no case explains is said all the same");
}
