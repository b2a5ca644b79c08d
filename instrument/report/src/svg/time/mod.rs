//! A trial over time: latency, rates, outstanding, own lag, stages and series. Small and static, for print and for a
//! page without its script; the script draws the same data in full.
//!
//! Columns are merged until they fit: counts by their sum, everything else by its highest value, never by an average
//! of percentiles. The description says how wide a column became.

mod bands;
mod columns;
mod density;
mod latency;
mod lines;
mod rates;
mod series;
mod stages;

use model::picture::{RunPicture, TrialPicture};
use model::result::{RunResult, TrialResult};

use super::settings::stem;
use super::{Figure, Meta, Section};
use crate::tables::shown;
use columns::Columns;

/// All charts of all trials. Those of a trial stand together.
pub(crate) fn figures(result: &RunResult, picture: &RunPicture) -> Vec<Figure> {
    let nothing = TrialPicture::default();
    let is_alone = result.settings.iter().map(|it| it.trials.len()).sum::<usize>() < 2;
    let trials = shown(result).into_iter().enumerate();
    trials
        .flat_map(|(index, row)| {
            let of = Trial {
                index,
                label: if is_alone { String::new() } else { row.label.clone() },
                stem: format!("{index}-{}", stem(&row.label)),
                result: row.trial,
                picture: picture.trials.get(index).unwrap_or(&nothing),
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
}

impl Trial<'_> {
    /// What a chart of this trial says of itself.
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
    let columns = Columns::of(&of.result.timeline, columns::COLUMNS_MAX);
    let mut figures = vec![
        latency::figure(of, &columns),
        rates::figure(of, &columns),
        lines::outstanding(of, &columns),
    ];
    figures.extend(stages::figure(of, &columns));
    // The tool first: its processor, its lag, then the host, then the rest.
    let mut series = series::figures(of);
    let own_processor =
        series.iter().take_while(|it| it.series.starts_with("generator.cpu")).count();
    figures.extend(series.drain(..own_processor));
    figures.push(lines::own_lag(of, &columns));
    figures.extend(series);
    figures
}
