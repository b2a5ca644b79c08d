//! Runs for golden pages, made by the instrument itself: an experiment against a script, through load, record and
//! analysis in virtual time. What these pages show can be, and changes with what the stages conclude.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::Seed;
use model::result::RunResult;

/// Those whose pages are kept whole: in the terminal's widths, and as Markdown.
pub fn whole() -> Vec<(&'static str, RunResult)> {
    vec![("clean", clean()), ("failed", failed()), ("matrix", matrix())]
}

/// Those that have tables which the others have not: one page each.
pub fn others() -> Vec<(&'static str, RunResult)> {
    vec![("liar", liar()), ("probe", probe()), ("resends", resends())]
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// `workers` at work, each exponential with this mean, nanoseconds.
fn server(workers: u32, mean: Duration) -> Script {
    Script::queue(workers, Law::Exponential(mean, Seed(7)))
}

fn run(experiment: &str, script: impl Fn() -> Script) -> RunResult {
    let client = Client { in_flight_max: 64, closes_after_timeout: false };
    let folder = tempfile::tempdir().expect("a folder for the run");
    let ran = exact::run(experiment, client, &|_, _| script(), folder.path());
    ran.unwrap_or_else(|why| panic!("{why}")).result
}

/// Every promise holds.
fn clean() -> RunResult {
    let experiment = "
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
    run(experiment, || server(1, ms(2)))
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

/// More and more load on a server of 200/s.
pub fn matrix() -> RunResult {
    let experiment = "
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
    run(experiment, || server(1, ms(5)))
}

/// What is acknowledged is lost, and stored twice.
fn liar() -> RunResult {
    let experiment = "
name = 'liar'
question = 'Is what it acknowledges what it stores?'
[system]
kind = 'script'
[load]
rate = '500/s'
warmup = '0s'
duration = '4s'
";
    run(experiment, || server(2, ms(2)).loses_every(400).repeats_every(700))
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

/// What has no answer for a while is sent again.
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
