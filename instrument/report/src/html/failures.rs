//! Failures by class, errors with an example, by kind and by code, and kinds that could never succeed.
//!
//! It must never mix what this machine did wrong with what the system answered.

use model::quantity::{show_count, show_ns};
use model::result::ErrorResult;

use super::Run;
use super::fates::fates;
use super::markup::{Element, Markup, details, el, list, paragraph, said, text};
use super::tables::{of_cells, of_grid, words};
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

pub(crate) fn failures(run: &Run<'_>) -> Markup {
    if run.shown.is_empty() {
        return Markup::new();
    }
    let is_client_side = |error: &ErrorResult| CLIENT_SIDE.contains(&error.class.as_str());
    let of_client = "Client-side failures: no answer of the system";
    classes(run)
        .and(preflight(&run.shown))
        .and(errors(run, "errors", "Answers that were failures", |it| !is_client_side(it)))
        .and(errors(run, "client-errors", of_client, is_client_side))
        .and(groups(run))
        .and(faults(run))
        .and(fates(run))
}

/// Whether there is something to look at: a failure, a fate that a threshold forbids, a fault, or what cannot succeed.
pub(crate) fn is_eventful(run: &Run<'_>) -> bool {
    run.shown.iter().any(|row| {
        let trial = row.trial;
        let background = trial.background.as_ref().map_or(0, crate::figures::failed);
        let fates = trial.fates.iter().flat_map(tables::fate_lines).any(|it| it.is_broken);
        crate::figures::failed(&trial.counts) + background > 0
            || fates
            || !trial.faults.is_empty()
            || trial.preflight.iter().any(|it| !it.ok)
    })
}

fn classes(run: &Run<'_>) -> Markup {
    let (shown, document) = (&run.shown, &run.document);
    let own = tables::failure_classes(shown, "counts", |trial| Some(&trial.counts));
    let background =
        tables::failure_classes(shown, "background", |trial| trial.background.as_ref());
    if own.is_empty() && background.is_empty() {
        if shown.iter().all(|row| tables::is_unsent(row.trial)) {
            return Markup::new();
        }
        let nothing = "Nothing failed: every transaction that fell due in the measured window was committed in time.";
        return paragraph("empty", nothing).into();
    }
    let caption = "Failures of the background load by class";
    Markup::from(of_grid(document, "failures", "Failures by class, of all that fell due", &own))
        .and(of_grid(document, "background-failures", caption, &background))
}

/// Kinds that cannot succeed, each once.
fn preflight(shown: &[Shown<'_>]) -> Markup {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for it in shown.iter().flat_map(|row| &row.trial.preflight).filter(|it| !it.ok) {
        let of = (it.kind.as_str(), it.detail.as_str());
        if !found.contains(&of) {
            found.push(of);
        }
    }
    if found.is_empty() {
        return Markup::new();
    }
    let line = |(kind, detail): (&str, &str)| {
        Markup::from(el("span").class("bad").text("✗"))
            .and(said(" "))
            .and(el("strong").text(kind))
            .and(said(" "))
            .and(text(detail))
    };
    let why = "These cannot succeed, whatever the rate; they were tried once before the load.";
    Markup::from(el("h3").text("Preflight"))
        .and(paragraph("legend", why))
        .and(list("findings", found.into_iter().map(line).collect()))
}

/// Error texts of all trials: those that are alike stand together, the most frequent first.
fn errors(run: &Run<'_>, name: &str, title: &str, wanted: impl Fn(&ErrorResult) -> bool) -> Markup {
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
    let rows = keyed
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
    let more =
        if more == 0 { String::new() } else { format!("… and {more} more in summary.json.") };
    Markup::from(of_cells(name, title, &heads, rows)).and(paragraph("legend", &more))
}

fn error(run: &Run<'_>, row: &Shown<'_>, index: usize, it: &ErrorResult) -> Vec<Element> {
    let cell = |key: &str, shown: String| {
        let at = row.at(&format!("errors/{index}/{key}"));
        words(&shown).attrs(run.document.attributes(&Source::At(at)))
    };
    vec![
        words(&it.text),
        words(&it.class),
        words(&row.label),
        cell("count", show_count(it.count)),
        cell("first_ns", show_ns(it.first_ns)),
        cell("last_ns", show_ns(it.last_ns)),
        cell("example_tx", it.example_tx.to_string()),
    ]
}

/// The faults that the experiment injected into nodes and links.
fn faults(run: &Run<'_>) -> Markup {
    let (grid, left_out) = tables::faults(&run.shown, FAULTS_SHOWN_MAX);
    let caption = "Faults: what was done to nodes and links, by time after the start";
    let said = match left_out {
        0 => String::new(),
        _ => format!("… and {} more in summary.json and the events.", plural(left_out, "fault")),
    };
    Markup::from(of_grid(&run.document, "faults", caption, &grid)).and(paragraph("legend", &said))
}

/// By kind and by the system's own code: of the only trial in the open, of several folded away.
fn groups(run: &Run<'_>) -> Markup {
    let mut markup = Markup::new();
    let is_alone = run.shown.len() == 1;
    for (title, head, key) in [("By kind (target)", "kind", "kinds"), ("By code", "code", "codes")]
    {
        let mut each = Markup::new();
        for (index, row) in run.shown.iter().enumerate() {
            // One group is the whole, which stands above.
            if tables::groups_of(row.trial, key).len() < 2 {
                continue;
            }
            let (grid, left_out) = tables::groups(head, row, key, GROUPS_SHOWN_MAX);
            let name = format!("{key}-{}", run.trials_before + index);
            let caption =
                if is_alone { title.to_owned() } else { format!("{title}: {}", row.label) };
            let left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
            let said = match left_out {
                0 => String::new(),
                _ => format!("… and {} more in summary.json.", plural(left_out, head)),
            };
            let table = Markup::from(of_grid(&run.document, &name, &caption, &grid))
                .and(paragraph("legend", &said));
            each.push(match is_alone {
                true => table,
                false => details("groups", &row.label, table).into(),
            });
        }
        // The only table has the title for a caption.
        if !each.is_empty() && !is_alone {
            markup.push(el("h3").text(title));
        }
        markup.push(each);
    }
    markup
}
