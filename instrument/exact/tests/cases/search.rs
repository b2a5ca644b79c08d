//! The search for the highest rate, on queues whose theory is known.

use std::path::Path;
use std::time::Duration;

use exact::{Client, Law, Script};
use model::Seed;
use model::plan::SettingPlan;
use model::result::{SearchEnd, SearchLimit, SearchResult, Verdict};

/// The search's result on a server that a seed makes for each trial; `load` and `search` are further lines of these tables.
fn searched(load: &str, search: &str, seed: u64, server: impl Fn(Seed) -> Script) -> SearchResult {
    let folder = tempfile::tempdir().unwrap();
    ran("50/s", load, search, seed, server, folder.path()).result.search.unwrap()
}

/// The same, with its run folder under `folder`.
fn ran(
    rate: &str,
    load: &str,
    search: &str,
    seed: u64,
    server: impl Fn(Seed) -> Script,
    folder: &Path,
) -> exact::Ran {
    let experiment = format!(
        "seed = {seed}
[system]
kind = 'script'
[load]
rate = '{rate}'
warmup = '2s'
{load}
[search]
find = 'load.rate'
{search}
[[threshold]]
expr = 'p99 < 100ms'
"
    );
    let script = |setting: &SettingPlan, trial: u32| {
        server(Seed(seed).split(&setting.key).split_index("server", u64::from(trial)))
    };
    exact::run(&experiment, Client::default(), &script, folder).unwrap()
}

/// Claim: a run folder whose trials are not the ones that the search would ask for is not read as if they were: its result
/// ends before the first of them, and nothing after it is confirmed.
#[test]
fn trials_of_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let of_200 = |_| Script::queue(1, Law::Constant(Duration::from_millis(5)));
    let ran = ran("50/s", "duration = '20s'", "", 1, of_200, folder.path());
    let whole = ran.result.search.unwrap();
    let mut plan = ran.folder.plan().unwrap();
    let second = plan.order.remove(1);
    plan.order.push(second);
    ran.folder.write_plan(&plan).unwrap();
    let none = |_: &str| -> &'static [model::check::Check] { &[] };
    let (result, _) = analysis::analyse_with_picture(&ran.folder, &none, Vec::new()).unwrap();
    let search = result.search.unwrap();
    assert_eq!((whole.end, search.end), (Some(SearchEnd::Found), Some(SearchEnd::OtherTrials)));
    assert_eq!((search.trials.len(), search.confirmed), (1, None), "{search:?}");
    assert_eq!(result.verdict, Verdict::Undecided);
}

/// Claim: of a queue with exponential arrivals and service of 5 ms, which in theory keeps p99 under 100 ms up to
/// 200 − ln(100) ÷ 0.1 = 153.9/s, the theory's rate lies between the confirmed and the refuted one in nine of ten seeds.
#[test]
fn theory_lies_between() {
    let theory = 200.0 - 100.0_f64.ln() / 0.1;
    let holds = |seed: u64| {
        let service = |seed| Script::queue(1, Law::Exponential(Duration::from_millis(5), seed));
        let search = searched("arrival = 'poisson'\nduration = '200s'", "", seed, service);
        assert_eq!(search.end, Some(SearchEnd::Found), "{search:?}");
        let between = search.confirmed.unwrap()..search.refuted.unwrap();
        between.contains(&theory)
    };
    let count = (0..10).filter(|seed| holds(*seed)).count();
    assert!(count >= 9, "in {count} of 10");
}

/// Claim: a first rate with more decimals than a plan keeps is found again in the plan.
#[test]
fn a_rate_of_many_decimals() {
    for rate in ["10/3s", "1000/7s"] {
        let free = |_| Script::unbounded(Law::Constant(Duration::from_millis(5)));
        let folder = tempfile::tempdir().unwrap();
        let ran = ran(rate, "duration = '4s'", "most = '300/s'", 1, free, folder.path());
        let search = ran.result.search.unwrap();
        assert_eq!(
            (search.end, search.confirmed),
            (Some(SearchEnd::AtLeast), Some(300.0)),
            "{rate}"
        );
    }
}

/// Claim: of a server of exactly 200/s the confirmed rate is at most that and at least what margin and width leave, and its
/// backlog is named as the limit; where nothing limits, the highest rate that is allowed is the result.
#[test]
fn a_server_of_200() {
    let of_200 = |_| Script::queue(1, Law::Constant(Duration::from_millis(5)));
    let search = searched("duration = '20s'", "", 1, of_200);
    let confirmed = search.confirmed.unwrap();
    assert!((180.0..=200.0).contains(&confirmed), "{search:?}");
    assert!(search.refuted.is_some_and(|it| it > 200.0 && it < 225.0), "{search:?}");
    assert!(matches!(search.limit, Some(SearchLimit::Backlog | SearchLimit::Latency)));
    let free = |_| Script::unbounded(Law::Constant(Duration::from_millis(5)));
    let search = searched("duration = '20s'", "most = '400/s'", 1, free);
    assert_eq!((search.end, search.confirmed), (Some(SearchEnd::AtLeast), Some(400.0)));
}

/// Claim: a limiter of 50/s that counts by windows of a minute is found within 1/s with trials of two minutes, a width and a
/// margin of 1 %, and named, though trials of 20 s pass at 100/s.
#[test]
fn a_limiter_behind_a_window() {
    let limited = |_| {
        let free = Script::unbounded(Law::Constant(Duration::from_millis(5)));
        free.limited_per_window(3_000, Duration::from_secs(60))
    };
    let load = "duration = '120s'\n[[threshold]]\nexpr = 'success >= 99.9%'";
    let search = "bracket = '20s'\nwidth = '1%'\nmargin = '1%'";
    let found = searched(load, search, 1, limited);
    let (low, high) = (found.confirmed.unwrap(), found.refuted.unwrap());
    assert!((49.0..=50.0).contains(&low) && (50.0..=51.0).contains(&high), "{found:?}");
    assert_eq!(found.limit, Some(SearchLimit::Limiter), "{found:?}");
    assert!(found.in_words().contains("limiter"), "{}", found.in_words());
}

/// Claim: of a server that does 200/s, and a quarter of it while more than forty wait, the capacity is found, and the load
/// from which on it collapses, with the goodput beyond it, is named.
#[test]
fn a_server_that_collapses() {
    let server = |_| Script::queue(1, Law::Constant(Duration::from_millis(5))).thrashing(40, 4.0);
    let found =
        searched("duration = '20s'\ntimeout = '10s'\nconnections_max = 8192", "", 1, server);
    let confirmed = found.confirmed.unwrap_or_else(|| panic!("{found:#?}"));
    assert!((180.0..=200.0).contains(&confirmed), "{found:?}");
    let collapse = found.collapse.unwrap();
    assert!(collapse.from > 200.0 && collapse.from <= 400.0, "{collapse:?}");
    // 400/s come in and 50/s go out: from 1.4 s on each waits for longer than its ten seconds.
    assert!(collapse.least_per_s < 1e-9 && collapse.at > 399.0, "{collapse:?}");
    assert!((180.0..=205.0).contains(&collapse.most_per_s), "{collapse:?}");
    assert!(found.in_words().contains("it collapses"), "{}", found.in_words());
    let steady = |_| Script::queue(1, Law::Constant(Duration::from_millis(5)));
    assert_eq!(searched("duration = '20s'", "", 1, steady).collapse, None);
}

/// Claim: of one server that takes exactly 5 ms, on which a client of a closed loop waits 5 ms for each that is before it,
/// ten clients keep p99 under 52 ms and eleven do not: the most clients are found to one, in the key's own unit.
#[test]
fn clients_of_a_closed_loop() {
    let experiment = "seed = 1
[system]
kind = 'script'
[load]
model = 'closed'
clients = 2
warmup = '2s'
duration = '20s'
[search]
find = 'load.clients'
[[threshold]]
expr = 'p99 < 52ms'
";
    let folder = tempfile::tempdir().unwrap();
    let script =
        |_: &SettingPlan, _: u32| Script::queue(1, Law::Constant(Duration::from_millis(5)));
    let ran = exact::run(experiment, Client::default(), &script, folder.path()).unwrap();
    let search = ran.result.search.unwrap();
    assert_eq!(search.end, Some(SearchEnd::Found), "{search:?}");
    assert!(matches!(search.confirmed, Some(9.0 | 10.0)), "{search:?}");
    assert_eq!(search.refuted, Some(11.0), "{search:?}");
    assert_eq!(search.limit, Some(SearchLimit::Latency), "{search:?}");
    let words = search.in_words();
    assert!(
        words.contains(" clients keep p99 < 52ms, confirmed by 3 trials of 20s; 11 clients do not"),
        "{words}"
    );
    assert!(ran.page.contains("11 clients do not"), "the page says it, too");
}

/// Claim: of a generator that has one connection, on which answers take 5 ms, to a server that would bear any rate, the
/// search ends near the 200/s that fit on the connection, and says that this client is the limit, and not the system.
#[test]
fn a_generator_below_the_system() {
    let free = |_| Script::unbounded(Law::Constant(Duration::from_millis(5)));
    let load = "duration = '20s'\nconnections = 1\nconnections_max = 1";
    let found = searched(load, "most = '800/s'", 1, free);
    assert_eq!(found.limit, Some(SearchLimit::Generator), "{found:?}");
    assert!(found.confirmed.is_none_or(|it| it <= 200.0), "{found:?}");
    assert!(
        found.in_words().contains("this client is the limit, and not the system"),
        "{}",
        found.in_words()
    );
    let free = |_| Script::unbounded(Law::Constant(Duration::from_millis(5)));
    let enough = searched("duration = '20s'\nconnections = 8", "most = '800/s'", 1, free);
    assert_eq!((enough.end, enough.confirmed), (Some(SearchEnd::AtLeast), Some(800.0)));
}
