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
mod live;
mod markup;
mod method;
mod numbers;
mod pack;
pub(crate) mod page;
mod policy;
mod promises;
mod results;
mod room;
mod tables;
mod terms;

use model::picture::RunPicture;
use model::result::RunResult;

use crate::svg::{Figure, SVG_STYLE};
use crate::tables::Shown;
use markup::{Element, Writer, el};
use numbers::Document;

pub use compared::{comparison_page, trend_page};
pub(crate) use failures::{failures, is_eventful};
pub(crate) use header::header;
pub use live::live_page;
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
