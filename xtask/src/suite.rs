//! `cargo xtask test`: everything that must hold, in the order that finds a mistake soonest. What cannot be
//! tested here is skipped by name, with the reason, never silently.
//!
//! What is installed and what is run beside the crates' own tests is declared by each system (`systems/NAME/suite.toml`)
//! and, for what belongs to none, in `suite.toml`.

pub mod declared;
mod newcomer;
mod one;
mod prepare;
pub mod sim;
pub mod soak;
mod tally;
pub mod turns;

use std::path::Path;

use declared::Suite;
pub use prepare::program;
use tally::{Aside, Tally, uptime_s};

/// Seconds of fuzzing that all targets share in one run of the suite: those that were run least recently have them.
const FUZZ_SECONDS: u32 = 300;

/// Modules of the end-to-end tests in which the engine's way to the kernel shows. They run once more through epoll, which is
/// what a host has that refuses io_uring; the first time they take whatever the host allows.
const LOADED: [&str; 6] = ["batches::", "crash::", "freeze::", "nginx::", "reads::", "resends::"];

/// Seconds that the one soak of a run is cut to.
const SOAK_SECONDS: u32 = 60;

/// Runs the suite; with `quick`, without fuzzing, toys and soaks.
pub fn run(root: &Path, quick: bool) -> Result<(), String> {
    let suites = declared::read(root)?;
    let began_s = uptime_s();
    let mut tally = Tally::default();
    // Downloads wait for a network, compilers for processors: both at once.
    let preparing = std::thread::spawn({
        let (root, suites) = (root.to_owned(), suites.clone());
        move || prepare::prepare(&root, &suites, true)
    });
    tally.step(root, "format", &["cargo", "fmt", "--all", "--check"]);
    let before = uptime_s();
    tally.done("tidy", crate::tidy::run(root), uptime_s() - before);
    let clippy =
        ["cargo", "clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
    tally.step(root, "lints", &clippy);
    // The binary first: the end-to-end tests start it.
    tally.step(root, "build", &["cargo", "build", "--release", "--workspace"]);
    let installing = std::thread::spawn({
        let (root, suites) = (root.to_owned(), suites.clone());
        move || prepare::systems(&root, &suites)
    });
    let build = ["cargo", "test", "--release", "--workspace", "--no-run"];
    tally.step(root, "build of the tests", &build);
    let prepared = preparing.join().map_err(|_| "preparing panicked".to_owned())?;
    tally.skipped.extend(prepared.skipped);
    tally.skipped.extend(installing.join().map_err(|_| "installing panicked".to_owned())?);
    let tests = ["cargo", "test", "--release", "--workspace", "--no-fail-fast"];
    let python = prepared.python.as_deref();
    let mut env: Vec<(&str, &Path)> =
        python.map(|it| ("ASSAY_TEST_PYTHON", it)).into_iter().collect();
    let threads = test_threads();
    env.push(("RUST_TEST_THREADS", Path::new(&threads)));
    tally.step_with(root, "tests", &tests, &env);
    with_epoll(&mut tally, root, &env);
    let fuzzing = if quick {
        tally.skipped.push("fuzzing, toys and soaks (--quick)".to_owned());
        None
    } else {
        // Beside the rest, of which nothing is judged by its speed: fuzzing takes processors, and what follows waits
        // for browsers and for its own loads most of the time. What that leaves of the processors is its.
        let seconds = FUZZ_SECONDS.to_string();
        let fuzz = ["nice", "-n", "10", "cargo", "xtask", "fuzz", "--budget", &seconds];
        Some(Aside::start(root, "fuzzing", &fuzz))
    };
    tally.step(root, "docs", &["cargo", "xtask", "docs"]);
    page(&mut tally, root);
    newcomer::newcomer(&mut tally, root);
    if let Some(fuzzing) = fuzzing {
        for suite in &suites {
            toys(&mut tally, root, suite);
            sim::step(&mut tally, root, suite);
        }
        soak::next(&mut tally, root, &suites, SOAK_SECONDS);
        fuzzing.end(&mut tally);
    }
    tally.conclude(began_s)
}

/// How many tests run at a time: one more than there are processors, because the end-to-end tests wait for loads and faults
/// most of the time, and those whose times are judged have the machine alone.
fn test_threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors + 1).to_string()
}

/// The end-to-end tests that carry load, through the driver that they did not have before.
fn with_epoll(tally: &mut Tally, root: &Path, env: &[(&str, &Path)]) {
    // Of the whole, as it was built for the first time.
    let mut words = vec!["cargo", "test", "--release", "--workspace", "--test", "end_to_end", "--"];
    words.extend(LOADED);
    let mut env = env.to_vec();
    env.push(("ASSAY_TEST_DRIVER", Path::new("epoll")));
    tally.step_with(root, "end-to-end tests through epoll", &words, &env);
}

/// Runs what is of one system: the tests of its crates, its end-to-end tests, its toys.
pub fn run_system(root: &Path, system: &str) -> Result<(), String> {
    let suites = declared::read(root)?;
    let suite = named(&suites, system)?;
    let began_s = uptime_s();
    let mut tally = Tally::default();
    tally.step(root, "build", &["cargo", "build", "--release", "--workspace"]);
    let only = std::slice::from_ref(suite);
    let prepared = prepare::prepare(root, only, false);
    tally.skipped.extend(prepared.skipped);
    tally.skipped.extend(prepare::systems(root, only));
    one::run(&mut tally, root, suite, prepared.python.as_deref())?;
    toys(&mut tally, root, suite);
    sim::step(&mut tally, root, suite);
    tally.conclude(began_s)
}

fn named<'a>(suites: &'a [Suite], name: &str) -> Result<&'a Suite, String> {
    suites.iter().find(|suite| suite.name == name).ok_or_else(|| {
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        format!("there is no suite `{name}`; there are: {}", names.join(", "))
    })
}

fn toys(tally: &mut Tally, root: &Path, suite: &Suite) {
    for toy in &suite.toys {
        tally.bounded(root, &toy.name, &toy.words(toy.seconds), toy.seconds);
    }
}

/// The report's page: what is checked in is what the sources build, and a real report holds in a browser.
fn page(tally: &mut Tally, root: &Path) {
    if let Some(reason) = crate::web::missing() {
        tally.skipped.push(format!("building the page and looking at it: {reason}"));
        return;
    }
    if !crate::web::has_browser() {
        tally.skipped.push("the page in a browser: there is no chromium".to_owned());
    }
    tally.step(root, "page", &["cargo", "xtask", "web", "--check"]);
}
