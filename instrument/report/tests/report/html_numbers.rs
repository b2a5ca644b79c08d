//! No number on the page differs from summary.json: the page is read, and each number is looked up where it says it
//! stands.

use model::result::{Answer, AuditResult, Distribution, Family, FlowResult, FlowsResult, Voided};
use report::Style;
use serde_json::Value;

use crate::html_reader::{Element, elements};
use crate::{html_samples, made_runs, sample_parts};

fn page_of(run: &(model::result::RunResult, model::picture::RunPicture)) -> String {
    report::html(std::slice::from_ref(run), &report::Assets::built()).expect("a page")
}

/// The content of summary.json, each number as it is written there. (Reading the text again would round: `serde_json`
/// reads floats to the last digit but one.)
fn summary(run: &model::result::RunResult) -> Value {
    let value = serde_json::to_value(run).expect("a document");
    let text = serde_json::to_string_pretty(&value).expect("text");
    assert_eq!(text.trim(), report::json(run).trim(), "the same text");
    value
}

/// The content of a text: the number, and how far the true one may lie from it because of rounding.
fn shown(text: &str) -> Option<(f64, f64)> {
    let text = text.trim().trim_start_matches(['!', '~', '●', '◐', '○', ' ']).replace(',', "");
    if text == "inf" {
        return Some((f64::INFINITY, 0.0));
    }
    let digits =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let value: f64 = number.parse().ok()?;
    let scale = match unit.trim() {
        "" | "/s" | "B" | "ns" => 1.0,
        "µs" | "kB" => 1e3,
        "ms" | "MB" => 1e6,
        "s" | "GB" => 1e9,
        "%" => 0.01,
        _ => return None,
    };
    let places = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some((value * scale, scale * 10f64.powi(-i32::try_from(places).expect("small"))))
}

fn number(document: &Value, pointer: &str) -> f64 {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is in the document"));
    value.as_f64().unwrap_or_else(|| panic!("{pointer} is a number: {value}"))
}

fn total(document: &Value, pointers: &str) -> f64 {
    pointers.split_whitespace().map(|pointer| number(document, pointer)).sum()
}

/// Whether the text is the value, rounded as it shows. Percentages are also cut, so a whole unit of the last digit is allowed.
fn agrees(text: &str, value: f64) -> bool {
    shown(text).is_some_and(|(shown, slack)| (shown - value).abs() <= slack * 1.000_001)
}

fn check(element: &Element, document: &Value, name: &str) -> bool {
    let of = |key: &str| element.tag.get(key);
    let at = |what: &str| format!("{name}: {what} {:?} in {:?}", element, element.inside);
    let Some(raw) = of("data-v") else { return false };
    let value: f64 = raw.parse().unwrap_or_else(|_| panic!("{}", at("a raw number")));
    let text = &element.text;
    if let Some(pointer) = of("data-k") {
        let there = document.pointer(pointer).unwrap_or_else(|| panic!("{}", at("no such place")));
        assert_eq!(there.to_string(), raw, "{}", at("another number"));
        // Values of the experiment's own tables are in the unit of their metric, which their text names.
        if !pointer.starts_with("/tables/") {
            assert!(agrees(text, value), "{}", at("another text"));
        }
        return true;
    }
    let made = if let Some(parts) = of("data-sum") {
        total(document, parts)
    } else if let Some(of) = of("data-share") {
        let (parts, whole) = of.split_once(" / ").expect("parts and a whole");
        total(document, parts) / number(document, whole)
    } else if let Some(of) = of("data-per-second") {
        let (count, window) = of.split_once(" / ").expect("a count and a window");
        number(document, count) / (number(document, window) / 1e9)
    } else {
        let is_free = element.inside.iter().any(|it| {
            it.starts_with("section#r0-method") || it.starts_with("figure") && it.contains("time")
        });
        assert!(is_free, "{}", at("a number from nowhere"));
        return false;
    };
    assert!((made - value).abs() <= made.abs() * 1e-12, "{}: {made}", at("another sum or share"));
    let is_span = element.tag.name == "span";
    assert!(is_span || agrees(text, value), "{}", at("another text"));
    true
}

/// Claim: each number of the page is the one that stands in summary.json where the page says, exactly, and what is shown
/// is that number rounded.
#[test]
fn numbers_are_those_of_the_result() {
    for (name, run) in html_samples::all() {
        let page = page_of(&run);
        let document = summary(&run.0);
        let checked = elements(&page).iter().filter(|it| check(it, &document, name)).count();
        let least = run.0.settings.iter().map(|it| it.trials.len()).sum::<usize>() * 40;
        assert!(checked >= least, "{name}: only {checked} numbers");
    }
}

/// Claim: no cell of a table shows a bare number without saying where it comes from.
#[test]
fn no_number_comes_from_nowhere() {
    for (name, run) in html_samples::all() {
        let (mut kinds, mut column) = (Vec::new(), 0);
        for cell in elements(&page_of(&run)) {
            match (cell.tag.name.as_str(), cell.tag.get("data-type")) {
                ("table", _) => kinds.clear(),
                ("tr", _) => column = 0,
                ("th", Some(kind)) => kinds.push(kind.to_owned()),
                ("th" | "td", None) => column += 1,
                _ => {}
            }
            let is_exempt =
                |it: &String| it.starts_with("section#r0-method") || it.contains("chart time");
            if cell.tag.name != "td" || cell.inside.iter().any(is_exempt) {
                continue;
            }
            let is_told = ["data-v", "data-between"].iter().any(|it| cell.tag.get(it).is_some());
            let is_number =
                kinds[column - 1] != "text" && cell.text.contains(|c: char| c.is_ascii_digit());
            // Zeroes of classes that a trial does not have stand for what is not in the document.
            assert!(is_told || !is_number || cell.text == "0", "{name}: {cell:?}");
        }
    }
}

/// Claim: the ends of an interval are those of the document, and are shown.
#[test]
fn intervals_are_those_of_the_result() {
    let run = html_samples::named("matrix");
    let document = summary(&run.0);
    let mut seen = 0;
    for cell in elements(&page_of(&run)) {
        let Some(ends) = cell.tag.get("data-between") else { continue };
        let (low, high) = ends.split_once(' ').expect("two places");
        for (pointer, raw) in [(low, cell.tag.get("data-from")), (high, cell.tag.get("data-to"))] {
            let there = document.pointer(pointer).expect("a place");
            let there = if there.is_null() { String::new() } else { there.to_string() };
            assert_eq!(Some(there.as_str()), raw, "{cell:?}");
        }
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        // A lower end alone is the number before its unit.
        let alone = cell.text.strip_prefix("at least ");
        let (shown_low, rest) = match (alone, cell.text.split_once('–')) {
            (Some(low), _) => low.split_at(low.find(|c| !is_digit(c)).unwrap_or(low.len())),
            (None, ends) => ends.expect("two ends"),
        };
        let unit = rest.trim_start_matches(is_digit);
        let value = cell.tag.get("data-from").and_then(|raw| raw.parse().ok()).expect("a low end");
        assert!(agrees(&format!("{shown_low}{unit}"), value), "{cell:?}");
        let classes = cell.tag.get("class").unwrap_or_default();
        assert_eq!(classes.split(' ').any(|it| it == "range"), alone.is_none(), "{cell:?}");
        seen += 1;
    }
    assert!(seen > 30, "{seen} intervals");
}

/// Claim: a percentile that rests on fewer than ten samples is grey and has its mark; the others have not.
#[test]
fn thin_percentiles_are_grey() {
    let run = html_samples::named("interrupted");
    let grey: Vec<Element> = elements(&page_of(&run))
        .into_iter()
        .filter(|it| it.tag.get("class").is_some_and(|class| class.split(' ').any(|c| c == "grey")))
        .collect();
    assert!(!grey.is_empty());
    let is_cell = |it: &&Element| ["td", "th", "dd"].contains(&it.tag.name.as_str());
    for it in grey.iter().filter(is_cell) {
        assert!(it.text.starts_with('~'), "{it:?}");
    }
}

/// Claim: each number that an audit voids has its mark in every form; what is made of other observations has none, and where
/// nothing is void no number has it.
#[test]
fn void_numbers_are_marked() {
    let (mut run, picture) = html_samples::named("clean");
    let trial = &mut run.settings[0].trials[0];
    let late = Voided::too_high(Family::Response);
    trial.audits[0] = AuditResult { voids: vec![late], ..trial.audits[0].clone() };
    let latency = &trial.latency[0];
    let shown = |of: &Distribution| {
        let found =
            of.quantiles.iter().find(|q| q.name == "p99").expect("a quantile of the sample");
        model::quantity::show_ns(found.value_ns.expect("it has a value"))
    };
    let (p99, service) = (shown(&latency.response), shown(&latency.service));
    let page = page_of(&(run.clone(), picture));
    for text in [report::terminal(&run, Style::default()), report::markdown(&run), page] {
        assert!(text.contains(&format!("!{p99}")), "{p99}: {text}");
        assert!(!text.contains(&format!("!{service}")), "{service}: {text}");
        assert!(text.contains("! is not valid"), "{text}");
    }
    run.settings[0].trials[0].audits[0].voids.clear();
    let text = report::terminal(&run, Style::default());
    assert!(!text.contains(&format!("!{p99}")) && !text.contains("! is not valid"), "{text}");
}

/// Claim: numbers of steps, of flows and of a search's trials that an audit voids have the mark, and those of other families
/// have none.
#[test]
fn void_numbers_of_steps_flows_and_searches_are_marked() {
    let flow = FlowResult {
        name: "checkout".to_owned(),
        begun: 7_700,
        completed: 5_500,
        rejected: 1_111,
        unknown: 1_089,
        completed_per_s: 183.3,
        p99_ns: Some(2_460_000),
        ..FlowResult::default()
    };
    let of = |family: Option<Family>| {
        let (mut run, picture) = html_samples::named("clean");
        let trial = &mut run.settings[0].trials[0];
        trial.steps = Some(sample_parts::one_step());
        trial.flows = Some(FlowsResult { flows: vec![flow.clone()], ..FlowsResult::default() });
        let voids = family.into_iter().map(Voided::either).collect();
        trial.audits[0] = AuditResult { voids, ..trial.audits[0].clone() };
        [report::terminal(&run, Style { width: 160, ..Style::default() }), page_of(&(run, picture))]
    };
    let families: [(Family, &[&str]); 6] = [
        (Family::Response, &["!413 µs", "!1.38 ms", "!2.46 ms"]),
        (Family::Offered, &["!51.00", "!6,600", "!7,700"]),
        (Family::Committed, &["!50.50", "!1,585", "!5,500", "!183.3"]),
        (Family::Outstanding, &["!777"]),
        (Family::Failures, &["!2,012", "!1,111"]),
        (Family::Timeouts, &["!3,003", "!1,089"]),
    ];
    for (family, marked) in families {
        for text in of(Some(family)) {
            for marked in marked {
                assert!(text.contains(marked), "{family:?} {marked}: {text}");
            }
        }
    }
    for (_, marked) in families {
        for text in of(Some(Family::Bytes)) {
            assert!(marked.iter().all(|marked| !text.contains(marked)), "{marked:?}: {text}");
        }
    }
    let mut run = made_runs::search();
    let trial = &mut run.settings[0].trials[0];
    let goodput = format!("!{:.2}", trial.rates.goodput_per_s);
    assert!(!report::terminal(&run, Style::default()).contains(&goodput));
    let trial = &mut run.settings[0].trials[0];
    trial.audits[0].voids = vec![Voided::either(Family::Committed)];
    let text = report::terminal(&run, Style::default());
    assert!(text.contains(&goodput), "{goodput}: {text}");
}

/// Claim: each answer has a mark of its own, in the terminal and on the page.
#[test]
fn each_answer_has_its_mark() {
    let (mut run, picture) = html_samples::named("clean");
    for (answer, mark) in Answer::ALL.into_iter().zip(['✗', '!', '?', '✓']) {
        let promise = &mut run.settings[0].trials[0].thresholds[0];
        promise.answer = answer;
        promise.detail = "the interval has the limit in it".to_owned();
        let expr = promise.expr.clone();
        let terminal = report::terminal(&run, Style::default());
        assert!(terminal.contains(&format!("  {mark} {expr}")), "{terminal}");
        let page = page_of(&(run.clone(), picture.clone()));
        let said = elements(&page)
            .into_iter()
            .find(|it| it.text.contains("has the limit in it") && it.tag.name == "td");
        assert!(said.expect("its cell").text.starts_with(mark), "{mark}");
    }
}
