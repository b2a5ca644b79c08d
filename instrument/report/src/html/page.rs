//! The page of runs: its sections in their order, each with what it has of a run.
//!
//! It must know no section by its name but the results, below which others are folded, and the search, whose trials are open.

use model::picture::RunPicture;
use model::result::RunResult;

use super::markup::{self, Element, Markup, Writer, el};
use super::numbers::Document;
use super::{
    Assets, PageError, Run, charts, glossary, header, pack, page_of, room, tables, terms, words,
};
use crate::paint::clean;
use crate::sections::{Extent, PAGE_SECTIONS, PageSection, Place, Table as SectionTable};
use crate::svg::{Detail, Figure, SVG_STYLE, escape, figures};
use crate::tables::shown_on_page;

/// The page of one or several runs.
///
/// # Errors
/// When a picture is not of its result, or there is no run.
pub fn html(runs: &[(RunResult, RunPicture)], assets: &Assets) -> Result<String, PageError> {
    if runs.is_empty() {
        return Err(PageError::NoRun);
    }
    let pruned = room::within(runs);
    let (runs, left_out) = match &pruned {
        Some((kept, left_out)) => (kept.as_slice(), left_out.as_slice()),
        None => (runs, [].as_slice()),
    };
    let mut prepared = Vec::new();
    let mut trials_before = 0;
    for (index, (result, picture)) in runs.iter().enumerate() {
        let shown = shown_on_page(result);
        if shown.len() != picture.trials.len() {
            return Err(PageError::OtherTrials {
                run: clean(&result.name),
                of_result: shown.len(),
                of_picture: picture.trials.len(),
            });
        }
        let trials = shown.len();
        let figures: Vec<Figure> = figures(result, picture, Detail::Page)
            .into_iter()
            .map(|figure| figure.of_run(index))
            .collect();
        let document = Document::of(result);
        let is_alone = runs.iter().filter(|(other, _)| other.name == result.name).count() < 2;
        prepared.push(Run {
            name: match is_alone {
                true => result.name.clone(),
                false => format!("{} of {}", result.name, result.started),
            },
            index,
            is_one_of_several: runs.len() > 1,
            trials_before,
            result,
            picture,
            first: header::chosen(&figures, trials),
            shown,
            figures,
            document,
            left_out: left_out.to_vec(),
            columns_kept: None,
        });
        trials_before += trials;
    }
    let kept = charts::columns_kept(prepared.iter().flat_map(|run| &run.figures));
    for run in &mut prepared {
        run.columns_kept = kept;
    }
    Ok(document(&prepared, runs, assets))
}

fn document(runs: &[Run<'_>], packed_of: &[(RunResult, RunPicture)], assets: &Assets) -> String {
    let names: Vec<String> = runs.iter().map(|run| escape(&run.name)).collect();
    let title = format!("{} · Assay", names.join(", "));
    let entries = glossary::entries(runs.iter().flat_map(|run| &run.result.audits_asked));
    let parts: Vec<Vec<Part>> = runs.iter().map(parts).collect();
    let contents = runs.iter().zip(&parts).map(|(run, parts)| contents(run, parts));
    let contents = el("nav")
        .attr("id", "toc")
        .attr("aria-label", "Sections")
        .add(contents.collect::<Markup>());
    let mut main = el("main").attr("id", "main");
    if runs.len() > 1 {
        main = main.add(header::overview(runs));
    }
    for (run, parts) in runs.iter().zip(parts) {
        main = main.add(article(run, parts));
    }
    let terms = terms::Terms::of(&entries);
    let mut body = Writer::new(&terms);
    body.write(&contents.into());
    body.write(&main.into());
    // Its words stand where they are explained.
    let none = terms::Terms::of(&[]);
    let mut list = Writer::new(&none);
    list.write(&words(&entries).into());
    let data = pack::pack(packed_of);
    let data =
        format!("<script type=\"application/octet-stream\" id=\"assay-data\">{data}</script>\n");
    let template = format!("<template id=\"svg-style\"><style>{SVG_STYLE}</style></template>\n");
    page_of(&title, &format!("{}{}{template}{data}", body.finish(), list.finish()), assets)
}

/// A section of a run.
struct Part {
    of: PageSection,
    content: Markup,
}

fn parts(run: &Run<'_>) -> Vec<Part> {
    let own = PAGE_SECTIONS.iter().filter(|of| !matches!(of.place, Place::WithResults));
    let parts = own.map(|of| Part { of: *of, content: content(run, of) });
    parts.filter(|part| !part.content.is_empty()).collect()
}

/// All that a section has of a run, with what folds below it; a section of which there is nothing is not on the page.
fn content(run: &Run<'_>, of: &PageSection) -> Markup {
    let dressed =
        |dress: Option<fn(&Run<'_>) -> Markup>| dress.map_or_else(Markup::new, |dress| dress(run));
    dressed(of.before)
        .and(tables_of(run, of))
        .and(of.figures.map_or_else(Markup::new, |figures| charts::of_section(run, figures)))
        .and(dressed(of.after))
        .and(if of.key == "results" { with_results(run) } else { Markup::new() })
}

/// The tables of a section, with what is to be read with them.
fn tables_of(run: &Run<'_>, of: &PageSection) -> Markup {
    let table = |table: SectionTable| {
        let grid = tables::each_row_headed(table.grid);
        let drawn = tables::of_grid(&run.document, table.name, table.caption, &grid);
        let lines = table.lines.iter().map(|line| markup::text(&line.text)).collect();
        drawn.map(|drawn| Markup::from(drawn).and(markup::list("legend", lines)))
    };
    (of.tables)(&run.shown, Extent::Full).into_iter().filter_map(table).collect()
}

/// The sections that stand folded below the results.
fn with_results(run: &Run<'_>) -> Markup {
    let all = PAGE_SECTIONS.iter().filter(|of| matches!(of.place, Place::WithResults));
    let fold = |of: &PageSection| {
        let fold = markup::details("part", of.heading, content(run, of))?;
        // The trials of a search are its answer's grounds.
        let fold = if of.key == "search" { fold.attr("open", "") } else { fold };
        Some(fold.attr("id", format!("r{}-{}", run.index, of.key)))
    };
    all.filter_map(fold).collect()
}

/// The contents of a run.
fn contents(run: &Run<'_>, parts: &[Part]) -> Markup {
    let r = run.index;
    let link = |to: String, of: &str| el("a").attr("href", to).text(of);
    let item = |part: &Part| {
        let PageSection { key, heading, .. } = part.of;
        // The first words are enough to go by, and all of them fit into a row.
        let short = heading.split([',', ' ']).next().filter(|_| key != "time").unwrap_or(heading);
        el("li").add(link(format!("#r{r}-{key}"), short))
    };
    let name = el("p").class("toc-run").add(link(format!("#r{r}"), &run.name));
    Markup::from(name).and(el("ol").add(parts.iter().map(item).collect::<Markup>()))
}

fn article(run: &Run<'_>, parts: Vec<Part>) -> Element {
    let r = run.index;
    let sections: Markup = parts.into_iter().map(|part| section(run, part)).collect();
    el("article")
        .class("run")
        .attr("id", format!("r{r}"))
        .attr("data-run", r.to_string())
        .attr("aria-labelledby", format!("r{r}-name"))
        .add(sections)
}

fn section(run: &Run<'_>, part: Part) -> Element {
    let PageSection { key, heading, question, place, .. } = part.of;
    let id = format!("r{}-{key}", run.index);
    let heading_id = format!("{id}-h");
    // Sections of several runs have the same headings: their runs tell them apart.
    let labels = match run.is_one_of_several {
        true => format!("r{}-name {heading_id}", run.index),
        false => heading_id.clone(),
    };
    let section = el("section")
        .attr("id", id)
        .class(&format!("section {key}"))
        .attr("aria-labelledby", labels);
    let heading = el("h2").attr("id", heading_id).text(heading);
    let is_open = match place {
        Place::First => return section.add(heading.class("sr")).add(part.content),
        Place::Open => {
            let asked = el("p").class("question").text(question);
            return section.add(heading).add(asked).add(part.content);
        }
        Place::Folded | Place::WithResults => false,
        Place::OpenIf(is_open) => is_open(run),
    };
    let asked = el("span").class("question").text(question);
    let head = el("summary").add(heading).said(" ").add(asked);
    let fold = el("details").class("fold");
    let fold = if is_open { fold.attr("open", "") } else { fold };
    section.add(fold.add(head).add(part.content))
}
