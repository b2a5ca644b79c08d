//! `[system.deploy]` and `[workload]`: what an experiment can ask for. Every mistake is reported with its place.

use std::time::Duration;

use model::options::{Options, Problems, Section};
use sut::{Request, System};

use crate::nodes::Wish;
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
    let wish = wish(&mut deploy, problems);
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

fn wish(deploy: &mut Section<'_>, problems: &mut Problems) -> Wish {
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
    let timestamp_delay = duration("timestamp_delay", Duration::ZERO);
    let sequencer_delay = duration("sequencer_delay", Duration::ZERO);
    let bucket_delay = duration("bucket_delay", Duration::ZERO);
    let bucket_to_queue = duration("bucket_to_queue", BUCKET_TO_QUEUE);
    let queue_to_cache = duration("queue_to_cache", QUEUE_TO_CACHE);
    let omc = duration("omc", OMC);
    let lease = duration("lease", Duration::from_secs(30));
    let attempt_max = duration("attempt_max", Duration::from_secs(3));
    let give_up = duration("give_up", GIVE_UP);
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
    let names: Vec<String> = (0..buckets).map(|bucket| format!("bucket{bucket}")).collect();
    let is_known = |name: &&str| names.iter().any(|known| known == name);
    let unknown = audit_buckets.iter().flatten().find(|name| !is_known(name));
    if let Some(name) = unknown {
        let message = format!("there is no bucket `{name}`: bucket0 to bucket{}", buckets - 1);
        deploy.reject("audit_buckets", message, None, problems);
    }
    let audit_buckets = audit_buckets
        .map_or_else(|| names.clone(), |some| some.into_iter().map(str::to_owned).collect());
    Wish {
        pipelines,
        buckets: names,
        audit_buckets,
        required,
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

fn payload(workload: &Options, problems: &mut Problems) -> usize {
    let mut workload = Section::open(workload, "workload", problems);
    let bytes = workload.size("payload", problems).unwrap_or(PAYLOAD_BYTES);
    let least = HEAD_BYTES as u64;
    if !(least..=PAYLOAD_BYTES_MAX).contains(&bytes) {
        let message = format!(
            "`workload.payload` is {bytes} bytes; a transaction has {least} (the trial's mark and its number) to {PAYLOAD_BYTES_MAX}"
        );
        workload.reject("payload", message, None, problems);
    }
    workload.finish(problems);
    usize::try_from(bytes).unwrap_or(HEAD_BYTES)
}
