//! Answers of the node that need not be asked for again. Each is kept with what it is true of: a block by its hash, or what
//! is final. Bounded in bytes; what was not used lately goes first.

use bytes::Bytes;
use moka::sync::Cache;

use crate::view::Id;

/// The part of a chain that an answer is true of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Whatever comes: its key names a block by its hash.
    Always,
    /// While what was final in this generation is.
    Final(u64),
    /// Where the chain has this block.
    In(Id),
}

/// An answer that is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    pub result: Bytes,
    pub holds: Holds,
}

/// Bytes of an entry beside its key and its answer, about.
const ENTRY_BYTES: usize = 160;

/// See the module.
pub struct Answers {
    cache: Cache<String, Kept>,
}

impl Answers {
    pub fn new(bytes_max: u64) -> Self {
        let weight = |key: &String, kept: &Kept| {
            u32::try_from(key.len() + kept.result.len() + ENTRY_BYTES).unwrap_or(u32::MAX)
        };
        Self { cache: Cache::builder().max_capacity(bytes_max).weigher(weight).build() }
    }

    /// The answer under a key; whether it is true now is the caller's to say.
    pub fn get(&self, key: &str) -> Option<Kept> {
        self.cache.get(key)
    }

    /// Keeps a copy of an answer; the answer itself may be a part of a large batch.
    pub fn keep(&self, key: String, result: &Bytes, holds: Holds) {
        self.cache.insert(key, Kept { result: Bytes::copy_from_slice(result), holds });
    }

    /// Entries and bytes.
    pub fn size(&self) -> (u64, u64) {
        // What was put in lately is counted in with the next look after the cache; here is one.
        self.cache.run_pending_tasks();
        (self.cache.entry_count(), self.cache.weighted_size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an answer is kept with what it is true of, and all entries stay within the bound.
    #[test]
    fn bounds() {
        let answers = Answers::new(64 << 10);
        let body = Bytes::from(vec![b'x'; 1000]);
        answers.keep("old".to_owned(), &body, Holds::Final(3));
        assert_eq!(answers.get("old").map(|kept| kept.holds), Some(Holds::Final(3)));
        for index in 0..1000 {
            answers.keep(index.to_string(), &body, Holds::Always);
        }
        let (entries, bytes) = answers.size();
        assert!(bytes <= 64 << 10 && entries > 10, "{entries} entries, {bytes} bytes");
    }
}
