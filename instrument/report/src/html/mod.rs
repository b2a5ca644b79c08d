//! The report as one HTML file: every number, table and chart is there without a script; the script of `web/` adds
//! zoom, cursor and sorting. What the two agree on stands in web/PAGE.md.
//!
//! Pure: the same results give the same bytes. It computes no figure, loads nothing, and lets no text from outside
//! become markup.

mod charts;
mod compared;
mod course;
mod failures;
mod fates;
mod glossary;
mod header;
mod markup;
mod method;
mod numbers;
mod pack;
mod policy;
mod promises;
mod results;
mod room;
mod tables;
mod terms;

use model::picture::RunPicture;
use model::result::RunResult;

use crate::paint::clean;
use crate::sections::{Extent, PAGE_SECTIONS, PageSection, Place, Table as SectionTable};
use crate::svg::{Detail, Figure, SVG_STYLE, escape, figures};
use crate::tables::{Shown, shown_on_page};
use markup::{Element, Writer, el};
use numbers::Document;

pub use compared::{comparison_page, trend_page};
pub(crate) use failures::{failures, is_eventful};
pub(crate) use header::header;
pub(crate) use markup::Markup;
pub(crate) use method::method;
pub(crate) use promises::promises;
pub(crate) use results::{calls, results};

/// Style and script of the page.
#[derive(Clone, Copy, Debug)]
pub struct Assets {
    /// web/dist/page.css.
    pub style: &'static str,
    /// web/dist/page.js.
    pub script: &'static str,
}

impl Assets {
    /// Those that this build carries.
    #[must_use]
    pub const fn built() -> Self {
        Self {
            style: include_str!("../../data/page.css"),
            script: include_str!("../../data/page.js"),
        }
    }
}

/// Why there is no page.
#[derive(Debug)]
pub enum PageError {
    /// The picture is of other trials than the result.
    OtherTrials {
        /// The run's name.
        run: String,
        /// Trials of the result.
        of_result: usize,
        /// Trials of the picture.
        of_picture: usize,
    },
    /// No run was given.
    NoRun,
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherTrials { run, of_result, of_picture } => write!(
                f,
                "making the page of `{run}`: the result has {of_result} trials and its picture {of_picture}; \
                 compute both from the same folder"
            ),
            Self::NoRun => f.write_str("making a page: no run was given; name a run folder"),
        }
    }
}

impl std::error::Error for PageError {}

/// A run as its sections see it.
pub(crate) struct Run<'a> {
    /// Its name, with when it started if another run of the document has the same.
    name: String,
    /// Its place in the document.
    index: usize,
    /// Whether the document has others.
    is_one_of_several: bool,
    /// Trials of the document before its first.
    trials_before: usize,
    result: &'a RunResult,
    picture: &'a RunPicture,
    shown: Vec<Shown<'a>>,
    figures: Vec<Figure>,
    /// Indices of those that stand on the first screen, and nowhere else.
    first: Vec<usize>,
    document: Document,
    /// Metrics of nodes that the page has no room for.
    left_out: Vec<String>,
    /// Columns of time that each table of them holds; none if they stand here in full.
    columns_kept: Option<usize>,
}

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

/// A document with this title, escaped already, and this body; without a script if the assets have none.
fn page_of(title: &str, body: &str, assets: &Assets) -> String {
    let style = format!("{SVG_STYLE}\n{}", assets.style);
    let script = match assets.script {
        "" => String::new(),
        script => format!("<script>{script}</script>\n"),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{policy}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"Assay\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the report</a>\n{body}{script}</body>\n</html>\n",
        policy = policy::meta(&style, assets.script),
    )
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

/// All that a section has of a run; a section of which there is nothing is not on the page.
fn content(run: &Run<'_>, of: &PageSection) -> Markup {
    let dressed =
        |dress: Option<fn(&Run<'_>) -> Markup>| dress.map_or_else(Markup::new, |dress| dress(run));
    dressed(of.before)
        .and(tables_of(run, of))
        .and(of.figures.map_or_else(Markup::new, |figures| charts::of_section(run, figures)))
        .and(dressed(of.after))
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

/// Where the limit lies, in words.
pub(crate) fn knee(run: &Run<'_>) -> Markup {
    markup::paragraph("knee", &run.result.knee).into()
}

/// The authors' notes, paragraph by paragraph.
pub(crate) fn notes(run: &Run<'_>) -> Markup {
    let paragraphs = run.result.notes.split("\n\n").map(str::trim).filter(|it| !it.is_empty());
    paragraphs.map(|it| markup::paragraph("note", it)).collect()
}

/// The list of words.
fn words(entries: &[glossary::Entry]) -> Element {
    let entry = |entry: &glossary::Entry| {
        let meaning = el("dd").attr("id", entry.id()).text(&entry.meaning);
        el("div").add(el("dt").text(&entry.forms.join(", "))).add(meaning)
    };
    let list = el("dl").attr("id", "glossary").add(entries.iter().map(entry).collect::<Markup>());
    let summary = el("summary").text("What the words mean");
    el("section")
        .class("section words")
        .attr("aria-labelledby", "words-h")
        .add(el("h2").attr("id", "words-h").text("Words"))
        .add(el("details").class("words").add(summary).add(list))
}
