//! What went wrong: failures by class, errors with an example, by kind and by code, and what could never succeed.
//!
//! It must never mix what this machine did wrong with what the system answered.

use model::quantity::{show_count, show_ns};
use model::result::ErrorResult;

use super::Run;
use super::fates::fates;
use super::markup::{details, list, paragraph, text};
use super::tables::{of_grid, of_words};
use crate::figures::plural;
use crate::grid::Source;
use crate::tables::{self, Shown};

/// Kinds or codes that a table prints: the rest is in summary.json.
pub(super) const GROUPS_SHOWN_MAX: usize = 100;
/// Error texts that a table prints.
pub(super) const ERRORS_SHOWN_MAX: usize = 200;
/// Faults that a table prints.
pub(super) const FAULTS_SHOWN_MAX: usize = 100;
/// Classes that are not the system's answer.
const CLIENT_SIDE: &[&str] = &["transport", "client"];

pub(super) fn failures(run: &Run<'_>) -> String {
    if run.shown.is_empty() {
        return String::new();
    }
    let mut markup = classes(run);
    markup.push_str(&preflight(&run.shown));
    let is_client_side = |error: &ErrorResult| CLIENT_SIDE.contains(&error.class.as_str());
    markup.push_str(&errors(run, "errors", "Answers that were failures", |it| !is_client_side(it)));
    markup.push_str(&errors(
        run,
        "client-errors",
        "Client-side failures: no answer of the system",
        is_client_side,
    ));
    markup.push_str(&groups(run));
    markup.push_str(&faults(run));
    markup.push_str(&fates(run));
    markup
}

fn classes(run: &Run<'_>) -> String {
    let (shown, document) = (&run.shown, &run.document);
    let own = tables::failure_classes(shown, "counts", |trial| Some(&trial.counts));
    let background =
        tables::failure_classes(shown, "background", |trial| trial.background.as_ref());
    if own.is_empty() && background.is_empty() {
        return paragraph(
            "empty",
            "Nothing failed: every transaction that fell due in the measured window was committed in time.",
        );
    }
    let mut markup = of_grid(document, "failures", "Failures by class, of all that fell due", &own);
    let caption = "Failures of the background load by class";
    markup.push_str(&of_grid(document, "background-failures", caption, &background));
    markup
}

/// Kinds that cannot succeed, each once.
fn preflight(shown: &[Shown<'_>]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for it in shown.iter().flat_map(|row| &row.trial.preflight).filter(|it| !it.ok) {
        let line = format!(
            "<span class=\"bad\">✗</span> <strong>{}</strong> {}",
            text(&it.kind),
            text(&it.detail)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Preflight</h3>\n{}{}",
        paragraph(
            "legend",
            "These cannot succeed, whatever the rate; they were tried once before the load."
        ),
        list("findings", &lines)
    )
}

/// Error texts of all trials: those that are alike stand together, the most frequent first.
fn errors(run: &Run<'_>, name: &str, title: &str, wanted: impl Fn(&ErrorResult) -> bool) -> String {
    let mut found: Vec<(&Shown<'_>, usize, &ErrorResult)> = Vec::new();
    for row in &run.shown {
        let of_row = row.trial.errors.iter().enumerate().filter(|(_, it)| wanted(it));
        found.extend(of_row.map(|(index, it)| (row, index, it)));
    }
    let total = |it: &ErrorResult| -> u64 {
        let same =
            found.iter().filter(|(_, _, other)| other.text == it.text && other.class == it.class);
        same.map(|(_, _, other)| other.count).sum()
    };
    let mut keyed: Vec<_> = found.iter().map(|it| (total(it.2), it)).collect();
    keyed.sort_by(|(a, x), (b, y)| {
        b.cmp(a).then_with(|| x.2.text.cmp(&y.2.text)).then_with(|| x.2.class.cmp(&y.2.class))
    });
    let more = keyed.len().saturating_sub(ERRORS_SHOWN_MAX);
    let rows: Vec<Vec<String>> = keyed
        .iter()
        .take(ERRORS_SHOWN_MAX)
        .map(|(_, (row, index, it))| error(run, row, *index, it))
        .collect();
    let heads = [
        ("error", "text"),
        ("class", "text"),
        ("setting", "text"),
        ("count", "number"),
        ("first", "time"),
        ("last", "time"),
        ("example tx", "number"),
    ];
    let table = of_words(name, title, &heads, &rows);
    if table.is_empty() {
        return table;
    }
    let more =
        if more == 0 { String::new() } else { format!("… and {more} more in summary.json.") };
    format!("{table}{}", paragraph("legend", &more))
}

fn error(run: &Run<'_>, row: &Shown<'_>, index: usize, it: &ErrorResult) -> Vec<String> {
    let cell = |key: &str, shown: String| {
        let at = row.at(&format!("errors/{index}/{key}"));
        format!("<td{}>{}</td>", run.document.attributes(&Source::At(at)), text(&shown))
    };
    vec![
        text(&it.text),
        text(&it.class),
        text(&row.label),
        cell("count", show_count(it.count)),
        cell("first_ns", show_ns(it.first_ns)),
        cell("last_ns", show_ns(it.last_ns)),
        cell("example_tx", it.example_tx.to_string()),
    ]
}

/// What the experiment did to nodes and links.
fn faults(run: &Run<'_>) -> String {
    let (grid, left_out) = tables::faults(&run.shown, FAULTS_SHOWN_MAX);
    let caption = "Faults: what was done to nodes and links, by time after the start";
    let mut markup = of_grid(&run.document, "faults", caption, &grid);
    if left_out > 0 {
        let said =
            format!("… and {} more in summary.json and the events.", plural(left_out, "fault"));
        markup.push_str(&paragraph("legend", &said));
    }
    markup
}

/// By kind and by the system's own code: of the only trial in the open, of several folded away.
fn groups(run: &Run<'_>) -> String {
    let mut markup = String::new();
    for (title, head, key) in [("By kind (target)", "kind", "kinds"), ("By code", "code", "codes")]
    {
        let mut each = String::new();
        for (index, row) in run.shown.iter().enumerate() {
            // One group is the whole, which stands above.
            if tables::groups_of(row.trial, key).len() < 2 {
                continue;
            }
            let (grid, left_out) = tables::groups(head, row, key, GROUPS_SHOWN_MAX);
            let name = format!("{key}-{}", run.trials_before + index);
            let caption = match run.shown.len() {
                1 => title.to_owned(),
                _ => format!("{title}: {}", row.label),
            };
            let mut table = of_grid(&run.document, &name, &caption, &grid);
            if left_out > 0 {
                let left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
                let said = format!("… and {} more in summary.json.", plural(left_out, head));
                table.push_str(&paragraph("legend", &said));
            }
            each.push_str(&match run.shown.len() {
                1 => table,
                _ => details("groups", &row.label, &table),
            });
        }
        if !each.is_empty() {
            // The only table has the title for a caption.
            let heading = match run.shown.len() {
                1 => String::new(),
                _ => format!("<h3>{title}</h3>\n"),
            };
            markup.push_str(&format!("{heading}{each}"));
        }
    }
    markup
}
