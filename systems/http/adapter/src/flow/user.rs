//! One user's state: where he is in his flow, what he knows and his cookies. It travels with his transactions as the bytes
//! of their payloads, so that any connection can carry any step, and nothing is shared. It knows no clock and no socket.

use crate::flow::cookies::Jar;

/// The state. Buffers are kept from one user to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    /// His number in the trial: the client of his transactions.
    pub(crate) number: u32,
    /// Which time he walks through a flow, from 0.
    pub(crate) iteration: u32,
    /// His flow, and the step that is sent, by their places in the plan.
    pub(crate) flow: u32,
    pub(crate) step: u32,
    /// His line of the data.
    pub(crate) line: u32,
    /// Redirects that were followed since the step was sent.
    pub(crate) hops: u8,
    /// The target of a redirect that is followed, and whether it is asked for by GET; empty: the step itself.
    pub(crate) hop: Vec<u8>,
    pub(crate) hop_is_get: bool,
    pub(crate) random: Random,
    /// How often he went back, by loop.
    pub(crate) loops: Vec<u32>,
    /// His values, by variable.
    pub(crate) values: Vec<Vec<u8>>,
    pub(crate) jar: Jar,
}

impl User {
    /// A user who knows nothing yet.
    pub(crate) fn begin(&mut self, number: u32, iteration: u32, seed: u64, sizes: Sizes) {
        (self.number, self.iteration) = (number, iteration);
        (self.flow, self.step, self.line, self.hops) = (0, 0, 0, 0);
        self.hop.clear();
        self.hop_is_get = false;
        self.random = Random(seed);
        self.loops.clear();
        self.loops.resize(sizes.loops, 0);
        self.values.truncate(sizes.values);
        self.values.iter_mut().for_each(Vec::clear);
        self.values.resize_with(sizes.values, Vec::new);
        self.jar.clear();
    }

    /// Appends the state.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for number in [self.number, self.iteration, self.flow, self.step, self.line] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&[self.hops, u8::from(self.hop_is_get)]);
        out.extend_from_slice(&self.random.0.to_le_bytes());
        self.loops.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
        put(&self.hop, out);
        self.values.iter().for_each(|value| put(value, out));
        out.extend_from_slice(self.jar.bytes());
    }

    /// Reads what [`User::write`] wrote; `None` for anything else.
    pub(crate) fn read(&mut self, bytes: &[u8], sizes: Sizes) -> Option<()> {
        let mut rest = bytes;
        for number in
            [&mut self.number, &mut self.iteration, &mut self.flow, &mut self.step, &mut self.line]
        {
            *number = u32::from_le_bytes(take(&mut rest)?);
        }
        let [hops, is_get] = take(&mut rest)?;
        (self.hops, self.hop_is_get) = (hops, is_get != 0);
        self.random = Random(u64::from_le_bytes(take(&mut rest)?));
        self.loops.clear();
        for _ in 0..sizes.loops {
            self.loops.push(u32::from_le_bytes(take(&mut rest)?));
        }
        get(&mut rest, &mut self.hop)?;
        self.values.resize_with(sizes.values, Vec::new);
        for value in &mut self.values {
            get(&mut rest, value)?;
        }
        self.jar.set_bytes(rest);
        Some(())
    }
}

/// How many loops and variables a plan has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) loops: usize,
    pub(crate) values: usize,
}

fn put(value: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(value.len()).expect("bounded by what is kept of a body");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(value);
}

fn get(rest: &mut &[u8], value: &mut Vec<u8>) -> Option<()> {
    let length = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    value.clear();
    value.extend_from_slice(bytes);
    Some(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*bytes)
}

/// A generator that fits into eight bytes: SplitMix64 (Steele, Lea, Flood 2014), seeded from the trial's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high.saturating_sub(low)) + 1;
        let above = (u128::from(self.next()) * span) >> 64;
        low.saturating_add(u64::try_from(above).expect("less than the span"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a user's state comes back whole whoever held the buffers before, and no part of it is a state.
    #[test]
    fn states_come_back() {
        let sizes = Sizes { loops: 2, values: 3 };
        let mut user = User::default();
        user.begin(7, 2, 99, sizes);
        (user.flow, user.step, user.line, user.hops, user.hop_is_get) = (1, 4, 12, 1, true);
        user.hop.extend_from_slice(b"/next");
        user.loops[1] = 3;
        user.values[0].extend_from_slice(b"token");
        user.random.next();
        let mut bytes = Vec::new();
        user.write(&mut bytes);
        let mut other = User::default();
        other.begin(1, 1, 1, Sizes { loops: 9, values: 9 });
        other.values[2].extend_from_slice(b"left");
        assert_eq!(other.read(&bytes, sizes), Some(()));
        assert_eq!(other.values, user.values);
        assert_eq!(other, user);
        for length in 0..bytes.len() {
            assert_eq!(User::default().read(&bytes[..length], sizes), None, "{length}");
        }
    }

    /// Claim: numbers keep to their range, reach both its ends, and are the same with the same seed.
    #[test]
    fn ranges() {
        let draw = |seed| {
            let mut random = Random(seed);
            (0..1_000).map(|_| random.between(3, 7)).collect::<Vec<_>>()
        };
        let drawn = draw(5);
        assert!(drawn.iter().all(|n| (3..=7).contains(n)));
        assert!(drawn.contains(&3) && drawn.contains(&7));
        assert!(draw(5) == drawn && draw(6) != drawn);
        assert_eq!(Random(1).between(9, 9), 9);
        let _ = Random(1).between(0, u64::MAX);
    }
}
