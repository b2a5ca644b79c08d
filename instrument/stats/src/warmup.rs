//! Where does the steady part of a series begin?

/// The result of MSER-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Points of the series to leave out at its start.
    pub cut: usize,
    /// False: the best cut is the last one allowed, so the series had not become steady by its middle.
    pub steady: bool,
}

/// MSER-5 (White 1997): batches of five; the cut d ≤ n/2 that minimises Σ(Yᵢ − Ȳ)² / (n − d)².
/// `None` below ten batches.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a short series")]
pub fn mser5(series: &[f64]) -> Option<Truncation> {
    const BATCH: usize = 5;
    let batches: Vec<f64> =
        series.chunks_exact(BATCH).map(|five| five.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < 10 {
        return None;
    }
    let last = batches.len() / 2;
    // Suffix sums around the overall mean, so that the squares do not cancel.
    let centre = batches.iter().sum::<f64>() / batches.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (start, batch) in batches.iter().enumerate().rev() {
        let deviation = batch - centre;
        sum += deviation;
        squares += deviation * deviation;
        let n = (batches.len() - start) as f64;
        let score = (squares - sum * sum / n).max(0.0) / (n * n);
        if start <= last && score <= best.0 {
            best = (score, start);
        }
    }
    Some(Truncation { cut: best.1 * BATCH, steady: best.1 < last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(i: u32) -> f64 {
        f64::from(i.wrapping_mul(2_654_435_761) >> 16 & 0xff) / 256.0
    }

    /// Claim: a start that decays is cut where it ends; a level series is not cut; a ramp is not steady.
    #[test]
    fn cuts_the_start() {
        let decaying: Vec<f64> =
            (0..200).map(|i| 10.0 + noise(i) + if i < 40 { 30.0 } else { 0.0 }).collect();
        assert_eq!(mser5(&decaying), Some(Truncation { cut: 40, steady: true }));
        let level: Vec<f64> = (0..200).map(noise).collect();
        assert!(mser5(&level).unwrap().cut <= 20);
        let ramp: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(!mser5(&ramp).unwrap().steady);
        assert_eq!(mser5(&level[..20]), None);
    }
}
