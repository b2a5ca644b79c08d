//! The registers: what each key holds, which is the transaction that last wrote to it, and the few before that for a
//! server that lies about it. Only where a kind reads them.

use std::collections::HashMap;

/// Values of a key that are remembered, the current one among them. A stale read gives the oldest: so long overwritten
/// that no concurrency of some dozens of clients explains it.
const REMEMBERED: usize = 64;

/// Registers that are held. When there are more, those of other runs are forgotten, and then all.
const REGISTERS_MAX: usize = 1 << 17;

/// One run's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) run: u64,
    pub(crate) key: u64,
}

impl Key {
    /// The key that a payload begins with; a shorter payload is of key 0.
    pub(crate) fn of(run: u64, payload: &[u8]) -> Self {
        let key = payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Self { run, key }
    }
}

/// What the keys hold.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    of: HashMap<Key, Register>,
}

#[derive(Debug)]
struct Register {
    values: [u64; REMEMBERED],
    written: usize,
}

impl Default for Register {
    fn default() -> Self {
        Self { values: [0; REMEMBERED], written: 0 }
    }
}

impl Registers {
    /// The key holds `value` from now on.
    pub(crate) fn write(&mut self, key: Key, value: u64) {
        if self.of.len() >= REGISTERS_MAX && !self.of.contains_key(&key) {
            self.of.retain(|known, _| known.run == key.run);
            if self.of.len() >= REGISTERS_MAX {
                self.of.clear();
            }
        }
        let register = self.of.entry(key).or_default();
        register.values[register.written % REMEMBERED] = value;
        register.written += 1;
    }

    /// What the key holds; `None` if nothing was written to it.
    pub(crate) fn read(&self, key: Key) -> Option<u64> {
        let register = self.of.get(&key)?;
        Some(register.values[(register.written - 1) % REMEMBERED])
    }

    /// What the key held [`REMEMBERED`] values ago; `None` if there were not so many.
    pub(crate) fn stale(&self, key: Key) -> Option<u64> {
        let register = self.of.get(&key).filter(|register| register.written >= REMEMBERED)?;
        Some(register.values[register.written % REMEMBERED])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a key gives what was last written to it, the oldest of those remembered when asked for a stale one, and
    /// nothing of another key or run.
    #[test]
    fn last_and_oldest() {
        let key = |run, number: u64| Key::of(run, &[&number.to_le_bytes()[..], b"more"].concat());
        let mut registers = Registers::default();
        assert_eq!(registers.read(key(1, 5)), None);
        for value in 10..10 + REMEMBERED as u64 {
            assert_eq!(registers.stale(key(1, 5)), None);
            registers.write(key(1, 5), value);
            assert_eq!(registers.read(key(1, 5)), Some(value));
        }
        assert_eq!(registers.stale(key(1, 5)), Some(10));
        registers.write(key(1, 5), 7);
        assert_eq!((registers.read(key(1, 5)), registers.stale(key(1, 5))), (Some(7), Some(11)));
        assert_eq!((registers.read(key(1, 6)), registers.read(key(2, 5))), (None, None));
        assert_eq!(Key::of(1, b"short"), Key { run: 1, key: 0 });
    }
}
