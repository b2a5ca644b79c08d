//! How often is the answer to `p99 < L` right? Systems that are guilty (the limit is below their p99) and innocent,
//! windows, and what the instrument adds of its own.

use stats::exceedance::{Counts, Ruling, decide, rule};

use crate::queues::{QUEUES, Queue, Random, Service};
use crate::{least, percent, setting};

/// Limits as multiples of the true p99. Up to the third a system is guilty, from the fifth on innocent.
const LIMITS: [f64; 7] = [0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0];
const GUILTY: usize = 3;
const INNOCENT: usize = 4;

const WINDOWS: [f64; 3] = [10.0, 30.0, 60.0];

/// Slots that a window is counted in.
const SLOTS: usize = 240;

/// The instrument's addition to a response time, in seconds.
#[derive(Clone, Copy)]
enum OwnLag {
    None,
    /// Each is sent and each is read late by an exponential time with this mean.
    Busy(f64),
    /// It stands still for so long in every so long: what is due or answered meanwhile waits for its end.
    Stopped(f64, f64),
}

const LAGS: [(&str, OwnLag); 3] = [
    ("none", OwnLag::None),
    ("2 ms, exponential", OwnLag::Busy(0.002)),
    ("stopped 24 ms in every 370", OwnLag::Stopped(0.024, 0.370)),
];

impl OwnLag {
    fn of(self, random: &mut Random, due: f64, time: f64) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Busy(mean) => random.exponential(mean) + random.exponential(mean),
            Self::Stopped(length, every) => {
                let wait = |at: f64| (length - at.rem_euclid(every)).max(0.0);
                let send = wait(due);
                send + wait(due + send + time)
            }
        }
    }
}

/// How often each answer was given, by limit: met, failed, undecided, invalid; and how often met with 95 % confidence.
#[derive(Clone, Copy, Default)]
struct Answers {
    counts: [[u64; 4]; LIMITS.len()],
    sure: [u64; LIMITS.len()],
}

fn answers(queue: &Queue, p99: f64, lag: OwnLag, seconds: f64, seeds: u64) -> Answers {
    let mut answers = Answers::default();
    for seed in 300_000..300_000 + seeds {
        let mut random = Random(seed ^ 0x1a6);
        let mut slots = [[[Counts::default(); SLOTS]; 2]; LIMITS.len()];
        queue.run(seed, 5.0, seconds, |at, time| {
            let slot = ((at / seconds * SLOTS as f64) as usize).min(SLOTS - 1);
            let times = [time + lag.of(&mut random, at, time), time];
            for (limit, slots) in LIMITS.iter().zip(&mut slots) {
                for (time, slots) in times.iter().zip(slots) {
                    slots[slot].all += 1;
                    slots[slot].beyond += u64::from(time * 1e9 >= limit * p99);
                }
            }
        });
        for (index, [as_measured, less_own]) in slots.iter().enumerate() {
            let decided = [decide(as_measured, 0.01), decide(less_own, 0.01)];
            let place = match rule(&decided[0], &decided[1], None) {
                Ruling::Met => 0,
                Ruling::Failed => 1,
                Ruling::Undecided => 2,
                Ruling::Invalid => 3,
            };
            answers.counts[index][place] += 1;
            let sure = rule(&decided[0], &decided[1], Some(0.95)) == Ruling::Met;
            answers.sure[index] += u64::from(sure);
        }
    }
    answers
}

/// Claim: a system whose p99 lies a tenth below the limit or more is failed in at most 1 of 100 windows, whatever the queue,
/// the window and the instrument's own lag; one whose p99 is twice the limit is met in at most 5 of 100 where the window
/// holds five excursions or more; and of the guilty, more are failed the longer the window.
#[test]
fn verdicts_are_right() {
    let seeds = setting("COVERAGE_SEEDS", 20);
    println!(
        "| system | own lag | window | answer | {} |",
        LIMITS.map(|it| it.to_string()).join(" | ")
    );
    println!("| --- | --- | ---: | --- |{}", " ---: |".repeat(LIMITS.len()));
    let mut wrong = Vec::new();
    for queue in QUEUES {
        let truth = queue.truth();
        for (lag_name, lag) in LAGS {
            let mut failed_before = [0; LIMITS.len()];
            for seconds in WINDOWS {
                let found = answers(&queue, truth.p99, lag, seconds, seeds);
                let at = format!("{} | {lag_name} | {seconds} s", queue.name);
                for (place, answer) in ["met", "failed", "undecided", "invalid"].iter().enumerate()
                {
                    println!(
                        "| {at} | {answer} | {} |",
                        shares(&found.counts.map(|it| it[place]), seeds)
                    );
                }
                println!("| {at} | met, 95 % sure | {} |", shares(&found.sure, seeds));
                let failed = found.counts.map(|it| it[1]);
                let limits = || LIMITS.iter().enumerate();
                for (index, limit) in limits().skip(INNOCENT) {
                    let right = (seeds - failed[index]) as f64 / seeds as f64;
                    if right < least(0.99, seeds) {
                        wrong.push(format!(
                            "{at}: {} of {seeds} innocent at {limit} failed",
                            failed[index]
                        ));
                    }
                }
                // Of stalls of 300 ms many a limit below p99 lies within the allowed share of a window that met few of them.
                let is_seen = truth.excursions_per_s * seconds >= 4.5
                    && !matches!(queue.service, Service::SlowShare(_));
                let let_off = found.counts[0][0] as f64 / seeds as f64;
                if is_seen && 1.0 - let_off < least(0.95, seeds) {
                    wrong.push(format!("{at}: {let_off} of the guilty at {} met", LIMITS[0]));
                }
                for (index, limit) in limits().take(GUILTY) {
                    // Three standard errors of the difference.
                    let noise = 3.0 * (0.5 * seeds as f64).sqrt();
                    if (failed[index] as f64) < failed_before[index] as f64 - noise {
                        wrong.push(format!(
                            "{at}: fewer are failed at {limit} than in a shorter window"
                        ));
                    }
                }
                failed_before = failed;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn shares(counts: &[u64], seeds: u64) -> String {
    let share = |count: &u64| percent(*count as f64 / seeds as f64);
    counts.iter().map(share).collect::<Vec<_>>().join(" | ")
}
