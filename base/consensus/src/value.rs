//! The bytes that replicas agree on, shared and not copied, in memory that is used again.
//!
//! A replica keeps what was decided until there is a snapshot of it: hundreds of megabytes, which then become free all at
//! once. Given back to the system they would be taken from it again page by page, which costs more than everything that is
//! done with them. So a thread keeps what its values leave behind, and makes its next ones of it.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that this crate does not look into. A copy shares them: a value is in memory once, however many followers it goes to.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Arc<Bytes>);

#[derive(PartialEq, Eq)]
struct Bytes(Vec<u8>);

impl Value {
    /// An empty buffer for at least so many bytes, to become a value: it may be one of a value that was.
    #[must_use]
    pub fn buffer(capacity: usize) -> Vec<u8> {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().take(capacity)).ok().flatten();
        spare.unwrap_or_else(|| Vec::with_capacity(Class::holding(capacity).bytes().max(capacity)))
    }

    /// Takes a buffer back that became none.
    pub fn give_back(buffer: Vec<u8>) {
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| spare.borrow_mut().put(buffer));
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let _ = SPARE.try_with(|spare| spare.borrow_mut().forget(self.0.capacity()));
        Value::give_back(std::mem::take(&mut self.0));
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.0
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::buffer(bytes.len());
        buffer.extend_from_slice(bytes);
        Self::from(buffer)
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(&bytes[..])
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        let _ = SPARE.try_with(|spare| spare.borrow_mut().remember(bytes.capacity()));
        Self(Arc::new(Bytes(bytes)))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Shorter buffers are left to the allocator, which has enough of them.
const SPARE_BYTES_MIN: usize = 1 << 10;
/// Longer ones are rare.
const SPARE_BYTES_MAX: usize = 32 << 20;
/// All that a thread keeps, the values that there are included: what a replica's log takes at the usual sizes, just before a
/// snapshot sets most of it free. Beside values of that much nothing is kept: who has the memory already takes no more.
const SPARE_BYTES_OF_ALL_MAX: usize = 384 << 20;
/// Sizes from the least to the longest: four to each doubling.
const CLASSES: usize = 4 * (SPARE_BYTES_MAX / SPARE_BYTES_MIN).ilog2() as usize + 1;
/// A buffer is used for what is at most so many sizes shorter.
const CLASSES_UP: usize = 2;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare::new()) };
}

/// A size of buffers: 4, 5, 6 or 7 quarters of a power of two.
#[derive(Clone, Copy)]
struct Class(usize);

impl Class {
    const fn bytes(self) -> usize {
        (SPARE_BYTES_MIN / 4 * (4 + self.0 % 4)) << (self.0 / 4)
    }

    /// The first whose buffers hold so many bytes, or the last there is.
    fn holding(bytes: usize) -> Self {
        let below = Self::within(bytes);
        if below.bytes() < bytes { Self((below.0 + 1).min(CLASSES - 1)) } else { below }
    }

    /// The last whose buffers are no longer, or the first there is.
    fn within(bytes: usize) -> Self {
        let units = bytes.clamp(SPARE_BYTES_MIN, SPARE_BYTES_MAX) / (SPARE_BYTES_MIN / 4);
        // Between 4 and 4 doubled so many times.
        let doublings = units.ilog2() as usize - 2;
        Self(4 * doublings + (units >> doublings) - 4)
    }
}

/// Buffers that no value has.
struct Spare {
    by_class: [Vec<Vec<u8>>; CLASSES],
    bytes: usize,
    /// Bytes of the values that this thread has made, less those that it has let go: a value that another thread lets go
    /// counts on, so that less is kept here than might be.
    in_values: usize,
}

impl Spare {
    const fn new() -> Self {
        Self { by_class: [const { Vec::new() }; CLASSES], bytes: 0, in_values: 0 }
    }

    fn take(&mut self, capacity: usize) -> Option<Vec<u8>> {
        if !(SPARE_BYTES_MIN..=SPARE_BYTES_MAX).contains(&capacity) {
            return None;
        }
        let Class(first) = Class::holding(capacity);
        let classes = self.by_class.iter_mut().skip(first).take(CLASSES_UP);
        let buffer = classes.filter_map(Vec::pop).next()?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// A value was made.
    const fn remember(&mut self, bytes: usize) {
        self.in_values = self.in_values.saturating_add(bytes);
    }

    /// A value was let go.
    const fn forget(&mut self, bytes: usize) {
        self.in_values = self.in_values.saturating_sub(bytes);
    }

    fn put(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let room = SPARE_BYTES_OF_ALL_MAX.saturating_sub(self.in_values);
        let is_kept = (SPARE_BYTES_MIN..=SPARE_BYTES_MAX).contains(&capacity)
            && self.bytes + capacity <= room;
        if is_kept {
            buffer.clear();
            self.bytes += capacity;
            self.by_class[Class::within(capacity).0].push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: sizes ascend, each is within itself and holds itself, and what lies between two is within the lower and held
    /// by the upper.
    #[test]
    fn sizes() {
        assert_eq!(Class(0).bytes(), SPARE_BYTES_MIN);
        assert_eq!(Class(CLASSES - 1).bytes(), SPARE_BYTES_MAX);
        for class in 1..CLASSES {
            let (lower, upper) = (Class(class - 1).bytes(), Class(class).bytes());
            assert!(lower < upper && upper <= lower + lower / 4);
            assert_eq!((Class::within(upper).0, Class::holding(upper).0), (class, class));
            assert_eq!(
                (Class::within(upper - 1).0, Class::holding(lower + 1).0),
                (class - 1, class)
            );
        }
    }

    /// Claim: a value is what it was made of; its memory is the next one's when its last copy is gone, and not before; and
    /// a thread keeps no more than its bound.
    #[test]
    fn memory_is_used_again() {
        let value = Value::from([7; 5000].as_slice());
        let copy = value.clone();
        assert_eq!((&value[..], value.len()), (&[7; 5000][..], 5000));
        let at = value.as_ptr();
        drop(value);
        assert_ne!(Value::from([8; 5000].as_slice()).as_ptr(), at);
        assert_eq!(copy[..], [7; 5000]);
        drop(copy);
        let again = [Value::buffer(4000), Value::buffer(4000)];
        assert!(again.iter().all(|buffer| buffer.is_empty() && buffer.capacity() >= 4000));
        assert!(again.iter().any(|buffer| buffer.as_ptr() == at));
        (0..100).for_each(|_| Value::give_back(Vec::with_capacity(SPARE_BYTES_MAX)));
        assert!(SPARE.with_borrow(|spare| spare.bytes) <= SPARE_BYTES_OF_ALL_MAX);
    }

    /// Claim: values and what is kept for later ones are bounded together: beside values of half of all no more than the other
    /// half is kept.
    #[test]
    fn values_count_too() {
        let value = || Value::from(Vec::with_capacity(SPARE_BYTES_MAX));
        let values: Vec<Value> = (0..6).map(|_| value()).collect();
        (0..100).for_each(|_| Value::give_back(Vec::with_capacity(SPARE_BYTES_MAX)));
        let kept = SPARE.with_borrow(|spare| spare.bytes);
        assert_eq!(kept, SPARE_BYTES_OF_ALL_MAX - 6 * SPARE_BYTES_MAX);
        drop(values);
        assert_eq!(
            SPARE.with_borrow(|spare| (spare.bytes, spare.in_values)),
            (SPARE_BYTES_OF_ALL_MAX, 0)
        );
    }
}
