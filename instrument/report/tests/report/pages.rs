//! Rules for every page, whatever the result: widths, colours, ASCII, the words beside the marks.

use std::time::Duration;

use model::fault::{FaultDetail, FaultEvent, FaultPhase};
use model::result::{AuditOutcome, Verdict};
use report::{
    BLOCK_LINES_MAX, CheckEffective, CheckFinding, CheckSetting, CheckView, ListEntry, LiveLatency,
    LiveRecord, LiveThreshold, LiveView, Style,
};

use crate::golden::check;
use crate::{made_runs, sample_runs};

/// Visible characters of a line: none of the samples holds wide or combining ones.
fn columns(line: &str) -> usize {
    line.chars().count()
}

/// `text` without ANSI escapes.
fn bare(text: &str) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('\x1b') {
        done.push_str(&rest[..start]);
        let end = rest[start..].find('m').expect("only colours are printed");
        rest = &rest[start + end + 1..];
    }
    done.push_str(rest);
    done
}

/// Claim: no line of any page is wider than the terminal, at any width from 40 to 160.
#[test]
fn no_line_is_too_wide() {
    for (name, run) in sample_runs::all() {
        for width in 40..=160 {
            for verbose in [false, true] {
                let style = Style { width, verbose, ..Style::default() };
                for line in report::terminal(&run, style).lines() {
                    assert!(columns(line) <= width, "{name} at {width}: {line}");
                }
            }
        }
    }
}

/// Claim: colour adds nothing but escapes, and ASCII is ASCII of the same width.
#[test]
fn colour_and_ascii_change_no_column() {
    for (name, run) in sample_runs::all() {
        let plain = report::terminal(&run, Style::default());
        let colour = report::terminal(&run, Style { colour: true, ..Style::default() });
        assert!(colour.contains("\x1b["), "{name}");
        assert_eq!(bare(&colour), plain, "{name}");
        let ascii = report::terminal(&run, Style { ascii: true, ..Style::default() });
        assert!(ascii.is_ascii(), "{name}");
        for (ascii, plain) in ascii.lines().zip(plain.lines()) {
            assert_eq!(ascii.len(), columns(plain), "{name}: {plain}");
        }
    }
}

/// Claim: the first line has the verdict as a word, and the last the exit code with its meaning.
#[test]
fn answer_first_and_exit_last() {
    for (name, run) in sample_runs::all() {
        let page = report::terminal(&run, Style::default());
        let first = page.lines().next().expect("a line");
        let word = if run.interrupted { "INTERRUPTED" } else { &run.verdict.word().to_uppercase() };
        assert!(first.contains(word) && first.contains(&run.name), "{name}: {first}");
        let last = page.lines().last().expect("a line");
        assert_eq!(last, format!("exit code {}: {}", run.exit_code, run.exit_meaning), "{name}");
    }
}

/// Claim: every audit that objects is on the page in full, in the terminal and in Markdown; no control character is.
#[test]
fn no_objection_is_hidden() {
    for (name, run) in sample_runs::all() {
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = one_line(&report::terminal(&run, Style { width: 400, ..Style::default() }));
        let markdown = report::markdown(&run);
        let trials = run.settings.iter().flat_map(|setting| &setting.trials);
        for audit in trials.flat_map(|trial| &trial.audits) {
            if audit.outcome >= AuditOutcome::Warn {
                assert!(page.contains(&audit.detail), "{name}: {}", audit.name);
                assert!(markdown.contains(&audit.detail), "{name}: {}", audit.name);
            }
        }
        for text in [&page, &markdown] {
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}");
        }
    }
}

/// Claim: what a server answered to most requests is quoted as the next step without driving a terminal.
#[test]
fn the_next_step_is_clean() {
    let mut run = sample_runs::failed();
    let errors = &mut run.settings[0].trials[0].errors;
    (errors[0].count, errors[1].count) = (errors[1].count, errors[0].count);
    errors[1].text = "-ERR \u{1b}]0;PWNED\u{7}\u{1b}[2J".to_owned();
    for text in [report::terminal(&run, Style::default()), report::markdown(&run)] {
        assert!(text.contains("of them: -ERR") && text.contains("PWNED"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}

/// Claim: a percentile that rests on fewer than ten samples beyond it is marked without colour, others are not.
#[test]
fn thin_percentiles_are_marked() {
    let page = report::terminal(&sample_runs::clean(), Style::default());
    assert!(page.contains("~3.31 ms"), "one sample beyond p99.9");
    assert!(!page.contains("~1.24 ms"), "fifteen beyond p99");
}

/// Claim: a result without settings still gives a page with its verdict and its reason.
#[test]
fn nothing_was_measured() {
    let mut run = sample_runs::interrupted();
    run.settings.clear();
    let page = report::terminal(&run, Style::default());
    assert!(page.starts_with("! api-smoke · INTERRUPTED\n  interrupted after 4.2 s"), "{page}");
    assert!(report::markdown(&run).contains("interrupted after 4.2 s"));
}

/// Claim: a trial without a single answer says so, and invents no number.
#[test]
fn nothing_was_answered() {
    let mut run = sample_runs::clean();
    let trial = &mut run.settings[0].trials[0];
    trial.counts.committed = 0;
    trial.counts.unknown = trial.counts.due;
    trial.latency[0].inf = trial.counts.due;
    trial.latency[0].response = model::result::Distribution::default();
    trial.latency[0].service = model::result::Distribution::default();
    trial.rates.goodput_per_s = 0.0;
    trial.vegeta = model::result::VegetaResult::default();
    trial.own_lag = model::result::Distribution::default();
    let page = report::terminal(&run, Style::default());
    assert!(page.contains("failed 1,500 of 1,500 (100%): unknown 1,500"), "{page}");
    assert!(page.contains("0 of 1,500 reached it"), "{page}");
}

/// Claim: Markdown pages are the golden ones, and short enough for a pull request.
#[test]
fn markdown_pages() {
    for (name, run) in made_runs::whole() {
        let page = report::markdown(&run);
        assert!(page.len() < 65_536, "{name}");
        check(&format!("{name}.md"), &page);
    }
    // What nodes say of themselves stands there in a table, and not on the terminal.
    check("nodes.md", &report::markdown(&made_runs::nodes()));
    for (name, run) in sample_runs::all() {
        assert!(report::markdown(&run).len() < 65_536, "{name}");
    }
}

fn live_view() -> LiveView {
    LiveView {
        name: "k-latency".to_owned(),
        position: 7,
        trials: 8,
        key: "k=1000/s".to_owned(),
        phase: "measure".to_owned(),
        elapsed: Duration::from_secs(372),
        total: Duration::from_secs(600),
        eta: Some(Duration::from_secs(3_840)),
        offered_per_s: 1000.0,
        sent_per_s: 999.8,
        committed_per_s: 998.9,
        in_flight: 1_031,
        failed: 12,
        failed_share: 0.000_2,
        own_lag_p99_ns: Some(300_000),
        own_lag_is_ok: true,
        backlog: 0,
        committed_history: (0..300).map(|s| 1000.0 - f64::from(s % 17) * 20.0).collect(),
        p99_history_ns: (0..300)
            .map(|s| (s % 50 != 3).then_some(900_000_000 + s * s * 20_000))
            .collect(),
        latency: LiveLatency {
            of: "probe, verified".to_owned(),
            count: 187,
            inf: 0,
            quantiles: vec![
                ("p50".to_owned(), Some(1_020_000_000)),
                ("p90".to_owned(), Some(1_230_000_000)),
                ("p99".to_owned(), Some(2_020_000_000)),
            ],
        },
        thresholds: vec![
            LiveThreshold {
                expr: "p95 < 2s".to_owned(),
                actual: "1.48 s".to_owned(),
                holds: Some(true),
            },
            LiveThreshold {
                expr: "lost == 0".to_owned(),
                actual: "after the drain".to_owned(),
                holds: None,
            },
        ],
        keys_hint: "q stop".to_owned(),
        ..LiveView::default()
    }
}

/// Claim: a view that is made of the record says what has ended and what has not, and nothing of what is sent; where the
/// schedule does not say what is due, nothing of that either; and faults in words, one that holds a line end in one line.
#[test]
fn a_view_of_the_record() {
    let record = |not_ended| Some(LiveRecord { ended_per_s: 90.0, failed_per_s: 1.5, not_ended });
    let event = FaultEvent {
        fault: 0,
        cycle: 0,
        phase: FaultPhase::Start,
        kind: "pause".to_owned(),
        node: "node\n0".to_owned(),
        planned_ns: 0,
        at_ns: 12_300_000_000,
        detail: FaultDetail::Nothing,
    };
    let faults = vec![report::live_fault(&event)];
    let view = LiveView { record: record(Some(7)), faults, ..live_view() };
    let block = report::live_block(&view, Style { width: 120, ..Style::default() });
    check("live.record.txt", &block);
    assert!(!report::live_line(&view).contains("sent "));
    let line = report::live_line(&LiveView { record: record(None), ..live_view() });
    assert!(!line.contains("offered") && !line.contains("not ended"), "{line}");
}

/// Claim: the live block is the golden one at 80 and 120 columns.
#[test]
fn live_pages() {
    for width in [80, 120] {
        let style = Style { width, ..Style::default() };
        check(&format!("live.{width}.txt"), &report::live_block(&live_view(), style));
    }
    check("live.line.txt", &format!("{}\n", report::live_line(&live_view())));
}

/// Claim: a generator that is late and sends less than is due is said to be asked for too much; one that is merely late, or
/// whose system is, is not.
#[test]
fn more_than_the_machine_can_do() {
    let words = "the rate is more than this machine can do";
    for (lag_is_ok, sent, is_said) in
        [(false, 400.0, true), (false, 999.0, false), (true, 400.0, false)]
    {
        let view = LiveView { own_lag_is_ok: lag_is_ok, sent_per_s: sent, ..live_view() };
        let block = report::live_block(&view, Style::default());
        assert_eq!(block.contains(words), is_said, "{block}");
        assert_eq!(report::live_line(&view).contains(words), is_said);
    }
}

/// Claim: whatever the view, the block can be redrawn in place: at most 14 lines, none wider than the terminal; and
/// the line for logs is one line.
#[test]
fn the_block_can_be_redrawn() {
    let mut busy = live_view();
    busy.name =
        "a name\nwith a line end and \x1b[2J in it, and far longer than any terminal is wide "
            .repeat(4);
    busy.own_lag_is_ok = false;
    busy.in_flight = u64::MAX;
    busy.failed_share = f64::NAN;
    busy.committed_per_s = f64::INFINITY;
    busy.committed_history = vec![f64::NAN, -1.0, f64::INFINITY, 0.0];
    busy.elapsed = busy.total * 3;
    busy.thresholds = (0..30)
        .map(|index| LiveThreshold {
            expr: format!("p99 < {index}s and a very long tail of words that never seems to end"),
            actual: "unknown".to_owned(),
            holds: [Some(true), Some(false), None][index % 3],
        })
        .collect();
    for view in [LiveView::default(), live_view(), busy] {
        for width in 0..200 {
            let block = report::live_block(&view, Style { width, ..Style::default() });
            assert!(block.lines().count() <= BLOCK_LINES_MAX, "{width}:\n{block}");
            assert!(block.lines().all(|line| columns(line) <= width.max(40)), "{width}:\n{block}");
        }
        let line = report::live_line(&view);
        assert!(!line.contains(char::is_control), "{line}");
    }
}

/// Claim: the page of `assay check` is the golden one, and never tells to run what cannot run.
#[test]
fn check_page() {
    let setting = |key: &str, load: &str| CheckSetting {
        key: key.to_owned(),
        load: load.to_owned(),
        warmup: Duration::from_secs(30),
        measure: Duration::from_secs(600),
        trials: 1,
        probe: "250 trials, inf over 30s".to_owned(),
    };
    let finding = |topic: &str, text: &str, outcome| CheckFinding {
        topic: topic.to_owned(),
        text: text.to_owned(),
        outcome,
    };
    let mut view = CheckView {
        name: "k-latency".to_owned(),
        question: "How long does a light client wait?".to_owned(),
        trials: 2,
        wall: Duration::from_secs(1_290),
        offered_max: "2,000 tx/s".to_owned(),
        target: "http http://127.0.0.1:8080/".to_owned(),
        settings: vec![setting("k=0/s", "none"), setting("k=2000/s", "constant 2000/s")],
        thresholds: vec![("p95 < 2s".to_owned(), "fail".to_owned())],
        findings: vec![
            finding("host", "2 cores, governor performance", AuditOutcome::Ok),
            finding("host", "files 1048576, ports 28232", AuditOutcome::Ok),
            finding(
                "cpu",
                "2.60 GHz, now 0.85 GHz: throttled, so numbers will be invalid; set the governor to performance",
                AuditOutcome::Warn,
            ),
            finding("target", "GET / answers 200 in 1.2 ms", AuditOutcome::Ok),
        ],
        effective: vec![CheckEffective {
            path: "load.rate".to_owned(),
            value: "2000/s".to_owned(),
            origin: "k-latency.toml:14".to_owned(),
        }],
        command: "assay run k-latency.toml".to_owned(),
    };
    for width in [80, 120] {
        let style = Style { width, ..Style::default() };
        check(&format!("check.{width}.txt"), &report::check_text(&view, style));
    }
    view.findings.push(finding("target", "connection refused", AuditOutcome::Failed));
    let page = report::check_text(&view, Style { width: 100, ..Style::default() });
    let last = "Nothing was sent. First fix what is marked ✗, then run: assay run k-latency.toml\n";
    assert!(page.ends_with(last), "{page}");
    for width in 40..120 {
        let page = report::check_text(&view, Style { width, ..Style::default() });
        assert!(page.lines().all(|line| columns(line) <= width), "{width}:\n{page}");
    }
}

/// Claim: the list of runs is the golden one, and an empty folder says what to do.
#[test]
fn list_page() {
    let entry = |folder: &str, verdict, state: &str, p99: &str, marks: &[&str]| ListEntry {
        folder: folder.to_owned(),
        started: "2026-11-21 06:50".to_owned(),
        name: "api-smoke".to_owned(),
        verdict,
        state: state.to_owned(),
        settings: 1,
        headline: if p99.is_empty() {
            Vec::new()
        } else {
            vec![("goodput/s".to_owned(), "50.0".to_owned()), ("p99".to_owned(), p99.to_owned())]
        },
        marks: marks.iter().map(|mark| (*mark).to_owned()).collect(),
    };
    let entries = [
        entry("20261121T065032Z_api-smoke", Some(Verdict::Pass), "", "1.24 ms", &["main"]),
        entry("20261121T064832Z_api-smoke", Some(Verdict::Fail), "", "9.24 s", &[]),
        entry("20261121T064032Z_api-smoke", Some(Verdict::Invalid), "", "4.20 ms", &[]),
        entry("20261121T063032Z_api-smoke", None, "cut off", "", &[]),
    ];
    for width in [80, 120] {
        let style = Style { width, ..Style::default() };
        check(&format!("list.{width}.txt"), &report::list_table(&entries, style));
    }
    assert!(report::list_table(&[], Style::default()).contains("assay run demo"));
}

/// Claim: the HDR text has vegeta's columns, HdrHistogram's steps, and counts that rise to all.
#[test]
fn hdr_text() {
    let text = report::hdr_text(24_000, &|q| (q * 1e9) as i64);
    let mut lines = text.lines();
    assert_eq!(
        lines.next().expect("a head").split_whitespace().collect::<Vec<_>>(),
        ["Value(ms)", "Percentile", "TotalCount", "1/(1-Percentile)"]
    );
    let rows: Vec<Vec<f64>> = lines
        .map(|line| line.split_whitespace().map(|cell| cell.parse().expect("a number")).collect())
        .collect();
    assert!((90..=100).contains(&rows.len()), "{}", rows.len());
    assert_eq!(rows[0], [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(rows[5], [500.0, 0.5, 12_000.0, 2.0]);
    assert_eq!(rows[rows.len() - 1], [1000.0, 1.0, 24_000.0, 10_000_000.0]);
    assert!(rows.windows(2).all(|pair| pair[0][1] < pair[1][1] && pair[0][2] <= pair[1][2]));
}
