//! `[search]`: the numeric key whose highest value is wanted, and how it is looked for. Its settings come into the plan one
//! by one, each the first one with another rate and window.

use std::time::Duration;

use model::options::Options;
use model::plan::{
    Arrivals, Axis, LoadPlan, Plan, Schedule, SearchDeploy, SearchKey, SearchPlan, SettingPlan,
    ThresholdPlan,
};
use model::quantity::{Rate, show_duration};

use crate::keys;
use crate::load::CONNECTIONS_MAX;
use crate::shape::CLIENTS_MAX;
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
    let word = table.one_of("find", &SearchKey::ALL.map(SearchKey::path), reading);
    if table.given("find").is_none() {
        table.require("find", word, "find = \"load.rate\"", reading);
    }
    let find = SearchKey::ALL.into_iter().find(|it| Some(it.path()) == word).unwrap_or_default();
    let most = most(&mut table, find, reading);
    let width = share(&mut table, "width", reading);
    let margin = share(&mut table, "margin", reading);
    let hold = settings.first().map_or(Duration::ZERO, |setting| setting.load.duration);
    let part = u64::try_from((hold / BRACKET_PART).as_millis()).unwrap_or(u64::MAX);
    let bracket = Duration::from_millis(part / 100 * 100).max(BRACKET_MIN).min(hold);
    let bracket = table.duration_or("bracket", bracket, reading);
    let confirmations =
        table.count_or("trials", 1, 100, keys::fixed_count("search.trials"), reading);
    let deploy = match table.one_of_or("deploy", &["each", "once"], "each", reading) {
        Some("once") => SearchDeploy::Once,
        _ => SearchDeploy::Each,
    };
    table.finish(reading);
    if root.get("matrix").is_some() || settings.len() > 1 {
        let message = "`search` (a search in each setting of a matrix) is not built yet";
        let help = "leave out the matrix: a search makes its settings itself";
        reading.problems.add(options.span, message, Some(help.to_owned()));
        return None;
    }
    let setting = settings.first()?;
    let Some(from) = find.value(&setting.load) else {
        let (message, help) = unfit(find);
        reading.problems.add(options.span, message, Some(help.to_owned()));
        return None;
    };
    let is_own = !setting.faults.is_empty() || setting.links.is_some() || setting.disks.is_some();
    if deploy == SearchDeploy::Once && is_own {
        let message = "`search.deploy = \"once\"` does not go with faults, links or disks, which are each trial's own";
        let help = "remove search.deploy: each trial then starts the system anew";
        reading.problems.add(options.span, message, Some(help.to_owned()));
    }
    if thresholds.is_empty() {
        let message = "a search needs a threshold that is to be kept";
        let help = "write [[threshold]] with expr = \"p99 < 100ms\", or --find 'p99 < 100ms'";
        reading.problems.add(options.span, message, Some(help.to_owned()));
    }
    Some(SearchPlan {
        find,
        from,
        most,
        width: width.unwrap_or(WIDTH),
        margin: margin.unwrap_or(MARGIN),
        bracket,
        hold,
        confirmations,
        deploy,
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

/// The most that is ever tried: a rate is written as one, a count as a number.
fn most(table: &mut Table<'_>, find: SearchKey, reading: &mut Reading<'_>) -> f64 {
    let bound = match find {
        SearchKey::Rate => {
            let most = table.rate("most", reading);
            return most.map_or(MOST_PER_S, Rate::as_per_second).min(MOST_PER_S);
        }
        SearchKey::Clients => CLIENTS_MAX,
        SearchKey::Connections => CONNECTIONS_MAX,
    };
    let most = table.integer("most", 1, bound.into(), reading);
    most.and_then(|most| u32::try_from(most).ok()).unwrap_or(bound).into()
}

/// The message for a load without the key, and the help.
const fn unfit(find: SearchKey) -> (&'static str, &'static str) {
    match find {
        SearchKey::Rate => (
            "a search needs a load with one rate: an open one, constant or poisson",
            "write load.rate = \"50/s\", the rate to begin with",
        ),
        SearchKey::Clients => (
            "a search for clients needs a closed loop without steps or a window",
            "write load.model = \"closed\" and load.clients = 4, the number to begin with",
        ),
        SearchKey::Connections => (
            "a search for connections needs a load with one rate: an open one, constant or poisson",
            "write load.rate = \"50/s\" and load.connections = 16, the number to begin with",
        ),
    }
}

/// Adds the trial with this value of the key that is searched for and this window to the plan, whose only setting was the
/// pattern of all; says which setting and which of its trials it is.
///
/// # Panics
/// If the plan has no setting.
pub fn add_search_trial(plan: &mut Plan, value: f64, window: Duration) -> (usize, u32) {
    let find = plan.search.as_ref().map_or(SearchKey::Rate, |search| search.find);
    let label = match find {
        SearchKey::Rate => rate(value).to_string(),
        SearchKey::Clients | SearchKey::Connections => count(value).to_string(),
    };
    let labels = [(find.word(), label), ("window", show_duration(window))];
    let key = labels.each_ref().map(|(axis, label)| format!("{axis}={label}")).join(",");
    if plan.axes.is_empty() {
        // The pattern itself makes room for the first trial.
        plan.axes = [find.word(), "window"]
            .map(|name| Axis { name: name.to_owned(), labels: Vec::new() })
            .into();
        plan.order.clear();
    }
    let index = plan.settings.iter().position(|setting| setting.key == key).unwrap_or_else(|| {
        let mut setting = plan.settings[0].clone();
        setting.key = key;
        setting.trials = 0;
        setting.load.duration = window;
        set(&mut setting.load, find, value);
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

/// Gives a load this value of the key that is searched for.
fn set(load: &mut LoadPlan, find: SearchKey, value: f64) {
    match (find, &mut load.arrivals) {
        (
            SearchKey::Rate,
            Arrivals::Open {
                schedule: Schedule::Constant { rate: of } | Schedule::Poisson { rate: of },
            },
        ) => *of = rate(value),
        (SearchKey::Clients, Arrivals::Closed { clients, .. }) => {
            // A client that waits for a connection would be a queue of this machine's.
            let is_one_each = load.connections == (*clients).min(CONNECTIONS_MAX);
            *clients = count(value);
            if is_one_each {
                load.connections = (*clients).min(CONNECTIONS_MAX);
                load.connections_max = load.connections;
            }
        }
        (SearchKey::Connections, _) => {
            load.connections = count(value);
            load.connections_max = load.connections;
        }
        _ => {}
    }
}

fn rate(value: f64) -> Rate {
    Rate::parse(&format!("{value}/s")).expect("a rate of a search is one")
}

fn count(value: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a search tries whole numbers between 1 and the most that a load may have"
    )]
    let count = value as u32;
    count
}
