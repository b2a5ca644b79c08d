//! `[system.deploy]` and `[workload]` of the canary: what an experiment can ask for, and the node's command line
//! that it becomes. Faults are written as the node's options are named; every mistake is reported with its place.

use std::net::SocketAddr;

use echo_node::Lie;
use echo_node::protocol::BATCH_COUNT_MAX;
use model::options::{Options, Problems, Section};
use model::quantity::show_duration;
use sut::{Kind, Request, Role, System};

/// What is spoken with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Frames,
    Http,
}

impl Protocol {
    /// The name of its address, in the node's ready line and in the deployment.
    pub(crate) const fn endpoint(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Http => "http",
        }
    }
}

/// The canary as an experiment wants it.
pub(crate) struct Echo {
    pub(crate) arguments: Vec<String>,
    /// The program of its own that is the node; `None`: this one.
    pub(crate) program: Option<&'static str>,
    pub(crate) protocol: Protocol,
    pub(crate) observes: bool,
    pub(crate) polls: bool,
    /// Whether what leaves together is one frame.
    pub(crate) batches: bool,
    /// Whether a client's transactions must come in their order, on one connection.
    pub(crate) ordered: bool,
    /// How many nodes there are. Connections go to the first, and in each later life to the next.
    pub(crate) nodes: u32,
    /// How many clients bring transactions where the arrivals are open; `None`: nobody's.
    pub(crate) clients: Option<u32>,
    /// Which roles go through a client library.
    pub(crate) called: Vec<Role>,
    pub(crate) stages: u8,
    pub(crate) in_flight_max: u32,
    pub(crate) attach: Option<SocketAddr>,
    pub(crate) confess: bool,
    /// Whether the node says its own metrics.
    pub(crate) says_metrics: bool,
    /// Whether the node stamps events.
    pub(crate) stamps: bool,
    pub(crate) payload_bytes: usize,
    pub(crate) kinds: Vec<Kind>,
    /// How many keys there are, where a kind reads.
    pub(crate) keys: Option<u64>,
    pub(crate) run_mark: u64,
}

/// How commits are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitWay {
    Answer,
    Observer,
    Poll,
}

impl CommitWay {
    const fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Observer => "observer",
            Self::Poll => "poll",
        }
    }
}

/// The most payload: what a submission may carry.
const PAYLOAD_BYTES_MAX: u64 = echo_node::protocol::SUBMIT_PAYLOAD_BYTES_MAX as u64;

/// The node is part of this program; or it is the program that `assay doctor --install` builds.
const OWN_PROGRAM: &str = "assay";
const NODE_PROGRAM: &str = "echo-node";

/// The kind that reads.
const READ: &str = "get";
/// A payload begins with its key, where a kind reads.
const KEY_BYTES: u64 = 8;
/// Keys unless said otherwise: few enough that one is written and read many times in a short trial.
const KEYS: u64 = 16;
const KEYS_MAX: u64 = 65_536;

/// Nodes of a trial: a process each.
const NODES_MAX: u64 = 16;
/// Clients that bring transactions: what the node remembers.
const CLIENTS_MAX: u64 = 1 << 20;

/// Outstanding on a connection unless said otherwise: enough to keep any queue of interest busy.
const IN_FLIGHT_MAX: u64 = 64;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let mut arguments = Vec::new();
    let protocol = deploy.one_of("protocol", &["frames", "http"], problems);
    let protocol = if protocol == Some("http") { Protocol::Http } else { Protocol::Frames };
    let commit = commit_way(&mut deploy, problems);
    let stages = deploy.integer("stages", 1, 3, problems).unwrap_or(1);
    arguments.extend([format!("--stages={stages}"), format!("--commit={}", commit.word())]);
    queue(&mut deploy, &mut arguments, problems);
    if deploy.boolean("sync", problems) == Some(true) {
        arguments.push("--sync".to_owned());
    }
    let in_flight_max = deploy.integer("in_flight_max", 1, 65_536, problems);
    let in_flight_max =
        in_flight_max.unwrap_or(if protocol == Protocol::Http { 1 } else { carried(request) });
    let batches = batches(&mut deploy, request, &mut arguments, problems);
    let called = called(&mut deploy, problems);
    let nodes = deploy.integer("nodes", 1, NODES_MAX, problems).unwrap_or(1);
    let ordered = deploy.boolean("ordered", problems).unwrap_or(false);
    if ordered {
        arguments.push("--ordered".to_owned());
    }
    let attach = deploy.address("attach", "127.0.0.1:4000", problems);
    let program = deploy.one_of("program", &[OWN_PROGRAM, NODE_PROGRAM], problems);
    let program = program.filter(|program| *program == NODE_PROGRAM);
    let confess = deploy.boolean("confess", problems).unwrap_or(false);
    let says_metrics = deploy.boolean("metrics", problems).unwrap_or(false);
    let stamps = deploy.boolean("events", problems).unwrap_or(false);
    let mut workload = Section::open(request.workload, "workload", problems);
    let payload_bytes = payload_bytes(&mut workload, problems);
    verifies_content(&mut workload, problems);
    let kinds = kinds(&mut workload, problems);
    let keys = keys(&mut workload, problems);
    let clients = workload.integer("clients", 1, CLIENTS_MAX, problems);
    let reads = kinds.iter().position(|kind| !kind.is_recorded);
    if let Some(index) = reads {
        arguments.push(format!("--reads={index}"));
    }
    if reads.is_some() && payload_bytes < KEY_BYTES {
        let message = format!(
            "a payload begins with its key where the kind `{READ}` reads: {KEY_BYTES} bytes at least"
        );
        workload.reject("payload", message, None, problems);
    }
    if reads.is_some() && protocol == Protocol::Http {
        let message = format!("over HTTP nothing is stored that the kind `{READ}` could read");
        workload.reject("kinds", message, Some("use frames".to_owned()), problems);
    }
    workload.finish(problems);
    if let Some(table) = deploy.section("faults", problems) {
        faults(table, &kinds, stages, &mut arguments, problems);
    }
    if protocol == Protocol::Http && (stages > 1 || commit != CommitWay::Answer) {
        let message = "over HTTP there is one stage, and the answer tells it".to_owned();
        deploy.reject(
            "protocol",
            message,
            Some("remove stages and commit, or use frames".to_owned()),
            problems,
        );
    }
    if attach.is_some() && says_metrics {
        let message = "a server that is already running says its metrics where it was told to";
        let help = Some("remove metrics, or let Assay start the server".to_owned());
        deploy.reject("metrics", message, help, problems);
    }
    let logs_refused = arguments.iter().any(|argument| argument == "--logs-refused");
    if batches && (reads.is_some() || logs_refused) {
        let message = format!(
            "batches are of writes alone, which are stored or refused and not logged: not with the kind `{READ}` and not with faults.logs_refused"
        );
        deploy.reject("batches", message, Some("remove one of the two".to_owned()), problems);
    }
    if !called.is_empty() && reads.is_some() {
        let message =
            format!("the client library writes and does not read: not with the kind `{READ}`");
        let key = if called.contains(&Role::Probe) { "probe_by" } else { "load_by" };
        deploy.reject(key, message, Some("remove one of the two".to_owned()), problems);
    }
    let is_plain = protocol == Protocol::Frames && commit == CommitWay::Answer;
    if batches && (!is_plain || stages > 1) {
        let message = "batches are of the frames, with one stage that the answer tells";
        let help = Some("remove protocol, commit and stages, or batches".to_owned());
        deploy.reject("batches", message, help, problems);
    }
    if !called.is_empty() && !is_plain {
        let message = "the client library speaks frames and waits for the answer";
        let key = if called.contains(&Role::Probe) { "probe_by" } else { "load_by" };
        let help = Some(format!("remove protocol and commit, or {key}"));
        deploy.reject(key, message, help, problems);
    }
    if ordered && (!is_plain || batches || !called.is_empty()) {
        let message = "each client's order is kept over frames, one transaction a frame, where the answer tells it";
        let help = Some("remove protocol, commit, batches, load_by and probe_by, or ordered");
        deploy.reject("ordered", message, help.map(str::to_owned), problems);
    }
    let is_told = commit == CommitWay::Answer;
    if nodes > 1 && (!is_told || reads.is_some() || !called.is_empty() || attach.is_some()) {
        let message = format!(
            "several nodes are of writes over wires, started here, where the answer tells the commit: not with commit, \
             attach, load_by, probe_by and the kind `{READ}`"
        );
        deploy.reject("nodes", message, Some("remove the others, or nodes".to_owned()), problems);
    }
    let is_started = program.is_some() || arguments.iter().any(|argument| !is_for_both(argument));
    if attach.is_some() && is_started {
        let message = "a server that is already running has its own queue and faults".to_owned();
        let help = "remove everything but attach, protocol, commit, stages, batches, ordered, load_by, probe_by and in_flight_max";
        deploy.reject("attach", message, Some(help.to_owned()), problems);
    }
    if stamps && (protocol == Protocol::Http || attach.is_some()) {
        let message =
            "a node stamps events over frames, and only one that is started here".to_owned();
        deploy.reject("events", message, Some("remove events".to_owned()), problems);
    }
    deploy.finish(problems);
    if problems.list.len() > before {
        return None;
    }
    Some(Box::new(Echo {
        arguments,
        program,
        protocol,
        observes: commit == CommitWay::Observer,
        polls: commit == CommitWay::Poll,
        batches,
        ordered,
        nodes: u32::try_from(nodes).expect("bounded above"),
        clients: clients.map(|count| u32::try_from(count).expect("bounded above")),
        called,
        stages: u8::try_from(stages).expect("at most 3"),
        in_flight_max: u32::try_from(in_flight_max).expect("bounded above"),
        attach,
        confess,
        says_metrics,
        stamps,
        payload_bytes: usize::try_from(payload_bytes).ok()?,
        keys: reads.map(|_| keys),
        kinds,
        run_mark: request.run_mark,
    }))
}

/// Options that say how to talk to the server, not what it is.
fn is_for_both(argument: &str) -> bool {
    argument.starts_with("--stages=")
        || argument.starts_with("--commit=")
        || argument == "--batches"
        || argument == "--ordered"
}

fn commit_way(deploy: &mut Section<'_>, problems: &mut Problems) -> CommitWay {
    match deploy.one_of("commit", &["answer", "observer", "poll"], problems) {
        Some("observer") => CommitWay::Observer,
        Some("poll") => CommitWay::Poll,
        _ => CommitWay::Answer,
    }
}

/// `servers`, `service`, `queue_max`, `seed`.
fn queue(deploy: &mut Section<'_>, arguments: &mut Vec<String>, problems: &mut Problems) {
    if let Some(servers) = deploy.integer("servers", 1, 10_000, problems) {
        arguments.push(format!("--servers={servers}"));
    }
    if let Some(max) = deploy.integer("queue_max", 0, u64::from(u32::MAX), problems) {
        arguments.push(format!("--queue-max={max}"));
    }
    if let Some(seed) = deploy.integer("seed", 0, u64::MAX, problems) {
        arguments.push(format!("--seed={seed}"));
    }
    let is_table = matches!(
        deploy.raw("service").map(|service| &service.value),
        Some(model::options::Value::Table(_))
    );
    if !is_table {
        if let Some(mean) = deploy.duration("service", problems) {
            arguments.push(format!("--service={}", node_time(mean)));
        }
        return;
    }
    let Some(mut service) = deploy.section("service", problems) else { return };
    let mean = service.duration("mean", problems);
    if let Some(mean) = service.require("mean", mean, "mean = \"1ms\"", problems) {
        arguments.push(format!("--service={}", node_time(mean)));
    }
    if let Some(word) = service.one_of("distribution", &["constant", "exponential"], problems) {
        arguments.push(format!("--distribution={word}"));
    }
    service.finish(problems);
}

/// The node reads one number with one unit.
fn node_time(time: std::time::Duration) -> String {
    format!("{}ns", time.as_nanos())
}

/// What a connection must carry: the batches that the load has outstanding on it, or enough for any queue of interest.
fn carried(request: &Request<'_>) -> u64 {
    let batch = request.load.and_then(|load| load.batch);
    let wanted =
        batch.map_or(0, |batch| u64::from(batch.size_max) * u64::from(batch.in_flight_max));
    wanted.clamp(IN_FLIGHT_MAX, 65_536)
}

/// `batches`, `per_frame`, `frames_max`: several transactions in one frame.
fn batches(
    deploy: &mut Section<'_>,
    request: &Request<'_>,
    arguments: &mut Vec<String>,
    problems: &mut Problems,
) -> bool {
    let is_wanted = deploy.boolean("batches", problems).unwrap_or(false);
    if is_wanted {
        arguments.push("--batches".to_owned());
    }
    if let Some(cost) = deploy.duration("per_frame", problems) {
        arguments.push(format!("--per-frame={}", node_time(cost)));
    }
    if let Some(max) = deploy.integer("frames_max", 1, u64::from(u32::MAX), problems) {
        arguments.push(format!("--frames-max={max}"));
    }
    let size = request.load.and_then(|load| load.batch).map_or(0, |batch| batch.size_max);
    if is_wanted && size as usize > BATCH_COUNT_MAX {
        let message = format!(
            "a batch of this protocol holds at most {BATCH_COUNT_MAX}, and load.batch {size}"
        );
        deploy.reject("batches", message, Some("lower load.batch.size_max".to_owned()), problems);
    }
    is_wanted
}

/// `load_by`, `probe_by`: the roles that go through a client library.
fn called(deploy: &mut Section<'_>, problems: &mut Problems) -> Vec<Role> {
    let mut by = |key, role| {
        let word = deploy.one_of(key, &["wire", "call"], problems);
        word.filter(|word| *word == "call").map(|_| role)
    };
    [by("load_by", Role::Submit), by("probe_by", Role::Probe)].into_iter().flatten().collect()
}

/// How long a payload is.
pub(crate) fn payload_bytes(workload: &mut Section<'_>, problems: &mut Problems) -> u64 {
    workload.size_within("payload", 0..=PAYLOAD_BYTES_MAX, problems).unwrap_or(64)
}

/// Whether the check of what the ledger holds is wanted.
pub(crate) fn verifies_content(workload: &mut Section<'_>, problems: &mut Problems) -> bool {
    workload.boolean("verify_content", problems).unwrap_or(false)
}

/// How many keys reads and writes are spread over. The check of what reads returned asks, too.
pub(crate) fn keys(workload: &mut Section<'_>, problems: &mut Problems) -> u64 {
    workload.integer("keys", 1, KEYS_MAX, problems).unwrap_or(KEYS)
}

/// `get` reads what the others write; they stand in the ledger.
fn kinds(workload: &mut Section<'_>, problems: &mut Problems) -> Vec<Kind> {
    let Some(names) = workload.strings("kinds", problems) else {
        return vec![Kind::recorded("put")];
    };
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let is_good = !names.is_empty()
        && sorted.len() == names.len()
        && names.len() <= usize::from(u16::MAX)
        && names.iter().all(|name| !name.trim().is_empty());
    if !is_good {
        let message = "`workload.kinds` must be names, each once, at least one".to_owned();
        workload.reject("kinds", message, None, problems);
        return vec![Kind::recorded("put")];
    }
    let kind = |name: &str| if name == READ { Kind::read(name) } else { Kind::recorded(name) };
    names.into_iter().map(kind).collect()
}

/// `[system.deploy.faults]`.
fn faults(
    mut table: Section<'_>,
    kinds: &[Kind],
    stages: u64,
    arguments: &mut Vec<String>,
    problems: &mut Problems,
) {
    for lie in Lie::ALL {
        if let Some(every) = table.integer(lie.word(), 1, i64::MAX.unsigned_abs(), problems) {
            arguments.push(format!("--{}={every}", lie.word()));
            if lie == Lie::Unordered && stages == 1 {
                let help = Some("add stages = 3 to [system.deploy]".to_owned());
                table.reject(lie.word(), "one stage cannot be out of order", help, problems);
            }
            if lie == Lie::Stale && kinds.iter().all(|kind| kind.is_recorded) {
                let help = Some(format!("add kinds = [\"put\", \"{READ}\"] to [workload]"));
                table.reject(lie.word(), "nothing reads", help, problems);
            }
        }
    }
    for (key, option, has_factor) in
        [("stall", "stall", false), ("store_stall", "store-stall", false), ("slow", "slow", true)]
    {
        for written in one_or_more(table.raw(key)) {
            let mut span = Section::open(written, &table.full(key), problems);
            if let Some(text) = timed(&mut span, has_factor, problems) {
                arguments.push(format!("--{option}={text}"));
            }
            span.finish(problems);
        }
    }
    if let Some(part) = table.percent("drift", problems) {
        arguments.push(format!("--drift={}%", part * 100.0));
    }
    if let Some(mut limit) = table.section("limit", problems) {
        limiter(&mut limit, arguments, problems);
        limit.finish(problems);
    }
    if let Some(name) = table.string("refuse", problems) {
        match kinds.iter().position(|kind| kind.name == name) {
            Some(index) => arguments.push(format!("--refuse={index}")),
            None => {
                let help = format!("the kinds are: {}", Kind::names(kinds).join(", "));
                let message = format!("`{name}` is not among the workload's kinds");
                table.reject("refuse", message, Some(help), problems);
            }
        }
    }
    for (key, argument) in [("logs_refused", "--logs-refused"), ("logs_reads", "--logs-reads")] {
        if table.boolean(key, problems) == Some(true) {
            arguments.push(argument.to_owned());
        }
    }
    if let Some(word) = table.one_of("from", &["first", "start"], problems) {
        arguments.push(format!("--faults-from={word}"));
    }
    if let Some(time) = table.duration("late_by", problems) {
        arguments.push(format!("--late-by={}", node_time(time)));
    }
    if let Some(count) = table.integer("reorder_by", 1, u64::from(u32::MAX), problems) {
        arguments.push(format!("--reorder-by={count}"));
    }
    table.finish(problems);
}

/// A table, or a list of tables.
fn one_or_more(written: Option<&Options>) -> Vec<&Options> {
    match written.map(|options| (&options.value, options)) {
        None => Vec::new(),
        Some((model::options::Value::Array(items), _)) => items.iter().collect(),
        Some((_, options)) => vec![options],
    }
}

/// `{ at = "5s", for = "1s" }`, with `factor = 10` where it has one, as the node's option writes it.
fn timed(span: &mut Section<'_>, has_factor: bool, problems: &mut Problems) -> Option<String> {
    let at = span.duration("at", problems);
    let at = span.require("at", at, "at = \"5s\"", problems);
    let length = span.duration("for", problems);
    let length = span.require("for", length, "for = \"1s\"", problems);
    let factor = if has_factor {
        let factor = span.number("factor", 0.0, 1e9, problems);
        format!("*{}", span.require("factor", factor, "factor = 10", problems)?)
    } else {
        String::new()
    };
    Some(format!("{}+{}{factor}", node_time(at?), node_time(length?)))
}

/// `limit = { rate = "50/s", window = "60s", burst = 3000, backoff = "30s" }`.
fn limiter(limit: &mut Section<'_>, arguments: &mut Vec<String>, problems: &mut Problems) {
    let rate = limit.rate("rate", problems);
    let rate = limit.require("rate", rate, "rate = \"50/s\"", problems);
    let window = limit.duration("window", problems);
    let burst = limit.number("burst", 1.0, 1e12, problems);
    if let Some(backoff) = limit.duration("backoff", problems) {
        arguments.push(format!("--limit-backoff={}", node_time(backoff)));
    }
    let Some(rate) = rate else { return };
    if rate.is_zero() || rate.is_max() {
        limit.reject("rate", "a limiter needs a rate above 0 and below max", None, problems);
        return;
    }
    arguments.push(format!("--limit-rate={}", rate.as_per_second()));
    match (window, burst) {
        (Some(window), Some(_)) => {
            let message = format!(
                "a window of {} is a burst of rate × window; write one of the two",
                show_duration(window)
            );
            limit.reject("burst", message, None, problems);
        }
        (Some(window), None) => {
            let burst = (rate.as_per_second() * window.as_secs_f64()).max(1.0);
            arguments.push(format!("--limit-burst={burst}"));
        }
        (None, Some(burst)) => arguments.push(format!("--limit-burst={burst}")),
        (None, None) => {}
    }
}
