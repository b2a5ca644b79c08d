//! The forms of a report, and of a comparison: one list, from which the command line has its words. One more is a file here
//! and its entry.

mod csv;
mod json;
mod junit;
mod markdown;
mod vegeta;

use model::comparison::Comparison;
use model::result::{RunResult, TrialResult};

use crate::compared::{comparison_json, comparison_junit, comparison_markdown, comparison_text};
use crate::html::{Assets, comparison_page};
use crate::paint::Style;

pub use csv::{csv, csv_of};
pub use json::{RESULT_SCHEMA, json};
pub use junit::{junit, junit_of};
pub use markdown::markdown;
pub use vegeta::{
    ReportError, hdr_text, parse_vegeta_text, vegeta, vegeta_12_7, vegeta_12_7_text, vegeta_json,
    vegeta_json_text, vegeta_text,
};

/// A form.
#[derive(Debug)]
pub struct Form {
    /// Its word.
    pub name: &'static str,
    /// A description for help.
    pub about: &'static str,
    /// Writes runs in it.
    pub of_runs: OfRuns,
    /// Writes a comparison in it; `None` where there is no such form.
    pub of_comparison: Option<OfComparison>,
}

/// Writes a comparison; the style is that of a terminal.
pub type OfComparison = fn(&Comparison, Style) -> String;

/// The function that writes runs, by what it takes.
#[derive(Debug)]
pub enum OfRuns {
    /// Run by run, in a terminal's style.
    Terminal,
    /// Run by run.
    Each(fn(&RunResult) -> String),
    /// Trial by trial.
    Trials(fn(&TrialResult) -> String),
    /// All runs in one text.
    All(fn(&[RunResult]) -> String),
    /// All runs on one page, with what only a page draws.
    Page,
    /// A file for each figure.
    Figures,
}

/// All forms, in the order in which help lists them.
pub static FORMS: &[Form] = &[
    Form {
        name: "text",
        about: "Tables for a terminal",
        of_runs: OfRuns::Terminal,
        of_comparison: Some(comparison_text),
    },
    Form {
        name: "md",
        about: "Markdown, short enough for a pull request",
        of_runs: OfRuns::Each(markdown),
        of_comparison: Some(|of, _| comparison_markdown(of)),
    },
    Form {
        name: "json",
        about: "The result document",
        of_runs: OfRuns::Each(json),
        of_comparison: Some(|of, _| comparison_json(of)),
    },
    Form {
        name: "html",
        about: "One page with every table and chart, for a browser",
        of_runs: OfRuns::Page,
        of_comparison: Some(|of, _| comparison_page(of, &Assets::built())),
    },
    Form {
        name: "svg",
        about: "Figures, a file each, into the folder that -o names",
        of_runs: OfRuns::Figures,
        of_comparison: None,
    },
    Form {
        name: "csv",
        about: "A row for each trial, raw numbers",
        of_runs: OfRuns::All(csv_of),
        of_comparison: None,
    },
    Form {
        name: "junit",
        about: "JUnit XML, for build servers",
        of_runs: OfRuns::All(junit_of),
        of_comparison: Some(|of, _| comparison_junit(of)),
    },
    Form {
        name: "vegeta",
        about: "Vegeta's text report, one block a trial",
        of_runs: OfRuns::Trials(vegeta),
        of_comparison: None,
    },
    Form {
        name: "vegeta-12.7",
        about: "Vegeta's text report as version 12.7 printed it",
        of_runs: OfRuns::Trials(vegeta_12_7),
        of_comparison: None,
    },
    Form {
        name: "vegeta-json",
        about: "Vegeta's JSON report, one document a trial",
        of_runs: OfRuns::Trials(vegeta_json),
        of_comparison: None,
    },
];
