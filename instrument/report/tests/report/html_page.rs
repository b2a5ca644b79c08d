//! The page as a document: its parts and their order, ids and references, what it loads, several runs, the same bytes.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use report::Assets;

use crate::html_reader::elements;
use crate::html_samples;

/// Claim: ids are unique, and every reference within the page has its target, also with several runs.
#[test]
fn references_have_targets() {
    let runs: Vec<_> = ["clean", "liar", "matrix"].map(html_samples::named).into_iter().collect();
    let page = report::html(&runs, &Assets::built()).expect("a page");
    let all = elements(&page);
    let mut ids = BTreeSet::new();
    for id in all.iter().filter_map(|it| it.tag.get("id")) {
        assert!(ids.insert(id.to_owned()), "{id} stands twice");
    }
    let mut seen = 0;
    for it in &all {
        for key in ["aria-labelledby", "aria-describedby"] {
            for id in it.tag.get(key).unwrap_or("").split_whitespace() {
                assert!(ids.contains(id), "{key}={id} leads nowhere");
                seen += 1;
            }
        }
        if let Some(id) = it.tag.get("href").and_then(|href| href.strip_prefix('#')) {
            assert!(ids.contains(id), "#{id} leads nowhere");
        }
    }
    assert!(seen > 100);
    assert_eq!(all.iter().filter(|it| it.tag.name == "article").count(), 3);
    assert_eq!(all.iter().filter(|it| it.tag.get("data-name") == Some("runs")).count(), 1);
}

/// Claim: sections stand in the order of the report, those without content are absent, and each has its heading.
#[test]
fn sections_are_in_order() {
    for (name, run) in html_samples::all() {
        let page = report::html(&[run], &Assets::built()).expect("a page");
        let keys: Vec<String> = elements(&page)
            .iter()
            .filter(|it| it.tag.name == "section")
            .filter_map(|it| it.tag.get("id")?.strip_prefix("r0-").map(str::to_owned))
            .collect();
        let order: Vec<&str> = report::PAGE_SECTIONS.iter().map(|it| it.key).collect();
        let places: Vec<Option<usize>> =
            keys.iter().map(|key| order.iter().position(|it| it == key)).collect();
        assert!(
            places.windows(2).all(|pair| pair[0].is_some() && pair[0] < pair[1]),
            "{name}: {keys:?}"
        );
        for must in ["verdict", "promises", "results", "failures", "method"] {
            assert!(keys.iter().any(|key| key == must), "{name}: no {must} in {keys:?}");
        }
    }
}

/// Claim: the page loads nothing, runs nothing but its own script, and its policy allows exactly its style and script.
#[test]
fn nothing_is_loaded() {
    let run = html_samples::named("failed");
    let assets = Assets::built();
    let page = report::html(&[run], &assets).expect("a page");
    let mut policy = String::new();
    for it in elements(&page) {
        for (key, value) in &it.tag.attributes {
            assert!(!key.starts_with("on") && key != "style" && key != "src", "{it:?}");
            if key == "href" {
                assert!(value.starts_with('#') || value == "data:,", "{it:?}");
            }
        }
        if it.tag.get("http-equiv").is_some() {
            policy = it.tag.get("content").unwrap_or("").to_owned();
        }
    }
    let hash = |of: &str| {
        let digest = ring::digest::digest(&ring::digest::SHA256, of.as_bytes());
        format!("'sha256-{}'", STANDARD.encode(digest))
    };
    let between = |open: &str, close: &str| {
        let from = page.rfind(open).expect("it is there") + open.len();
        page[from..from + page[from..].find(close).expect("it ends")].to_owned()
    };
    let style = page
        .split_once("<style>")
        .and_then(|(_, rest)| rest.split_once("</style>"))
        .expect("a style")
        .0;
    let script = between("<script>", "</script>");
    assert_eq!(script, assets.script);
    assert!(style.contains(report::SVG_STYLE) && style.ends_with(assets.style));
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(policy.contains(&format!("style-src {};", hash(style))), "{policy}");
    assert!(policy.contains(&format!("script-src {};", hash(&script))), "{policy}");
}

/// Claim: no height is a guess that scrolling corrects: what is below the window is laid out like the rest.
#[test]
fn nothing_jumps() {
    let style = Assets::built().style;
    for guess in ["content-visibility:auto", "contain-intrinsic"] {
        assert!(!style.replace(": ", ":").contains(guess), "{guess}");
    }
}

/// Claim: on a page of two runs no two landmarks have one name and no two elements one id, though both runs have the same
/// sections.
#[test]
fn two_runs_in_one_page() {
    let runs = ["clean", "failed"].map(html_samples::named);
    let page = report::html(&runs, &Assets::built()).expect("a page");
    let found = elements(&page);
    for attribute in ["id", "aria-labelledby"] {
        let mut all: Vec<&str> = found.iter().filter_map(|it| it.tag.get(attribute)).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert!(count > 10 && all.len() == count, "{attribute}: {count}, {} different", all.len());
    }
    assert!(found.iter().any(|it| it.tag.get("id") == Some("r1-results")), "{page}");
}

/// Claim: the same results give the same bytes.
#[test]
fn the_same_bytes() {
    let page = || report::html(&[html_samples::named("liar")], &Assets::built()).expect("a page");
    assert_eq!(page(), page());
}

/// Claim: a picture that is not of the result, and no run at all, are refused with what to do.
#[test]
fn what_does_not_fit_is_refused() {
    let (run, mut picture) = html_samples::named("matrix");
    picture.trials.pop();
    let error = report::html(&[(run, picture)], &Assets::built()).expect_err("refused").to_string();
    assert!(error.contains("compute both from the same folder"), "{error}");
    let error = report::html(&[], &Assets::built()).expect_err("refused").to_string();
    assert!(error.contains("name a run folder"), "{error}");
}

/// Claim: what a release engineer must see first stands first: the word, the reason, what the exit code means, what was
/// declared, and that invalid numbers are not to be used.
#[test]
fn the_answer_comes_first() {
    for (name, wanted) in [
        (
            "failed",
            vec!["FAIL", "2 of 3 thresholds are broken", "Exit code 99", "under one second?"],
        ),
        ("invalid", vec!["INVALID", "send lag", "Do not use the numbers"]),
        ("liar", vec!["Fidelity switch on:", "acknowledges before it stores"]),
        ("interrupted", vec!["Interrupted:"]),
        ("clean", vec!["PASS", "Exit code 0"]),
    ] {
        let page = report::html(&[html_samples::named(name)], &Assets::built()).expect("a page");
        let all = elements(&page);
        let head = all.iter().find(|it| it.tag.get("id") == Some("r0-verdict")).expect("a head");
        for text in wanted {
            assert!(head.text.contains(text), "{name}: {text} in {}", head.text);
        }
    }
    let page = report::html(&[html_samples::named("declared")], &Assets::built()).expect("a page");
    let all = elements(&page);
    for text in ["✓ invalid, as declared", "✗ pass, declared invalid"] {
        let mut cells = all.iter().filter(|it| it.tag.name == "td");
        assert!(cells.any(|it| it.text == text), "{text}");
    }
}

/// Claim: a run that was cut short says so in its banner, and runs of the same name are told apart.
#[test]
fn cut_short_and_alike() {
    let (mut result, picture) = html_samples::named("clean");
    result.interrupted = true;
    let banner = |page: &str| -> String {
        page.split_once("class=\"banner").expect("a banner").1.chars().take(400).collect()
    };
    let page =
        report::html(&[(result.clone(), picture.clone())], &Assets::built()).expect("a page");
    let said = banner(&page);
    assert!(said.contains(" interrupted\"") && said.contains("INTERRUPTED"), "{said}");
    let (mut second, pictured) = html_samples::named("clean");
    second.started = "2031-01-02T03:04:05Z".to_owned();
    let page = report::html(&[(result, picture), (second.clone(), pictured)], &Assets::built())
        .expect("a page");
    let name = format!("{} of 2031-01-02T03:04:05Z</h1>", second.name);
    assert!(page.contains(&name), "{name}");
    let link = format!("{} of 2031-01-02T03:04:05Z</a>", second.name);
    assert_eq!(page.matches(&link).count(), 2, "in the contents and in the overview: {link}");
}

/// Claim: a metric that is zero throughout is folded away, one that is not stays in the open.
#[test]
fn zeros_are_folded() {
    let (result, mut picture) = html_samples::named("clean");
    for trial in &mut picture.trials {
        let busy = trial.series.first().expect("a series").clone();
        let mut zero = busy.clone();
        zero.name = "steal_cores".to_owned();
        for values in [&mut zero.min, &mut zero.mean, &mut zero.max] {
            values.iter_mut().for_each(|value| *value = 0.0);
        }
        trial.series = vec![busy, zero];
    }
    let page = report::html(&[(result, picture)], &Assets::built()).expect("a page");
    let (open, folded) = page.split_once("<details class=\"quiet\">").expect("folded charts");
    assert!(folded.starts_with("<summary>Zero throughout: Cores stolen by the hypervisor<"));
    assert_eq!(open.matches(".steal_cores\"").count(), 0);
    assert_eq!(open.matches("data-chart=\"series\"").count(), 1);
}

/// Claim: the audit that objects at many settings stands once in the open, and no objection is left out.
#[test]
fn objections_are_grouped() {
    let (mut result, picture) = html_samples::named("matrix");
    let mut said = 0;
    for trial in result.settings.iter_mut().flat_map(|it| &mut it.trials) {
        trial.audits.retain(|it| it.outcome == model::result::AuditOutcome::Ok);
        let audit = trial.audits.first_mut().expect("an audit that is satisfied");
        audit.name = "send_lag".to_owned();
        audit.outcome = model::result::AuditOutcome::Failed;
        audit.detail = format!("objection {said}.");
        said += 1;
    }
    assert!(said > 3, "{said}");
    let question = "How late was the instrument itself?".to_owned();
    let asked = model::result::AuditFacts { name: "send_lag".to_owned(), question };
    result.audits_asked.push(asked);
    let page = report::html(&[(result, picture)], &Assets::built()).expect("a page");
    let list = page.split_once("<ul class=\"objections\">").expect("objections").1;
    let (list, _) = list.split_once("class=\"matrix\"").expect("a matrix");
    for number in 0..said {
        assert_eq!(list.matches(&format!("objection {number}.")).count(), 1, "{number}");
    }
    assert!(list.contains(&format!("{} more times send_lag", said - 2)));
    assert!(list.contains("<dfn class=\"term\""));
}
