//! How often do the printed intervals hold the truth? Queues in virtual time, over many seeds, in windows of 5 s to a
//! minute. The constants of `interval` were chosen on seeds below 1,000, so the test runs on others; `COVERAGE_FIRST=0`
//! shows the former. `COVERAGE_SEEDS=1000 cargo test --release -p stats --test coverage -- --nocapture` prints the table.

use stats::combined::{Estimate, over_trials};
use stats::queue::MultiServer;
use stats::{Histogram, QuantileInterval, TimedHistogram};

/// SplitMix64 (Steele, Lea, Flood 2014): all that a test needs.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / 9_007_199_254_740_992.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Box and Muller (1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }
}

/// How long the service takes, in means of it.
#[derive(Clone, Copy)]
enum Service {
    Exponential,
    Constant,
    /// Of the logarithm's standard deviation.
    LogNormal(f64),
    /// Of the index: 2.5 has a variance and no third moment.
    Pareto(f64),
    /// 5 and 50 ms, the slow ones in a share that drifts from 2 to 14 % within 2.5 s.
    Drifting,
}

impl Service {
    fn draw(self, random: &mut Random, mean: f64, now: f64) -> f64 {
        match self {
            Self::Exponential => random.exponential(mean),
            Self::Constant => mean,
            Self::LogNormal(sigma) => mean * (sigma * random.normal() - sigma * sigma / 2.0).exp(),
            Self::Pareto(index) => {
                mean * (index - 1.0) / index * (1.0 - random.unit()).powf(-1.0 / index)
            }
            Self::Drifting => {
                let share = 0.08 + 0.06 * (now / 0.4).sin();
                if random.unit() < share { 0.050 } else { 0.005 }
            }
        }
    }
}

/// A queue with Poisson arrivals; all of it stands still now and then.
#[derive(Clone, Copy)]
struct Queue {
    name: &'static str,
    servers: usize,
    utilisation: f64,
    service: Service,
    /// Mean time between stalls and their length, seconds; no stalls if the former is infinite.
    stalls: (f64, f64),
}

const SERVICE_S: f64 = 0.004;
const NEVER: (f64, f64) = (f64::INFINITY, 0.0);

const fn queue(
    name: &'static str,
    servers: usize,
    utilisation: f64,
    service: Service,
    stalls: (f64, f64),
) -> Queue {
    Queue { name, servers, utilisation, service, stalls }
}

const QUEUES: [Queue; 10] = [
    queue("M/M/1 0.5", 1, 0.5, Service::Exponential, NEVER),
    queue("M/M/1 0.8", 1, 0.8, Service::Exponential, NEVER),
    queue("M/M/1 0.9", 1, 0.9, Service::Exponential, NEVER),
    queue("M/M/4 0.8", 4, 0.8, Service::Exponential, NEVER),
    queue("M/D/1 0.8", 1, 0.8, Service::Constant, NEVER),
    queue("M/D/1 0.9", 1, 0.9, Service::Constant, NEVER),
    queue("lognormal 0.7", 1, 0.7, Service::LogNormal(1.0), NEVER),
    queue("Pareto 0.6", 1, 0.6, Service::Pareto(2.5), NEVER),
    queue("stalls 0.5", 1, 0.5, Service::Exponential, (2.0, 0.1)),
    queue("5 and 50 ms", 64, 0.1, Service::Drifting, NEVER),
];

const WINDOWS: [f64; 4] = [5.0, 10.0, 30.0, 60.0];

impl Queue {
    /// Response times of the queue, which starts empty (Lindley's recursion, Kiefer's and Wolfowitz's for several
    /// servers), from `warmup_s` on.
    fn run(&self, seed: u64, warmup_s: f64, seconds: f64, mut record: impl FnMut(f64, f64)) {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
        let gap = match self.service {
            Service::Drifting => 0.004,
            _ => SERVICE_S / (self.servers as f64 * self.utilisation),
        };
        let mut free_at = vec![0.0_f64; self.servers];
        let mut now = 0.0;
        let mut stall_at = random.exponential(self.stalls.0.min(1e12));
        loop {
            now += random.exponential(gap);
            if now >= warmup_s + seconds {
                return;
            }
            while stall_at < now {
                for free in &mut free_at {
                    *free = free.max(stall_at) + self.stalls.1;
                }
                stall_at += random.exponential(self.stalls.0.min(1e12));
            }
            let server = (0..self.servers).min_by(|a, b| free_at[*a].total_cmp(&free_at[*b]));
            let server = server.expect("a queue has a server");
            let service = self.service.draw(&mut random, SERVICE_S, now);
            free_at[server] = free_at[server].max(now) + service;
            if now >= warmup_s {
                record(now - warmup_s, free_at[server] - now);
            }
        }
    }

    fn window(&self, seed: u64, seconds: f64) -> TimedHistogram {
        let per_second = (64.0 / seconds).ceil().max(1.0);
        let mut samples = TimedHistogram::new((seconds * per_second) as usize);
        self.run(seed, 5.0, seconds, |at, time| {
            samples.record((at * per_second) as usize, (time * 1e9) as i64);
        });
        samples
    }

    /// How often the interval of the mean should hold. A window of a few relaxation times (1.5 s at 0.9), or one that may
    /// well have missed the rare events that make the mean, does not show what it lacks.
    fn wanted(&self, seconds: f64) -> f64 {
        match (self.service, self.stalls.0.is_finite()) {
            (Service::Pareto(_), _) => 0.90,
            (_, true) if seconds < 10.0 => 0.90,
            _ if self.utilisation >= 0.9 && seconds < 10.0 => 0.87,
            _ if self.utilisation >= 0.9 && seconds < 30.0 => 0.93,
            _ => 0.95,
        }
    }

    /// How often a closed interval of p99 should hold. Heavy tails in windows that few trials close in are worst: those
    /// few have met no long service time.
    fn wanted_of_closed(&self, seconds: f64) -> f64 {
        match self.service {
            Service::Pareto(_) if seconds <= 30.0 => 0.80,
            _ => 0.90,
        }
    }

    /// Mean, p50 and p99 in nanoseconds: by theory where there is one in closed form, else of five hours.
    fn truth(&self) -> [f64; 3] {
        if matches!(self.service, Service::Exponential) && self.stalls.0.is_infinite() {
            let servers = u32::try_from(self.servers).expect("a few");
            let of = MultiServer { servers, utilisation: self.utilisation, service: SERVICE_S };
            return [of.mean() * 1e9, of.quantile(0.5) * 1e9, of.quantile(0.99) * 1e9];
        }
        let mut all = Histogram::default();
        for part in 0..20 {
            self.run(7_000_000 + part, 20.0, 1_000.0, |_, time| all.record((time * 1e9) as i64));
        }
        let quantile = |q| all.quantile(q).expect("millions of samples") as f64;
        [all.moments().mean().expect("millions of samples"), quantile(0.5), quantile(0.99)]
    }
}

/// Shares of the trials.
#[derive(Default)]
struct Coverage {
    mean: f64,
    /// Means that have an upper end, and how many of these hold the truth.
    mean_closed: f64,
    mean_closed_holds: f64,
    /// Half of the width, as a share of the truth, where there is an upper end.
    width: f64,
    p50: f64,
    /// Medians that lack an end.
    p50_open: f64,
    p99: f64,
    p99_closed: f64,
    p99_closed_holds: f64,
}

fn coverage(queue: &Queue, truth: [f64; 3], seconds: f64, first: u64, seeds: u64) -> Coverage {
    let [mean, p50, p99] = truth;
    let mut held = Coverage::default();
    let (mut means_closed, mut tails_closed) = (0.0, 0.0);
    for seed in first..first + seeds {
        let samples = queue.window(seed, seconds);
        let (low, high) = samples.mean_interval().expect("hundreds of samples");
        let inside = low <= mean && mean <= high;
        held.mean += f64::from(inside);
        if high.is_finite() {
            means_closed += 1.0;
            held.mean_closed_holds += f64::from(inside);
            held.width += (high - low) / mean / 2.0;
        }
        let ends = samples.quantile_intervals(&[0.5, 0.99]);
        let inside = |ends: QuantileInterval, truth: f64| {
            ends.low.is_none_or(|low| low as f64 <= truth * 1.001)
                && ends.high.is_none_or(|high| truth * 0.999 <= high as f64)
        };
        held.p50 += f64::from(inside(ends[0], p50));
        held.p50_open += f64::from(ends[0].low.is_none() || ends[0].high.is_none());
        held.p99 += f64::from(inside(ends[1], p99));
        if ends[1].high.is_some() {
            tails_closed += 1.0;
            held.p99_closed_holds += f64::from(inside(ends[1], p99));
        }
    }
    let n = seeds as f64;
    Coverage {
        mean: held.mean / n,
        mean_closed: means_closed / n,
        mean_closed_holds: held.mean_closed_holds / means_closed,
        width: held.width / means_closed,
        p50: held.p50 / n,
        p50_open: held.p50_open / n,
        p99: held.p99 / n,
        p99_closed: tails_closed / n,
        p99_closed_holds: held.p99_closed_holds / tails_closed,
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// Claim: over many seeds the true mean, median and p99 lie in the 95 % intervals at least 95 times in 100, from a
/// half-idle queue to one at 0.9, with service times from constant to heavy-tailed and with stalls, in windows of 5 s to
/// a minute; no median lacks an end; and of the intervals of p99 that are closed 95 in 100 hold, of every queue and window
/// 90 (80 of a heavy tail in half a minute or less, where one in thirty is closed). Means alone hold a little less often where the window is
/// too short to show what it lacks: nowhere below 87 in 100.
#[test]
fn truth_lies_inside() {
    let (seeds, first) = (setting("COVERAGE_SEEDS", 120), setting("COVERAGE_FIRST", 100_000));
    println!(
        "| queue | window | mean | of closed ones | closed | ± | p50 | p99 | of closed ones | closed |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    let mut narrow = Vec::new();
    let (mut closed, mut closed_holds) = (0.0, 0.0);
    for queue in QUEUES {
        let truth = queue.truth();
        for seconds in WINDOWS {
            let held = coverage(&queue, truth, seconds, first, seeds);
            let percent = |share: f64| match share.is_nan() {
                true => "–".to_owned(),
                false => format!("{:.0} %", share * 100.0),
            };
            println!(
                "| {} | {seconds} s | {} | {} | {} | {} | {} | {} | {} | {} |",
                queue.name,
                percent(held.mean),
                percent(held.mean_closed_holds),
                percent(held.mean_closed),
                percent(held.width),
                percent(held.p50),
                percent(held.p99),
                percent(held.p99_closed_holds),
                percent(held.p99_closed),
            );
            // Three standard errors of a share below it are noise of this test, not of the method.
            let least = |share: f64, n: f64| share - 3.0 * (share * (1.0 - share) / n).sqrt();
            let all = seeds as f64;
            // No closed one is none that does not hold.
            let tails = if held.p99_closed > 0.0 { held.p99_closed_holds } else { 1.0 };
            closed += held.p99_closed * all;
            closed_holds += held.p99_closed_holds.max(0.0) * held.p99_closed * all;
            narrow.extend(
                (held.p50_open > 0.0).then(|| format!("{} {seconds} s p50 is open", queue.name)),
            );
            for (what, share, wanted, n) in [
                ("mean", held.mean, queue.wanted(seconds), all),
                ("p50", held.p50, 0.95, all),
                ("p99", held.p99, 0.95, all),
                ("closed p99", tails, queue.wanted_of_closed(seconds), all * held.p99_closed),
            ] {
                if share + 1e-9 < least(wanted, n) {
                    narrow.push(format!("{} {seconds} s {what}: {share:.3}", queue.name));
                }
            }
        }
    }
    assert!(closed_holds >= 0.95 * closed, "{closed_holds} of {closed} closed ones of p99");
    assert!(narrow.is_empty(), "intervals too narrow: {narrow:#?}");
}

/// What a trial says of its mean, p50 and p99.
fn estimates(samples: &TimedHistogram) -> [Estimate; 3] {
    let value = samples.all().moments().mean().expect("hundreds of samples");
    let (low, high) = samples.mean_interval().expect("hundreds of samples");
    let ends = samples.quantile_intervals(&[0.5, 0.99]);
    let float = |end: Option<i64>| end.map(|end| end as f64);
    let of = |q: f64, ends: QuantileInterval| {
        let value = samples.all().quantile(q).expect("hundreds of samples") as f64;
        Estimate { value, low: float(ends.low), high: float(ends.high) }
    };
    let mean = Estimate { value, low: Some(low), high: Some(high) };
    [mean, of(0.5, ends[0]), of(0.99, ends[1])]
}

/// The same of a trial that is so many times as slow.
fn slower(of: Estimate, factor: f64) -> Estimate {
    let end = |end: Option<f64>| end.map(|end| end * factor);
    Estimate { value: of.value * factor, low: end(of.low), high: end(of.high) }
}

/// Claim: where trials of a setting differ by nothing, a tenth or three tenths (standard deviation) beside what their
/// queues do, the interval over two, three or five of them holds the setting's mean, p50 and p99 in at least 95 of 100,
/// less noise; what each trial is uncertain by holds p50 in less than 80 where they differ by three tenths, and Student's
/// t over the trials holds p99 in less than 90.
#[test]
fn a_setting_of_several_trials() {
    let seeds = setting("COVERAGE_SEEDS", 120).max(60);
    println!(
        "| number | trials differ by | trials | the wider | open above | each trial's own | Student's t |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    // What each queue's trials say, and the truth.
    let told: Vec<([f64; 3], Vec<[Estimate; 3]>)> = QUEUES
        .iter()
        .map(|queue| {
            let trials = (0..seeds).map(|seed| estimates(&queue.window(200_000 + seed, 10.0)));
            (queue.truth(), trials.collect())
        })
        .collect();
    for (number, name) in ["mean", "p50", "p99"].into_iter().enumerate() {
        for spread in [0.0, 0.1, 0.3] {
            for trials in [2, 3, 5] {
                let mut random = Random(number as u64 * 100 + trials as u64);
                let (mut n, mut held, mut open) = (0.0, [0.0; 3], 0.0);
                for (truth, samples) in &told {
                    for group in samples.chunks_exact(trials) {
                        let of_trial = |it: &[Estimate; 3]| {
                            let factor = (spread * random.normal() - spread * spread / 2.0).exp();
                            slower(it[number], factor)
                        };
                        let all: Vec<Estimate> = group.iter().map(of_trial).collect();
                        let ends = [over_trials(&all), within(&all), over_trials(&exact(&all))];
                        n += 1.0;
                        open += f64::from(ends[0].1.is_none());
                        for (held, (low, high)) in held.iter_mut().zip(ends) {
                            let is_inside = low.is_none_or(|low| low <= truth[number] * 1.001)
                                && high.is_none_or(|high| truth[number] * 0.999 <= high);
                            *held += f64::from(is_inside);
                        }
                    }
                }
                let [wider, own, t] = held.map(|held| held / n);
                let open = open / n;
                let words = [spread, wider, open, own, t].map(|it| format!("{:.0} %", it * 100.0));
                let [by, wider_words, open, own_words, t_words] = words;
                println!(
                    "| {name} | {by} | {trials} | {wider_words} | {open} | {own_words} | {t_words} |"
                );
                assert!(
                    wider >= 0.95 - 3.0 * (0.05 * 0.95 / n).sqrt(),
                    "{name} {by} {trials}: {wider}"
                );
                assert!(number != 1 || spread < 0.3 || own < 0.8, "{own}");
                assert!(number != 2 || trials < 5 || t < 0.9, "{t}");
            }
        }
    }
}

/// The same trials as if each knew its value exactly: Student's t alone.
fn exact(trials: &[Estimate]) -> Vec<Estimate> {
    let known = |it: &Estimate| Estimate { low: Some(it.value), high: Some(it.value), ..*it };
    trials.iter().map(known).collect()
}

/// What the trials are uncertain by, alone.
fn within(trials: &[Estimate]) -> (Option<f64>, Option<f64>) {
    let k = trials.len() as f64;
    let centre = trials.iter().map(|it| it.value).sum::<f64>() / k;
    let half = |end: fn(&Estimate) -> Option<f64>| {
        let squares = trials.iter().map(|it| Some((end(it)? - it.value).powi(2)));
        Some(squares.sum::<Option<f64>>()?.sqrt() / k)
    };
    let (below, above) = (half(|it| it.low), half(|it| it.high));
    (below.map(|it| centre - it), above.map(|it| centre + it))
}
