//! Bytes that a session left unread because its answer is not whole yet: bounded for each connection, and over all of them,
//! so that servers which begin thousands of long answers and finish none take no more than this.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes of an unfinished answer that are kept; more is not of any protocol that we measure.
const ONE_BYTES_MAX: usize = 64 << 20;
/// The most over all connections of the process, beyond what each may keep without being counted.
const ALL_BYTES_MAX: usize = 512 << 20;
/// Kept without being counted, so that ordinary answers in pieces touch nothing that threads share: a receipt.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// A buffer that was longer is given back when it is empty: most are used again and again.
const KEPT_BYTES: usize = 1 << 20;

/// The sum of that over all connections of the process.
static ALL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// One connection's.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    pub bytes: Vec<u8>,
    counted: usize,
}

impl Unread {
    /// To be called after bytes were added or taken.
    ///
    /// # Errors
    /// When it is more than may be, in words.
    pub(crate) fn changed(&mut self) -> Result<(), String> {
        self.changed_among(&ALL_BYTES)
    }

    fn changed_among(&mut self, all: &AtomicUsize) -> Result<(), String> {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            // A long answer is over; its memory is another connection's turn.
            self.bytes = Vec::new();
        }
        if self.count(all) > ALL_BYTES_MAX && self.counted > 0 {
            return Err(format!(
                "answers that are not complete hold more than {ALL_BYTES_MAX} bytes over all connections"
            ));
        }
        if self.bytes.len() > ONE_BYTES_MAX {
            return Err(format!("an answer is not complete after {ONE_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = Vec::new();
        self.count(&ALL_BYTES);
    }

    /// Brings the sum up to date, and gives it.
    fn count(&mut self, all: &AtomicUsize) -> usize {
        let now = self.bytes.len().saturating_sub(UNCOUNTED_BYTES);
        if now == self.counted {
            return if now == 0 { 0 } else { all.load(Ordering::Relaxed) };
        }
        let before = match now.checked_sub(self.counted) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed) + more,
            None => all.fetch_sub(self.counted - now, Ordering::Relaxed) - (self.counted - now),
        };
        self.counted = now;
        before
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: no sum is kept of short rests; long ones are counted once, whatever they grow and shrink to, and given back when
    /// they are read, cleared or dropped.
    #[test]
    fn the_rest_of_all() {
        let all = AtomicUsize::new(0);
        let mut one = Unread::default();
        one.bytes.resize(UNCOUNTED_BYTES, 0);
        assert_eq!(one.count(&all), 0);
        one.bytes.resize(UNCOUNTED_BYTES + 1000, 0);
        assert_eq!(one.count(&all), 1000);
        assert_eq!(one.count(&all), 1000);
        let mut other = Unread::default();
        other.bytes.resize(UNCOUNTED_BYTES + 500, 0);
        assert_eq!(other.count(&all), 1500);
        one.bytes.truncate(10);
        assert_eq!((one.count(&all), other.count(&all)), (500, 500));
        other.bytes.clear();
        other.count(&all);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    /// Claim: nine connections with 64 MiB each are one too many, whichever it is, and the others go on.
    #[test]
    fn the_rest_has_a_bound_over_all_connections() {
        let sum = AtomicUsize::new(0);
        let mut all: Vec<Unread> = (0..9).map(|_| Unread::default()).collect();
        let mut refused = 0;
        for one in &mut all {
            one.bytes = vec![0; ONE_BYTES_MAX];
            if let Err(words) = one.changed_among(&sum) {
                assert!(words.contains("over all connections"), "{words}");
                one.bytes = Vec::new();
                one.count(&sum);
                refused += 1;
            }
        }
        assert_eq!(refused, 1);
        let mut short = Unread { bytes: vec![0; 1000], counted: 0 };
        assert_eq!(short.changed_among(&sum), Ok(()), "ordinary answers go on");
        all[0].bytes.push(0);
        assert!(all[0].changed_among(&sum).unwrap_err().contains("is not complete after"));
        for one in &mut all {
            one.bytes = Vec::new();
            one.count(&sum);
        }
        assert_eq!(sum.load(Ordering::Relaxed), 0);
    }
}
