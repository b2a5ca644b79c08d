//! A list that grows at its end: its elements stand encoded, one after another, in segments that are never moved. A
//! long list of large values is so never copied to be made longer, and an append touches the last segment alone.

/// The room that the first segment begins with: all of the published workload's list at its small values.
const FIRST_BYTES: usize = 64;

/// The room of later segments grows with the list, up to this; a longer element gets a segment of its own.
const SEGMENT_BYTES_MAX: usize = 64 << 10;

/// Encoded elements, in order.
#[derive(Clone, Debug, Default)]
pub struct List {
    first: Vec<u8>,
    rest: Vec<Vec<u8>>,
    elements: u32,
    bytes: u64,
}

/// How long a list was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    elements: u32,
    bytes: u64,
    segments: usize,
    last: usize,
}

impl Length {
    /// How many elements there were.
    #[must_use]
    pub const fn elements(&self) -> u32 {
        self.elements
    }

    /// Bytes of all of them, as encoded.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl List {
    /// How many elements there are.
    #[must_use]
    pub const fn elements(&self) -> u32 {
        self.elements
    }

    /// Bytes of all elements, as encoded.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first byte of all elements as encoded, 0 without one.
    #[must_use]
    pub fn first_byte(&self) -> u64 {
        self.first.first().map_or(0, |byte| (*byte).into())
    }

    /// The encoded elements, in pieces; no element lies in two.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let first = (!self.first.is_empty()).then_some(&self.first);
        first.into_iter().chain(&self.rest).map(Vec::as_slice)
    }

    /// Appends one element of `length` encoded bytes, which `encode` writes.
    pub fn append(&mut self, length: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        self.append_many(1, length, encode);
    }

    /// Appends several at once, as they stand in a piece of another list.
    pub fn append_many(&mut self, count: u32, length: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        let segment = self.room_for(length);
        let before = segment.len();
        encode(segment);
        assert_eq!(segment.len() - before, length, "an element has the length that was said");
        self.elements += count;
        self.bytes += length as u64;
    }

    /// How long it is now.
    #[must_use]
    pub fn length(&self) -> Length {
        let last = self.rest.last().unwrap_or(&self.first).len();
        Length { elements: self.elements, bytes: self.bytes, segments: self.rest.len(), last }
    }

    /// Takes away what was appended since.
    pub fn cut(&mut self, to: Length) {
        self.rest.truncate(to.segments);
        self.rest.last_mut().unwrap_or(&mut self.first).truncate(to.last);
        self.elements = to.elements;
        self.bytes = to.bytes;
    }

    fn room_for(&mut self, length: usize) -> &mut Vec<u8> {
        let last = self.rest.last().unwrap_or(&self.first);
        let has_room = last.capacity() - last.len() >= length;
        if !has_room && self.first.is_empty() {
            self.first.reserve_exact(length.max(FIRST_BYTES));
        } else if !has_room {
            let so_far = usize::try_from(self.bytes).unwrap_or(SEGMENT_BYTES_MAX);
            let room = so_far.clamp(FIRST_BYTES, SEGMENT_BYTES_MAX).max(length);
            self.rest.push(Vec::with_capacity(room));
        }
        self.rest.last_mut().unwrap_or(&mut self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(list: &List) -> Vec<u8> {
        list.segments().flatten().copied().collect()
    }

    /// Claim: a list holds what was appended, whatever the sizes; it never moves an element; and a cut takes away exactly
    /// what was appended since.
    #[test]
    fn appends_and_cuts() {
        let mut list = List::default();
        let mut lengths = Vec::new();
        let mut expected = Vec::new();
        let mut first_at = None;
        for size in [0, 10, 10, 16, 1000, 3, 70_000, 5, 64, 40_000, 40_000] {
            lengths.push((list.length(), expected.len()));
            list.append(size, |out| out.resize(out.len() + size, b'a'));
            expected.resize(expected.len() + size, b'a');
            assert_eq!(all(&list), expected);
            assert_eq!(list.bytes(), expected.len() as u64);
            if size == 10 {
                let at = list.first.as_ptr();
                assert_eq!(*first_at.get_or_insert(at), at);
            }
        }
        assert_eq!(first_at, Some(list.first.as_ptr()));
        for (count, (length, bytes)) in lengths.into_iter().enumerate().rev() {
            list.cut(length);
            assert_eq!((all(&list).len(), list.elements() as usize), (bytes, count));
            assert_eq!(list.length(), length);
        }
    }
}
