//! The page of a comparison and that of a history. Neither needs a script.
//!
//! The reader of a comparison finds the answer, what the runs cannot show, one chart of all ratios, one table ordered by
//! what changed most, and response times of both sides on the same axes.

use model::comparison::{Change, Comparison, Trend};

use super::markup::{Element, Markup, details, el, list, pairs, paragraph, text};
use super::numbers::Document;
use super::tables::{class_of, of_cells, of_figure, words};
use super::{Assets, Writer, glossary, page_of, terms};
use crate::compared::{
    change_mark, difference, effect, exit_meaning, method, subject, trend_lines,
};
use crate::paint::clean;
use crate::svg::{Figure, Section, comparison_figures, escape, trend_figures};

/// The page of a comparison.
#[must_use]
pub fn comparison_page(of: &Comparison, assets: &Assets) -> String {
    let figures = comparison_figures(of);
    let class = match of.change {
        Change::Worse => "fail",
        Change::Inconclusive => "undecided",
        Change::Better | Change::Equivalent => "pass",
    };
    let (mark, _) = change_mark(of.change);
    let exit = format!("Exit code {}: {}.", of.exit() as i32, exit_meaning(of));
    let head = banner(class, mark, of.change.word(), &of.name, &subject(of), &exit);
    let unknown = (!of.unknown.is_empty()).then(|| text(&of.unknown));
    let answer = format!("{}.", sentence(&of.words));
    let first = Markup::from(head)
        .and(list("cautions", unknown.into_iter().collect()))
        .and(paragraph("answer", &answer))
        .and(charts(figures.iter().filter(|it| it.section == Section::Answer), ""));
    let table = Markup::from(numbers(of)).and(paragraph("legend", &method(of)));
    let curves = charts(figures.iter().filter(|it| it.section != Section::Answer), "");
    let differs: Vec<Markup> = of.differences.iter().map(|it| text(&difference(it))).collect();
    let differs = Markup::from(list("declared", differs));
    let facts = pairs(
        "facts",
        vec![
            ("baseline", text(&started(&of.baseline))),
            ("candidate", text(&started(&of.candidate))),
        ],
    );
    let sections = [
        ("numbers", "Numbers", "What changed most?", table),
        ("both", "Response times", "How slow is the slowest 1 in N, on either side?", curves),
        ("differences", "Differences", "In what do plans, hosts and builds differ?", differs),
        ("runs", "Runs", "Which runs are compared?", Markup::from(facts)),
    ];
    written(
        &format!("{} against {}", of.candidate.label, of.baseline.label),
        first,
        sections,
        assets,
    )
}

fn started(of: &model::comparison::ComparedSide) -> String {
    format!("{}: {}", clean(&of.label), of.started.join(", "))
}

/// The page of a history.
#[must_use]
pub fn trend_page(of: &Trend, assets: &Assets) -> String {
    let figures = trend_figures(of);
    let count = of.numbers.iter().map(|it| it.changes.len()).sum::<usize>();
    let (class, word) = if count == 0 { ("pass", "level") } else { ("undecided", "changed") };
    let mark = if count == 0 { "=" } else { "≠" };
    let runs = format!("{} runs", of.runs.len());
    let head = banner(class, mark, word, &of.name, &runs, "");
    let lines: Vec<Markup> = trend_lines(of).iter().map(|it| text(it)).collect();
    let first =
        Markup::from(head).and(list("findings", lines)).and(charts(figures.iter(), " multiples"));
    let row = |run: &model::comparison::TrendRun| {
        vec![
            words(&run.folder),
            words(&run.started),
            words(&run.baseline_names.join(", ")),
            words(&run.differs.join("; ")),
        ]
    };
    let heads = [
        ("run", "text"),
        ("started", "text"),
        ("baseline", "text"),
        ("differs from the run before", "text"),
    ];
    let table = of_cells("runs", "All runs", &heads, of.runs.iter().rev().map(row).collect());
    let note = format!("{}.", sentence(&of.method));
    let table = Markup::from(table).and(paragraph("legend", &note));
    let sections = [("runs", "Runs", "What was run, and did it stay the same?", table)];
    written(&format!("{} over time", of.name), first, sections, assets)
}

fn banner(class: &str, mark: &str, word: &str, name: &str, subject: &str, exit: &str) -> Element {
    let mark = el("span").class("mark").attr("aria-hidden", "true").text(mark);
    let word = el("p").class("word").add(mark).said(" ").text(&word.to_uppercase());
    el("div")
        .class(&format!("banner {class}"))
        .add(word)
        .add(el("h1").text(name))
        .add(paragraph("subject", subject))
        .add(paragraph("exit", exit))
}

/// With a capital at its beginning.
fn sentence(of: &str) -> String {
    let of = clean(of);
    let mut letters = of.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn numbers(of: &Comparison) -> Option<Element> {
    let has_settings = of.numbers.iter().any(|it| !it.setting.is_empty());
    let mut heads = vec![("number", "text")];
    if has_settings {
        heads.push(("setting", "text"));
    }
    heads.extend([("answer", "text"), ("ratio", "number"), ("from", "number"), ("to", "number")]);
    heads.extend([("baseline", "number"), ("candidate", "number")]);
    let rows = of.numbers.iter().map(|it| {
        let (mark, paint) = change_mark(it.change);
        let mut cells = vec![words(&it.name)];
        if has_settings {
            cells.push(words(&it.setting));
        }
        let answer = words(&format!("{mark} {}", it.change.word()));
        cells.push(answer.class(class_of(paint)).attr("title", it.words.as_str()));
        cells.extend(effect(it).map(|shown| words(&shown).class("num")));
        cells.extend([it.baseline, it.candidate].map(|side| words(&it.show(side)).class("num")));
        cells
    });
    of_cells("comparison", "Every number, those that changed most first", &heads, rows.collect())
}

/// Charts, each with its table folded below it.
fn charts<'a>(figures: impl Iterator<Item = &'a Figure>, class: &str) -> Markup {
    let document = Document::empty();
    let each = figures.map(|of| {
        let caption = el("figcaption").add(el("strong").text(&of.title));
        let table = of_figure(&document, &of.name, &of.title, &of.table, None);
        let below = Markup::from(paragraph("legend", &of.description)).and(table);
        el("figure")
            .attr("id", of.id.as_str())
            .attr("data-name", of.name.as_str())
            .class("chart")
            .add(caption)
            .add(of.inline())
            .add(details("as-table", "Table, and how to read it", below))
    });
    let each: Markup = each.collect();
    match each.is_empty() {
        true => each,
        false => el("div").class(&format!("charts{class}")).add(each).into(),
    }
}

/// The page: the first screen, then sections in the open; one that is empty is left out.
fn written<const N: usize>(
    title: &str,
    first: Markup,
    sections: [(&'static str, &'static str, &'static str, Markup); N],
    assets: &Assets,
) -> String {
    let mut article =
        el("article").class("run").add(el("section").class("section verdict").add(first));
    for (key, heading, question, content) in sections {
        if content.is_empty() {
            continue;
        }
        let id = format!("{key}-h");
        article = article.add(
            el("section")
                .class(&format!("section {key}"))
                .attr("aria-labelledby", id.as_str())
                .add(el("h2").attr("id", id.as_str()).text(heading))
                .add(el("p").class("question").text(question))
                .add(content),
        );
    }
    let main = el("main").attr("id", "main").add(article);
    let entries = glossary::entries(std::iter::empty());
    let terms = terms::Terms::of(&entries);
    let mut body = Writer::new(&terms);
    body.write(&main.into());
    let none = terms::Terms::of(&[]);
    let mut list = Writer::new(&none);
    list.write(&super::words(&entries).into());
    let body = format!("{}{}", body.finish(), list.finish());
    let title = format!("{} · Assay", escape(title));
    page_of(&title, &body, &Assets { script: "", ..*assets })
}
