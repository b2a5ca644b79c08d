//! An experiment of a million transactions, twice.

use std::time::Duration;

use clock::Clock;
use exact::{Law, Script};
use model::Seed;
use model::result::Verdict;

use crate::{constant, files, run};

/// Claim: a million transactions through the whole pipeline are a million rows, and the same bytes each time: every file of
/// the run folder, the page among them.
#[test]
fn the_same_bytes() {
    let experiment =
        constant("100000/s", "10s", "connections = 4", "[[threshold]]\nexpr = 'p99 < 1s'");
    let experiment = experiment.replacen("connections = 1\n", "", 1);
    let once = || {
        let clock = Clock::start();
        let began = clock.now();
        let mean = Duration::from_micros(500);
        let kept = run(&experiment, || Script::queue(64, Law::Exponential(mean, Seed(7))));
        let took = clock.now().saturating_since(began);
        println!("a million transactions, from the experiment to the page: {took:.2?}");
        kept
    };
    let (one, two) = std::thread::scope(|scope| {
        let other = scope.spawn(once);
        (once(), other.join().unwrap())
    });
    let trial = one.trial(0);
    assert_eq!((trial.counts.due, trial.counts.committed), (1_000_000, 1_000_000));
    assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
    let (one, two) = (files(&one.ran), files(&two.ran));
    let names = |files: &[(std::path::PathBuf, Vec<u8>)]| -> Vec<_> {
        files.iter().map(|(path, _)| path.clone()).collect()
    };
    assert_eq!(names(&one), names(&two));
    for ((path, bytes), (_, others)) in one.iter().zip(&two) {
        assert!(bytes == others, "{} differs", path.display());
    }
}
