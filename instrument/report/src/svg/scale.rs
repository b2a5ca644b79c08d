//! Scales and their ticks: linear, logarithmic, percentiles as HdrHistogram plots them, and time.
//!
//! A scale maps every number to a finite coordinate inside its span: values beyond the ends lie on the ends.

use std::time::Duration;

use model::quantity::show_count;

use crate::figures::span;

/// From numbers to pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    from: f64,
    to: f64,
}

/// The quantity of a number, for its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Nanoseconds on a clock: `1m30s`.
    Clock,
    /// Bytes.
    Bytes,
    /// Shares of one.
    Share,
    /// Plain numbers; also rates, whose axis is called so.
    Number,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// Empty for a minor one.
    pub(crate) label: String,
}

impl Scale {
    /// From zero, or from the lowest value if that is below it.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if high <= low {
            high = low + 1.0;
        }
        let step = nice_step((high - low) / 5.0);
        // A little air above the highest, to the next half step.
        high = (high * 1.02 / (step / 2.0)).ceil() * (step / 2.0);
        low = (low / step).floor() * step;
        Self::linear(low, high)
    }

    pub(crate) const fn linear(low: f64, high: f64) -> Self {
        Self { low, high, is_log: false, from: 0.0, to: 1.0 }
    }

    /// Logarithmic around the positive values, to the next 1, 2 or 5. None if there are none.
    pub(crate) fn log_around(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let positive = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        if high <= 0.0 {
            return None;
        }
        // Twelve decades are more than any clock tells apart, and keep the ends finite.
        let high = high.min(1e200);
        let low = low.clamp(high * 1e-12, high);
        let (mut low, mut high) = (nice_below(low * 0.97), nice_above(high * 1.03));
        // At least a factor of ten, so that noise does not look like a cliff.
        while high / low < 10.0 {
            low = nice_below(low * 0.99);
            high = nice_above(high * 1.01);
        }
        Some(Self { low, high, is_log: true, from: 0.0, to: 1.0 })
    }

    /// Over these pixels.
    pub(crate) const fn over(mut self, from: f64, to: f64) -> Self {
        self.from = from;
        self.to = to;
        self
    }

    /// The pixel of a number.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (low, high, value) = if self.is_log {
            (self.low.ln(), self.high.ln(), value.max(self.low).ln())
        } else {
            (self.low, self.high, value)
        };
        let share = (value - low) / (high - low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }

    pub(crate) const fn high(&self) -> f64 {
        self.high
    }

    /// Ticks at least this many pixels apart; minor ones, without a label, between.
    pub(crate) fn ticks(&self, unit: Unit, apart: f64) -> Vec<Tick> {
        let most = ((self.to - self.from).abs() / apart).floor().clamp(2.0, 12.0);
        match (self.is_log, unit) {
            (true, _) => self.log_ticks(unit, most),
            (false, Unit::Clock) => self.steps(clock_step((self.high - self.low) / most), unit),
            // A second is 10^9 ns, so that steps of 1, 2 and 5 are round in every unit of time.
            (false, _) => self.steps(nice_step((self.high - self.low) / most), unit),
        }
    }

    fn steps(&self, step: f64, unit: Unit) -> Vec<Tick> {
        let first = (self.low / step - 1e-9).ceil();
        let mut ticks = Vec::new();
        for index in 0..40 {
            let value = (first + f64::from(index)) * step;
            if value > self.high + step * 1e-6 || !value.is_finite() {
                break;
            }
            // Not `-0`.
            ticks.push(Tick { value: value + 0.0, label: label(value + 0.0, step, unit) });
        }
        ticks
    }

    fn log_ticks(&self, unit: Unit, most: f64) -> Vec<Tick> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let decades = (self.high / self.low).log10();
        let is_fine = decades * 3.0 <= most;
        let every = (decades / most).ceil().max(1.0);
        let mut ticks = Vec::new();
        let mut exponent = first;
        while exponent <= last && ticks.len() < 200 {
            for mantissa in 1..10 {
                let value = f64::from(mantissa) * 10f64.powf(exponent);
                if value < self.low * 0.999 || value > self.high * 1.001 {
                    continue;
                }
                let is_labelled = match mantissa {
                    1 => (exponent - first).rem_euclid(every) == 0.0,
                    2 | 5 => is_fine,
                    _ => false,
                };
                if is_labelled {
                    ticks.push(Tick { value, label: label(value, value, unit) });
                } else if decades <= 5.0 || mantissa == 1 {
                    ticks.push(Tick { value, label: String::new() });
                }
            }
            exponent += 1.0;
        }
        ticks
    }
}

/// A step of 1, 2 or 5 times a power of ten, not below the given one.
#[must_use]
pub(crate) fn nice_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 { 1.0 } else { nice_above(least * (1.0 - 1e-9)) }
}

fn nice_above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= value * (1.0 - 1e-12));
    nice.unwrap_or(10.0) * power
}

fn nice_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let nice = [5.0, 2.0, 1.0].into_iter().find(|m| m * power <= value * (1.0 + 1e-12));
    nice.unwrap_or(0.5) * power
}

/// A step of a clock: seconds, minutes and hours as people divide them.
fn clock_step(least_ns: f64) -> f64 {
    const STEPS_S: [f64; 18] = [
        1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0,
        14400.0, 21600.0, 43200.0, 86400.0,
    ];
    let least_s = least_ns / 1e9;
    if least_s < 0.75 {
        return nice_step(least_ns);
    }
    let step = STEPS_S.into_iter().find(|step| *step >= least_s * 0.999);
    step.map_or_else(|| nice_step(least_ns / 86400.0) * 86400.0, |step| step * 1e9)
}

/// A tick's label with as many digits as its step needs.
#[must_use]
pub(crate) fn label(value: f64, step: f64, unit: Unit) -> String {
    match unit {
        Unit::Clock if step >= 1e9 => {
            let seconds = (value / 1e9).round();
            let text = span(Duration::from_secs(seconds.abs() as u64));
            if seconds < 0.0 { format!("-{text}") } else { text }
        }
        Unit::Ns | Unit::Clock => scaled(
            value,
            step,
            &[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
            if unit == Unit::Clock { "0s" } else { "0" },
        ),
        Unit::Bytes => scaled(
            value,
            step,
            &[(1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")],
            "0",
        ),
        Unit::Share => format!("{}%", plain(value * 100.0, step * 100.0)),
        Unit::Number if value.abs() >= 1e15 => format!("{value:.0e}"),
        Unit::Number => plain(value, step),
    }
}

fn scaled(value: f64, step: f64, units: &[(f64, &str)], zero: &str) -> String {
    if value == 0.0 {
        return zero.to_owned();
    }
    let fits = units.iter().find(|(size, _)| value.abs() >= size * (1.0 - 1e-9));
    let (size, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    format!("{}{name}", plain(value / size, step / size))
}

/// A number with the digits that a step of this size needs, grouped from a thousand up.
fn plain(value: f64, step: f64) -> String {
    let mut digits = 0;
    let mut unit = step.abs();
    while digits < 6 && (unit - unit.round()).abs() > 1e-6 * unit.max(1e-3) {
        unit *= 10.0;
        digits += 1;
    }
    if digits == 0 && value.abs() >= 999.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", show_count(value.abs().round() as u64));
    }
    let text = format!("{value:.digits$}");
    if text.parse::<f64>().is_ok_and(|shown| shown == 0.0) { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, unit: Unit, pixels: f64, apart: f64) -> Vec<String> {
        let ticks = scale.over(0.0, pixels).ticks(unit, apart);
        ticks.into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    /// Claim: ticks are round numbers in the unit that keeps them short.
    #[test]
    fn ticks_are_round() {
        let log = |low: f64, high: f64| Scale::log_around([low, high]).expect("positive");
        assert_eq!(
            labels(log(4.2e5, 4e6), Unit::Ns, 250.0, 40.0),
            ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]
        );
        assert_eq!(
            labels(log(1.1e6, 9e10), Unit::Ns, 250.0, 40.0),
            ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"]
        );
        assert_eq!(
            labels(Scale::from_zero([0.0, 120.0]), Unit::Number, 300.0, 60.0),
            ["0", "50", "100"]
        );
        assert_eq!(
            labels(Scale::linear(0.0, 90e9), Unit::Clock, 600.0, 80.0),
            ["0s", "20s", "40s", "1m", "1m20s"]
        );
        assert_eq!(
            labels(Scale::linear(0.0, 1.2e9), Unit::Clock, 600.0, 80.0),
            ["0s", "200 ms", "400 ms", "600 ms", "800 ms", "1.0 s", "1.2 s"]
        );
        assert_eq!(
            labels(Scale::from_zero([0.03]), Unit::Share, 120.0, 30.0),
            ["0%", "1%", "2%", "3%"]
        );
    }

    /// Claim: whatever the numbers, a coordinate lies on the scale.
    #[test]
    fn coordinates_stay_on_the_scale() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, 5e-324];
        let mut scales = vec![Scale::from_zero(odd), Scale::linear(3.0, 3.0)];
        scales.extend(Scale::log_around(odd));
        scales.extend(Scale::log_around([7.0]));
        for scale in scales {
            let scale = scale.over(10.0, 20.0);
            for value in odd {
                assert!((10.0..=20.0).contains(&scale.at(value)), "{scale:?} {value}");
            }
            assert!(scale.ticks(Unit::Ns, 30.0).len() <= 200);
        }
        assert_eq!(Scale::log_around([0.0, -3.0, f64::NAN]), None);
    }
}
