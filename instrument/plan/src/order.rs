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

/// Two settings that follow each other are the sides of a comparison: their trials run beside each other, now the one first
/// and now the other, so that a drift of the host meets both alike.
pub(crate) fn by_turns(pairs: usize, trials: u32, shuffled: bool, seed: Seed) -> Vec<(usize, u32)> {
    let each = order(pairs, trials, shuffled, seed).into_iter().enumerate();
    each.flat_map(|(place, (pair, trial))| {
        let (first, second) = (2 * pair, 2 * pair + 1);
        let sides = if place % 2 == 0 { [first, second] } else { [second, first] };
        sides.map(|setting| (setting, trial))
    })
    .collect()
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

    /// Claim: each trial of a side stands beside that of the other, and either side comes first as often.
    #[test]
    fn sides_take_turns() {
        let order = by_turns(1, 4, true, Seed(3));
        assert_eq!(order.len(), 8);
        assert!(order.chunks(2).all(|pair| pair[0].1 == pair[1].1 && pair[0].0 != pair[1].0));
        let firsts: Vec<usize> = order.chunks(2).map(|pair| pair[0].0).collect();
        assert_eq!(firsts, [0, 1, 0, 1]);
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
