//! The Universal Scalability Law (Gunther, *Guerrilla Capacity Planning*, 2007): throughput of N clients that wait for their
//! answers, X(N) = γN / (1 + α(N − 1) + βN(N − 1)). α is the share of work that is done one at a time, β what clients cost
//! each other; N* = √((1 − α)/β) is where more clients bring less.
//!
//! N/X is linear in 1/γ, α/γ and β/γ, so the least squares of *relative* residuals are solved exactly, with the weights
//! (X/N)²; a coefficient that comes out below zero is held at zero and the others are solved anew. The intervals are those
//! of the jackknife: each level left out in turn.

use crate::float::of_len;
use crate::special::t_quantile;

/// Fewer levels fit three numbers by accident.
pub const LEVELS_MIN: usize = 6;
/// Nothing is said of more clients than so many times the most that were measured.
pub const BEYOND_MAX: f64 = 2.0;

/// One level of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Clients.
    pub clients: f64,
    /// Throughput, per second.
    pub per_s: f64,
}

/// A fitted law.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalability {
    /// Throughput of one client, per second.
    pub gamma: f64,
    /// Contention.
    pub alpha: f64,
    /// Coherency.
    pub beta: f64,
    /// 95 % interval of α.
    pub alpha_interval: (f64, f64),
    /// 95 % interval of β.
    pub beta_interval: (f64, f64),
    /// Clients at which throughput is highest, at least one; `None` where that is beyond [`BEYOND_MAX`] times the most measured.
    pub peak_clients: Option<f64>,
    /// Throughput there, per second.
    pub peak_per_s: Option<f64>,
    /// Measured ÷ fitted − 1, level by level.
    pub residuals: Vec<f64>,
}

impl Scalability {
    /// The law's throughput of so many clients.
    #[must_use]
    pub fn at(&self, clients: f64) -> f64 {
        throughput([self.gamma, self.alpha, self.beta], clients)
    }
}

/// Fits the law; `None` with fewer than [`LEVELS_MIN`] levels, or where a throughput is not positive.
#[must_use]
pub fn fit(levels: &[Level]) -> Option<Scalability> {
    let is_sound = |it: &Level| it.clients >= 1.0 && it.per_s > 0.0 && it.per_s.is_finite();
    let different = |(index, it): (usize, &Level)| {
        levels[..index].iter().all(|other| (other.clients - it.clients).abs() > 1e-9)
    };
    let count = levels.iter().enumerate().filter(|it| different(*it)).count();
    if count < LEVELS_MIN || !levels.iter().all(is_sound) {
        return None;
    }
    let all = solved(levels)?;
    let without = |left_out: usize| {
        let kept = levels.iter().enumerate().filter(|(index, _)| *index != left_out);
        solved(&kept.map(|(_, level)| *level).collect::<Vec<_>>())
    };
    let parts: Vec<[f64; 3]> = (0..levels.len()).filter_map(without).collect();
    let interval = |which: usize| {
        let n = of_len(parts.len());
        let mean = parts.iter().map(|it| it[which]).sum::<f64>() / n;
        let squares: f64 = parts.iter().map(|it| (it[which] - mean).powi(2)).sum();
        let half = t_quantile(0.975, n - 1.0) * ((n - 1.0) / n * squares).sqrt();
        ((all[which] - half).max(0.0), all[which] + half)
    };
    let [gamma, alpha, beta] = all;
    let most = levels.iter().map(|it| it.clients).fold(0.0, f64::max);
    // With α above one each client after the first costs more than it brings.
    let peak = if alpha > 1.0 { 1.0 } else { ((1.0 - alpha) / beta).sqrt() };
    let peak_clients =
        Some(peak).filter(|it| it.is_finite() && *it <= BEYOND_MAX * most).map(|it| it.max(1.0));
    Some(Scalability {
        gamma,
        alpha,
        beta,
        alpha_interval: interval(1),
        beta_interval: interval(2),
        peak_clients,
        peak_per_s: peak_clients.map(|clients| throughput(all, clients)),
        residuals: levels.iter().map(|it| it.per_s / throughput(all, it.clients) - 1.0).collect(),
    })
}

fn throughput([gamma, alpha, beta]: [f64; 3], clients: f64) -> f64 {
    gamma * clients / (1.0 + alpha * (clients - 1.0) + beta * clients * (clients - 1.0))
}

/// γ, α, β of the weighted least squares, none below zero.
fn solved(levels: &[Level]) -> Option<[f64; 3]> {
    // Which of the two later coefficients may differ from zero, the freest first.
    let choices: [[bool; 3]; 4] =
        [[true, true, true], [true, true, false], [true, false, true], [true, false, false]];
    let error = |of: &[f64; 3]| {
        levels.iter().map(|it| (it.per_s / throughput(*of, it.clients) - 1.0).powi(2)).sum::<f64>()
    };
    choices
        .iter()
        .filter_map(|free| {
            let [a, b, c] = linear(levels, free)?;
            (a > 0.0 && b >= 0.0 && c >= 0.0).then(|| [1.0 / a, b / a, c / a])
        })
        .min_by(|one, other| error(one).total_cmp(&error(other)))
}

/// The weighted normal equations of N/X = a + b(N − 1) + cN(N − 1), for the coefficients that are free.
fn linear(levels: &[Level], free: &[bool; 3]) -> Option<[f64; 3]> {
    let mut matrix = [[0.0_f64; 4]; 3];
    for level in levels {
        let n = level.clients;
        let terms = [1.0, n - 1.0, n * (n - 1.0)];
        let (y, weight) = (n / level.per_s, (level.per_s / n).powi(2));
        for row in 0..3 {
            for column in 0..3 {
                matrix[row][column] += weight * terms[row] * terms[column];
            }
            matrix[row][3] += weight * terms[row] * y;
        }
    }
    for held in (0..3).filter(|index| !free[*index]) {
        matrix.iter_mut().for_each(|row| row[held] = 0.0);
        matrix[held] = [0.0; 4];
        matrix[held][held] = 1.0;
    }
    for pivot in 0..3 {
        let best = (pivot..3)
            .max_by(|a, b| matrix[*a][pivot].abs().total_cmp(&matrix[*b][pivot].abs()))?;
        matrix.swap(pivot, best);
        if matrix[pivot][pivot].abs() < 1e-300 {
            return None;
        }
        for row in (0..3).filter(|row| *row != pivot) {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let from = matrix[pivot];
            for (value, by) in matrix[row].iter_mut().zip(from).skip(pivot) {
                *value -= factor * by;
            }
        }
    }
    Some([0, 1, 2].map(|row| matrix[row][3] / matrix[row][row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0, 64.0];

    fn levels(law: [f64; 3], noise: f64) -> Vec<Level> {
        let of = |(index, clients): (usize, f64)| {
            let ripple = 1.0 + noise * (of_len(index * 7 % 5) - 2.0) / 2.0;
            Level { clients, per_s: throughput(law, clients) * ripple }
        };
        COUNTS.into_iter().enumerate().map(of).collect()
    }

    /// Claim: an exact law is found exactly, with its peak; with a ripple of 3 % the intervals hold the true coefficients.
    #[test]
    fn a_law_is_found() {
        let law = [100.0, 0.05, 0.001];
        let found = fit(&levels(law, 0.0)).unwrap();
        for (found, truth) in [(found.gamma, 100.0), (found.alpha, 0.05), (found.beta, 0.001)] {
            assert!((found / truth - 1.0).abs() < 1e-6, "{found} {truth}");
        }
        let peak = (0.95_f64 / 0.001).sqrt();
        assert!((found.peak_clients.unwrap() - peak).abs() < 1e-3);
        assert!(found.residuals.iter().all(|it| it.abs() < 1e-6), "{found:?}");
        let found = fit(&levels(law, 0.03)).unwrap();
        let within = |(low, high): (f64, f64), truth: f64| low <= truth && truth <= high;
        assert!(
            within(found.alpha_interval, 0.05) && within(found.beta_interval, 0.001),
            "{found:?}"
        );
        assert!(found.residuals.iter().any(|it| it.abs() > 0.005), "{found:?}");
    }

    /// Claim: a sweep that is linear has no peak, no coefficient is below zero, nothing is said beyond twice the most
    /// clients, and five levels are too few.
    #[test]
    fn no_more_than_is_known() {
        let linear = fit(&levels([100.0, 0.0, 0.0], 0.0)).unwrap();
        assert!(linear.alpha < 1e-9 && linear.peak_clients.is_none(), "{linear:?}");
        let superlinear: Vec<Level> = COUNTS
            .into_iter()
            .map(|clients| Level { clients, per_s: 100.0 * clients.powf(1.1) })
            .collect();
        let found = fit(&superlinear).unwrap();
        assert!(found.alpha >= 0.0 && found.beta >= 0.0, "{found:?}");
        let far = fit(&levels([100.0, 0.01, 0.000_01], 0.0)).unwrap();
        assert_eq!((far.peak_clients, far.peak_per_s), (None, None), "{far:?}");
        assert_eq!(fit(&levels([100.0, 0.05, 0.001], 0.0)[..5]), None);
    }

    /// Claim: a system that one client saturates, so that each more costs, has its peak at that one client, not at none.
    #[test]
    fn the_peak_is_at_one_client_or_more() {
        let fitted = |per_s: [f64; 6]| {
            let level = |(clients, per_s)| Level { clients, per_s };
            fit(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
                .into_iter()
                .zip(per_s)
                .map(level)
                .collect::<Vec<_>>())
        };
        let falls = fitted([100.0, 70.0, 50.0, 40.0, 30.0, 20.0]).unwrap();
        assert_eq!(falls.peak_clients, Some(1.0), "{falls:?}");
        assert!((falls.peak_per_s.unwrap() - 101.0).abs() < 1.0, "{falls:?}");
        let of_alpha = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|it| throughput([100.0, 1.5, 0.0], it));
        let falls = fitted(of_alpha).unwrap();
        assert_eq!(falls.peak_clients, Some(1.0), "{falls:?}");
    }
}
