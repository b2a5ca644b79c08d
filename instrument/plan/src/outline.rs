//! A plan at a glance, for `assay check`: what each setting does, how long it all takes, how much is offered.
//! Plain data; printing is the report's business.

use std::time::Duration;

use model::plan::{LoadPlan, Plan, ProbePlan, ProbeSchedule, SettingPlan};
use model::quantity::show_duration;
use model::result::Verdict;

use crate::arrival;

/// What starting and stopping a system, calibrating and writing the record take beside the load, for each
/// trial. A guess that is right for systems on this host; the real ones differ, so `check` says "about".
const OVERHEAD: Duration = Duration::from_secs(2);

/// A plan at a glance.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The experiment's name.
    pub name: String,
    /// Its question.
    pub question: String,
    /// One entry a setting, in the plan's order.
    pub settings: Vec<OutlineSetting>,
    /// Trials in all.
    pub trials: u64,
    /// About how long it takes: every drain short.
    pub wall_time: Duration,
    /// How long it takes at most: every drain to its bound.
    pub wall_time_max: Duration,
    /// The highest rate that any setting offers, transactions a second; infinite for `max`, `None` if all
    /// loops are closed.
    pub offered_max_per_s: Option<f64>,
    /// Transactions in all; `None` where only the system can tell.
    pub transactions: Option<u64>,
}

/// One setting at a glance.
#[derive(Clone, Debug)]
pub struct OutlineSetting {
    /// Its key.
    pub key: String,
    /// The load in a few words: `50/s constant`, `64 clients`.
    pub load: String,
    /// Connections, and the most of them if that is more: `64`, `64–256`.
    pub connections: String,
    /// Engine threads.
    pub threads: u32,
    /// Warm-up.
    pub warmup: Duration,
    /// Measured window.
    pub duration: Duration,
    /// Longest drain.
    pub drain_max: Duration,
    /// The probe in a few words, or empty: `250 trials, inf over 30s`.
    pub probe: String,
    /// Number of faults.
    pub faults: usize,
    /// Trials.
    pub trials: u32,
    /// The highest rate it offers, transactions a second.
    pub offered_max_per_s: Option<f64>,
    /// Transactions of one trial, warm-up included.
    pub transactions: Option<u64>,
    /// The verdict that the experiment declares.
    pub expect: Option<Verdict>,
}

/// Looks at a plan.
#[must_use]
pub fn outline(plan: &Plan) -> Outline {
    let settings: Vec<OutlineSetting> = plan.settings.iter().map(setting).collect();
    let sum = |length: &dyn Fn(&OutlineSetting) -> Duration| {
        settings.iter().fold(Duration::ZERO, |sum, setting| {
            sum.saturating_add(length(setting).saturating_mul(setting.trials))
        })
    };
    let run = |one: &OutlineSetting| one.warmup + one.duration + OVERHEAD;
    let wall_time = sum(&run);
    let wall_time_max = sum(&|one| run(one).saturating_add(one.drain_max));
    let trials = settings.iter().map(|setting| u64::from(setting.trials)).sum();
    let offered_max_per_s =
        settings.iter().filter_map(|setting| setting.offered_max_per_s).reduce(f64::max);
    let transactions = settings.iter().try_fold(0_u64, |sum, setting| {
        let all = setting.transactions?.saturating_mul(u64::from(setting.trials));
        Some(sum.saturating_add(all))
    });
    Outline {
        name: plan.name.clone(),
        question: plan.question.clone(),
        settings,
        trials,
        wall_time,
        wall_time_max,
        offered_max_per_s,
        transactions,
    }
}

fn setting(setting: &SettingPlan) -> OutlineSetting {
    let load = &setting.load;
    let planned = arrival::planned(&load.arrivals, load.warmup, load.duration);
    let probes = setting.probe.as_ref().map_or(0, |probe| probe.trials);
    let capped = |count: u64| match load.transactions_max {
        0 => count,
        most => count.min(most),
    };
    OutlineSetting {
        key: setting.key.clone(),
        load: load.in_words() + &until_words(&load.until),
        connections: connections_words(load),
        threads: load.threads,
        warmup: load.warmup,
        duration: load.duration,
        drain_max: load.drain_max,
        probe: setting.probe.as_ref().map(probe_words).unwrap_or_default(),
        faults: setting.faults.len(),
        trials: setting.trials,
        offered_max_per_s: arrival::rate_max(&load.arrivals, load.warmup + load.duration),
        transactions: planned.map(|count| capped(count).saturating_add(probes)),
        expect: setting.expect,
    }
}

fn connections_words(load: &LoadPlan) -> String {
    if load.connections_max > load.connections {
        format!("{}–{}", load.connections, load.connections_max)
    } else {
        load.connections.to_string()
    }
}

fn probe_words(probe: &ProbePlan) -> String {
    let sequential = match probe.schedule {
        ProbeSchedule::Open => "",
        ProbeSchedule::Sequential => ", one after another",
    };
    let (timeout, until) = (show_duration(probe.timeout), until_words(&probe.until));
    format!("{} trials, inf over {timeout}{sequential}{until}", probe.trials)
}

/// Where a stream ends, if it says so itself.
fn until_words(until: &str) -> String {
    if until.is_empty() { String::new() } else { format!(", until {until}") }
}
