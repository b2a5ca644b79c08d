//! Arrays of numbers as differences in variable length: neighbours are alike, and deflate finds what repeats.
//!
//! It must never lose a whole number: only series of a picture are rounded, and their step is written down.

use serde_json::{Value, json};

/// Steps that the range of a series is divided into: a chart has fewer pixels.
const REAL_STEPS: f64 = 1000.0;
/// The same where a document has more than [`REALS_MANY`] numbers of series: still more than a small chart has pixels.
const REAL_STEPS_OF_MANY: f64 = 200.0;
/// Numbers of series of four trials of 300 columns with 16 series (lowest, mean, highest): they deflate to 1.5 bytes of
/// noise each, and to 1.1 with the coarser steps.
const REALS_MANY: usize = 4 * 300 * 16 * 3;
/// The largest whole number that the script's numbers hold exactly.
const EXACT_MAX: i64 = 1 << 53;

/// All arrays, one after the other.
#[derive(Debug)]
pub(super) struct Arrays {
    pub(super) bytes: Vec<u8>,
    /// Steps of series.
    steps: f64,
}

impl Arrays {
    /// For a document with so many numbers of series.
    pub(super) fn for_reals(count: usize) -> Self {
        let steps = if count > REALS_MANY { REAL_STEPS_OF_MANY } else { REAL_STEPS };
        Self { bytes: Vec::new(), steps }
    }

    /// Counts, which are never missing.
    pub(super) fn counts(&mut self, of: impl Iterator<Item = u64>) -> Value {
        self.ints(of.map(|it| i64::try_from(it).unwrap_or(EXACT_MAX)))
    }

    /// Whole numbers, none missing.
    pub(super) fn ints(&mut self, of: impl Iterator<Item = i64>) -> Value {
        let (at, n) = self.push(of);
        json!({ "at": at, "n": n, "as": "int" })
    }

    /// Whole numbers, some missing.
    pub(super) fn maybes(&mut self, of: impl Iterator<Item = Option<i64>>) -> Value {
        let (at, n) = self.push(of.map(with_missing));
        json!({ "at": at, "n": n, "as": "int?" })
    }

    /// Series on one scale, rounded to some hundred steps of their common range; not finite is missing.
    pub(super) fn reals<const N: usize>(&mut self, of: [&Vec<f64>; N]) -> [Value; N] {
        let finite = || of.iter().flat_map(|it| it.iter().copied()).filter(|it| it.is_finite());
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        let step =
            if high > low && (high - low).is_finite() { (high - low) / self.steps } else { 0.0 };
        let from = if low.is_finite() { low } else { 0.0 };
        of.map(|values| {
            let (at, n) = self.push(values.iter().map(|it| with_missing(steps(*it, from, step))));
            json!({ "at": at, "n": n, "as": "real", "from": from, "step": step })
        })
    }

    /// Differences, each as a zigzag varint (LEB128). Gives where they begin and how many they are.
    fn push(&mut self, of: impl Iterator<Item = i64>) -> (usize, usize) {
        let at = self.bytes.len();
        let mut before = 0_i64;
        let mut n = 0;
        for value in of {
            let value = value.clamp(-EXACT_MAX, EXACT_MAX);
            let difference = value - before;
            before = value;
            n += 1;
            let mut rest = zigzag(difference);
            while rest >= 0x80 {
                self.bytes.push(low_bits(rest) | 0x80);
                rest >>= 7;
            }
            self.bytes.push(low_bits(rest));
        }
        (at, n)
    }
}

/// 0, -1, 1, -2, … as 0, 1, 2, 3, …
const fn zigzag(of: i64) -> u64 {
    ((of << 1) ^ (of >> 63)).cast_unsigned()
}

/// The lowest seven bits.
fn low_bits(of: u64) -> u8 {
    u8::try_from(of & 0x7f).expect("seven bits")
}

const fn with_missing(of: Option<i64>) -> i64 {
    match of {
        None => 0,
        Some(value) if value >= 0 => value.saturating_add(1),
        Some(value) => value,
    }
}

/// Whole steps from the lowest value.
fn steps(of: f64, from: f64, step: f64) -> Option<i64> {
    if !of.is_finite() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most REAL_STEPS of them")]
    let steps = if step > 0.0 { ((of - from) / step).round() as i64 } else { 0 };
    Some(steps)
}
