//! A run's result as text: for the terminal, for a pull request, for machines, and in vegeta's own forms.
//!
//! Pure: a value in, text out. It does no I/O, reads no clock, and computes no figure that a verdict rests on:
//! what it prints stands in the result. Whether there is colour, and how wide the terminal is, the caller says.

mod answer;
mod called;
mod check;
mod compared;
mod csv;
mod figures;
mod go_duration;
mod grid;
mod html;
mod json;
mod junit;
mod list;
mod live;
mod markdown;
mod metrics;
mod next;
mod page;
mod paint;
mod sections;
mod svg;
mod tables;
mod terminal;
mod vegeta;

pub use check::{CheckEffective, CheckFinding, CheckSetting, CheckView, check_text};
pub use compared::{
    comparison_body, comparison_json, comparison_junit, comparison_markdown, comparison_text,
    trend_json, trend_text,
};
pub use csv::{csv, csv_of};
pub use go_duration::{parse_go, show_go};
pub use html::page::html;
pub use html::{Assets, PageError, comparison_page, live_page, trend_page};
pub use json::{RESULT_SCHEMA, json};
pub use junit::{junit, junit_of};
pub use list::{ListEntry, WordListed, list_headline, list_table, word_list};
pub use live::{
    BLOCK_LINES_MAX, LiveLatency, LiveRecord, LiveThreshold, LiveView, live_block, live_fault,
    live_line,
};
pub use markdown::markdown;
pub use paint::{Style, WIDTH_MIN};
pub use sections::{PAGE_SECTIONS, PageSection};
pub use svg::{
    ColumnType, Detail, Figure, FigureCell, FigureTable, Raw, SVG_STYLE, Section,
    figures as svg_figures,
};
pub use terminal::{exit_line, terminal, terminal_body, verdict_line};
pub use vegeta::{
    ReportError, hdr_text, parse_vegeta_text, vegeta, vegeta_12_7, vegeta_12_7_text, vegeta_json,
    vegeta_json_text, vegeta_text,
};
