//! Bytes that wait at one end of a connection: taken from the front, added at the back, and not moved for it.

/// All connections together keep about so much room in emptied buffers, so that one large frame is not paid for ever and
/// many do not take memory from the system over and over.
const KEPT_BYTES_OF_ALL_MAX: usize = 256 << 20;
/// A connection's buffer keeps at most so much.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Of more connections than this none keeps a buffer: one that was used so many connections ago is in no cache any more, and
/// the one that the allocator was given back last is.
const KEEPING_CONNECTIONS_MAX: usize = 4096;

/// How much room an emptied buffer keeps where there are so many connections.
pub(super) fn kept_bytes(connections: usize) -> usize {
    if connections > KEEPING_CONNECTIONS_MAX {
        return 0;
    }
    (KEPT_BYTES_OF_ALL_MAX / connections.max(1)).min(KEPT_BYTES_MAX)
}

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
            self.bytes.clear();
        }
    }

    /// Gives back the room of a buffer that is empty and keeps more than this.
    pub(super) fn give_back(&mut self, kept_bytes: usize) {
        if self.bytes.is_empty() {
            give_back(&mut self.bytes, kept_bytes);
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

/// Gives back the room of an empty buffer that has grown larger than this.
pub(super) fn give_back(bytes: &mut Vec<u8>, kept_bytes: usize) {
    if bytes.capacity() > kept_bytes {
        *bytes = Vec::new();
    }
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
        waiting.give_back(1 << 20);
        assert_eq!(waiting.len(), (2 << 20) - 1, "nothing is given back that waits");
        waiting.advance(waiting.len());
        waiting.give_back(4 << 20);
        assert_ne!(waiting.bytes.capacity(), 0);
        waiting.give_back(1 << 20);
        assert_eq!(waiting.bytes.capacity(), 0, "a large buffer is given back");
        let kept = [1, 4096, 4097, 1 << 20].map(kept_bytes);
        assert_eq!(kept, [KEPT_BYTES_MAX, KEPT_BYTES_OF_ALL_MAX / 4096, 0, 0]);
    }
}
