//! Thresholds with what they were compared with, and audits: what objects in full and in the open, what holds in one line
//! with all of it folded below.
//!
//! It must never let a skipped audit or a threshold that could not be evaluated pass for one that holds.

use model::result::{
    Answer, AuditFacts, AuditOutcome, AuditResult, RunResult, SettingResult, ThresholdResult,
    Verdict,
};

use super::Run;
use super::markup::{Element, Markup, details, el, list, paragraph, said, text};
use super::tables::{class_of, of_cells, words};
use crate::called;
use crate::paint::{Paint, outcome_mark};
use crate::tables::{self, AuditLine, Of, Shown};

pub(crate) fn promises(run: &Run<'_>) -> Markup {
    if run.shown.is_empty() {
        return Markup::new();
    }
    thresholds(run).and(statements(run)).and(audits(run)).and(checks(&run.shown))
}

/// Each promise about a time as a sentence that stands alone; of a search in the open.
fn statements(run: &Run<'_>) -> Markup {
    let all = run.result.statements.iter().map(|it| text(&it.words)).collect();
    let Some(all) = list("statements", all) else { return Markup::new() };
    match run.result.search {
        Some(_) => Markup::from(el("h3").text("In one sentence")).and(all),
        None => details("statements", "In one sentence each", all.into()).into(),
    }
}

/// Settings whose verdict was declared before the run.
fn declared(result: &RunResult) -> Vec<Markup> {
    let line = |setting: &SettingResult| {
        let expect = setting.expect?;
        let word = setting.verdict.word();
        Some(if expect == setting.verdict {
            let so = match setting.verdict {
                Verdict::Invalid => "Its numbers mean nothing all the same.",
                _ => "",
            };
            Markup::from(el("strong").text(&format!("✓ {word}, as declared:"))).and(said(" ")).and(
                text(&format!(
                    "the experiment says beforehand that {} comes out {word}, and it does. {so}",
                    setting.key
                )),
            )
        } else {
            let came = format!("✗ {word}, declared {}:", expect.word());
            Markup::from(el("strong").text(&came)).and(said(" ")).and(text(&setting.key))
        })
    };
    result.settings.iter().filter_map(line).collect()
}

/// Thresholds that are not met everywhere, how many are, and all of them folded: a row a trial, a column a threshold.
fn thresholds(run: &Run<'_>) -> Markup {
    let shown = &run.shown;
    let keys = tables::threshold_keys(shown);
    let heading = Markup::from(el("h3").text("Thresholds"));
    let declared = list("declared", declared(run.result));
    if keys.is_empty() {
        let none = "The experiment declares no threshold, so none can fail.";
        return heading.and(paragraph("empty", none)).and(declared);
    }
    let (broken, held): (Vec<_>, Vec<_>) =
        tables::thresholds(shown).into_iter().zip(&keys).partition(|(line, _)| line.is_broken);
    let lines = broken.iter().map(|(line, (_, level))| {
        // A limit that was looked for is no promise: that it broke is the finding.
        let (mark, found) = match *level {
            "saturated" if line.paint == Paint::Caution => ("◐", "limit found, as intended: "),
            _ => (line.mark, ""),
        };
        Markup::from(el("span").class(class_of(line.paint)).text(mark))
            .and(said(" "))
            .and(el("strong").text(&line.expr))
            .and(said(" "))
            .and(said(found))
            .and(text(&line.text))
    });
    let holds: Vec<String> = held.iter().map(|(line, _)| line.expr.clone()).collect();
    let holds = match holds.as_slice() {
        [] => String::new(),
        some => format!("✓ everywhere: {}", some.join(" · ")),
    };
    let names: Vec<String> = keys
        .iter()
        .map(|(expr, level)| match *level {
            "fail" => (*expr).to_owned(),
            level => format!("{expr} [{level}]"),
        })
        .collect();
    let mut heads = vec![("setting", "text")];
    heads.extend(names.iter().map(|name| (name.as_str(), "text")));
    let rows = shown.iter().map(|row| {
        let cell = |(expr, level): &(&str, &str)| {
            let of = &row.trial.thresholds;
            let found = of.iter().find(|it| it.expr == *expr && it.level == *level);
            found.map_or_else(|| words("–").class("dim"), threshold)
        };
        std::iter::once(words(&row.label)).chain(keys.iter().map(cell)).collect()
    });
    let has_levels =
        shown.iter().flat_map(|row| &row.trial.thresholds).any(|it| it.level != "fail");
    let legend = if has_levels {
        "A threshold without a word after it makes the run fail; [saturated] marks a setting as saturated, \
         [invalid] makes it invalid, [warn] only warns."
    } else {
        ""
    };
    let caption = "Thresholds with the values they were compared with";
    let table = Markup::from(of_cells("thresholds", caption, &heads, rows.collect()));
    let table =
        details("part", "Every threshold with its value", table.and(paragraph("legend", legend)));
    heading
        .and(list("objections", lines.collect()))
        .and(paragraph("count", &holds))
        .and(declared)
        .and(table)
}

/// The answer of a threshold.
fn threshold(of: &ThresholdResult) -> Element {
    let (mark, paint) = tables::threshold_mark(of);
    let class = match paint {
        Paint::Good => "good",
        Paint::Bad => "bad",
        _ => "warn",
    };
    let word = match (of.answer, of.level.as_str()) {
        (Answer::Failed, "saturated") => " saturated",
        (Answer::Failed, "warn") => " warns",
        (Answer::Failed, "invalid") => " invalid",
        (Answer::Failed, _) => " failed",
        _ => "",
    };
    words(&format!("{mark} {}{word}", tables::threshold_words(of))).class(class)
}

fn audits(run: &Run<'_>) -> Markup {
    let all = tables::audits(run.result, &run.shown);
    let host = &run.result.environment.warnings;
    if all.is_empty() && host.is_empty() {
        return Markup::new();
    }
    let count = format!("Tests of the measurement itself: {}.", tables::audit_count(&all));
    let mut objections = lines(&all, &run.shown, |outcome| outcome >= AuditOutcome::Warn);
    objections.extend(host.iter().map(|it| Line {
        class: "warn",
        verdict: "! warns".to_owned(),
        name: "host".to_owned(),
        said: it.clone(),
    }));
    let skipped = lines(&all, &run.shown, |outcome| outcome == AuditOutcome::Skipped);
    let ok = lines(&all, &run.shown, |outcome| outcome == AuditOutcome::Ok);
    Markup::from(el("h3").text("Audits"))
        .and(paragraph("count", &count))
        .and(folded("objections", &objections, &run.result.audits_asked))
        .and(details("part", "Every audit by setting", matrix(run)))
        .and(details("skipped", "Why audits were skipped", plain("audits", &skipped).into()))
        .and(details("satisfied", "What the satisfied audits found", plain("audits", &ok).into()))
}

/// The finding of an audit or a check.
struct Line {
    class: &'static str,
    verdict: String,
    name: String,
    said: String,
}

impl Line {
    fn markup(&self, name: Markup) -> Markup {
        Markup::from(el("span").class(self.class).text(&self.verdict))
            .and(said(" "))
            .and(el("strong").add(name))
            .and(said(" "))
            .and(text(&self.said))
    }
}

/// A line each.
fn plain(class: &str, lines: &[Line]) -> Option<Element> {
    list(class, lines.iter().map(|it| it.markup(text(&it.name))).collect())
}

/// The same audit with the same outcome at many settings says much the same: the first stand here, the others are
/// one click away.
fn folded(class: &str, lines: &[Line], asked: &[AuditFacts]) -> Option<Element> {
    const OPEN_MAX: usize = 2;
    let mut groups: Vec<Vec<&Line>> = Vec::new();
    for line in lines {
        let is_alike = |of: &&mut Vec<&Line>| of[0].name == line.name && of[0].class == line.class;
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    let mut items: Vec<Markup> = Vec::new();
    for group in groups {
        let open =
            if group.len() == OPEN_MAX + 1 { group.len() } else { OPEN_MAX.min(group.len()) };
        let (open, rest) = group.split_at(open);
        items.extend(open.iter().enumerate().map(|(index, it)| match index {
            0 => it.markup(audit_word(&it.name, asked)),
            _ => it.markup(text(&it.name)),
        }));
        if let (Some(last), false) = (items.last_mut(), rest.is_empty()) {
            let summary = format!("{} more times {}", rest.len(), group[0].name);
            let rest = rest.iter().map(|it| it.markup(text(&it.name))).collect();
            last.push(details("alike", &summary, list("audits", rest).into()));
        }
    }
    list(class, items)
}

/// The name of an audit with what it asks: names such as `clock` and `host` are words of the text, too.
fn audit_word(name: &str, asked: &[AuditFacts]) -> Markup {
    match asked.iter().find(|it| it.name == name).map(super::glossary::audit) {
        Some(entry) => el("dfn")
            .class("term")
            .attr("tabindex", "0")
            .attr("aria-describedby", entry.id())
            .attr("data-def", entry.meaning.as_str())
            .text(name)
            .into(),
        None => text(name),
    }
}

fn lines(all: &[Of<'_>], shown: &[Shown<'_>], wanted: impl Fn(AuditOutcome) -> bool) -> Vec<Line> {
    let lines = tables::audit_lines(all, shown, wanted);
    lines
        .into_iter()
        .map(|AuditLine { mark, paint, name, text: said }| {
            let (class, word) = match paint {
                Paint::Good => ("good", "ok"),
                Paint::Bad => ("bad", "failed"),
                Paint::Caution => ("warn", "warns"),
                _ => ("dim", "skipped"),
            };
            Line { class, verdict: format!("{mark} {word}"), name, said }
        })
        .collect()
}

/// Audits by trial, a mark each.
fn matrix(run: &Run<'_>) -> Markup {
    let shown = &run.shown;
    let mut names: Vec<&str> = Vec::new();
    for audit in shown.iter().flat_map(|row| &row.trial.audits) {
        if !names.contains(&audit.name.as_str()) {
            names.push(&audit.name);
        }
    }
    let short = short_labels(shown);
    let mut heads = vec![("audit", "text")];
    heads.extend(short.iter().map(|label| (label.as_str(), "text")));
    let cell = |audit: Option<&AuditResult>| {
        let Some(audit) = audit else { return words("–").class("dim") };
        let (mark, _) = outcome_mark(audit.outcome);
        let (class, word) = match audit.outcome {
            AuditOutcome::Ok => ("good", "ok"),
            AuditOutcome::Skipped => ("dim", "skipped"),
            AuditOutcome::Warn => ("warn", "warns"),
            AuditOutcome::Failed => ("bad", "failed"),
        };
        let cell = words(mark).class(class).said(" ");
        // Where all is well the mark says enough to the eye.
        match audit.outcome {
            AuditOutcome::Ok => cell.add(el("span").class("sr").text(word)),
            _ => cell.text(word),
        }
    };
    let asked = &run.result.audits_asked;
    let of_name = |name: &&str| {
        let cells = shown
            .iter()
            .map(|row| cell(row.trial.audits.iter().find(|audit| audit.name == **name)));
        std::iter::once(el("td").add(audit_word(name, asked))).chain(cells).collect()
    };
    let mut rows: Vec<Vec<Element>> = names.iter().map(of_name).collect();
    for audit in &run.result.audits {
        let name = el("td").add(audit_word(&audit.name, asked)).said(" (across trials)");
        let cells = shown.iter().map(|_| cell(Some(audit)));
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    let table = of_cells("audits", "Audits by setting", &heads, rows);
    Markup::from(table.map(|table| el("div").class("matrix").add(table)))
}

/// Labels without what all settings share, and without the names of the axes: heads of narrow columns.
fn short_labels(shown: &[Shown<'_>]) -> Vec<String> {
    let Some(first) = shown.first() else { return Vec::new() };
    let settings: Vec<&SettingResult> = shown.iter().map(|row| row.setting).collect();
    let axes = called::differing(first.axes, &settings);
    shown
        .iter()
        .map(|row| {
            let part = |axis: &&str| Some(called::alone(axis, row.setting.values.get(*axis)?));
            let parts: Vec<String> = axes.iter().filter_map(part).collect();
            if parts.is_empty() {
                return row.label.clone();
            }
            let trial = match row.setting.trials.len() {
                0 | 1 => String::new(),
                _ => format!(" #{}", row.trial.trial + 1),
            };
            format!("{}{trial}", parts.join("\n"))
        })
        .collect()
}

/// The system's own checks of the ledger's content: what objects in the open.
fn checks(shown: &[Shown<'_>]) -> Markup {
    let all = tables::checks(shown);
    if all.is_empty() {
        return Markup::new();
    }
    let count = format!("Tests of what the ledger holds: {}.", tables::audit_count(&all));
    let objections = lines(&all, shown, |outcome| outcome >= AuditOutcome::Warn);
    let others = lines(&all, shown, |outcome| outcome < AuditOutcome::Warn);
    Markup::from(el("h3").text("Checks of the ledger's content"))
        .and(paragraph("count", &count))
        .and(plain("audits", &objections))
        .and(details("satisfied", "What the other checks found", plain("audits", &others).into()))
}
