//! `[system.deploy]` and `[workload]`: what an experiment can ask for. Every mistake is reported with its place.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use model::options::{Options, Problems, Section};
use sut::{Request, System};

use crate::nodes::{Wish, in_words};
use crate::system::ObjectLedger;
use crate::workload::HEAD_BYTES;

/// As published: one pipeline, six buckets of which three have every piece that is needed, and three waits.
const PIPELINES: u64 = 1;
const PIPELINES_MAX: u64 = 16;
const BUCKETS: u64 = 6;
const BUCKETS_MAX: u64 = 16;
const REQUIRED: u64 = 3;
const RETRIES: u64 = 10;
const BUCKET_TO_QUEUE: Duration = Duration::from_millis(100);
const QUEUE_TO_CACHE: Duration = Duration::from_millis(100);
const OMC: Duration = Duration::from_millis(50);

/// Transactions of a batch unless said otherwise, and at most.
const BATCH_MAX: u64 = 8_192;
const BATCH_MAX_MAX: u64 = 65_536;

/// Outstanding on a connection unless said otherwise.
const IN_FLIGHT_MAX: u64 = 1024;

/// Channels of the probe: as many connections as a probe has at most unless its plan says how many.
const CHANNELS: u64 = 64;

/// The probe gives a transaction up before the instrument does, whose timeout is 30 s unless said otherwise.
const GIVE_UP: Duration = Duration::from_secs(29);

/// How long the audit waits for the queue to have nothing left.
const SETTLE: Duration = Duration::from_secs(60);

/// Bytes of a transaction unless said otherwise; at most what the ledger takes.
const PAYLOAD_BYTES: u64 = 128;
const PAYLOAD_BYTES_MAX: u64 = 64 << 10;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    read(request, problems).map(|system| Box::new(system) as Box<dyn System>)
}

pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<ObjectLedger> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let wish = wish(&mut deploy, request.folder, problems);
    let in_flight_max = deploy.integer("in_flight_max", 1, 65_536, problems);
    let settle = deploy.duration("settle", problems).unwrap_or(SETTLE);
    deploy.finish(problems);
    let payload_bytes = payload(request.workload, problems);
    let number = |value: u64| u32::try_from(value).expect("bounded where it is read");
    (problems.list.len() == before).then(|| ObjectLedger {
        wish: Wish { run_mark: request.run_mark, ..wish },
        in_flight_max: number(in_flight_max.unwrap_or(IN_FLIGHT_MAX)),
        settle,
        payload_bytes,
        run_mark: request.run_mark,
    })
}

fn wish(deploy: &mut Section<'_>, folder: &Path, problems: &mut Problems) -> Wish {
    let mut integer = |key: &'static str, least, most, default| {
        let value = deploy.integer(key, least, most, problems).unwrap_or(default);
        u32::try_from(value).expect("its bounds fit")
    };
    let pipelines = integer("pipelines", 1, PIPELINES_MAX, PIPELINES);
    let buckets = integer("buckets", 1, BUCKETS_MAX, BUCKETS);
    let required = integer("required", 1, BUCKETS_MAX, REQUIRED);
    let retries = integer("retries", 0, 1_000, RETRIES);
    let batch_max = integer("batch_max", 1, BATCH_MAX_MAX, BATCH_MAX);
    let channels = integer("channels", 1, 400, CHANNELS);
    let mut duration =
        |key: &'static str, default: Duration| deploy.duration(key, problems).unwrap_or(default);
    let bucket_to_queue = duration("bucket_to_queue", BUCKET_TO_QUEUE);
    let queue_to_cache = duration("queue_to_cache", QUEUE_TO_CACHE);
    let omc = duration("omc", OMC);
    let lease = duration("lease", Duration::from_secs(30));
    let attempt_max = duration("attempt_max", Duration::from_secs(3));
    let give_up = duration("give_up", GIVE_UP);
    let mut delay = |key: &'static str| law(deploy, key, problems);
    let timestamp_delay = delay("timestamp_delay");
    let sequencer_delay = delay("sequencer_delay");
    let bucket_delay = delay("bucket_delay");
    // From the experiment's folder, as every path of an experiment.
    let ledger = deploy.string("ledger", problems).map(|file| folder.join(file));
    if let Some(file) = ledger.as_ref().filter(|file| !file.is_file()) {
        let message = format!(
            "`system.deploy.ledger`: expected a ledger's file, got `{}`, which is none; write one with the stores' [[bucket]]s",
            file.display()
        );
        deploy.reject("ledger", message, None, problems);
    }
    let acknowledge = deploy.integer("acknowledge", 1, BUCKETS_MAX, problems);
    let acknowledge = acknowledge.map_or(required, |it| u32::try_from(it).expect("bounded"));
    if !(required..=buckets).contains(&acknowledge) {
        let message = format!(
            "`system.deploy.acknowledge` is {acknowledge}; expected {required} (`required`) to {buckets} (`buckets`)"
        );
        deploy.reject("acknowledge", message, None, problems);
    }
    let mut boolean = |key: &'static str, default| deploy.boolean(key, problems).unwrap_or(default);
    let push = boolean("push", false);
    let watcher = boolean("watcher", true);
    let full_copies = boolean("full_copies", false);
    let hedged = boolean("hedged", true);
    let sync = deploy.one_of("sync", &["data", "none"], problems) != Some("none");
    let audit_buckets = deploy.strings("audit_buckets", problems);
    if required > buckets {
        let message =
            format!("`system.deploy.required` is {required}, and there are {buckets} buckets");
        deploy.reject(
            "required",
            message,
            Some("ask for more buckets, or for fewer pieces".to_owned()),
            problems,
        );
    }
    let margin = deploy.integer("audit_margin", 0, BUCKETS_MAX, problems);
    // Who names the folders knows that others are away.
    let margin_default =
        u64::from(audit_buckets.is_none()).min(u64::from(buckets.saturating_sub(required)));
    let audit_margin = u32::try_from(margin.unwrap_or(margin_default)).expect("bounded");
    let names: Vec<String> = (0..buckets).map(|bucket| format!("bucket{bucket}")).collect();
    let is_known = |name: &&str| names.iter().any(|known| known == name);
    let unknown = audit_buckets.iter().flatten().find(|name| !is_known(name));
    if let Some(name) = unknown {
        let message = format!("there is no bucket `{name}`: bucket0 to bucket{}", buckets - 1);
        deploy.reject("audit_buckets", message, None, problems);
    }
    let byzantine = byzantine(deploy, &names, problems);
    let of_buckets = [
        ("bucket_delay", deploy.raw("bucket_delay").is_some()),
        ("audit_buckets", audit_buckets.is_some()),
        ("byzantine", byzantine.keys().any(|name| names.contains(name))),
    ];
    for (key, is_there) in of_buckets {
        if is_there && ledger.is_some() {
            let message = format!(
                "`system.deploy.{key}` is of the trial's own buckets, and with `ledger` there are none"
            );
            deploy.reject(key, message, Some("remove one of the two".to_owned()), problems);
        }
    }
    let audit_buckets = audit_buckets
        .map_or_else(|| names.clone(), |some| some.into_iter().map(str::to_owned).collect());
    Wish {
        pipelines,
        buckets: names,
        audit_buckets,
        required,
        acknowledge,
        audit_margin,
        ledger,
        byzantine,
        retries,
        batch_max,
        channels,
        timestamp_delay,
        sequencer_delay,
        bucket_delay,
        bucket_to_queue,
        queue_to_cache,
        omc,
        lease,
        attempt_max,
        give_up,
        push,
        watcher,
        full_copies,
        hedged,
        sync,
        run_mark: 0,
    }
}

/// How much later a service answers, as it takes it: a time, or a distribution.
fn law(deploy: &mut Section<'_>, key: &'static str, problems: &mut Problems) -> String {
    let text = match deploy.raw(key) {
        Some(_) => deploy.string(key, &mut Problems::default()).unwrap_or_default().to_owned(),
        None => return in_words(Duration::ZERO),
    };
    if let Some(path) = text.strip_prefix("file:") {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        if !path.is_file() {
            let message = format!("`system.deploy.{key}`: there is no file {}", path.display());
            let help =
                Some("write the measured times into it, in milliseconds, one a line".to_owned());
            deploy.reject(key, message, help, problems);
        }
        return format!("file:{}", path.display());
    }
    if text.starts_with("lognormal(") {
        if !text.ends_with(')') || ![1, 3].contains(&text.matches(',').count()) {
            let message = format!(
                "`system.deploy.{key}`: expected lognormal(MEDIAN,SIGMA) or lognormal(MEDIAN,SIGMA,STALLS,STALL), got `{text}`"
            );
            deploy.reject(
                key,
                message,
                Some("as lognormal(100ms,0.4,0.01,2s)".to_owned()),
                problems,
            );
        }
        return text;
    }
    in_words(deploy.duration(key, problems).unwrap_or(Duration::ZERO))
}

/// Requests that a byzantine service still answers rightly, unless said otherwise.
const BYZANTINE_AFTER: &str = "20";

/// Services that lie, with what they do, as `NAME.FAULT` or `NAME.FAULT@COUNT`.
fn byzantine(
    deploy: &mut Section<'_>,
    buckets: &[String],
    problems: &mut Problems,
) -> BTreeMap<String, String> {
    let mut faults = BTreeMap::new();
    for text in deploy.strings("byzantine", problems).into_iter().flatten() {
        let (what, after) = text.split_once('@').unwrap_or((text, BYZANTINE_AFTER));
        let known = match what.split_once('.') {
            Some((name, fault @ ("lies" | "forgets" | "rolled_back"))) => {
                // One bucket where none is named.
                let name = if name == "bucket" { "bucket0" } else { name };
                buckets.iter().any(|it| it == name).then(|| (name.to_owned(), fault))
            }
            Some(("sequencer", "forks")) => Some(("sequencer".to_owned(), "forks")),
            Some(("timestamp", "other_key")) => Some(("timestamp".to_owned(), "other_key")),
            _ => None,
        };
        match known.filter(|_| after.parse::<u64>().is_ok()) {
            Some((name, fault)) => {
                faults.insert(name, format!("{fault}@{after}"));
            }
            None => {
                let message = format!("`system.deploy.byzantine`: there is no fault `{text}`");
                let help = "expected bucketN.lies, bucketN.forgets, bucketN.rolled_back, sequencer.forks or timestamp.other_key, with @COUNT of requests before it";
                deploy.reject("byzantine", message, Some(help.to_owned()), problems);
            }
        }
    }
    faults
}

fn payload(workload: &Options, problems: &mut Problems) -> usize {
    let mut workload = Section::open(workload, "workload", problems);
    // The trial's mark and its number are in each.
    let range = HEAD_BYTES as u64..=PAYLOAD_BYTES_MAX;
    let bytes = workload.size_within("payload", range, problems).unwrap_or(PAYLOAD_BYTES);
    workload.finish(problems);
    usize::try_from(bytes).unwrap_or(HEAD_BYTES)
}
