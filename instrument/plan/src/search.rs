//! `[search]`: the numeric key whose highest value is wanted, and how it is looked for. Its settings come into the plan one
//! by one, each the first one with another rate and window.

use std::time::Duration;

use model::options::Options;
use model::plan::{Arrivals, Axis, Plan, Schedule, SearchPlan, SettingPlan, ThresholdPlan};
use model::quantity::{Rate, show_duration};

use crate::keys;
use crate::table::{Reading, Table};

/// The part of load.duration that a trial of the bracket takes.
const BRACKET_PART: u32 = 3;
/// A trial of the bracket is not shorter, unless load.duration is.
const BRACKET_MIN: Duration = Duration::from_secs(2);

/// Reads `[search]`; what it needs of the rest of the file is checked here.
pub(crate) fn read(
    root: &Options,
    settings: &[SettingPlan],
    thresholds: &[ThresholdPlan],
    reading: &mut Reading<'_>,
) -> Option<SearchPlan> {
    let options = root.get("search")?;
    let mut table = Table::open(options, "search", reading);
    let find = table.one_of("find", &["load.rate"], reading);
    if table.given("find").is_none() {
        table.require("find", find, "find = \"load.rate\"", reading);
    }
    let most = table.rate("most", reading);
    let width = share(&mut table, "width", reading);
    let margin = share(&mut table, "margin", reading);
    let hold = settings.first().map_or(Duration::ZERO, |setting| setting.load.duration);
    let part = u64::try_from((hold / BRACKET_PART).as_millis()).unwrap_or(u64::MAX);
    let bracket = Duration::from_millis(part / 100 * 100).max(BRACKET_MIN).min(hold);
    let bracket = table.duration_or("bracket", bracket, reading);
    let confirmations =
        table.count_or("trials", 1, 100, keys::fixed_count("search.trials"), reading);
    table.finish(reading);
    if root.get("matrix").is_some() || settings.len() > 1 {
        let message = "`search` (a search in each setting of a matrix) is not built yet";
        let help = "leave out the matrix: a search makes its settings itself";
        reading.problems.add(options.span, message, Some(help.to_owned()));
        return None;
    }
    let setting = settings.first()?;
    let Some(from) = open_rate(setting) else {
        let message = "a search needs a load with one rate: an open one, constant or poisson";
        let help = "write load.rate = \"50/s\", the rate to begin with";
        reading.problems.add(options.span, message, Some(help.to_owned()));
        return None;
    };
    if thresholds.is_empty() {
        let message = "a search needs a threshold that the rate is to keep";
        let help = "write [[threshold]] with expr = \"p99 < 100ms\", or --find 'p99 < 100ms'";
        reading.problems.add(options.span, message, Some(help.to_owned()));
    }
    Some(SearchPlan {
        from_per_s: from.as_per_second(),
        most_per_s: most.map_or(MOST_PER_S, Rate::as_per_second).min(MOST_PER_S),
        width: width.unwrap_or(WIDTH),
        margin: margin.unwrap_or(MARGIN),
        bracket,
        hold,
        confirmations,
    })
}

/// Nothing above this is offered: more than any machine sends.
const MOST_PER_S: f64 = 10_000_000.0;
/// Without `search.width`.
const WIDTH: f64 = 0.05;
/// Without `search.margin`.
const MARGIN: f64 = 0.05;
/// A rate has three significant digits.
const SHARE_MIN: f64 = 0.01;
/// Beyond it nothing is said of the limit.
const SHARE_MAX: f64 = 0.5;

/// A share that trials can be apart by.
fn share(table: &mut Table<'_>, key: &'static str, reading: &mut Reading<'_>) -> Option<f64> {
    let share = table.percent(key, reading)?;
    if (SHARE_MIN..=SHARE_MAX).contains(&share) {
        return Some(share);
    }
    let message = format!("`search.{key}` must be between 1% and 50%");
    table.reject(key, message, None, reading);
    None
}

fn open_rate(setting: &SettingPlan) -> Option<Rate> {
    match &setting.load.arrivals {
        Arrivals::Open { schedule: Schedule::Constant { rate } | Schedule::Poisson { rate } }
            if !rate.is_max() && !rate.is_zero() =>
        {
            Some(*rate)
        }
        _ => None,
    }
}

/// Adds the trial with this rate and window to the plan, whose only setting was the pattern of all; says which setting and
/// which of its trials it is.
///
/// # Panics
/// If the plan has no setting.
pub fn add_search_trial(plan: &mut Plan, per_s: f64, window: Duration) -> (usize, u32) {
    let rate = Rate::parse(&format!("{per_s}/s")).expect("a rate of a search is one");
    let labels = [("rate", rate.to_string()), ("window", show_duration(window))];
    let key = labels.each_ref().map(|(axis, label)| format!("{axis}={label}")).join(",");
    if plan.axes.is_empty() {
        // The pattern itself makes room for the first trial.
        plan.axes = ["rate", "window"]
            .map(|name| Axis { name: name.to_owned(), labels: Vec::new() })
            .into();
        plan.order.clear();
    }
    let index = plan.settings.iter().position(|setting| setting.key == key).unwrap_or_else(|| {
        let mut setting = plan.settings[0].clone();
        setting.key = key;
        setting.trials = 0;
        setting.load.duration = window;
        if let Arrivals::Open {
            schedule: Schedule::Constant { rate: of } | Schedule::Poisson { rate: of },
        } = &mut setting.load.arrivals
        {
            *of = rate;
        }
        for (axis, (name, label)) in plan.axes.iter_mut().zip(&labels) {
            setting.values.insert((*name).to_owned(), label.clone());
            if !axis.labels.contains(label) {
                axis.labels.push(label.clone());
            }
        }
        if plan.order.is_empty() {
            plan.settings.clear();
        }
        plan.settings.push(setting);
        plan.settings.len() - 1
    });
    let setting = &mut plan.settings[index];
    let trial = setting.trials;
    setting.trials += 1;
    plan.order.push((index, trial));
    (index, trial)
}
