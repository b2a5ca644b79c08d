//! Short bytes in place, long ones on the heap: keys and scalar values. Of the published workload nothing but the
//! large value leaves the entry's own cache line.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// What fits in place: the 24 bytes of a heap slice's place, less a tag and a length.
const INLINE_BYTES_MAX: usize = 22;

/// Bytes of any length.
#[derive(Clone)]
pub enum Text {
    /// Up to [`INLINE_BYTES_MAX`], in place.
    Inline(u8, [u8; INLINE_BYTES_MAX]),
    /// More.
    Heap(Box<[u8]>),
}

impl Text {
    /// A copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        match u8::try_from(bytes.len()) {
            Ok(length) if bytes.len() <= INLINE_BYTES_MAX => {
                let mut inline = [0; INLINE_BYTES_MAX];
                inline[..bytes.len()].copy_from_slice(bytes);
                Self::Inline(length, inline)
            }
            _ => Self::Heap(bytes.into()),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(length, bytes) => &bytes[..usize::from(*length)],
            Self::Heap(bytes) => bytes,
        }
    }

    /// How many bytes it takes beyond its own place: part of the bound on memory, and so the same in every replica.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        match self {
            Self::Inline(..) => 0,
            Self::Heap(bytes) => bytes.len() as u64,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.bytes()))
    }
}
