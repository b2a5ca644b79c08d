//! Every chart of the report as SVG: pure functions from a result and its picture to text, the same on the page,
//! in print and as files (`--format svg`).
//!
//! No chart may show a number that is neither in the result nor in the picture, and none may compute a figure that a
//! verdict rests on: merging columns of time to what a small chart has room for is all the arithmetic there is, and
//! the description of the chart says so. What they draw may be empty, infinite or not a number; the text never is.

mod table;

use model::picture::RunPicture;
use model::result::RunResult;

pub use table::{ColumnType, FigureCell, FigureTable, Raw};

/// A chart with the numbers that it shows.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The id of its element and, with `-t` and `-d` after it, of the SVG's title and description. Unique in the run;
    /// see [`Figure::of_run`] for several runs in one document.
    pub id: String,
    /// Stem of its file, unique in the run.
    pub name: String,
    /// What it shows, in a few words. Plain text, not escaped.
    pub title: String,
    /// How to read it, and what was merged or left out. Plain text, not escaped.
    pub description: String,
    /// The section of the report that it belongs to.
    pub section: Section,
    /// The trial that it is of, counted over all trials of the run in order.
    pub trial: Option<usize>,
    /// Time charts: `latency`, `rates`, `outstanding`, `lag`, `stages` or `series`. Empty otherwise.
    pub chart: &'static str,
    /// Charts of `series`: `source.name` of each line, separated by blanks. Empty otherwise.
    pub series: String,
    /// The SVG element, complete and with its own style: a file as it is. See [`Figure::inline`].
    pub svg: String,
    /// The same numbers as a table.
    pub table: FigureTable,
}

impl Figure {
    /// The same figure with ids that are unique in a document of several runs.
    #[must_use]
    pub fn of_run(mut self, run: usize) -> Self {
        let id = format!("r{run}-{}", self.id);
        // A quotation mark in a text is escaped, so this meets nothing but the figure's own ids.
        self.svg = self.svg.replace(&format!("\"{}", self.id), &format!("\"{id}"));
        self.svg = self.svg.replace(&format!(" {}-d\"", self.id), &format!(" {id}-d\""));
        self.svg = self.svg.replace(&format!("(#{}-", self.id), &format!("(#{id}-"));
        self.id = id;
        self
    }

    /// The SVG without its own style, for a page that holds [`SVG_STYLE`] once.
    #[must_use]
    pub fn inline(&self) -> String {
        match (self.svg.find("<style>"), self.svg.find("</style>")) {
            (Some(from), Some(to)) => {
                format!("{}{}", &self.svg[..from], &self.svg[to + "</style>".len()..])
            }
            _ => self.svg.clone(),
        }
    }
}

/// A section of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// How much can it take?
    Saturation,
    /// How slow is the slowest 1 in N?
    Distribution,
    /// When was it slow?
    Time,
    /// Where in the pipeline?
    Stages,
    /// What were the generator, the host and the nodes doing?
    Nodes,
}

/// Rules of the classes that the charts use, in terms of the variables `--ink`, `--muted`, `--grid`, `--c0` … `--c7`,
/// `--good`, `--bad`, `--warn`, `--band-warm-up|drain|step|fault` and `--paper`, each with a fallback.
pub const SVG_STYLE: &str = "";

/// All charts of a run, in the order of the report's sections.
#[must_use]
pub fn figures(result: &RunResult, picture: &RunPicture) -> Vec<Figure> {
    let _ = (result, picture);
    Vec::new()
}
