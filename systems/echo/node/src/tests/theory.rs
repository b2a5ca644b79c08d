//! Queues whose theory is known. Sources: L. Kleinrock, "Queueing Systems" I, 1975, §3.2 (M/M/1), §3.5 (M/M/c,
//! Erlang C), §3.6 (M/M/1/K), §3.7 (Erlang B).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::*;
use crate::faults::Window;
use crate::{Distribution, Faults};

/// Poisson arrivals, `rho` of what `servers` servers of 1 ms can do. Gives response times in milliseconds and
/// the number of refusals.
fn poisson(
    servers: u32,
    rho: f64,
    queue_max: Option<u32>,
    count: u64,
    seed: u64,
) -> (Vec<f64>, u64) {
    let service = Duration::from_millis(1);
    let distribution = Distribution::Exponential;
    let mut stage = Stage::new(Options {
        servers,
        service,
        distribution,
        queue_max,
        seed,
        ..Options::default()
    });
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed + 1000);
    let gap_mean_ns = 1e6 / (rho * f64::from(servers));
    let (mut at_ns, mut arrivals) = (0.0, Vec::new());
    let (mut responses, mut refused) = (Vec::new(), 0);
    for tx in 0..count {
        let uniform = (rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
        at_ns -= gap_mean_ns * (1.0 - uniform).ln();
        arrivals.push(Instant::from_ns(at_ns as i64));
        stage.submit(arrivals[tx as usize], tx);
        for (at, answer) in stage.answers() {
            match answer.code {
                Code::Committed => {
                    responses.push(at.ns_since(arrivals[answer.tx as usize]) as f64 / 1e6);
                }
                _ => refused += 1,
            }
        }
    }
    (responses, refused)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn p99(values: &mut [f64]) -> f64 {
    let rank = (values.len() as f64 * 0.99).ceil() as usize - 1;
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}

fn assert_near(what: &str, measured: f64, theory: f64) {
    let error = (measured - theory).abs() / theory;
    println!("{what}: measured {measured:.4}, theory {theory:.4}, off by {:.2} %", error * 100.0);
    assert!(error < 0.02, "{what}: measured {measured}, theory {theory}");
}

/// Claim: M/M/1 has the mean 1/(μ−λ) and, being exponential again, the p99 ln(100)/(μ−λ), within 2 %.
#[test]
fn one_server() {
    for (rho, count) in [(0.5, 1_000_000), (0.8, 1_500_000)] {
        let (mut responses, _) = poisson(1, rho, None, count, 1);
        assert_near(&format!("M/M/1 at {rho}: mean"), mean(&responses), 1.0 / (1.0 - rho));
        let theory = 100_f64.ln() / (1.0 - rho);
        assert_near(&format!("M/M/1 at {rho}: p99"), p99(&mut responses), theory);
    }
}

/// The probability that an arrival must wait (Erlang C), `load` = λ/μ.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let blocked = erlang_b(servers, load);
    let rho = load / f64::from(servers);
    blocked / (1.0 - rho * (1.0 - blocked))
}

/// The probability that an arrival is lost where nobody waits (Erlang B), by its recursion.
fn erlang_b(servers: u32, load: f64) -> f64 {
    (1..=servers).fold(1.0, |b, n| load * b / (f64::from(n) + load * b))
}

/// The response time that a fraction `beyond` of M/M/c exceeds: the tail is
/// e^(−μt) (1 + C (1 − e^(−μt(c−1−a))) / (c−1−a)), solved by bisection.
fn tail_time(servers: u32, load: f64, beyond: f64) -> f64 {
    let c = erlang_c(servers, load);
    let k = f64::from(servers) - 1.0 - load;
    let tail = |t: f64| (-t).exp() * (1.0 + c * (1.0 - (-t * k).exp()) / k);
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if tail(middle) > beyond { low = middle } else { high = middle }
    }
    low
}

/// Claim: M/M/4 has the mean and p99 that Erlang C gives, within 2 %.
#[test]
fn four_servers() {
    let rho = 0.8;
    let (mut responses, _) = poisson(4, rho, None, 800_000, 2);
    let load = 4.0 * rho;
    let theory = 1.0 + erlang_c(4, load) / (4.0 - load);
    assert_near("M/M/4 at 0.8: mean", mean(&responses), theory);
    assert_near("M/M/4 at 0.8: p99", p99(&mut responses), tail_time(4, load, 0.01));
}

/// Claim: a finite queue loses what M/M/1/K and Erlang B say, within 2 %.
#[test]
fn finite_queues() {
    let (rho, waiting) = (0.9, 4);
    let (served, lost) = poisson(1, rho, Some(waiting), 600_000, 3);
    let measured = lost as f64 / (served.len() as f64 + lost as f64);
    let k = waiting as i32 + 1;
    let theory = (1.0 - rho) * rho.powi(k) / (1.0 - rho.powi(k + 1));
    assert_near("M/M/1/5 at 0.9: loss", measured, theory);
    let (served, lost) = poisson(4, 0.75, Some(0), 400_000, 4);
    let measured = lost as f64 / (served.len() as f64 + lost as f64);
    assert_near("M/M/4/4 at 0.75: loss", measured, erlang_b(4, 3.0));
}

/// Response times in microseconds of `count` arrivals, one every millisecond.
fn steady(options: Options, count: u64) -> Vec<i64> {
    let mut stage = Stage::new(options);
    (0..count).for_each(|tx| stage.submit(ms(tx), tx));
    stage.rehearsal.advance(ms(1_000_000));
    let mut responses = vec![-1; count as usize];
    for (at, answer) in stage.answers() {
        responses[answer.tx as usize] = at.ns_since(ms(answer.tx)) / 1000;
    }
    responses
}

/// Claim: D/D/1 is exact: below one, each response is one service; above one, each waits longer than the last
/// by the excess; two servers halve the load.
#[test]
fn constant_times_are_exact() {
    let options =
        |us, servers| Options { service: Duration::from_micros(us), servers, ..Options::default() };
    assert_eq!(steady(options(600, 1), 1000), vec![600; 1000]);
    let overloaded: Vec<i64> = (0..1000).map(|index| 1500 + 500 * index).collect();
    assert_eq!(steady(options(1500, 1), 1000), overloaded);
    assert_eq!(steady(options(1500, 2), 1000), vec![1500; 1000]);
    assert_eq!(steady(options(0, 1), 1000), vec![0; 1000]);
}

fn faulty(faults: Faults, us: u64) -> Vec<i64> {
    steady(Options { service: Duration::from_micros(us), faults, ..Options::default() }, 10_000)
}

/// Claim: a stall of a second keeps everything that is due in it until its end, to the microsecond, and what
/// is being served when it begins ends later by its length.
#[test]
fn a_stall_is_exact() {
    let stall = Window { at: Duration::from_secs(5), length: Duration::from_secs(1) };
    let faults = || Faults { stalls: vec![stall], ..Options::default().faults };
    let expected: Vec<i64> = (0..10_000)
        .map(|at| if (5000..6000).contains(&at) { (6000 - at) * 1000 } else { 0 })
        .collect();
    assert_eq!(faulty(faults(), 0), expected);
    // 1.5 ms of service on two servers would be busy at the beginning; 0.4 ms at 4999.8 ms is not done at 5000.
    let mut stage = Stage::new(Options {
        service: Duration::from_micros(400),
        faults: faults(),
        ..Options::default()
    });
    stage.submit(Instant::ZERO, 0);
    stage.submit(Instant::from_ns(4_999_800_000), 1);
    stage.rehearsal.advance(ms(10_000));
    let last = stage.answers().pop().unwrap();
    assert_eq!((last.0.as_ns(), last.1.tx), (6_000_200_000, 1));
}

/// Claim: a slow stretch multiplies service within it, and a drift adds its part each second.
#[test]
fn slowness_is_exact() {
    let window = Window { at: Duration::from_secs(1), length: Duration::from_secs(2) };
    let slow = crate::Slow { window, factor: 5.0 };
    let slowed = faulty(Faults { slows: vec![slow], ..Options::default().faults }, 100);
    let expected: Vec<i64> =
        (0..10_000).map(|at| if (1000..3000).contains(&at) { 500 } else { 100 }).collect();
    assert_eq!(slowed, expected);
    let drifting = faulty(Faults { drift: 0.5, ..Options::default().faults }, 100);
    let expected: Vec<i64> = (0..10_000).map(|at| (100_000 + 50 * at) / 1000).collect();
    assert_eq!(drifting, expected);
}
