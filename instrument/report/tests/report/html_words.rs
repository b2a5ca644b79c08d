//! The words of the page: every technical one is explained where the page first uses it.

use std::collections::BTreeSet;

use report::Assets;

use crate::html_reader::{Piece, elements, pieces};
use crate::html_samples;

/// Words that a release engineer need not know: those that the page uses anywhere, beyond plain English.
const TECHNICAL: &[&str] = &[
    "goodput",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "percentile",
    "threshold",
    "audit",
    "own lag",
    "send lag",
    "service time",
    "response time",
    "offered",
    "committed",
    "rejected",
    "unknown",
    "shed",
    "warm-up",
    "drain",
    "measured window",
    "due",
    "outstanding",
    "preflight",
    "fate",
    "fates",
    "phantom",
    "lost",
    "duplicate",
    "ledger",
    "interval",
    "inf",
    "achieved",
    "saturation",
    "saturated",
    "knee",
    "vegeta",
    "seed",
    "survivorship",
    "probe",
    "trial",
    "setting",
    "stage",
    "generator",
    "governor",
    "CRC-32",
    "samples beyond",
    "of all due",
    "client-side",
    "overloaded",
    "limited",
    "transport",
    "backlog",
    "histogram",
    "quantile",
    "HdrHistogram",
    "exit code",
    "fidelity switch",
    "reordered",
    "io_uring",
    "density",
    "throughput",
    "send_lag",
    "latency",
    "load average",
    "clock source",
    "littles_law",
    "backlog_drift",
    "generator_busy",
    "steal_share",
    "load1",
    "hypervisor",
    "rss_bytes",
    "batch means",
    "student's t",
    "order statistics",
    "tx",
    "n",
    "\u{221e}",
];

/// Not looked into: code and charts, and what can be clicked.
const LEFT_ALONE: &[&str] = &["svg", "pre", "code", "a", "button", "summary", "select", "h1"];

/// The texts of a page's sections in order, with whether each is the content of a term. What only ears get is left out.
fn texts(page: &str) -> Vec<(String, bool)> {
    let mut texts = Vec::new();
    let mut open: Vec<(bool, bool, bool)> = Vec::new();
    for piece in pieces(page) {
        let (in_section, alone, term) = open.last().copied().unwrap_or_default();
        match piece {
            Piece::Open(tag) => {
                let class = tag.get("class").unwrap_or("");
                let is_section = tag.name == "section" && tag.get("id").is_some();
                let is_alone = LEFT_ALONE.contains(&tag.name.as_str()) || class == "sr";
                open.push((in_section || is_section, alone || is_alone, term || class == "term"));
            }
            Piece::Close(_) => {
                open.pop();
            }
            Piece::Text(text) if in_section && !alone => texts.push((text, term)),
            Piece::Text(_) => {}
        }
    }
    texts
}

fn has_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    text.match_indices(&word).any(|(at, _)| {
        let is_part = |c: Option<char>| {
            c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '=' | '&' | '-'))
        };
        let after = &text[at + word.len()..];
        let ends = ["", "s", "es"].into_iter().filter_map(|plural| after.strip_prefix(plural));
        let mut ends = ends.map(|rest| !is_part(rest.chars().next()));
        !is_part(text[..at].chars().next_back()) && ends.any(|is_end| is_end)
    })
}

/// Claim: where a page first uses a technical word it is marked, the mark explains it, and no word is marked twice.
#[test]
fn technical_words_are_explained() {
    let mut met = BTreeSet::new();
    for (name, run) in html_samples::all() {
        let page = report::html(&[run], &Assets::built()).expect("a page");
        let texts = texts(&page);
        for word in TECHNICAL {
            let Some((text, is_term)) = texts.iter().find(|(text, _)| has_word(text, word)) else {
                continue;
            };
            met.insert(*word);
            assert!(*is_term, "{name}: `{word}` is not explained in: {text}");
        }
        let all = elements(&page);
        let terms = all.iter().filter(|it| it.tag.name == "span");
        let terms = terms.filter(|it| it.tag.get("class") == Some("term"));
        let mut marked = BTreeSet::new();
        for term in terms {
            let is_first = marked.insert(term.text.to_lowercase());
            assert!(is_first, "{name}: `{}` is explained twice", term.text);
        }
    }
    assert!(met.len() > TECHNICAL.len() * 2 / 3, "the list is of other pages: only {met:?}");
}

/// Claim: a word of the glossary says the same as GLOSSARY.md.
#[test]
fn the_glossary_agrees() {
    let page = report::html(&[html_samples::named("clean")], &Assets::built()).expect("a page");
    let list = page.split_once("<dl id=\"glossary\">").expect("a glossary").1;
    for (word, start) in [
        ("goodput", "rate of transactions that reached the final stage in time"),
        ("own lag", "sent − ready: the part of the send lag that is the instrument"),
        ("knee", "the last setting before saturation"),
    ] {
        assert!(list.contains(&format!("<dt>{word}</dt>")), "{word}");
        assert!(list.contains(start), "{word}: {start}");
    }
}
