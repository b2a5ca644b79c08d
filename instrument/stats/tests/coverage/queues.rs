//! Queues in virtual time, whose truth is known by theory or by watching them for hours.

use stats::queue::MultiServer;

/// SplitMix64 (Steele, Lea, Flood 2014): all that a test needs.
pub struct Random(pub u64);

impl Random {
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / 9_007_199_254_740_992.0
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Box and Muller (1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }
}

/// How long the service takes, in means of it.
#[derive(Clone, Copy)]
pub enum Service {
    Exponential,
    Constant,
    /// Of the logarithm's standard deviation.
    LogNormal(f64),
    /// Of the index: 2.5 has a variance and no third moment.
    Pareto(f64),
    /// 5 and 50 ms, the slow ones in a share that drifts from 2 to 14 % within 2.5 s.
    Drifting,
    /// Of two exponentials with balanced means and this squared coefficient of variation (Morse 1958).
    TwoExponentials(f64),
    /// No queue: 20 ms times the exponential of half an autoregressive series that forgets in so many seconds.
    Autoregressive(f64),
    /// No queue: 800 ms in this share, else 5 ms, one by one.
    SlowShare(f64),
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
            Self::TwoExponentials(variation) => {
                let share = 0.5 * (1.0 + ((variation - 1.0) / (variation + 1.0)).sqrt());
                let share = if random.unit() < share { share } else { 1.0 - share };
                random.exponential(mean / (2.0 * share))
            }
            Self::SlowShare(share) => {
                if random.unit() < share {
                    0.800
                } else {
                    0.005
                }
            }
            Self::Autoregressive(_) => 0.0,
        }
    }
}

/// A queue; all of it stands still now and then.
#[derive(Clone, Copy)]
pub struct Queue {
    pub name: &'static str,
    pub servers: usize,
    pub utilisation: f64,
    pub service: Service,
    /// Mean time between stalls and their length, seconds; no stalls if the former is infinite.
    pub stalls: (f64, f64),
    /// Arrivals: Poisson, or one after the other at equal distances.
    is_even: bool,
}

pub const SERVICE_S: f64 = 0.004;
const NEVER: (f64, f64) = (f64::INFINITY, 0.0);

const fn queue(
    name: &'static str,
    servers: usize,
    utilisation: f64,
    service: Service,
    stalls: (f64, f64),
) -> Queue {
    Queue { name, servers, utilisation, service, stalls, is_even: false }
}

/// The same with arrivals at equal distances.
const fn even(queue: Queue) -> Queue {
    Queue { is_even: true, ..queue }
}

pub const QUEUES: [Queue; 15] = [
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
    even(queue("D/M/1 0.9", 1, 0.9, Service::Exponential, NEVER)),
    queue("M/H2/1 0.6", 1, 0.6, Service::TwoExponentials(8.0), NEVER),
    even(queue("AR(1), 3 s", 64, 0.1, Service::Autoregressive(3.0), NEVER)),
    even(queue("300 ms in 10 s", 64, 0.1, Service::SlowShare(0.0), (10.0, 0.3))),
    even(queue("1.5 % slow", 256, 0.1, Service::SlowShare(0.015), NEVER)),
];

impl Queue {
    /// Response times of the queue, which starts empty (Lindley's recursion, Kiefer's and Wolfowitz's for several
    /// servers), from `warmup_s` on.
    pub fn run(&self, seed: u64, warmup_s: f64, seconds: f64, mut record: impl FnMut(f64, f64)) {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
        let gap = match self.service {
            Service::Drifting => 0.004,
            Service::Autoregressive(_) | Service::SlowShare(_) => 0.01,
            _ => SERVICE_S / (self.servers as f64 * self.utilisation),
        };
        let mut free_at = vec![0.0_f64; self.servers];
        let mut now = if self.is_even { random.unit() * gap } else { 0.0 };
        let mut level = random.normal();
        let mut stall_at = random.exponential(self.stalls.0.min(1e12));
        loop {
            now += if self.is_even { gap } else { random.exponential(gap) };
            if now >= warmup_s + seconds {
                return;
            }
            if let Service::Autoregressive(forgets_s) = self.service {
                let kept = (-gap / forgets_s).exp();
                level = kept * level + (1.0 - kept * kept).sqrt() * random.normal();
                if now >= warmup_s {
                    record(now - warmup_s, 0.020 * (0.5 * level).exp());
                }
                continue;
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

    /// The true value: by theory where there is one in closed form, else of five hours.
    pub fn truth(&self) -> Truth {
        let mut times = Vec::new();
        for part in 0..20 {
            self.run(7_000_000 + part, 20.0, 1_000.0, |_, time| times.push(time * 1e9));
        }
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |q: f64| sorted[(q * sorted.len() as f64) as usize];
        let (mut p50, p90, mut p99) = (at(0.5), at(0.9), at(0.99));
        let mut mean = times.iter().sum::<f64>() / times.len() as f64;
        let is_known = matches!(self.service, Service::Exponential) && !self.is_even;
        if is_known && self.stalls.0.is_infinite() {
            let servers = u32::try_from(self.servers).expect("a few");
            let of = MultiServer { servers, utilisation: self.utilisation, service: SERVICE_S };
            (mean, p50, p99) = (of.mean() * 1e9, of.quantile(0.5) * 1e9, of.quantile(0.99) * 1e9);
        }
        Truth { mean, p50, p99, excursions_per_s: excursions(&times, p90, p99) / 20_000.0 }
    }
}

/// Nanoseconds, and how often per second p99 is exceeded anew.
pub struct Truth {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub excursions_per_s: f64,
}

/// Separate excursions beyond `high`: between two of them there is a time no larger than `low`.
fn excursions(times: &[f64], low: f64, high: f64) -> f64 {
    let (mut count, mut is_out) = (0.0, false);
    for time in times {
        if !is_out && *time > high {
            (count, is_out) = (count + 1.0, true);
        }
        is_out &= *time > low;
    }
    count
}
