//! Comparisons of runs in virtual time, whose truth is known.

use std::time::Duration;

use compare::{MARGIN, Side, Sides, Subject, compare, differences};
use exact::{Client, Law, Ran, Script};
use model::Seed;
use model::comparison::{Change, ComparedNumber, Comparison};
use model::result::{Exit, RunResult};

/// A run of a queue with exponential service, whose mean is so many microseconds.
fn run(mean_us: u64, seed: u64, more: &str, folder: &std::path::Path) -> Ran {
    let experiment = format!(
        "name = 'pair'\nseed = {seed}\n{more}\n[system]\nkind = 'script'\n[load]\narrival = 'poisson'\nrate = '200/s'\nwarmup = '2s'\nduration = '30s'\n"
    );
    let mean = Duration::from_micros(mean_us);
    let script = |_: &model::plan::SettingPlan, trial: u32| {
        let seed = Seed(seed).split_index("work", u64::from(trial));
        Script::queue(2, Law::Exponential(mean, seed))
    };
    exact::run(&experiment, Client::default(), &script, folder).expect("a run in virtual time")
}

fn side<'a>(label: &str, runs: &[&'a Ran]) -> Side<'a> {
    let results: Vec<&'a RunResult> = runs.iter().map(|it| &it.result).collect();
    Side::of_runs(label, &results)
}

fn compared(one: &[&Ran], other: &[&Ran]) -> Comparison {
    compare("pair", &Sides::of_runs(side("a", one), side("b", other)), MARGIN, Vec::new())
}

fn number<'a>(of: &'a Comparison, name: &str) -> &'a ComparedNumber {
    of.numbers.iter().find(|it| it.name == name).expect("a number of both sides")
}

/// Claim: a service that takes twice as long is worse, with a ratio above one in whose interval the other way round is the
/// inverse; the worse numbers stand first, the exit code is 98, and with one trial of each it is said what is not known.
#[test]
fn twice_as_slow() {
    let folder = tempfile::tempdir().unwrap();
    let (fast, slow) = (run(5_000, 1, "", folder.path()), run(10_000, 2, "", folder.path()));
    let worse = compared(&[&fast], &[&slow]);
    assert_eq!((worse.change, worse.exit()), (Change::Worse, Exit::Regression), "{worse:#?}");
    let mean = number(&worse, "mean");
    assert!(mean.change == Change::Worse && mean.effect.unwrap() > 1.15, "{mean:?}");
    assert!(mean.words.contains("times slower"), "{mean:?}");
    assert!(worse.unknown.contains("not known"), "{}", worse.unknown);
    let is_told = |it: &ComparedNumber| matches!(it.change, Change::Worse | Change::Better);
    let first = worse.numbers.iter().position(|it| !is_told(it)).unwrap_or(usize::MAX);
    assert!(worse.numbers.iter().skip(first).all(|it| !is_told(it)), "{worse:#?}");
    assert_ne!(number(&worse, "goodput").change, Change::Worse, "as much comes through");
    let better = compared(&[&slow], &[&fast]);
    assert_eq!((better.change, better.exit()), (Change::Better, Exit::Ok));
    let back = number(&better, "mean");
    assert!((back.effect.unwrap() * mean.effect.unwrap() - 1.0).abs() < 1e-9);
    let product = back.low.unwrap() * mean.high.unwrap();
    assert!((product - 1.0).abs() < 1e-9, "{product}");
    assert!(back.words.contains("times faster"), "{back:?}");
}

/// Claim: the same run on both sides is equivalent in what is known well, and nothing is worse; several runs of a baseline
/// make a comparison that knows how runs differ.
#[test]
fn the_same() {
    let folder = tempfile::tempdir().unwrap();
    let runs: Vec<Ran> = (0..4).map(|seed| run(4_000, seed, "", folder.path())).collect();
    let same = compared(&[&runs[0]], &[&runs[0]]);
    assert!(
        same.numbers.iter().all(|it| it.change != Change::Worse && it.change != Change::Better)
    );
    assert!((number(&same, "mean").effect.unwrap() - 1.0).abs() < 1e-12);
    let known = compared(&[&runs[0], &runs[1], &runs[2]], &[&runs[3]]);
    assert!(known.unknown.is_empty(), "{}", known.unknown);
    assert_ne!(known.change, Change::Worse, "{known:#?}");
    assert_eq!((known.baseline.started.len(), known.baseline.trials), (3, 3));
}

/// Claim: a rate, a workload and a host that differ matter and are named; a name does not; the same differs in nothing.
#[test]
fn what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let one = run(4_000, 1, "", folder.path());
    let plan = one.folder.plan().unwrap();
    let host = one.folder.environment().unwrap();
    let subject = Subject { plan: &plan, environment: &host, result: Some(&one.result) };
    assert_eq!(differences(&subject, &subject), []);
    let mut other = plan.clone();
    other.name = "another".to_owned();
    other.settings[0].load.timeout = Duration::from_secs(77);
    let mut elsewhere = host.clone();
    elsewhere.cpus = host.cpus + 1;
    let now = Subject { plan: &other, environment: &elsewhere, result: None };
    let found = differences(&subject, &now);
    let of = |name: &str| {
        found.iter().find(|it| it.of == name).unwrap_or_else(|| panic!("{name}: {found:?}"))
    };
    assert!(of("host.cpus").matters && of("load.timeout").matters && !of("name").matters);
    assert_eq!(of("load.timeout").candidate, "1m17s", "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
}

/// Claim: one pair of half a minute tells a service that takes a fifth longer, though it is not known how two trials differ;
/// and goodput of two loads that all came through is the same, though by chance not as many fell due.
#[test]
fn one_pair() {
    let folder = tempfile::tempdir().unwrap();
    let (fast, slow) = (run(5_000, 1, "", folder.path()), run(6_000, 2, "", folder.path()));
    let due = |of: &Ran| of.result.settings[0].trials[0].counts.due;
    assert_ne!(due(&fast), due(&slow));
    let found = compared(&[&fast], &[&slow]);
    assert_eq!(found.change, Change::Worse, "{found:#?}");
    let mean = number(&found, "mean");
    assert!(mean.low.unwrap() > 1.05 && mean.high.unwrap() < 2.0, "{mean:?}");
    let goodput = number(&found, "goodput");
    assert_eq!(goodput.change, Change::Equivalent, "{goodput:?}");
    assert!(goodput.low.unwrap() > 0.98 && goodput.high.unwrap() < 1.02, "{goodput:?}");
}
