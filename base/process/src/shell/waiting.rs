//! Bytes that wait at one end of a connection: taken from the front, added at the back, and not moved for it.

/// With more room than this an emptied buffer is given back, so that one large frame is not paid for ever.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Bytes, of which the first ones are done with.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    bytes: Vec<u8>,
    done: usize,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.done
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What waits.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    /// The first `count` are done with.
    pub(super) fn advance(&mut self, count: usize) {
        self.done += count;
        assert!(self.done <= self.bytes.len(), "done with more bytes than there are");
        if self.done == self.bytes.len() {
            self.done = 0;
            empty(&mut self.bytes);
        }
    }

    /// The buffer, to be added to with room for `more` bytes at least. What is done with is dropped when it is
    /// the larger part, so that each byte is moved at most once for one that came.
    pub(super) fn buffer(&mut self, more: usize) -> &mut Vec<u8> {
        if self.done > self.bytes.len() / 2 {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
        self.bytes.reserve(more);
        &mut self.bytes
    }

    /// Takes all of `bytes`, of which the first `done` are done with, when nothing else waits. What is given
    /// back in their place is empty.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>, done: usize) {
        assert!(self.is_empty(), "bytes would change their order");
        std::mem::swap(&mut self.bytes, bytes);
        self.done = done;
    }
}

/// Empties a buffer, and gives back one that has grown large.
pub(super) fn empty(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEPT_BYTES_MAX {
        *bytes = Vec::new();
    }
    bytes.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: bytes come out in the order in which they went in, whatever the cuts, and what a reader leaves
    /// is moved no more often than it came.
    #[test]
    fn in_order() {
        let mut waiting = Waiting::default();
        let (mut wrote, mut read) = (0_u8, 0_u8);
        for turn in 0..1000_usize {
            for _ in 0..turn % 7 {
                waiting.buffer(1).push(wrote);
                wrote = wrote.wrapping_add(1);
            }
            let count = waiting.len().min(turn * 5 % 6);
            for byte in &waiting.rest()[..count] {
                assert_eq!(*byte, read);
                read = read.wrapping_add(1);
            }
            waiting.advance(count);
        }
        assert_eq!(wrote.wrapping_sub(read), u8::try_from(waiting.len() % 256).unwrap());
        waiting.advance(waiting.len());
        let mut large = vec![7; 2 << 20];
        waiting.take(&mut large, 1);
        assert_eq!((waiting.len(), large.len()), ((2 << 20) - 1, 0));
        waiting.advance(waiting.len());
        assert_eq!(waiting.bytes.capacity(), 0, "a large buffer is given back");
    }
}
