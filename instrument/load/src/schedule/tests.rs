//! Known answers for every shape.

use model::plan::{Schedule, Step};
use model::quantity::Rate;

use super::*;

const SECOND: i64 = 1_000_000_000;

fn window(warmup_s: u64, duration_s: u64) -> Window {
    Window {
        warmup: Duration::from_secs(warmup_s),
        duration: Duration::from_secs(duration_s),
        events_max: u64::MAX,
    }
}

fn all(schedule: &Schedule, window: Window) -> Vec<(u64, Stamp)> {
    DueTimes::new(schedule, window, Seed(7), 0, 1).collect()
}

/// All shapes once, for the properties that hold for each.
fn shapes() -> Vec<Schedule> {
    let rate = Rate::per_second(100);
    vec![
        Schedule::Constant { rate },
        Schedule::Poisson { rate },
        Schedule::Ramp { from: Rate::per_second(10), to: Rate::per_second(200) },
        Schedule::Steps {
            steps: vec![
                Step { rate: Rate::per_second(50), length: Duration::from_secs(1), generators: 0 },
                Step { rate: Rate::per_second(75), length: Duration::from_secs(2), generators: 0 },
            ],
        },
        Schedule::Burst { rate, every: Duration::from_millis(250) },
        Schedule::Trace { due_ns: vec![0, 5, 5, 9, 1_000_000_000, 3_999_999_999, 4_000_000_000] },
    ]
}

/// Claim: whatever the number of workers, together they have exactly the events of one worker, and each has
/// its own in order of time.
#[test]
fn workers_share_the_schedule_without_changing_it() {
    for schedule in shapes() {
        let whole = all(&schedule, window(1, 3));
        assert!(!whole.is_empty());
        for workers in [2_u32, 3, 7] {
            let mut together = Vec::new();
            for worker in 0..workers {
                let share: Vec<_> =
                    DueTimes::new(&schedule, window(1, 3), Seed(7), worker, workers).collect();
                assert!(share.is_sorted_by_key(|(_, due)| *due));
                assert!(
                    share.iter().all(|(event, _)| event % u64::from(workers) == u64::from(worker))
                );
                together.extend(share);
            }
            together.sort_unstable();
            assert_eq!(together, whole, "{schedule:?} with {workers} workers");
        }
    }
}

/// Claim: event numbers are dense from 0 and every due time lies in the trial.
#[test]
fn events_are_dense_and_inside_the_window() {
    for schedule in shapes() {
        for (index, (event, due)) in all(&schedule, window(1, 3)).into_iter().enumerate() {
            assert_eq!(event, u64::try_from(index).unwrap());
            assert!((0..4 * SECOND).contains(&due), "{schedule:?}: {due}");
        }
    }
}

/// Claim: a constant rate is exact for hours: event n is due at ⌊n·period⌋, with no drift.
#[test]
fn constant_is_exact() {
    let schedule = Schedule::Constant { rate: Rate::parse("3/s").unwrap() };
    let due = all(&schedule, window(0, 10_000));
    assert_eq!(due.len(), 30_000);
    assert_eq!(due[1].1, 333_333_333);
    assert_eq!(due[3].1, SECOND);
    assert_eq!(due[29_999].1, 9_999_666_666_666);
}

/// Claim: the bound on transactions cuts the sequence and nothing else.
#[test]
fn events_max_cuts() {
    let schedule = Schedule::Constant { rate: Rate::per_second(100) };
    let bounded = Window { events_max: 7, ..window(0, 10) };
    assert_eq!(all(&schedule, bounded), all(&schedule, window(0, 10))[..7]);
}

/// Claim: Poisson arrivals have the mean and the variance of their law, and another seed gives others.
#[test]
fn poisson_has_its_law() {
    let schedule = Schedule::Poisson { rate: Rate::per_second(1000) };
    let due = all(&schedule, window(0, 100));
    let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1].1 - pair[0].1) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 1e6 - 1.0).abs() < 0.02, "mean gap {mean} ns");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "coefficient of variation");
    let other: Vec<_> = DueTimes::new(&schedule, window(0, 100), Seed(8), 0, 1).collect();
    assert_ne!(due, other);
}

/// Claim: a ramp holds its first rate in the warm-up, and in each second of the window sends what the line says.
#[test]
fn ramp_follows_the_line() {
    let schedule = Schedule::Ramp { from: Rate::per_second(100), to: Rate::per_second(500) };
    let due = all(&schedule, window(2, 4));
    let in_second = |s: i64| {
        due.iter().filter(|(_, at)| (s * SECOND..(s + 1) * SECOND).contains(at)).count() as i64
    };
    assert_eq!((in_second(0), in_second(1)), (100, 100));
    for (second, expected) in [(2, 150), (3, 250), (4, 350), (5, 450)] {
        assert!(
            (in_second(second) - expected).abs() <= 1,
            "second {second}: {}",
            in_second(second)
        );
    }
    assert!(due.is_sorted_by_key(|(_, at)| *at));
}

/// Claim: a ramp down to nothing ends, and one from nothing begins.
#[test]
fn ramps_from_and_to_nothing() {
    let down = Schedule::Ramp { from: Rate::per_second(100), to: Rate::ZERO };
    let up = Schedule::Ramp { from: Rate::ZERO, to: Rate::per_second(100) };
    for schedule in [down, up] {
        let count = all(&schedule, window(1, 2)).len();
        let warmup = if matches!(&schedule, Schedule::Ramp { from, .. } if from.is_zero()) {
            0
        } else {
            100
        };
        assert!((99..=101).contains(&(count - warmup)), "{schedule:?}: {count}");
    }
    let never = Schedule::Ramp { from: Rate::ZERO, to: Rate::ZERO };
    assert_eq!(all(&never, window(1, 2)), []);
}

/// Claim: steps follow one another at the start of the measured window; the warm-up holds the first rate.
#[test]
fn steps_are_a_staircase() {
    let schedule = Schedule::Steps {
        steps: vec![
            Step { rate: Rate::per_second(10), length: Duration::from_secs(2), generators: 0 },
            Step { rate: Rate::ZERO, length: Duration::from_secs(1), generators: 0 },
            Step { rate: Rate::per_second(30), length: Duration::from_secs(1), generators: 0 },
        ],
    };
    let due = all(&schedule, window(1, 4));
    let in_second =
        |s: i64| due.iter().filter(|(_, at)| (s * SECOND..(s + 1) * SECOND).contains(at)).count();
    assert_eq!((0..6).map(in_second).collect::<Vec<_>>(), [10, 10, 10, 0, 30, 0]);
}

/// Claim: a burst sends all of a period's events at its start, and the mean rate holds when it is no whole
/// number of events a period.
#[test]
fn bursts_are_bunched() {
    let schedule =
        Schedule::Burst { rate: Rate::per_second(10), every: Duration::from_millis(250) };
    let due = all(&schedule, window(0, 2));
    assert_eq!(due.len(), 20);
    assert!(due.iter().all(|(_, at)| at % 250_000_000 == 0));
    let sizes: Vec<_> = due.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len).collect();
    assert_eq!(sizes, [3, 2, 3, 2, 3, 2, 3, 2]);
}

/// Claim: a rate of zero sends nothing, and `max` is told apart.
#[test]
fn zero_and_max() {
    assert_eq!(all(&Schedule::Constant { rate: Rate::ZERO }, window(1, 1)), []);
    assert_eq!(all(&Schedule::Poisson { rate: Rate::ZERO }, window(1, 1)), []);
    assert!(is_saturating(&Schedule::Constant { rate: Rate::MAX }));
    assert!(!is_saturating(&Schedule::Constant { rate: Rate::per_second(1) }));
}

/// Claim: an open probe begins with the measured window and keeps its interval to the nanosecond.
#[test]
fn a_probe_keeps_its_interval() {
    let due: Vec<_> = DueTimes::every(Duration::from_nanos(333_333_333), window(2, 1)).collect();
    assert_eq!(due, [(0, 2 * SECOND), (1, 2_333_333_333), (2, 2_666_666_666), (3, 2_999_999_999)]);
}

/// Claim: agents split a plan as workers of one host do: whatever the shape, the seed and the number of agents and of their
/// threads, each due time belongs to exactly one worker of one agent, and together they are those of one host to the
/// nanosecond.
#[test]
fn parts_of_a_plan_are_the_plan() {
    let window = window(1, 3);
    for seed in [1, 7, 0x5eed] {
        for schedule in shapes() {
            let whole: Vec<_> = DueTimes::new(&schedule, window, Seed(seed), 0, 1).collect();
            for (agents, threads, connections) in
                [(1, 1, 1), (2, 1, 2), (4, 3, 64), (4, 8, 17), (9, 2, 9)]
            {
                let workers = crate::Part::workers(threads, connections, agents);
                let all = agents * workers;
                assert!(workers >= 1 && all <= connections.max(agents));
                let own = |agent| agent * workers..(agent + 1) * workers;
                let of = |worker| DueTimes::new(&schedule, window, Seed(seed), worker, all);
                let mut union: Vec<_> = (0..agents).flat_map(own).flat_map(of).collect();
                union.sort_unstable();
                assert_eq!(union, whole, "{agents} agents, seed {seed}, {schedule:?}");
            }
        }
    }
}
