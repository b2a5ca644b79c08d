//! A run's result as text: for the terminal, for a pull request, for machines, and in vegeta's own forms.
//!
//! Pure: a value in, text out. It does no I/O, reads no clock, and computes no figure that a verdict rests on:
//! what it prints stands in the result. Whether there is colour, and how wide the terminal is, the caller says.

mod answer;
mod called;
mod check;
mod compared;
mod figures;
mod forms;
mod go_duration;
mod grid;
mod html;
mod list;
mod live;
mod metrics;
mod next;
mod page;
mod paint;
mod sections;
mod svg;
mod tables;
mod terminal;

pub use check::{CheckEffective, CheckFinding, CheckSetting, CheckView, check_text};
pub use compared::{
    comparison_body, comparison_json, comparison_junit, comparison_markdown, comparison_text,
    trend_json, trend_text,
};
pub use forms::{
    FORMS, Form, OfComparison, OfRuns, RESULT_SCHEMA, ReportError, csv, csv_of, hdr_text, json,
    junit, junit_of, markdown, parse_vegeta_text, vegeta, vegeta_12_7, vegeta_12_7_text,
    vegeta_json, vegeta_json_text, vegeta_text,
};
pub use go_duration::{parse_go, show_go};
pub use html::page::html;
pub use html::{Assets, PageError, comparison_page, live_page, trend_page};
pub use list::{ListEntry, WordListed, list_headline, list_table, word_list};
pub use live::{
    BLOCK_LINES_MAX, LiveLatency, LiveRecord, LiveThreshold, LiveView, live_block, live_fault,
    live_line,
};
pub use paint::{Style, WIDTH_MIN};
pub use sections::{PAGE_SECTIONS, PageSection};
pub use svg::{
    ColumnType, Detail, Figure, FigureCell, FigureTable, Raw, SVG_STYLE, Section,
    figures as svg_figures,
};
pub use terminal::{exit_line, terminal, terminal_body, verdict_line};
