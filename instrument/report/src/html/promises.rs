//! Thresholds with what they were compared with, and audits: what objects in full, what holds in little room.
//!
//! It must never let a skipped audit or a threshold that could not be evaluated pass for one that holds.

use model::result::{Answer, AuditFacts, AuditOutcome, AuditResult, ThresholdResult};

use super::Run;
use super::markup::{details, list, paragraph, text};
use super::tables::of_words;
use crate::paint::{Paint, outcome_mark};
use crate::tables::{self, AuditLine, Of, Shown};

pub(super) fn promises(run: &Run<'_>) -> String {
    if run.shown.is_empty() {
        return String::new();
    }
    let mut markup = thresholds(&run.shown);
    markup.push_str(&audits(run));
    markup.push_str(&checks(&run.shown));
    markup
}

/// A row a trial, a column a threshold.
fn thresholds(shown: &[Shown<'_>]) -> String {
    let keys = tables::threshold_keys(shown);
    if keys.is_empty() {
        let none =
            "The experiment declares no threshold: nothing was promised, so nothing can break.";
        return format!("<h3>Thresholds</h3>\n{}", paragraph("empty", none));
    }
    let names: Vec<String> = keys
        .iter()
        .map(|(expr, level)| match *level {
            "fail" => (*expr).to_owned(),
            level => format!("{expr} [{level}]"),
        })
        .collect();
    let mut heads = vec![("setting", "text")];
    heads.extend(names.iter().map(|name| (name.as_str(), "text")));
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            let cell = |(expr, level): &(&str, &str)| {
                let of = &row.trial.thresholds;
                let found = of.iter().find(|it| it.expr == *expr && it.level == *level);
                found.map_or_else(|| "<td class=\"dim\">–</td>".to_owned(), threshold)
            };
            let mut cells = vec![text(&row.label)];
            cells.extend(keys.iter().map(cell));
            cells
        })
        .collect();
    let legend = if shown.iter().flat_map(|row| &row.trial.thresholds).any(|it| it.level != "fail")
    {
        "A threshold without a word after it makes the run fail; [saturated] marks a setting as saturated, \
         [invalid] makes it invalid, [warn] only warns."
    } else {
        ""
    };
    let table =
        of_words("thresholds", "Thresholds with the values they were compared with", &heads, &rows);
    format!("<h3>Thresholds</h3>\n{table}{}", paragraph("legend", legend))
}

/// What a threshold came to.
fn threshold(of: &ThresholdResult) -> String {
    let (mark, paint) = tables::threshold_mark(of);
    let class = match paint {
        Paint::Good => "good",
        Paint::Bad => "bad",
        _ => "warn",
    };
    let word = match (of.answer, of.level.as_str()) {
        (Answer::Broken, "saturated") => " saturated",
        (Answer::Broken, "warn") => " warns",
        (Answer::Broken, "invalid") => " invalid",
        (Answer::Broken, _) => " broken",
        _ => "",
    };
    let said = format!("{mark} {}{word}", tables::threshold_words(of));
    format!("<td class=\"{class}\">{}</td>", text(&said))
}

fn audits(run: &Run<'_>) -> String {
    let all = tables::audits(run.result, &run.shown);
    let host = &run.result.environment.warnings;
    if all.is_empty() && host.is_empty() {
        return String::new();
    }
    let mut markup = format!(
        "<h3>Audits</h3>\n{}",
        paragraph(
            "count",
            &format!("Tests of the measurement itself: {}.", tables::audit_count(&all))
        )
    );
    let mut objections = lines(&all, &run.shown, |outcome| outcome >= AuditOutcome::Warn);
    objections.extend(host.iter().map(|it| Line {
        class: "warn",
        verdict: "! warns".to_owned(),
        name: "host".to_owned(),
        said: text(it),
    }));
    markup.push_str(&folded("objections", &objections, &run.result.audits_asked));
    markup.push_str(&matrix(run));
    let skipped = lines(&all, &run.shown, |outcome| outcome == AuditOutcome::Skipped);
    markup.push_str(&details("skipped", "Why audits were skipped", &plain("audits", &skipped)));
    let ok = lines(&all, &run.shown, |outcome| outcome == AuditOutcome::Ok);
    markup.push_str(&details(
        "satisfied",
        "What the satisfied audits found",
        &plain("audits", &ok),
    ));
    markup
}

/// What an audit or a check said, as markup but for its name.
struct Line {
    class: &'static str,
    verdict: String,
    name: String,
    said: String,
}

impl Line {
    fn markup(&self, name: &str) -> String {
        let Self { class, verdict, said, .. } = self;
        format!("<span class=\"{class}\">{verdict}</span> <strong>{name}</strong> {said}")
    }
}

/// A line each.
fn plain(class: &str, lines: &[Line]) -> String {
    list(class, &lines.iter().map(|it| it.markup(&text(&it.name))).collect::<Vec<_>>())
}

/// The same audit with the same outcome at many settings says much the same: the first stand here, the others are
/// one click away.
fn folded(class: &str, lines: &[Line], asked: &[AuditFacts]) -> String {
    const OPEN_MAX: usize = 2;
    let mut groups: Vec<Vec<&Line>> = Vec::new();
    for line in lines {
        let is_alike = |of: &&mut Vec<&Line>| of[0].name == line.name && of[0].class == line.class;
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    let mut items: Vec<String> = Vec::new();
    for group in groups {
        let open =
            if group.len() == OPEN_MAX + 1 { group.len() } else { OPEN_MAX.min(group.len()) };
        let (open, rest) = group.split_at(open);
        items.extend(open.iter().enumerate().map(|(index, it)| match index {
            0 => it.markup(&audit_word(&it.name, asked)),
            _ => it.markup(&text(&it.name)),
        }));
        if let (Some(last), false) = (items.last_mut(), rest.is_empty()) {
            let summary = format!("{} more times {}", rest.len(), group[0].name);
            let rest: Vec<String> = rest.iter().map(|it| it.markup(&text(&it.name))).collect();
            last.push_str(&details("alike", &summary, &list("audits", &rest)));
        }
    }
    list(class, &items)
}

/// The name of an audit with what it asks: names such as `clock` and `host` are words of the text, too.
fn audit_word(name: &str, asked: &[AuditFacts]) -> String {
    match asked.iter().find(|it| it.name == name).map(super::glossary::audit) {
        Some(entry) => format!(
            "<dfn class=\"term\" tabindex=\"0\" aria-describedby=\"{}\" data-def=\"{}\">{}</dfn>",
            entry.id(),
            text(&entry.meaning),
            text(name)
        ),
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
            Line { class, verdict: format!("{mark} {word}"), name, said: text(&said) }
        })
        .collect()
}

/// Audits by trial, a mark each.
fn matrix(run: &Run<'_>) -> String {
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
        let Some(audit) = audit else { return "<td class=\"dim\">–</td>".to_owned() };
        let (mark, _) = outcome_mark(audit.outcome);
        let (class, word) = match audit.outcome {
            AuditOutcome::Ok => ("good", "ok"),
            AuditOutcome::Skipped => ("dim", "skipped"),
            AuditOutcome::Warn => ("warn", "warns"),
            AuditOutcome::Failed => ("bad", "failed"),
        };
        // Where all is well the mark says enough to the eye.
        let word = match audit.outcome {
            AuditOutcome::Ok => format!("<span class=\"sr\"> {word}</span>"),
            _ => format!(" {word}"),
        };
        format!("<td class=\"{class}\">{mark}{word}</td>")
    };
    let mut rows: Vec<Vec<String>> = names
        .iter()
        .map(|name| {
            let mut cells = vec![audit_word(name, &run.result.audits_asked)];
            cells.extend(
                shown
                    .iter()
                    .map(|row| cell(row.trial.audits.iter().find(|audit| audit.name == *name))),
            );
            cells
        })
        .collect();
    for audit in &run.result.audits {
        let mut cells =
            vec![format!("{} (across trials)", audit_word(&audit.name, &run.result.audits_asked))];
        cells.extend(shown.iter().map(|_| cell(Some(audit))));
        rows.push(cells);
    }
    format!(
        "<div class=\"matrix\">{}</div>\n",
        of_words("audits", "Audits by setting", &heads, &rows)
    )
}

/// Labels without what all settings share, and without the names of the axes: heads of narrow columns.
fn short_labels(shown: &[Shown<'_>]) -> Vec<String> {
    let differs = |axis: &str| {
        let mut values = shown.iter().map(|row| row.setting.values.get(axis));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    shown
        .iter()
        .map(|row| {
            // The key has the axes in the order of the plan.
            let axes = row.setting.key.split(',').filter_map(|pair| pair.split_once('='));
            let of_key: Vec<&str> =
                axes.filter(|(axis, _)| differs(axis)).map(|(_, label)| label).collect();
            if of_key.is_empty() {
                return row.label.clone();
            }
            let trial = match row.setting.trials.len() {
                0 | 1 => String::new(),
                _ => format!(" #{}", row.trial.trial + 1),
            };
            format!("{}{trial}", of_key.join("\n"))
        })
        .collect()
}

/// The system's own checks of the ledger's content.
fn checks(shown: &[Shown<'_>]) -> String {
    let all = tables::checks(shown);
    if all.is_empty() {
        return String::new();
    }
    let count = format!("Tests of what the ledger holds: {}.", tables::audit_count(&all));
    format!(
        "<h3>Checks of the ledger's content</h3>\n{}{}",
        paragraph("count", &count),
        plain("audits", &lines(&all, shown, |_| true))
    )
}
