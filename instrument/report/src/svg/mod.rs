//! Every chart of the report as SVG: pure functions from a result and its picture to text, the same on the page,
//! in print and as files (`--format svg`).
//!
//! No chart may show a number that is neither in the result nor in the picture, and none may compute a figure that a
//! verdict rests on: merging columns of time to what a small chart has room for is all the arithmetic there is, and
//! the description of the chart says so. What they draw may be empty, infinite or not a number; the text never is.

mod canvas;
mod compared;
mod course;
mod distribution;
mod plot;
mod saturation;
pub(crate) mod scale;
pub(crate) mod settings;
mod style;
mod table;
mod time;

use model::picture::RunPicture;
use model::result::RunResult;

use canvas::{Canvas, Drawn};
pub(crate) use canvas::{Inline, escape, escape_visible};
pub(crate) use compared::{comparison as comparison_figures, trend as trend_figures};
pub(crate) use course::course;

pub use style::RULES as SVG_STYLE;
pub use table::{ColumnType, FigureCell, FigureTable, Raw};

/// A chart with the numbers that it shows.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The id of its element and, with `-t` and `-d` after it, of the SVG's title and description. Unique in the run;
    /// see [`Figure::of_run`] for several runs in one document.
    pub id: String,
    /// Stem of its file, unique in the run.
    pub name: String,
    /// Its subject, in a few words. Plain text, not escaped.
    pub title: String,
    /// How to read it, and what was merged or left out. Plain text, not escaped.
    pub description: String,
    /// The section of the report that it belongs to.
    pub section: Section,
    /// The trial that it is of, counted over all trials of the run in order.
    pub trial: Option<usize>,
    /// Time charts: `latency`, `rates`, `outstanding`, `lag`, `stages`, `series` and others, some of which the script draws. Empty otherwise.
    pub chart: &'static str,
    /// Charts of `series`: `source.name` of each line, separated by blanks. Empty otherwise.
    pub series: String,
    /// The same numbers as a table.
    pub table: FigureTable,
    drawn: Drawn,
}

impl Figure {
    /// The same figure with ids that are unique in a document of several runs.
    #[must_use]
    pub fn of_run(self, run: usize) -> Self {
        Self { id: format!("r{run}-{}", self.id), ..self }
    }

    /// The SVG element, complete and with its own style: a file as it is.
    #[must_use]
    pub fn svg(&self) -> String {
        self.drawn.file(&self.id)
    }

    /// The element without its own style and visible title, for a page that holds [`SVG_STYLE`] once and shows the title
    /// as the figure's caption.
    #[must_use]
    pub fn svg_inline(&self) -> String {
        self.inline().as_str().to_owned()
    }

    /// The same as a part of a page.
    pub(crate) fn inline(&self) -> Inline {
        self.drawn.inline(&self.id)
    }
}

/// A section of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// What is the answer?
    Answer,
    /// How much can it take?
    Saturation,
    /// How slow is the slowest 1 in N?
    Distribution,
    /// When was it slow?
    Time,
    /// Where in the pipeline?
    Stages,
    /// Which step inside the nodes falls behind?
    Inside,
    /// What were the generator, the host and the nodes doing?
    Nodes,
}

/// How finely the charts over time are drawn. All others are small whatever they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// As a file of its own: all that the eye can tell apart.
    Full,
    /// On a page that shows the same data in full when its script runs: the more charts it has, the coarser each,
    /// so that all together stay small.
    Page,
}

/// All charts of a run, in the order of the report's sections.
#[must_use]
pub fn figures(result: &RunResult, picture: &RunPicture, detail: Detail) -> Vec<Figure> {
    let mut figures = saturation::figures(result, picture, detail);
    figures.extend(distribution::figures(result));
    figures.extend(time::figures(result, picture, detail));
    figures
}

/// The words of a figure about itself.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    section: Section,
    name: String,
    title: String,
    subtitle: String,
    description: String,
    trial: Option<usize>,
    chart: &'static str,
    series: String,
}

impl Meta {
    pub(crate) fn new(section: Section, name: &str, title: &str, description: &str) -> Self {
        Self {
            section,
            name: name.to_owned(),
            title: title.to_owned(),
            subtitle: String::new(),
            description: description.to_owned(),
            trial: None,
            chart: "",
            series: String::new(),
        }
    }

    /// The same of what the subtitle names.
    pub(crate) fn of(self, subtitle: &str) -> Self {
        Self { subtitle: subtitle.to_owned(), ..self }
    }

    /// The same of a trial over time.
    pub(crate) fn over_time(self, trial: usize, chart: &'static str) -> Self {
        Self { trial: Some(trial), chart, ..self }
    }

    pub(crate) fn of_series(self, series: String) -> Self {
        Self { series, ..self }
    }

    /// The figure that was drawn.
    pub(crate) fn figure(self, canvas: Canvas, table: FigureTable) -> Figure {
        let id = format!("fig-{}", self.name);
        let titles = (self.title.as_str(), self.subtitle.as_str());
        let drawn = canvas.finish(titles, &self.description);
        let title = match self.subtitle.as_str() {
            "" => self.title,
            subtitle => format!("{}, {subtitle}", self.title),
        };
        let Self { section, name, description, trial, chart, series, .. } = self;
        Figure { id, name, title, description, section, trial, chart, series, table, drawn }
    }
}
