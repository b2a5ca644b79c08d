//! The report as one HTML file: every number, table and chart is there without a script; the script of `web/` adds
//! zoom, cursor and sorting. What the two agree on stands in web/PAGE.md.
//!
//! Pure: the same results give the same bytes. It computes no figure, loads nothing, and lets no text from outside
//! become markup.

mod charts;
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

use crate::svg::{Detail, Figure, SVG_STYLE, Section, figures};
use crate::tables::{Shown, shown};
use markup::text;
use numbers::Document;

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
            style: include_str!("../../../../web/dist/page.css"),
            script: include_str!("../../../../web/dist/page.js"),
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
struct Run<'a> {
    /// Its name, with when it started if another run of the document has the same.
    name: String,
    /// Its place in the document.
    index: usize,
    /// Trials of the document before its first.
    trials_before: usize,
    result: &'a RunResult,
    picture: &'a RunPicture,
    shown: Vec<Shown<'a>>,
    figures: Vec<Figure>,
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
        let shown = shown(result);
        if shown.len() != picture.trials.len() {
            return Err(PageError::OtherTrials {
                run: text(&result.name),
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
            trials_before,
            result,
            picture,
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
    let style = format!("{SVG_STYLE}\n{}", assets.style);
    let script = assets.script;
    let names: Vec<String> = runs.iter().map(|run| text(&run.name)).collect();
    let title = format!("{} · Assay", names.join(", "));
    let entries = glossary::entries(runs.iter().flat_map(|run| &run.result.audits_asked));
    let terms = terms::Terms::of(&entries);
    let articles: Vec<(String, String)> = runs.iter().map(|run| article(run, &terms)).collect();
    let (tocs, articles): (Vec<String>, Vec<String>) = articles.into_iter().unzip();
    let overview = if runs.len() > 1 { terms.mark(&header::overview(runs)) } else { String::new() };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{policy}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"Assay\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the report</a>\n\
         <nav id=\"toc\" aria-label=\"Sections\">\n{toc}</nav>\n<main id=\"main\">\n{overview}{articles}</main>\n\
         {words}{template}\
         <script type=\"application/octet-stream\" id=\"assay-data\">{data}</script>\n\
         <script>{script}</script>\n</body>\n</html>\n",
        policy = policy::meta(&style, script),
        toc = tocs.concat(),
        articles = articles.concat(),
        words = words(&entries),
        template =
            format_args!("<template id=\"svg-style\"><style>{SVG_STYLE}</style></template>\n"),
        data = pack::pack(packed_of),
    )
}

/// A section of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageSection {
    /// The end of its address: `#r0-promises`.
    pub key: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// The question that it answers; empty = the heading says all.
    pub question: &'static str,
    /// Its content for a run; a run for which there is none has no such section.
    content: fn(&Run<'_>) -> String,
}

/// A section of a run.
struct Part {
    key: &'static str,
    heading: &'static str,
    question: &'static str,
    content: String,
}

/// The contents of the run and its article.
fn article(run: &Run<'_>, terms: &terms::Terms) -> (String, String) {
    let parts: Vec<Part> = parts(run).into_iter().filter(|it| !it.content.is_empty()).collect();
    let r = run.index;
    let name = text(&run.name);
    let links: String = parts
        .iter()
        .map(|part| {
            // The first words are enough to go by, and all of them fit into a row.
            let short = part
                .heading
                .split([',', ' '])
                .next()
                .filter(|_| part.key != "time")
                .unwrap_or(part.heading);
            let (key, heading) = (part.key, text(short));
            format!("<li><a href=\"#r{r}-{key}\">{heading}</a></li>\n")
        })
        .collect();
    let toc =
        format!("<p class=\"toc-run\"><a href=\"#r{r}\">{name}</a></p>\n<ol>\n{links}</ol>\n");
    let sections: String = parts.iter().map(|part| section(run, part, terms)).collect();
    let article = format!(
        "<article class=\"run\" id=\"r{r}\" data-run=\"{r}\" aria-labelledby=\"r{r}-name\">\n{sections}</article>\n"
    );
    (toc, article)
}

fn section(run: &Run<'_>, part: &Part, terms: &terms::Terms) -> String {
    let (r, key) = (run.index, part.key);
    let heading = if key == "verdict" {
        format!(
            "<h1 id=\"r{r}-name\">{}</h1>\n<h2 id=\"r{r}-verdict-h\" class=\"sr\">Verdict</h2>\n",
            text(&run.name)
        )
    } else {
        let (heading, question) = (text(part.heading), text(part.question));
        format!("<h2 id=\"r{r}-{key}-h\">{heading}</h2>\n<p class=\"question\">{question}</p>\n")
    };
    let content = terms.mark(&format!("{heading}{}", part.content));
    format!(
        "<section id=\"r{r}-{key}\" class=\"section {key}\" aria-labelledby=\"r{r}-{key}-h\">\n{content}</section>\n"
    )
}

fn parts(run: &Run<'_>) -> Vec<Part> {
    let part = |of: &PageSection| {
        let PageSection { key, heading, question, content } = *of;
        Part { key, heading, question, content: content(run) }
    };
    PAGE_SECTIONS.iter().map(part).collect()
}

const fn of(
    key: &'static str,
    heading: &'static str,
    question: &'static str,
    content: fn(&Run<'_>) -> String,
) -> PageSection {
    PageSection { key, heading, question, content }
}

/// The sections in the order in which they stand: the contents of the page and `assay list sections` are told from here.
pub const PAGE_SECTIONS: &[PageSection] = &[
    of("verdict", "Verdict", "", header::header),
    of(
        "promises",
        "Promises",
        "Which promise broke, and can the measurement be trusted?",
        promises::promises,
    ),
    of("results", "Results", "What are the numbers?", results::results),
    of("saturation", "Saturation", "How much can it take?", |run| {
        charts::plain(run, Section::Saturation, "")
    }),
    of("distribution", "Distribution", "How slow is the slowest 1 in N?", |run| {
        charts::plain(run, Section::Distribution, &results::calls(run))
    }),
    of("time", "Over time", "When was it slow?", |run| charts::over_time(run, Section::Time)),
    of("stages", "Stages", "Where in the pipeline is the time spent?", charts::stages),
    of("inside", "Inside the nodes", "Which step inside the nodes falls behind?", charts::inside),
    of("nodes", "Nodes, host and generator", "What were they doing, and was it the tool?", |run| {
        charts::over_time(run, Section::Nodes)
    }),
    of("failures", "Failures and fates", "What went wrong?", failures::failures),
    of("method", "Method and environment", "Can I repeat it?", method::method),
    of("notes", "Notes", "What do the authors conclude?", notes),
];

/// The authors' notes, paragraph by paragraph.
fn notes(run: &Run<'_>) -> String {
    let paragraphs = run.result.notes.split("\n\n").map(str::trim).filter(|it| !it.is_empty());
    paragraphs.map(|it| markup::paragraph("note", it)).collect()
}

/// The list of words.
fn words(entries: &[glossary::Entry]) -> String {
    let each: String = entries
        .iter()
        .map(|entry| {
            let (id, words, meaning) =
                (entry.id(), text(&entry.forms.join(", ")), text(&entry.meaning));
            format!("<div><dt>{words}</dt><dd id=\"{id}\">{meaning}</dd></div>\n")
        })
        .collect();
    format!(
        "<section class=\"section words\" aria-labelledby=\"words-h\">\n<h2 id=\"words-h\">Words</h2>\n\
         <details class=\"words\"><summary>What the words mean</summary>\n<dl id=\"glossary\">\n{each}</dl>\n</details>\n</section>\n"
    )
}
