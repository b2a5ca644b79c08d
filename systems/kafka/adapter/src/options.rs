//! `[system.deploy]` and `[workload]`: what an experiment can ask for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use model::options::{Problems, Section};
use sut::content::payload_bytes;
use sut::{Request, System};

use crate::brokers::Brokers;
use crate::system::Kafka;
use crate::workload::NUMBER_BYTES;

/// The largest value: many of them have to fit into a batch, which a broker bounds at a mebibyte.
const PAYLOAD_BYTES_MAX: usize = 4 << 10;

/// Outstanding on a connection unless said otherwise, and at most: all of them may be in one batch.
const IN_FLIGHT_MAX: u64 = 64;
const IN_FLIGHT_BOUND: u64 = 200;

/// Heap of a broker unless said otherwise, and its bounds, bytes.
const HEAP_BYTES: u64 = 256 << 20;
const HEAP_RANGE: RangeInclusive<u64> = 128 << 20..=8 << 30;

/// Brokers at most.
const BROKERS_MAX: u64 = 3;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = deploy.addresses("attach", "127.0.0.1:9092", problems);
    let count = deploy.integer("brokers", 1, BROKERS_MAX, problems);
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let heap_bytes = deploy.size_within("heap", HEAP_RANGE, problems).unwrap_or(HEAP_BYTES);
    let settings = settings(&mut deploy, problems);
    let acks = match deploy.one_of("acks", &["all", "1", "0"], problems) {
        Some("0") => 0,
        Some("1") => 1,
        _ => -1,
    };
    // The default of Kafka's own producer: on where nothing speaks against it.
    let idempotence = deploy.boolean("enable_idempotence", problems);
    let in_flight_max = deploy.integer("in_flight_max", 1, IN_FLIGHT_BOUND, problems);
    let ours = ["brokers", "program", "heap", "settings"];
    let message = "brokers that run already have their own settings";
    deploy.reject_beside("attach", &ours, message, problems);
    if count == Some(2) {
        let message = "expected a number of brokers of which a majority can be had: 1 or 3";
        deploy.reject("brokers", message, None, problems);
    }
    if idempotence == Some(true) && acks != -1 {
        let message = "a broker counts a producer's records only with `acks = \"all\"`".to_owned();
        deploy.reject("enable_idempotence", message, Some("remove one".to_owned()), problems);
    }
    deploy.finish(problems);
    let payload_bytes = payload_bytes(request.workload, NUMBER_BYTES..=PAYLOAD_BYTES_MAX, problems);
    if problems.list.len() > before {
        return None;
    }
    Some(Box::new(Kafka {
        brokers: Brokers {
            count: u8::try_from(count.unwrap_or(1)).ok()?,
            run_mark: request.run_mark,
            program,
            heap_mib: heap_bytes >> 20,
            settings,
        },
        attach,
        acks,
        is_idempotent: idempotence.unwrap_or(acks == -1),
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).ok()?,
        payload_bytes,
        run_mark: request.run_mark,
    }))
}

/// The broker's settings by its own names.
fn settings(deploy: &mut Section<'_>, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let Some(section) = deploy.section("settings", problems) else { return settings };
    for (name, span, value) in section.entries() {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
        let value = value.label();
        if name.is_empty() || !name.chars().all(is_name) || value.contains(['\n', '\\']) {
            let message = format!(
                "expected the name of a setting such as \"log.flush.interval.messages\" and a value of one line, got `{name}`"
            );
            problems.add(span, message, None);
        }
        settings.insert(name.to_owned(), value);
    }
    settings
}
