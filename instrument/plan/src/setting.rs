//! One setting of the matrix, read in full: system, load, probe, measure, links, faults.

use std::time::Duration;

use model::options::{Options, Span, Value, did_you_mean};
use model::plan::{
    DisksPlan, FaultPlan, LinksPlan, LoadPlan, MeasurePlan, ProbePlan, ProbeSchedule, SystemPlan,
};
use model::quantity::show_duration;

use crate::fault::{self, Beside};
use crate::input::TRANSACTIONS_MAX;
use crate::table::{Reading, Table, note_leaves};
use crate::{disk, keys, links, load};

/// The most connections that a probe opens without being asked to.
const PROBE_CONNECTIONS: u64 = 64;

/// The longest wait before a ledger is read again.
const SETTLE_MAX: Duration = Duration::from_secs(3600);

/// The content of a setting's tree.
pub(crate) struct Setting {
    pub system: SystemPlan,
    pub load: LoadPlan,
    pub probe: Option<ProbePlan>,
    pub measure: MeasurePlan,
    pub faults: Vec<FaultPlan>,
    pub links: Option<LinksPlan>,
    pub disks: Option<DisksPlan>,
}

/// Reads one setting; `None` if anything in it is wrong.
pub(crate) fn read(root: &Options, reading: &mut Reading<'_>) -> Option<Setting> {
    let before = reading.problems.list.len();
    let system = system(root, reading);
    let load = match root.get("load") {
        Some(options) => load::read(options, reading),
        None => {
            let help = "add [load] with rate = \"50/s\", or another load".to_owned();
            reading.problems.add(root.span, "`load` is missing", Some(help));
            None
        }
    };
    let empty = Options::empty();
    let probe = root.get("probe").zip(load.as_ref()).map(|(o, load)| probe(o, load, reading));
    let mut measure = measure(root.get("measure").unwrap_or(&empty), reading);
    measure.settle = settle(root.get("ledger").unwrap_or(&empty), reading);
    let links = links::read(root, reading);
    let disks = disk::read(root, reading);
    let duration = load.as_ref().map(|load| load.duration);
    let faults = fault::read(
        root,
        &Beside { duration, links: links.as_ref(), has_disks: disks.is_some() },
        reading,
    );
    if let Some(load) = &load {
        check_sends(root, load, probe.is_some(), reading);
    }
    if let Some(system) = &system {
        (reading.outside.check_system)(system, load.as_ref(), &mut reading.problems);
    }
    if reading.problems.list.len() > before {
        return None;
    }
    Some(Setting { system: system?, load: load?, probe, measure, faults, links, disks })
}

fn system(root: &Options, reading: &mut Reading<'_>) -> Option<SystemPlan> {
    let Some(options) = root.get("system") else {
        let help = "add [system] with kind = \"http\", or another kind".to_owned();
        reading.problems.add(root.span, "`system` is missing", Some(help));
        return None;
    };
    let mut table = Table::open(options, "system", reading);
    let kind = table.string("kind", reading);
    if matches!(options.value, Value::Table(_)) {
        table.require("kind", kind, "kind = \"http\"", reading);
    }
    if let Some(kind) = kind {
        check_kind(&table, kind, reading);
    }
    let deploy = adapters_part(table.given("deploy"), "system.deploy", table.span(), reading);
    table.finish(reading);
    let workload = adapters_part(root.get("workload"), "workload", root.span, reading);
    Some(SystemPlan { kind: kind?.to_owned(), deploy, workload })
}

fn check_kind(table: &Table<'_>, kind: &str, reading: &mut Reading<'_>) {
    let kinds = reading.outside.kinds;
    if kinds.is_empty() || kinds.contains(&kind) {
        return;
    }
    let near = did_you_mean(kind, kinds.iter().copied());
    let help = near.unwrap_or_else(|| format!("there is: {}", kinds.join(", ")));
    table.reject("kind", format!("there is no system of the kind `{kind}`"), Some(&help), reading);
}

/// A table that only the adapter understands; where it is absent, an empty one at `place`.
fn adapters_part(
    options: Option<&Options>,
    path: &str,
    place: Span,
    reading: &mut Reading<'_>,
) -> Options {
    let Some(options) = options else { return Options { span: place, ..Options::empty() } };
    // Opening it says so if it is not a table.
    let _ = Table::open(options, path, reading);
    note_leaves(options, path, reading);
    options.clone()
}

fn probe(options: &Options, load: &LoadPlan, reading: &mut Reading<'_>) -> ProbePlan {
    let mut table = Table::open(options, "probe", reading);
    let word = keys::fixed("probe.schedule");
    let schedule = match table.one_of_or("schedule", &["open", "sequential"], word, reading) {
        Some("sequential") => ProbeSchedule::Sequential,
        _ => ProbeSchedule::Open,
    };
    let interval = table.duration_or("interval", keys::fixed_duration("probe.interval"), reading);
    if interval.is_zero() && schedule == ProbeSchedule::Open {
        let message = "`probe.interval` must be greater than zero";
        table.reject("interval", message, None, reading);
    }
    let timeout = table.duration_or("timeout", load.timeout, reading);
    if timeout.is_zero() {
        table.reject("timeout", "`probe.timeout` must be greater than zero", None, reading);
    }
    let fitting = times_in(load.duration, interval).max(1);
    let trials = table.integer_or("trials", 1, TRANSACTIONS_MAX, fitting, reading);
    if schedule == ProbeSchedule::Open && trials > fitting && !interval.is_zero() {
        let message = format!(
            "{trials} probes every {} do not fit the {} of `load.duration`",
            show_duration(interval),
            show_duration(load.duration)
        );
        let help = format!("lower probe.trials to {fitting}, or measure longer");
        table.reject("trials", message, Some(&help), reading);
    }
    let connections = match schedule {
        ProbeSchedule::Sequential => 1,
        ProbeSchedule::Open => (times_in(timeout, interval) + 1).min(PROBE_CONNECTIONS),
    };
    let connections = u32::try_from(connections).expect("at most PROBE_CONNECTIONS");
    let connections = table.count_or("connections", 1, 20_000, connections, reading);
    let until = load::until(&mut table, reading);
    table.finish(reading);
    ProbePlan { trials, schedule, interval, timeout, connections, until }
}

/// How many whole intervals a time holds.
fn times_in(time: Duration, interval: Duration) -> u64 {
    u64::try_from(time.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u64::MAX - 1)
}

fn measure(options: &Options, reading: &mut Reading<'_>) -> MeasurePlan {
    let mut table = Table::open(options, "measure", reading);
    let until = match table.string("until", reading) {
        Some(until) => until.to_owned(),
        None => {
            let shown = "the system's last stage".to_owned();
            table.note_derived("until", String::new(), shown, reading)
        }
    };
    let window = table.duration_or("window", keys::fixed_duration("measure.window"), reading);
    if window.is_zero() {
        table.reject("window", "`measure.window` must be greater than zero", None, reading);
    }
    let ledger = table.boolean_or("ledger", keys::fixed("measure.ledger") == "true", reading);
    let calls = table.count_or("calls", 1, 1_000, keys::fixed_count("measure.calls"), reading);
    // Read once for the whole experiment.
    let _ = table.given("percentiles");
    table.finish(reading);
    MeasurePlan { until, window, ledger, calls, ..MeasurePlan::default() }
}

/// How long after a reading of the ledger that lacks something it is read again.
fn settle(options: &Options, reading: &mut Reading<'_>) -> Duration {
    let mut table = Table::open(options, "ledger", reading);
    let settle = table.duration_or("settle", keys::fixed_duration("ledger.settle"), reading);
    if settle > SETTLE_MAX {
        let message = format!("`ledger.settle` is at most {}", show_duration(SETTLE_MAX));
        table.reject("settle", message, None, reading);
    }
    table.finish(reading);
    settle
}

/// A load that sends nothing is a mistake, unless a probe is there to send.
fn check_sends(root: &Options, load: &LoadPlan, has_probe: bool, reading: &mut Reading<'_>) {
    use model::plan::{Arrivals, Schedule};
    if let Arrivals::Open { schedule: Schedule::Constant { rate } } = &load.arrivals
        && rate.is_zero()
        && !has_probe
    {
        let span = root.get("load.rate").map_or(root.span, |rate| rate.span);
        let help = "raise the rate, or add a [probe] that sends".to_owned();
        reading.problems.add(span, "at this rate nothing would ever be sent", Some(help));
    }
}
