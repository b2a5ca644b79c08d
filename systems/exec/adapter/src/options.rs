//! `[system.deploy]` and `[workload]`: what an experiment can ask for.

use std::time::Duration;

use model::options::{Options, Problems, Section, Value};
use model::secret;
use model::{STAGES_MAX, Seed};
use serde_json::Value as Json;
use sut::{Kind, Request, System};

use crate::line::{Keys, Vocabulary};
use crate::start::Start;
use crate::system::Exec;

/// The largest payload: with what JSON may make of it, it fits a line.
const PAYLOAD_BYTES_MAX: u64 = 128 << 10;

/// Outstanding on a channel unless said otherwise: enough that a line carries many.
const IN_FLIGHT_MAX: u64 = 256;

/// The largest weight of a kind.
const WEIGHT_MAX: u64 = 1_000_000;

/// A question beside the load may take so long, unless said otherwise.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A program may take so long to start, and again to deploy, unless said otherwise: interpreters with large libraries do.
const START_WITHIN: Duration = Duration::from_secs(60);

/// The most channels: a program has a thousand descriptors, unless it asks for more.
const CHANNELS_MAX: u64 = 900;

/// The name of the program in the testbed.
pub(crate) const NODE: &str = "exec";

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let command = deploy.strings("command", problems);
    let command =
        deploy.require("command", command, "command = [\"python3\", \"client.py\"]", problems);
    if command.as_ref().is_some_and(|command| command.first().is_none_or(|it| it.is_empty())) {
        deploy.reject("command", "`system.deploy.command` names no program", None, problems);
    }
    let stages =
        words(deploy.strings("stages", problems)).unwrap_or_else(|| vec!["committed".into()]);
    if stages.is_empty() || stages.len() > STAGES_MAX {
        let message =
            format!("`system.deploy.stages` has {}; 1 to {STAGES_MAX} are possible", stages.len());
        deploy.reject("stages", message, None, problems);
    }
    let steps = words(deploy.strings("steps", problems)).unwrap_or_default();
    for (key, names) in [("stages", &stages), ("steps", &steps)] {
        let is_word = |name: &&String| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if let Some(name) = names.iter().find(|name| !is_word(name)) {
            let message =
                format!("`{name}` is no name: lower-case letters, digits and `_`, a letter first");
            deploy.reject(key, message, None, problems);
        }
    }
    distinct("stages", stages.iter().chain(&steps), &deploy, problems);
    let in_flight_max = deploy.integer("in_flight_max", 1, 65_536, problems);
    let channels = deploy.integer("channels", 1, CHANNELS_MAX, problems);
    let answer_within = deploy.duration("answer_within", problems).unwrap_or(ANSWER_WITHIN);
    let start_within = deploy.duration("start_within", problems).unwrap_or(START_WITHIN);
    let options = deploy.raw("options").map_or_else(|| Json::Object(Default::default()), json);
    let _ = deploy.strings("targets", problems);
    let environment = words(deploy.strings("environment", problems)).unwrap_or_default();
    for name in &environment {
        match std::env::var(name) {
            // Whatever the program says of it, in its log or its answers, is taken out.
            Ok(value) => secret::taint(&value),
            Err(_) => {
                let message = format!(
                    "the environment variable `{name}` is not set; export it, or leave it out"
                );
                deploy.reject("environment", message, None, problems);
            }
        }
    }
    let mut workload = Section::open(request.workload, "workload", problems);
    let payload_bytes =
        workload.size_within("payload", 0..=PAYLOAD_BYTES_MAX, problems).unwrap_or(0);
    let recorded = words(workload.strings("kinds", problems));
    let reads = words(workload.strings("reads", problems)).unwrap_or_default();
    let recorded = recorded
        .unwrap_or_else(|| if reads.is_empty() { vec!["submit".into()] } else { Vec::new() });
    distinct("kinds", recorded.iter().chain(&reads), &workload, problems);
    if recorded.iter().chain(&reads).any(|name| name.trim().is_empty()) {
        workload.reject("kinds", "a kind has no name", None, problems);
    }
    if recorded.is_empty() && reads.is_empty() {
        workload.reject("kinds", "`workload.kinds` names no kind", None, problems);
    }
    let is_binary = workload.one_of("content", &["letters", "bytes"], problems) == Some("bytes");
    let keys = workload.integer("keys", 1, u64::MAX >> 11, problems);
    let weights = weights(&mut workload, recorded.len() + reads.len(), problems);
    workload.finish(problems);
    deploy.finish(problems);
    let command = command.filter(|_| problems.list.len() == before)?;
    let kinds: Vec<Kind> =
        recorded.into_iter().map(Kind::recorded).chain(reads.into_iter().map(Kind::read)).collect();
    let keys = keys.map(|count| Keys { seed: Seed(request.run_mark), count });
    let connections = request.load.map_or(1, |load| load.connections);
    // One more, for a probe.
    let one_more = (u64::from(connections) + 1).min(CHANNELS_MAX);
    let is_elsewhere = !request.folder.as_os_str().is_empty();
    Some(Box::new(Exec {
        connections,
        payload_bytes: usize::try_from(payload_bytes).expect("bounded"),
        is_binary,
        weights,
        start: Start {
            name: NODE.to_owned(),
            command: command.into_iter().map(str::to_owned).collect(),
            folder: is_elsewhere.then(|| request.folder.to_owned()),
            environment,
            words: Vocabulary { stages, kinds: Kind::names(&kinds), steps, keys },
            channels: u32::try_from(channels.unwrap_or(one_more)).expect("bounded"),
            in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).expect("bounded"),
            start_within,
            answer_within,
            options,
            run_mark: request.run_mark,
            seed: Seed(request.run_mark),
        },
        kinds,
    }))
}

/// Where the program goes is not seen from here: the experiment says it.
pub(crate) fn targets(request: &Request<'_>) -> Vec<String> {
    request.deploy.get("targets").map(Options::labels).unwrap_or_default()
}

/// How often each kind comes beside the others, in the order of kinds; none: each in turn.
fn weights(workload: &mut Section<'_>, kinds: usize, problems: &mut Problems) -> Vec<u64> {
    let Some(items) = workload.array("weights", problems) else { return Vec::new() };
    let number = |item: &Options| match item.value {
        Value::Integer(number) => u64::try_from(number).ok().filter(|it| *it <= WEIGHT_MAX),
        _ => None,
    };
    let weights: Option<Vec<u64>> = items.iter().map(number).collect();
    match weights.filter(|it| it.len() == kinds && it.iter().any(|weight| *weight > 0)) {
        Some(weights) => weights,
        None => {
            let message = format!(
                "`workload.weights`: expected {kinds} numbers from 0 to {WEIGHT_MAX}, one a kind (first `kinds`, then `reads`), not all of them 0"
            );
            workload.reject("weights", message, None, problems);
            Vec::new()
        }
    }
}

fn words(texts: Option<Vec<&str>>) -> Option<Vec<String>> {
    texts.map(|texts| texts.into_iter().map(str::to_owned).collect())
}

fn distinct<'a>(
    key: &str,
    names: impl Iterator<Item = &'a String>,
    section: &Section<'_>,
    problems: &mut Problems,
) {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            section.reject(key, format!("`{name}` stands here twice"), None, problems);
        }
    }
}

/// Options as the program gets them.
fn json(options: &Options) -> Json {
    match &options.value {
        Value::String(text) => Json::from(text.as_str()),
        Value::Integer(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::Boolean(is) => Json::from(*is),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Table(table) => {
            table.iter().map(|(key, (_, value))| (key.clone(), json(value))).collect()
        }
    }
}
