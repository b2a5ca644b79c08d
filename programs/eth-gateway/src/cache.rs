//! Answers of the node that need not be asked for again: what is final for good, what belongs to the last block until the
//! next one. Bounded in bytes; what was not used lately goes first.

use bytes::Bytes;
use moka::sync::Cache;

/// How long an answer stays true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Whatever comes.
    ForGood,
    /// While this is the last height.
    AtHeight(u64),
}

/// An answer that is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    pub result: Bytes,
    pub holds: Holds,
}

/// What an entry takes beside its key and its bytes, about.
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

    /// What is kept, if it is true while `height` is the last height.
    pub fn get(&self, key: &str, height: Option<u64>) -> Option<Kept> {
        let kept = self.cache.get(key)?;
        match kept.holds {
            Holds::ForGood => Some(kept),
            Holds::AtHeight(at) => Some(kept).filter(|_| height == Some(at)),
        }
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

    /// Claim: an answer of the last block is not given for another height, and all entries stay within the bound.
    #[test]
    fn heights_and_bounds() {
        let answers = Answers::new(64 << 10);
        let body = Bytes::from(vec![b'x'; 1000]);
        answers.keep("last".to_owned(), &body, Holds::AtHeight(7));
        answers.keep("old".to_owned(), &body, Holds::ForGood);
        assert!(answers.get("last", Some(7)).is_some());
        assert!(answers.get("last", Some(8)).is_none() && answers.get("last", None).is_none());
        assert!(answers.get("old", None).is_some());
        for index in 0..1000 {
            answers.keep(index.to_string(), &body, Holds::ForGood);
        }
        let (entries, bytes) = answers.size();
        assert!(bytes <= 64 << 10 && entries > 10, "{entries} entries, {bytes} bytes");
    }
}
