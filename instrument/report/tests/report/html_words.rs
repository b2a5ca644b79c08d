//! The words of the page: every technical one is explained where a section first uses it.

use std::collections::BTreeSet;

use report::Assets;

use crate::html_reader::{Piece, pieces};
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

/// The texts of a section in order, with whether each is the content of a term.
fn texts(page: &str) -> Vec<(String, Vec<(String, bool)>)> {
    let mut sections: Vec<(String, Vec<(String, bool)>)> = Vec::new();
    let (mut section, mut alone, mut term) = (0, 0, false);
    for piece in pieces(page) {
        match piece {
            Piece::Open(tag) => {
                if tag.name == "section" && tag.get("id").is_some() {
                    section += 1;
                    sections.push((tag.get("id").unwrap_or("").to_owned(), Vec::new()));
                }
                alone += usize::from(LEFT_ALONE.contains(&tag.name.as_str()));
                term |= tag.get("class") == Some("term");
            }
            Piece::Close(name) => {
                section -= usize::from(name == "section" && section > 0);
                alone -= usize::from(LEFT_ALONE.contains(&name.as_str()));
                term &= !matches!(name.as_str(), "span" | "dfn");
            }
            Piece::Text(text) if section > 0 && alone == 0 => {
                if let Some((_, texts)) = sections.last_mut() {
                    texts.push((text, term));
                }
            }
            Piece::Text(_) => {}
        }
    }
    sections
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

/// Claim: where a section uses a technical word, its first use is marked, and the mark explains it.
#[test]
fn technical_words_are_explained() {
    let mut met = BTreeSet::new();
    for (name, run) in html_samples::all() {
        let page = report::html(&[run], &Assets::built()).expect("a page");
        for (section, texts) in texts(&page) {
            for word in TECHNICAL {
                let Some((text, is_term)) = texts.iter().find(|(text, _)| has_word(text, word))
                else {
                    continue;
                };
                met.insert(*word);
                assert!(*is_term, "{name}, {section}: `{word}` is not explained in: {text}");
            }
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
