//! A trial over time: latency, rates, outstanding, own lag, stages and series. Small and static, for print and for a
//! page without its script; the script draws the same data in full.
//!
//! Columns are merged until they fit: counts by their sum, everything else by its highest value, never by an average
//! of percentiles. The description says how wide a column became.

mod bands;
mod columns;
mod density;
mod frame;
mod lanes;
mod latency;
mod lines;
mod node_stages;
mod rates;
mod series;
mod stages;
mod waterfall;

use model::picture::{RunPicture, TrialPicture};
use model::result::{RunResult, TrialResult};
use model::series::OWN_PROCESSOR;

use super::settings::stem;
use super::{Detail, Figure, Meta, Section};
use crate::tables::{is_unsent, shown_on_page};
use columns::Columns;

/// The bounds of a document's charts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Columns of a chart.
    pub(crate) columns: usize,
    /// Columns and rows of a density.
    pub(crate) density: (usize, usize),
    /// Points of all lines of a series' chart together.
    pub(crate) series_points: usize,
    /// Whether series have bands from lowest to highest.
    pub(crate) has_bands: bool,
}

impl Room {
    const FULL: Self = Self {
        columns: columns::COLUMNS_MAX,
        density: (density::ACROSS_MAX, density::DOWN_MAX),
        series_points: series::POINTS_MAX,
        has_bands: true,
    };

    /// Shared by all trials, and by all charts of series: about 10 bytes a point, so that the lines of a page and the
    /// series of a page are about 100 kB each.
    fn of(picture: &RunPicture, detail: Detail) -> Self {
        if detail == Detail::Full {
            return Self::FULL;
        }
        const COLUMNS_OF_ALL: usize = 400;
        const COLUMNS_MIN: usize = 48;
        const SERIES_POINTS_OF_ALL: usize = 7_000;
        const SERIES_POINTS_MIN: usize = 48;
        const BANDED_CHARTS_MAX: usize = 12;
        let columns = COLUMNS_OF_ALL / picture.trials.len().max(1);
        let columns = columns.clamp(COLUMNS_MIN, Self::FULL.columns);
        let charts = picture.trials.iter().map(|trial| series::names(trial).len()).sum::<usize>();
        let points = SERIES_POINTS_OF_ALL / charts.max(1);
        Self {
            columns,
            density: ((columns / 2).min(density::ACROSS_MAX), density::DOWN_MAX / 2),
            series_points: points.clamp(SERIES_POINTS_MIN, Self::FULL.series_points),
            has_bands: charts <= BANDED_CHARTS_MAX,
        }
    }
}

/// All charts of all trials. Those of a trial stand together.
pub(crate) fn figures(result: &RunResult, picture: &RunPicture, detail: Detail) -> Vec<Figure> {
    let room = Room::of(picture, detail);
    let nothing = TrialPicture::default();
    let is_alone = result.settings.iter().map(|it| it.trials.len()).sum::<usize>() < 2;
    let trials = shown_on_page(result).into_iter().enumerate();
    trials
        .filter(|(_, row)| !is_unsent(row.trial))
        .flat_map(|(index, row)| {
            let of = Trial {
                index,
                label: if is_alone { String::new() } else { row.label.clone() },
                stem: format!("{index}-{}", stem(&row.trial_key())),
                result: row.trial,
                picture: picture.trials.get(index).unwrap_or(&nothing),
                room,
            };
            of_trial(&of)
        })
        .collect()
}

/// A trial to draw.
pub(crate) struct Trial<'a> {
    pub(crate) index: usize,
    /// For its subtitle; empty if there is one trial only.
    label: String,
    /// For the end of a file name.
    stem: String,
    pub(crate) result: &'a TrialResult,
    pub(crate) picture: &'a TrialPicture,
    pub(crate) room: Room,
}

impl Trial<'_> {
    /// The words of a chart of this trial about itself.
    fn meta(&self, section: Section, chart: &'static str, title: &str, description: &str) -> Meta {
        self.named(section, chart, chart, title, description)
    }

    /// The same with a name for files that is not its chart's.
    fn named(
        &self,
        section: Section,
        chart: &'static str,
        name: &str,
        title: &str,
        description: &str,
    ) -> Meta {
        let name = format!("{name}-{}", self.stem);
        Meta::new(section, &name, title, description).of(&self.label).over_time(self.index, chart)
    }
}

fn of_trial(of: &Trial<'_>) -> Vec<Figure> {
    let columns = Columns::of(&of.result.timeline, of.room.columns);
    let mut figures = vec![
        latency::figure(of, &columns),
        rates::figure(of, &columns),
        lines::outstanding(of, &columns),
    ];
    figures.extend(stages::figure(of, &columns));
    figures.extend(node_stages::figures(of));
    figures.extend(waterfall::figure(of));
    // The tool first: its processor, its lag, then the host, then the rest.
    let mut series = series::figures(of);
    let own_processor = format!("{}.{}", OWN_PROCESSOR.0, OWN_PROCESSOR.1);
    let own_processor =
        series.iter().take_while(|it| it.series.starts_with(&own_processor)).count();
    figures.extend(series.drain(..own_processor));
    figures.push(lines::own_lag(of, &columns));
    let of_the_host = series.iter().take_while(|it| series::is_of_the_host(of, it)).count();
    figures.extend(series.drain(..of_the_host));
    figures.extend(lanes::figures(of));
    figures.extend(series);
    figures
}
