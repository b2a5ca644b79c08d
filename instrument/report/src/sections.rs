//! The sections of a report, each once: what it asks, its tables and its charts. The terminal, Markdown and the page dress
//! them; none of them knows one by its name.
//!
//! It must never hold how something looks: a table here is numbers with their places, and words.

use crate::grid::{Grid, Line};
use crate::html::{self, Markup, Run};
use crate::svg;
use crate::tables::{self, Shown};

/// How much of its tables a section gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The condition of a section: something to show.
    Brief,
    /// The same, and what is no trouble where it is folded away.
    Folded,
    /// All.
    Full,
}

/// Where a terminal prints a section's tables, where not everything is wanted: a plain run fits a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brief {
    /// Nowhere.
    Nowhere,
    /// Of a single setting.
    OfOne,
    /// Of several, too.
    OfAny,
}

/// A table of a section.
pub(crate) struct Table {
    /// Its name on the page.
    pub(crate) name: &'static str,
    /// Its content.
    pub(crate) caption: &'static str,
    /// Empty = there is no such table in this run.
    pub(crate) grid: Grid,
    /// Its notes.
    pub(crate) lines: Vec<Line>,
}

/// Where a section stands on the page before anybody has clicked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The first screen: no heading but the run's name.
    First,
    /// In the open.
    Open,
    /// Its heading alone.
    Folded,
    /// Folded where nothing is to be looked at.
    OpenIf(fn(&Run<'_>) -> bool),
    /// Folded, with the results.
    WithResults,
}

/// A section of the report.
#[derive(Clone, Copy, Debug)]
pub struct PageSection {
    /// The end of its address: `#r0-promises`.
    pub key: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// The question that it answers; empty = the heading says all.
    pub question: &'static str,
    /// The words after its heading in a text; may be empty.
    pub(crate) remark: &'static str,
    /// Where a terminal prints its tables without being asked for everything.
    pub(crate) brief: Brief,
    pub(crate) place: Place,
    /// Its tables: the same ones in every form of the report.
    pub(crate) tables: fn(&[Shown<'_>], Extent) -> Vec<Table>,
    /// The section of its charts.
    pub(crate) figures: Option<svg::Section>,
    /// The parts that only the page has, before its tables.
    pub(crate) before: Option<fn(&Run<'_>) -> Markup>,
    /// The same after its charts.
    pub(crate) after: Option<fn(&Run<'_>) -> Markup>,
}

/// A folded section of nothing.
const fn section(key: &'static str, heading: &'static str, question: &'static str) -> PageSection {
    PageSection {
        key,
        heading,
        question,
        remark: "",
        brief: Brief::Nowhere,
        place: Place::Folded,
        tables: |_, _| Vec::new(),
        figures: None,
        before: None,
        after: None,
    }
}

/// One of charts alone.
const fn charts(
    key: &'static str,
    heading: &'static str,
    question: &'static str,
    figures: svg::Section,
) -> PageSection {
    PageSection { figures: Some(figures), ..section(key, heading, question) }
}

/// The sections in the order in which they stand: the contents of the page and `assay list sections` are told from here,
/// and the terminal and Markdown print those that have tables.
pub const PAGE_SECTIONS: &[PageSection] = &[
    PageSection {
        place: Place::First,
        before: Some(html::header),
        ..section("verdict", "Verdict", "Is it good, and what is the answer?")
    },
    PageSection {
        tables: |shown, _| {
            let caption = "Settings that decide what the system keeps";
            let (grid, lines) = (tables::durability(shown), tables::durability_lines(shown));
            vec![Table { name: "durability", caption, grid, lines }]
        },
        ..section(
            "durability",
            "Durability settings",
            "Which were in force, and what does the documentation promise?",
        )
    },
    PageSection {
        place: Place::Open,
        before: Some(html::results),
        ..section("results", "Results", "What are the numbers?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfAny,
        tables: |shown, _| {
            let caption = "The trials of the search, in their order";
            let lines = tables::search_lines(shown).into_iter().map(Line::said).collect();
            vec![Table { name: "search", caption, grid: tables::search(shown), lines }]
        },
        ..section("search", "Search", "How was the highest value found?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfAny,
        tables: |shown, _| {
            let caption = "Goodput of each number of clients, and by the law";
            let lines = tables::scalability_lines(shown).into_iter().map(Line::said).collect();
            vec![Table { name: "scalability", caption, grid: tables::scalability(shown), lines }]
        },
        ..section("scalability", "Scalability", "How much do more clients bring?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfAny,
        tables: |shown, _| {
            let caption = "Each stream by its own final stage";
            let lines = vec![Line::said(tables::streams_line())];
            vec![Table { name: "streams", caption, grid: tables::streams(shown), lines }]
        },
        ..section("streams", "Streams", "What does committed mean of each stream?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfAny,
        tables: |shown, _| {
            let lines = tables::step_lines(shown).into_iter().map(Line::said).collect();
            let caption = "Offered load of each step, and its outcomes";
            vec![Table { name: "steps", caption, grid: tables::steps(shown), lines }]
        },
        ..section("steps", "Step by step", "What did each step bring?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfAny,
        tables: |shown, _| {
            let lines = tables::flow_lines(shown).into_iter().map(Line::said).collect();
            let caption = "Users who went through a flow, and how they ended";
            vec![Table { name: "flows", caption, grid: tables::flows(shown), lines }]
        },
        ..section("flows", "Flows", "How did users get through?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfAny,
        tables: |shown, extent| {
            let promised = tables::promised(shown);
            // Who asks one load has asked for no promise, and nobody waits for its pages.
            let is_wanted = extent == Extent::Full || !promised.is_empty();
            let made = |grid: fn(&[Shown<'_>]) -> Grid| {
                if is_wanted { grid(shown) } else { Grid::new() }
            };
            let mut lines: Vec<Line> = promised.into_iter().map(Line::said).collect();
            lines.push(Line::said(tables::minutes_line()));
            let caption = "Minutes in which the thresholds hold";
            let minutes = Table { name: "minutes", caption, grid: made(tables::minutes), lines };
            let (grid, lines) = (made(tables::pages), vec![Line::said(tables::pages_line())]);
            let caption = "How often a page of several requests gets every answer";
            vec![minutes, Table { name: "pages", caption, grid, lines }]
        },
        ..section(
            "promised",
            "What can be promised",
            "Which load holds in every minute, and how often is a page of several requests whole?",
        )
    },
    PageSection {
        place: Place::WithResults,
        remark: "by sent time, all results, answered or not",
        tables: |shown, extent| {
            let is_wanted = extent == Extent::Full || tables::has_statuses(shown);
            let grid = if is_wanted { tables::published(shown) } else { Grid::new() };
            let said = "A request that was sent late looks fast here; response times count from when it was due.";
            let caption = "By sent time, all results, answered or not";
            vec![Table { name: "published", caption, grid, lines: vec![Line::said(said)] }]
        },
        ..section("published", "As vegeta computes it", "What would a report by vegeta say?")
    },
    PageSection {
        place: Place::WithResults,
        tables: |shown, _| {
            let caption = "How often transactions were sent";
            let lines = vec![Line::said(tables::attempts_line())];
            vec![Table { name: "attempts", caption, grid: tables::attempts(shown), lines }]
        },
        ..section("attempts", "Sent again", "How often was what sent?")
    },
    PageSection {
        place: Place::WithResults,
        tables: |shown, _| {
            let caption = "Batches, and why they were sent";
            let lines = vec![Line::said(tables::batches_line())];
            vec![Table { name: "batches", caption, grid: tables::batches(shown), lines }]
        },
        ..section("batches", "Batches", "What left together?")
    },
    PageSection {
        place: Place::WithResults,
        brief: Brief::OfOne,
        tables: |shown, extent| {
            let grid = tables::connections(shown, extent != Extent::Full);
            let lines = vec![Line::said(tables::connections_line())];
            vec![Table { name: "connections", caption: "How connections fared", grid, lines }]
        },
        ..section("connections", "Connections", "How did connections fare?")
    },
    PageSection {
        place: Place::WithResults,
        tables: |shown, extent| {
            let is_wanted = extent != Extent::Brief;
            let grid = if is_wanted { tables::processor(shown) } else { Grid::new() };
            let lines = tables::processor_lines(shown).into_iter().map(Line::said).collect();
            let caption = "Processor time for each transaction, by process";
            vec![Table { name: "processor", caption, grid, lines }]
        },
        ..section(
            "processor",
            "Processor time a transaction",
            "What does a transaction cost, and whom?",
        )
    },
    PageSection {
        place: Place::WithResults,
        tables: |shown, _| {
            let caption = "The client's, and the one that the ledger states of itself";
            let lines = tables::definition_lines(shown).into_iter().map(Line::said).collect();
            let grid = tables::two_definitions(shown);
            vec![Table { name: "two-definitions", caption, grid, lines }]
        },
        ..section("two-definitions", "Latency by two definitions", "Whose clock says what?")
    },
    PageSection {
        place: Place::Open,
        before: Some(html::promises),
        ..section(
            "promises",
            "Thresholds and audits",
            "Which threshold failed, and can the measurement be trusted?",
        )
    },
    PageSection {
        place: Place::OpenIf(html::is_eventful),
        before: Some(html::failures),
        ..section("failures", "Failures and fates", "What went wrong?")
    },
    PageSection {
        before: Some(html::knee),
        ..charts("saturation", "Saturation", "How much can it take?", svg::Section::Saturation)
    },
    PageSection {
        after: Some(html::calls),
        ..charts(
            "distribution",
            "Distribution",
            "How slow is the slowest 1 in N?",
            svg::Section::Distribution,
        )
    },
    charts("time", "Over time", "When was it slow?", svg::Section::Time),
    PageSection {
        tables: |shown, _| {
            let caption = "Rates and response times by stage";
            let grid = tables::stages(shown);
            vec![Table { name: "stages", caption, grid, lines: Vec::new() }]
        },
        ..charts(
            "stages",
            "Stages",
            "Where in the pipeline is the time spent?",
            svg::Section::Stages,
        )
    },
    PageSection {
        brief: Brief::OfOne,
        remark: "as they stamped it themselves",
        tables: |shown, _| {
            let caption = "Throughput and time by stage, as the nodes stamped it";
            let lines = tables::node_stage_lines(shown);
            let stages =
                Table { name: "node-stages", caption, grid: tables::node_stages(shown), lines };
            let way = Table {
                name: "way",
                caption: "The time of followed transactions from due to the final stage, leg by leg",
                grid: tables::way(shown),
                lines: tables::way_lines(shown),
            };
            vec![stages, way]
        },
        ..charts(
            "inside",
            "Inside the nodes",
            "Which step inside the nodes falls behind?",
            svg::Section::Inside,
        )
    },
    charts(
        "nodes",
        "Nodes, host and generator",
        "What were they doing, and was it the tool?",
        svg::Section::Nodes,
    ),
    PageSection {
        before: Some(html::method),
        ..section("method", "Method and environment", "Can I repeat it?")
    },
    PageSection {
        place: Place::Open,
        before: Some(html::notes),
        ..section("notes", "Notes", "What do the authors conclude?")
    },
];
