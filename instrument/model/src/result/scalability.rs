//! A sweep over clients against the Universal Scalability Law.

use serde::{Deserialize, Serialize};

/// One setting of a sweep over clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalabilityResult {
    /// Its clients.
    pub clients: u64,
    /// The law's goodput of so many, per second.
    pub fitted_per_s: f64,
    /// Goodput of its first trial ÷ that, less one.
    pub residual: f64,
    /// The law itself, at the setting with the most clients of the sweep; null elsewhere.
    pub law: Option<ScalabilityLaw>,
}

/// X(N) = γN / (1 + α(N − 1) + βN(N − 1)) (Gunther 2007), fitted by least squares of relative residuals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalabilityLaw {
    /// γ: goodput of one client, per second.
    pub gamma_per_s: f64,
    /// α: the share of work that is done one at a time.
    pub alpha: f64,
    /// 95 % interval of α (jackknife).
    pub alpha_low: f64,
    /// Upper end.
    pub alpha_high: f64,
    /// β: the cost of clients to each other.
    pub beta: f64,
    /// 95 % interval of β (jackknife).
    pub beta_low: f64,
    /// Upper end.
    pub beta_high: f64,
    /// Clients at which goodput is highest; null = more than twice the most that were measured: too far to say.
    pub peak_clients: Option<f64>,
    /// Goodput there, per second.
    pub peak_per_s: Option<f64>,
    /// The largest residual, as an absolute value.
    pub residual_max: f64,
    /// The same in words.
    pub words: String,
}
