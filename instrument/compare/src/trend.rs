//! The history of one experiment: the headline numbers of its runs, and where their level changed.

use model::comparison::{ComparedUnit, TREND_SCHEMA, Trend, TrendChange, TrendNumber, TrendRun};
use model::result::RunResult;
use stats::divisive::change_points;

use crate::decide::searched_number;
use crate::differences::{Subject, differences};
use crate::numbers::{self, Value};

/// How change points are found, for the page.
const METHOD: &str = "change points by E-divisive (Matteson and James 2014) with Student's t in place of permutations, as \
                      in Hunter and Apache Otava: a chance below 0.1%, at least three runs on each side, levels that \
                      differ by more than the margin";
/// The numbers of a history.
const HEADLINE: [&str; 5] = ["p50", "p99", "goodput", "processor time", "highest rate"];

/// A run of the history.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    /// Its folder.
    pub folder: String,
    /// Its baseline names.
    pub baseline_names: Vec<String>,
    /// Its plan and host.
    pub subject: Subject<'a>,
    /// Its result.
    pub result: &'a RunResult,
}

/// The history of runs, oldest first.
#[must_use]
pub fn trend(name: &str, runs: &[Recorded<'_>], margin: f64) -> Trend {
    let differs = |place: usize| {
        let before = runs.get(place.wrapping_sub(1)).filter(|_| place > 0);
        let found = before.map(|before| differences(&before.subject, &runs[place].subject));
        let found = found.unwrap_or_default().into_iter().filter(|it| it.matters);
        found.map(|it| format!("{}: {}, before {}", it.of, it.candidate, it.baseline)).collect()
    };
    let shown = |(place, run): (usize, &Recorded<'_>)| TrendRun {
        folder: run.folder.clone(),
        started: run.result.started.clone(),
        baseline_names: run.baseline_names.clone(),
        differs: differs(place),
    };
    let mut numbers: Vec<TrendNumber> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        for (setting, name, unit, value) in headline(run.result) {
            let is_it = |it: &&mut TrendNumber| it.setting == setting && it.name == name;
            let number = match numbers.iter_mut().find(is_it) {
                Some(number) => number,
                None => {
                    let values = vec![None; runs.len()];
                    numbers.push(TrendNumber { setting, name, unit, values, changes: Vec::new() });
                    numbers.last_mut().expect("pushed above")
                }
            };
            number.values[place] = Some(value);
        }
    }
    for number in &mut numbers {
        number.changes = changes(&number.values, margin);
    }
    Trend {
        schema: TREND_SCHEMA.to_owned(),
        name: name.to_owned(),
        method: METHOD.to_owned(),
        runs: runs.iter().enumerate().map(shown).collect(),
        numbers,
    }
}

/// Change points among the values that are there; the search leaves out those at zero.
fn changes(values: &[Option<f64>], margin: f64) -> Vec<TrendChange> {
    let known: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(run, value)| Some((run, (*value)?))).collect();
    let alone: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let found = change_points(&alone, margin).into_iter();
    found.map(|it| TrendChange { run: known[it.at].0, from: it.from, to: it.to }).collect()
}

/// The headline numbers of a run: of each setting those of its middle trial, by each number.
fn headline(run: &RunResult) -> Vec<(String, String, ComparedUnit, f64)> {
    if let Some(search) = &run.search {
        let (name, unit) = searched_number(search.find);
        let found = search.confirmed.map(|value| (String::new(), name.to_owned(), unit, value));
        return found.into_iter().collect();
    }
    let is_only = run.settings.len() == 1;
    let mut all = Vec::new();
    for setting in &run.settings {
        let key = if is_only { String::new() } else { setting.key.clone() };
        let trials: Vec<_> = setting.trials.iter().map(numbers::of).collect();
        for number in trials.first().into_iter().flatten() {
            if !HEADLINE.contains(&number.name.as_str()) {
                continue;
            }
            let value = |of: &Vec<numbers::Measured>| match &of
                .iter()
                .find(|it| it.name == number.name)?
                .value
            {
                Value::Known(known) => Some(known.estimate.value),
                _ => None,
            };
            let mut known: Vec<f64> = trials.iter().filter_map(value).collect();
            known.sort_by(f64::total_cmp);
            if let Some(middle) = known.get(known.len().saturating_sub(1) / 2) {
                all.push((key.clone(), number.name.clone(), number.unit, *middle));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: neither a run without the number nor one at zero hides a change of level, and the change names its run.
    #[test]
    fn a_run_at_zero_hides_nothing() {
        let mut values = vec![Some(100.0); 21];
        values.extend([Some(50.0); 10]);
        values[3] = None;
        values[20] = Some(0.0);
        let found = changes(&values, 0.05);
        let all: Vec<_> = found.iter().map(|it| (it.run, it.from, it.to)).collect();
        assert_eq!(all, [(21, 100.0, 50.0)]);
    }
}
