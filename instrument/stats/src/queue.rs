//! Results of queueing theory, for audits and for tests whose answer is known.

/// Little's law (Little 1961): how far the mean number in the system is from rate × mean time in it, as a
/// share of the larger of the two. Zero if both are zero.
#[must_use]
pub fn littles_law_gap(mean_in_system: f64, rate_per_s: f64, mean_time_s: f64) -> f64 {
    let predicted = rate_per_s * mean_time_s;
    let larger = mean_in_system.abs().max(predicted.abs());
    if larger > 0.0 { (mean_in_system - predicted).abs() / larger } else { 0.0 }
}

/// M/M/c: mean response time and its quantile function, by Erlang's C formula.
#[derive(Clone, Copy, Debug)]
pub struct MultiServer {
    /// Servers.
    pub servers: u32,
    /// Load of each, below 1.
    pub utilisation: f64,
    /// Mean service time, in the unit of the answers.
    pub service: f64,
}

impl MultiServer {
    /// The probability that an arrival waits (Erlang C).
    #[must_use]
    pub fn waits(&self) -> f64 {
        let offered = f64::from(self.servers) * self.utilisation;
        // Erlang B by its recurrence, then C from B.
        let blocked =
            (1..=self.servers).fold(1.0, |b, c| offered * b / (f64::from(c) + offered * b));
        blocked / (1.0 - self.utilisation * (1.0 - blocked))
    }

    /// The mean response time.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.service + self.waits() / self.drain_rate()
    }

    /// The response time that a share `q` stays below (bisection on the tail).
    #[must_use]
    pub fn quantile(&self, q: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1e4 * self.service / (1.0 - self.utilisation));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.tail(middle) > 1.0 - q { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// P(response > t): an exponential service, preceded with probability C by an exponential wait.
    fn tail(&self, t: f64) -> f64 {
        let (mu, theta, c) = (1.0 / self.service, self.drain_rate(), self.waits());
        let service_alone = (-mu * t).exp();
        let with_wait = if ((theta - mu) / mu).abs() < 1e-9 {
            (1.0 + mu * t) * (-mu * t).exp()
        } else {
            (theta * (-mu * t).exp() - mu * (-theta * t).exp()) / (theta - mu)
        };
        (1.0 - c) * service_alone + c * with_wait
    }

    fn drain_rate(&self) -> f64 {
        f64::from(self.servers) * (1.0 - self.utilisation) / self.service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: M/M/1 is an exponential with mean s/(1 − ρ), and M/M/4 at 0.8 has the tabulated Erlang C.
    #[test]
    fn known_queues() {
        let one = MultiServer { servers: 1, utilisation: 0.9, service: 4.0 };
        assert!((one.mean() - 40.0).abs() < 1e-9);
        assert!((one.quantile(0.99) - 40.0 * 100_f64.ln()).abs() < 1e-6);
        let four = MultiServer { servers: 4, utilisation: 0.8, service: 4.0 };
        assert!((four.waits() - 0.596_4).abs() < 1e-4, "{}", four.waits());
    }

    /// Claim: the gap is zero for agreement and a third for 2 against 3.
    #[test]
    fn gap() {
        assert_eq!(littles_law_gap(10.0, 100.0, 0.1), 0.0);
        assert!((littles_law_gap(2.0, 3.0, 1.0) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(littles_law_gap(0.0, 0.0, 1.0), 0.0);
    }
}
