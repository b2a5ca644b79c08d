//! Golden pages: what users see, at 80 and 120 columns, kept as files that a person has read.
//!
//! They are written anew only with `ASSAY_TEST_BLESS=1`, as all that tests keep in files; read the difference before it is
//! committed.

use std::path::Path;

use model::picture::RunPicture;
use model::result::{Exit, Verdict};
use report::{Detail, Style};

use crate::html_reader::elements;
use crate::{made_runs, sample_parts};

/// Compares `text` with tests/golden/`name`, or writes it there if that was asked for.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
        std::fs::write(&path, text).expect("tests/golden can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} is not what it was; see the difference with ASSAY_TEST_BLESS=1 and git diff.\n\
         expected:\n{golden}\nfound:\n{text}"
    );
}

/// Claim: pages are the golden ones: three runs whole, at both widths of the terminal, the others once each, for the
/// tables that only they have.
#[test]
fn terminal_pages() {
    for (name, run) in made_runs::whole() {
        for width in [80, 120] {
            let style = Style { width, ..Style::default() };
            check(&format!("{name}.{width}.txt"), &report::terminal(&run, style));
        }
    }
    for (name, run) in made_runs::others() {
        let style = Style { width: 100, ..Style::default() };
        check(&format!("{name}.txt"), &report::terminal(&run, style));
    }
    let verbose = Style { width: 100, verbose: true, ..Style::default() };
    let matrix = made_runs::matrix();
    check("matrix.verbose.txt", &report::terminal(&matrix, verbose));
    let ascii = Style { ascii: true, ..Style::default() };
    check("matrix.ascii.txt", &report::terminal(&matrix, ascii));
    let colour = Style { colour: true, ..Style::default() };
    check("failed.colour.txt", &report::terminal(&made_runs::failed(), colour));
}

/// Claim: of each of eight runs that a reader meets, terminal and page say the same verdict, reason, answer and next step,
/// and what was measured; the terminal's pages are the golden ones, and those of plain runs fit a screen of 80 × 40.
///
/// `ASSAY_TEST_PAGES` names a folder that the pages are written to, to be looked at.
#[test]
fn eight_runs() {
    for (name, ran) in made_runs::eight() {
        let text = report::terminal(&ran.result, Style { width: 80, ..Style::default() });
        check(&format!("eight.{name}.txt"), &text);
        let (lines, is_plain) = (text.lines().count(), ["good", "slow"].contains(&name));
        assert!(lines <= 40 || !is_plain, "{name} has {lines} lines:\n{text}");
        // The page sets expressions in another type where the terminal has backticks.
        let one_line =
            |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "");
        let page = elements(&ran.page);
        let said = one_line(&text);
        for class in ["reason", "subject", "next", "answer"] {
            let of_page = page.iter().find(|it| it.tag.get("class") == Some(class));
            let Some(of_page) = of_page.map(|it| it.text.as_str()) else {
                let may_lack = class == "next" && ran.result.verdict == Verdict::Pass;
                assert!(may_lack, "{name} has no {class}");
                continue;
            };
            let is_of_several = ran.result.settings.len() > 1;
            if class != "answer" || is_of_several {
                let of_page = one_line(of_page);
                assert!(said.contains(&of_page), "{name}, {class}: {of_page}\n{text}");
            }
        }
        if let Some(folder) = std::env::var_os("ASSAY_TEST_PAGES") {
            let path = Path::new(&folder).join(format!("{name}.html"));
            std::fs::write(path, &ran.page).expect("ASSAY_TEST_PAGES names a folder");
        }
    }
}

/// Claim: a load that was withheld is said to be, in terminal, page and list: there is no number of it anywhere, nor the mark
/// of one, and nothing is said to have gone well.
#[test]
fn a_load_that_was_withheld() {
    let ran = made_runs::withheld();
    assert_eq!(ran.result.exit_code, 99);
    let text = report::terminal(&ran.result, Style { width: 80, ..Style::default() });
    check("withheld.txt", &text);
    let page = elements(&ran.page);
    let of_class = |class: &str| -> Vec<String> {
        let found = page.iter().filter(|it| it.tag.get("class") == Some(class));
        found.map(|it| it.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(of_class("value"), ["withheld", "0 of 1"]);
    let below = ["the test request before it failed", "1 warning or failure: see below"];
    assert_eq!(of_class("below"), below);
    assert_eq!(of_class("answer"), ["The load was not sent: the test request before it failed."]);
    let listed = report::list_headline(&ran.result);
    assert_eq!(listed[0], ("goodput".to_owned(), "withheld".to_owned()));
    let markdown = report::markdown(&ran.result);
    for said in [&text, &markdown, &page[0].text] {
        for never in ["!0", " 0/s", "(0/s", "0 samples beyond it", "Nothing failed", "Unreliable:"]
        {
            assert!(!said.contains(never), "{never}: {said}");
        }
    }
}

/// Claim: of loads the answer says up to which the thresholds are kept, and not up to which the system keeps up.
#[test]
fn the_answer_is_to_the_thresholds() {
    for (limit, answer) in [
        ("10ms", "None of the 5 loads keeps p99 < 10ms; at 100/s it is 44.4 ms. "),
        ("1h", "It keeps up with 180/s, where p99 is 147 ms; at 220/s, 5.32% does not get through"),
    ] {
        let text = report::terminal(
            &made_runs::matrix_within(limit),
            Style { width: 400, ..Style::default() },
        );
        assert!(text.contains(answer), "{limit}: {text}");
    }
}

/// Claim: failures that the experiment declares are marked so, and the last line counts them.
#[test]
fn failures_as_declared() {
    let run = made_runs::as_declared();
    assert_eq!((run.verdict, run.exit_code), (Verdict::Pass, 0));
    let text = report::terminal(&run, Style { width: 200, ..Style::default() });
    assert!(text.contains("✗ lost == 0  as declared: failed in 3"), "{text}");
    let last = "exit code 0: 3 failures, all declared in the experiment (expect = \"fail\")";
    assert_eq!(text.lines().last(), Some(last), "{text}");
    assert!(text.contains("0 of 3,000 acknowledged were lost or doubled"), "{text}");
}

/// Claim: where some are never answered, the p99 of the first screen and of the list is that of all that were due, which a
/// threshold means, and the committed stand beside it.
#[test]
fn one_p99() {
    let run = made_runs::failed();
    let text = report::terminal(&run, Style { width: 100, ..Style::default() });
    let due = "response time of all due   p50 8.77 ms   p95 47.3 ms   p99 inf   max inf";
    assert!(text.contains(due), "{text}");
    assert!(text.contains("of the committed   p50 9.93 ms   p95 44.8 ms   p99 74.2 ms"), "{text}");
    let listed = report::list_headline(&run);
    assert_eq!(listed.last(), Some(&("p99".to_owned(), "inf".to_owned())));
}

/// Claim: where the names of axes do not fit, settings are called by their values in the order of the experiment, and a
/// switch keeps its axis; charts call them in the same order.
#[test]
fn settings_of_two_switches() {
    let keys = ["false,hedged=false", "false,hedged=true", "true,hedged=false", "true,hedged=true"];
    let of = |key: &&str| {
        let key = format!("push={key}");
        sample_parts::setting(&key, vec![sample_parts::trial(&key)])
    };
    let settings = keys.iter().map(of).collect();
    let run = sample_parts::run("switches", Exit::Ok, "all thresholds are met", settings);
    let text = report::terminal(&run, Style { width: 80, ..Style::default() });
    assert!(text.contains("push=true · hedged=false"), "{text}");
    assert!(!text.contains("hedged=false · push=true") && !text.contains(" · false"), "{text}");
    let figures = report::svg_figures(&run, &RunPicture::default(), Detail::Full);
    let called = |label: &str| figures.iter().any(|figure| figure.svg().contains(label));
    assert!(called("push=true hedged=false") && !called("hedged=false push"));
}
