//! In which order the trials run. Shuffling keeps a drift of the host from looking like an effect of the
//! matrix; the seed makes it repeatable.

use model::Seed;

/// (setting, trial) pairs: setting by setting, or shuffled by the seed (Fisher–Yates).
pub(crate) fn order(settings: usize, trials: u32, shuffled: bool, seed: Seed) -> Vec<(usize, u32)> {
    let mut order: Vec<(usize, u32)> =
        (0..settings).flat_map(|setting| (0..trials).map(move |trial| (setting, trial))).collect();
    if shuffled {
        let mut rng = seed.split("order").rng();
        for last in (1..order.len()).rev() {
            let bound = u64::try_from(last + 1).expect("a length fits 64 bits");
            let other = usize::try_from(rng.below(bound)).expect("below a length");
            order.swap(last, other);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the same seed gives the same order, another seed another one, and every trial is in it once.
    #[test]
    fn shuffling_is_repeatable_and_complete() {
        let first = order(5, 4, true, Seed(7));
        assert_eq!(first, order(5, 4, true, Seed(7)));
        assert_ne!(first, order(5, 4, true, Seed(8)));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_ne!(first, sorted);
        assert_eq!(sorted, order(5, 4, false, Seed(7)));
    }

    /// Claim: every one of three trials comes first about as often (no position is favoured).
    #[test]
    fn shuffling_is_fair() {
        let mut first = [0_u32; 3];
        for seed in 0..3_000 {
            first[order(3, 1, true, Seed(seed))[0].0] += 1;
        }
        // 1,000 each; five standard deviations are 129.
        assert!(first.iter().all(|count| (871..=1129).contains(count)), "{first:?}");
    }
}
