//! Runs for golden pages, made by the instrument itself: an experiment against a script, through load, record and
//! analysis in virtual time. What these pages show can be, and changes with what the stages conclude.

use std::time::Duration;

use exact::{Beside, Client, Law, Ran, Script};
use model::Seed;
use model::facts::MetricSample;
use model::fault::{FaultDetail, FaultEvent, FaultPhase};
use model::plan::SettingPlan;
use model::result::RunResult;

/// Those whose pages are kept whole: in the terminal's widths, and as Markdown.
pub fn whole() -> Vec<(&'static str, RunResult)> {
    vec![("clean", clean()), ("failed", failed()), ("matrix", matrix())]
}

/// Those that have tables which the others have not: one page each.
pub fn others() -> Vec<(&'static str, RunResult)> {
    vec![
        ("batches", batches()),
        ("declared", declared()),
        ("faults", faults()),
        ("inside", inside()),
        ("interrupted", interrupted()),
        ("invalid", invalid()),
        ("liar", liar()),
        ("probe", probe()),
        ("resends", resends()),
        ("search", search()),
        ("steps", steps()),
        ("streams", streams()),
    ]
}

/// Eight runs that a reader meets, each with what it is of: good, slow, dead, refused, undecided, own lag, lost, saturated.
pub fn eight() -> Vec<(&'static str, Ran)> {
    vec![
        ("good", ran(CLEAN, || server(1, ms(2)))),
        ("slow", ran(SLOW, || Script::unbounded(Law::Exponential(ms(60), Seed(7))))),
        ("dead", ran(DEAD, || server(4, ms(5)).down(ms(6_000), ms(60_000)))),
        ("refused", ran(REFUSED, || server(4, ms(5)).limited(1, ms(60_000)))),
        ("undecided", ran(UNDECIDED, || server(1, ms(5)))),
        ("own-lag", ran(OWN_LAG, stopped)),
        ("lost", ran(LIAR, || server(2, ms(2)).loses_every(400).repeats_every(700))),
        ("saturated", ran(MATRIX, || server(1, ms(5)))),
    ]
}

/// A load that was not sent, because the test request before it was refused.
pub fn withheld() -> Ran {
    let refusal = Some("500 Internal Server Error, 3 times of 3".to_owned());
    let beside = Beside { refusal, ..Beside::default() };
    ran_beside(REFUSED, &beside, |_| server(4, ms(5)))
}

/// The loads of [`matrix`] with another limit for p99.
pub fn matrix_within(limit: &str) -> RunResult {
    run(&MATRIX.replace("250ms", limit), || server(1, ms(5)))
}

/// One setting that is declared to fail and does, beside one that passes.
pub fn as_declared() -> RunResult {
    let expect = "[[expect]]\nat = { server = 'forgetful' }\nverdict = 'fail'";
    let experiment = DECLARED.replace("[[expect]]\nverdict = 'fail'", expect);
    run_beside(&experiment, &Beside::default(), forgetful_or_honest)
}

const SLOW: &str = "
name = 'slow'
question = 'Does it answer 99 of 100 requests within 100 ms?'
[system]
kind = 'script'
[load]
arrival = 'poisson'
rate = '100/s'
warmup = '0s'
duration = '30s'
[[threshold]]
expr = 'p99 < 100ms'
[[threshold]]
expr = 'success == 100%'
";

const DEAD: &str = "
name = 'dead'
question = 'Does it answer 99 of 100 requests within a second?'
[system]
kind = 'script'
[load]
rate = '100/s'
warmup = '0s'
duration = '10s'
timeout = '2s'
[[threshold]]
expr = 'p99 < 1s'
";

const REFUSED: &str = "
name = 'refused'
question = 'Is every request answered well?'
[system]
kind = 'script'
[load]
rate = '50/s'
warmup = '0s'
duration = '10s'
[[threshold]]
expr = 'success == 100%'
[[threshold]]
expr = 'p99 < 1s'
";

const UNDECIDED: &str = "
name = 'undecided'
question = 'Does it keep p99 under 95 ms at 150/s?'
[system]
kind = 'script'
[load]
arrival = 'poisson'
rate = '150/s'
warmup = '0s'
duration = '20s'
[[threshold]]
expr = 'p99 < 95ms'
";

const OWN_LAG: &str = "
name = 'own-lag'
question = 'Does a server that takes 100 ms keep p99 under 110 ms?'
[system]
kind = 'script'
[load]
rate = '100/s'
warmup = '0s'
duration = '10s'
[[threshold]]
expr = 'p99 < 110ms'
";

/// A server of 100 ms, and a client whose machine is stopped for 24 ms of every 370.
fn stopped() -> Script {
    let script = Script::unbounded(Law::Constant(ms(100)));
    (1..30).fold(script, |script, nth| script.client_stopped(ms(nth * 370), ms(nth * 370 + 24)))
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// `workers` at work, each exponential with this mean, nanoseconds.
pub fn server(workers: u32, mean: Duration) -> Script {
    Script::queue(workers, Law::Exponential(mean, Seed(7)))
}

fn run(experiment: &str, script: impl Fn() -> Script) -> RunResult {
    run_beside(experiment, &Beside::default(), |_| script())
}

fn run_beside(
    experiment: &str,
    beside: &Beside,
    script: impl Fn(&SettingPlan) -> Script,
) -> RunResult {
    ran_beside(experiment, beside, script).result
}

fn ran(experiment: &str, script: impl Fn() -> Script) -> Ran {
    ran_beside(experiment, &Beside::default(), |_| script())
}

pub fn ran_beside(
    experiment: &str,
    beside: &Beside,
    script: impl Fn(&SettingPlan) -> Script,
) -> Ran {
    let client = Client { in_flight_max: 64, closes_after_timeout: false, hears_accepted: false };
    let folder = tempfile::tempdir().expect("a folder for the run");
    let script = |setting: &SettingPlan, _| script(setting);
    let ran = exact::run_beside(experiment, client, &script, beside, folder.path());
    ran.unwrap_or_else(|why| panic!("{why}"))
}

const CLEAN: &str = "
name = 'smoke'
question = 'Does it answer 200 requests a second within 50 ms?'
[system]
kind = 'script'
[load]
arrival = 'poisson'
rate = '200/s'
warmup = '1s'
duration = '60s'
[[threshold]]
expr = 'p99 < 50ms'
[[threshold]]
expr = 'success == 100%'
";

/// Every threshold holds.
fn clean() -> RunResult {
    run(CLEAN, || server(1, ms(2)))
}

/// A limiter below the rate, and answers that never come.
pub fn failed() -> RunResult {
    let experiment = "
name = 'limited'
question = 'Which part of 100/s gets through, and how fast?'
[system]
kind = 'script'
[load]
rate = '100/s'
warmup = '0s'
duration = '20s'
timeout = '2s'
[[threshold]]
expr = 'success == 100%'
[[threshold]]
expr = 'p99 < 1s'
[[threshold]]
expr = 'lost == 0'
";
    run(experiment, || server(4, ms(15)).limited(5, ms(11)).silent_every(75))
}

const MATRIX: &str = "
name = 'rates'
question = 'Which rate can it sustain?'
[system]
kind = 'script'
[load]
arrival = 'poisson'
rate = '100/s'
warmup = '0s'
duration = '20s'
[matrix]
rate = ['100/s', '150/s', '180/s', '220/s', '250/s']
[[threshold]]
expr = 'p99 < 250ms'
[[threshold]]
expr = 'committed >= 98% of offered'
level = 'saturated'
[[report.tables]]
columns = ['offered', 'committed', 'p50', 'p99']
";

/// More and more load on a server of 200/s.
pub fn matrix() -> RunResult {
    run(MATRIX, || server(1, ms(5)))
}

/// Generators of 80/s join and leave a server of 200/s that answers what is too much.
fn steps() -> RunResult {
    let experiment = "
name = 'staircase'
question = 'What becomes of what is offered beyond the knee?'
[system]
kind = 'script'
[load]
rate = '80/s'
rate_per = 'generator'
steps = { every = '4s', add = { generators = 1 }, until = { generators = 4 }, leave = true }
warmup = '0s'
[[threshold]]
expr = 'goodput >= 95% of offered'
level = 'saturated'
";
    run(experiment, || Script::queue(1, Law::Constant(ms(5))).holds_at_most(40))
}

const LIAR: &str = "
name = 'liar'
question = 'Is what it acknowledges what it stores?'
[system]
kind = 'script'
[load]
rate = '500/s'
warmup = '0s'
duration = '4s'
";

/// A server that loses acknowledged transactions, and stores some twice.
fn liar() -> RunResult {
    run(LIAR, || server(2, ms(2)).loses_every(400).repeats_every(700))
}

/// A search for the highest rate of a server of 200/s.
pub fn search() -> RunResult {
    let experiment = "
name = 'highest'
question = 'Which rate keeps p99 under 100 ms?'
[system]
kind = 'script'
[load]
arrival = 'poisson'
rate = '50/s'
warmup = '1s'
duration = '20s'
[search]
find = 'load.rate'
[[threshold]]
expr = 'p99 < 100ms'
";
    run(experiment, || server(1, ms(5)))
}

/// A light client beside the load.
fn probe() -> RunResult {
    let experiment = "
name = 'probe'
question = 'What does a light client see beside 150/s?'
[system]
kind = 'script'
[load]
rate = '150/s'
warmup = '1s'
duration = '20s'
[probe]
interval = '100ms'
";
    run(experiment, || server(1, ms(5)))
}

/// A background load that ends where it is accepted, beside a probe that waits for the commit.
fn streams() -> RunResult {
    let experiment = "
name = 'streams'
question = 'What does a client that waits for the commit see beside 150/s that do not?'
[system]
kind = 'script'
[load]
rate = '150/s'
warmup = '1s'
duration = '20s'
until = 'accepted'
[probe]
interval = '100ms'
until = 'committed'
";
    let client = Client { in_flight_max: 64, closes_after_timeout: false, hears_accepted: true };
    let folder = tempfile::tempdir().expect("a folder for the run");
    let script = |_: &SettingPlan, _| server(1, ms(5)).accepting_after(ms(2));
    let ran = exact::run(experiment, client, &script, folder.path());
    ran.unwrap_or_else(|why| panic!("{why}")).result
}

/// A load that resends transactions without an answer.
fn resends() -> RunResult {
    let experiment = "
name = 'resends'
question = 'How often is one sent until it is answered?'
[system]
kind = 'script'
[load]
rate = '100/s'
warmup = '0s'
duration = '10s'
[load.resend]
attempts_max = 3
after = '100ms'
";
    run(experiment, || server(4, ms(5)).silent_every(40))
}

/// Batches to a server that resets connections now and then.
fn batches() -> RunResult {
    let experiment = "
name = 'batches'
question = 'Why do batches leave?'
[system]
kind = 'script'
[load]
rate = '100/s'
connections = 4
warmup = '0s'
duration = '10s'
timeout = '1s'
[load.batch]
size_max = 8
delay_max = '50ms'
[matrix]
rate = ['100/s', '400/s']
";
    run(experiment, || server(4, ms(5)).resets_every(300))
}

const DECLARED: &str = "
name = 'declared'
question = 'Is a liar caught, and an honest server not?'
trials = 3
[system]
kind = 'script'
[load]
rate = '200/s'
warmup = '0s'
duration = '5s'
[matrix]
server = { set = 'system.deploy.server', values = ['forgetful', 'honest'] }
[[expect]]
verdict = 'fail'
";

fn forgetful_or_honest(setting: &SettingPlan) -> Script {
    match setting.values["server"].as_str() {
        "forgetful" => server(2, ms(2)).loses_every(100),
        _ => server(2, ms(2)),
    }
}

/// Settings built to fail, of which one does not; three trials each.
fn declared() -> RunResult {
    run_beside(DECLARED, &Beside::default(), forgetful_or_honest)
}

/// A node that stores nothing for three seconds, goes on to answer, and loses a few.
fn inside() -> RunResult {
    let experiment = "
name = 'inside'
question = 'Which step falls behind?'
[system]
kind = 'script'
[load]
rate = '100/s'
warmup = '1s'
duration = '10s'
[measure]
ledger = false
[[threshold]]
expr = 'stage.stored.p99 < 100ms'
";
    run(experiment, || server(2, ms(4)).storing_nothing(ms(4_000), ms(7_000)).loses_every(150))
}

/// Ended after 4.2 s of 30: few samples, one setting never run.
pub fn interrupted() -> RunResult {
    let experiment = "
name = 'interrupted'
question = 'What is left of a run that somebody ended?'
[system]
kind = 'script'
[load]
rate = '50/s'
warmup = '0s'
duration = '30s'
timeout = '2s'
[matrix]
rate = ['50/s', '100/s']
[[threshold]]
expr = 'p99 < 100ms'
[[threshold]]
expr = 'p99.99 < 1s'
confidence = '95%'
";
    let beside = Beside { ended_after: Some(ms(4_200)), ..Beside::default() };
    run_beside(experiment, &beside, |_| server(1, ms(5)).silent_every(70))
}

/// A host that cannot open as many files as there are connections: what it adds is not the system's, and what holds in
/// spite of it holds.
fn invalid() -> RunResult {
    let experiment = "
name = 'invalid'
question = 'Which numbers hold on a host that is too small?'
[system]
kind = 'script'
[load]
rate = '150/s'
connections = 64
warmup = '0s'
duration = '20s'
[[threshold]]
expr = 'p99 < 20ms'
[[threshold]]
expr = 'p50 < 1s'
[[threshold]]
expr = 'offered > 100/s'
[[report.tables]]
columns = ['offered', 'committed', 'p50', 'p99']
";
    let mut beside = Beside::default();
    beside.environment.files_max = 100;
    beside.environment.governor = "powersave".to_owned();
    beside.environment.warnings =
        vec!["governor powersave: numbers change with the clock rate".to_owned()];
    run_beside(experiment, &beside, |_| server(1, ms(5)))
}

/// A server that is paused for a second, and a node that is not there to be killed; its ledger says its own times.
fn faults() -> RunResult {
    let experiment = "
name = 'faults'
question = 'For how long is nothing committed?'
[system]
kind = 'script'
[load]
rate = '100/s'
warmup = '0s'
duration = '10s'
timeout = '5s'
[[fault]]
at = '4s'
for = '1s'
pause = 'script'
[[fault]]
at = '7s'
kill = 'node3'
";
    let event = |fault: u32, phase, at_s: i64, kind: &str, node: &str, detail| FaultEvent {
        fault,
        cycle: 0,
        phase,
        kind: kind.to_owned(),
        node: node.to_owned(),
        planned_ns: at_s * 1_000_000_000,
        at_ns: at_s * 1_000_000_000,
        detail,
    };
    let after = FaultDetail::After {
        ns: 1_000_000_000,
        cut_short: false,
        goes_on: false,
        error: String::new(),
    };
    let gone = FaultDetail::Why { text: "it has ended".to_owned() };
    let faults = vec![
        event(0, FaultPhase::Start, 4, "pause", "script", FaultDetail::Nothing),
        event(0, FaultPhase::End, 5, "pause", "script", after),
        event(1, FaultPhase::Failed, 7, "kill", "node3", gone),
    ];
    let beside = Beside { faults, ..Beside::default() };
    run_beside(experiment, &beside, |_| server(2, ms(5)).stalled(ms(4_000), ms(5_000)).dating())
}

/// Nodes that say something of themselves, of which one is down for a while and has to catch up.
pub fn nodes() -> RunResult {
    let experiment = "
name = 'nodes'
question = 'What do nodes say of themselves?'
[system]
kind = 'script'
[load]
rate = '50/s'
warmup = '0s'
duration = '30s'
";
    // Those that nodes and their host say here.
    let mut series = crate::node_samples::declared();
    series.truncate(5);
    let metrics = (0..30).flat_map(|second| (0..4).flat_map(move |node| said(node, second)));
    let beside = Beside { series, metrics: metrics.collect(), ..Beside::default() };
    run_beside(experiment, &beside, |_| server(1, ms(5)))
}

/// What a node says in a second: the last is down for seven of them, and twelve pages behind when it is back.
fn said(node: u32, second: u32) -> Vec<MetricSample> {
    let behind = match (node, second) {
        (3, 10..17) => return Vec::new(),
        (3, 17..20) => 12,
        (3, 20..25) => 5,
        _ => 0,
    };
    let sample = |(name, value): (&str, u32)| MetricSample {
        at: i64::from(second) * 1_000_000_000,
        source: format!("node-{node}"),
        name: name.to_owned(),
        value: f64::from(value),
    };
    let values = [
        ("rss_bytes", 40_000_000 + second * 100_000),
        ("desk", second % 7 * 10),
        ("turned", 100 + second - behind),
        ("peers", 3),
        ("late_votes", second / 4),
        // Undeclared.
        ("mempool_height", 4),
    ];
    values.map(sample).to_vec()
}
