//! A list as its length and a hash: what a client keeps of a read, so that a history does not grow with its lists.

/// A list's name; dense from 0, below 2³¹.
pub type Key = u32;

/// What is appended: dense from 0, and never appended twice.
pub type Element = u32;

/// What stands for anything in a list that no client can have appended.
pub const GARBAGE: Element = u32::MAX;

/// The first elements of a list: how many, and their hash. Two lists of one length with one hash are taken for the
/// same, which is wrong once in 2⁶⁴.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// How many elements.
    pub len: u32,
    /// Of the elements in their order.
    pub hash: u64,
}

impl Prefix {
    /// Of the empty list.
    pub const EMPTY: Self = Self { len: 0, hash: 0 };

    /// With one more element behind it. The step is SplitMix64's finaliser (G. Steele et al., OOPSLA 2014).
    #[must_use]
    #[inline]
    pub const fn then(self, element: Element) -> Self {
        #[expect(clippy::as_conversions, reason = "From is not const; 32 bits fit into 64")]
        let element = element as u64;
        let z = self.hash.wrapping_mul(0xd129_0d3f_4a8d_3f2b).wrapping_add(element);
        let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self { len: self.len.saturating_add(1), hash: z ^ (z >> 31) }
    }

    /// With all of `elements` behind it.
    #[must_use]
    pub fn then_all(self, elements: &[Element]) -> Self {
        elements.iter().fold(self, |prefix, element| prefix.then(*element))
    }

    /// Of a whole list.
    #[must_use]
    pub fn of(elements: &[Element]) -> Self {
        Self::EMPTY.then_all(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the hash tells order, length and every element, and a prefix can be gone on from.
    #[test]
    fn a_prefix_is_its_elements() {
        let lists: [&[Element]; 7] = [&[], &[0], &[0, 0], &[1], &[0, 1], &[1, 0], &[GARBAGE]];
        for (i, one) in lists.iter().enumerate() {
            for (j, other) in lists.iter().enumerate() {
                assert_eq!(Prefix::of(one).hash == Prefix::of(other).hash, i == j);
            }
        }
        assert_eq!(Prefix::of(&[1, 2]).then_all(&[3]), Prefix::of(&[1, 2, 3]));
        assert_eq!(Prefix::of(&[7; 9]).len, 9);
    }
}
