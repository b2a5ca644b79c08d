//! Memory for what comes from a network: a body is counted while it comes, and one for which there is no room is not taken.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is counted in pieces of this size.
const PIECE: usize = 4 << 10;

/// So much memory for all bodies of a kind together.
#[derive(Clone)]
pub struct Memory(Arc<Semaphore>);

/// The part of it that is held; it is given back with this value.
pub struct Held {
    /// Of memory that is not everybody's; it is used first.
    own: Option<OwnedSemaphorePermit>,
    shared: OwnedSemaphorePermit,
    bytes: usize,
}

/// There is no room.
#[derive(Debug)]
pub struct Full;

/// Why a body was not taken.
#[derive(Debug)]
pub enum Untaken {
    TooLarge,
    Full,
    Broken(hyper::Error),
}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    /// Nothing of it yet.
    pub fn none(&self) -> Held {
        Held { own: None, shared: no_piece(&self.0), bytes: 0 }
    }

    /// Nothing of it yet, and as long as there is room in `own` it is taken from there.
    pub fn none_after(&self, own: &Self) -> Held {
        Held { own: Some(no_piece(&own.0)), ..self.none() }
    }
}

fn no_piece(of: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(of).try_acquire_many_owned(0).expect("nothing is always there")
}

impl Held {
    /// Holds so many bytes more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        self.bytes += bytes;
        let missing = self.bytes.div_ceil(PIECE).saturating_sub(self.pieces());
        let mut missing = u32::try_from(missing).map_err(|_| Full)?;
        if let Some(own) = &mut self.own {
            let there = own.semaphore().available_permits();
            let there = u32::try_from(there).unwrap_or(u32::MAX).min(missing);
            // Another request may have taken it meanwhile.
            if let Ok(more) = Arc::clone(own.semaphore()).try_acquire_many_owned(there) {
                own.merge(more);
                missing -= there;
            }
        }
        let of = Arc::clone(self.shared.semaphore());
        // If nothing is missing nothing is taken.
        self.shared.merge(of.try_acquire_many_owned(missing).map_err(|_| Full)?);
        Ok(())
    }

    /// Gives so many bytes back, those that are everybody's first.
    pub fn shrink(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let mut spare = self.pieces().saturating_sub(self.bytes.div_ceil(PIECE));
        for held in std::iter::once(&mut self.shared).chain(&mut self.own) {
            let count = spare.min(held.num_permits());
            drop(held.split(count));
            spare -= count;
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn pieces(&self) -> usize {
        self.shared.num_permits() + self.own.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }
}

/// A whole body of up to `bytes_max`.
pub async fn take(mut body: Incoming, bytes_max: usize, held: &mut Held) -> Result<Bytes, Untaken> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > bytes_max {
        return Err(Untaken::TooLarge);
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Untaken::Broken)?.into_data() else { continue };
        if first.len() + all.len() + data.len() > bytes_max {
            return Err(Untaken::TooLarge);
        }
        held.grow(data.len()).map_err(|Full| Untaken::Full)?;
        // Nearly all bodies are one piece, which is then not copied.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(announced.max(first.len() + data.len()));
            all.extend_from_slice(&first);
            first = Bytes::new();
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is held grows by whole pieces up to the bound for all, and is free again when it is given back.
    #[test]
    fn a_bound_for_all() {
        let memory = Memory::new(3 * PIECE);
        let (mut one, mut other) = (memory.none(), memory.none());
        assert!(
            one.grow(1).is_ok() && one.grow(PIECE - 1).is_ok() && other.grow(2 * PIECE).is_ok()
        );
        assert!(one.grow(1).is_err() && memory.none().grow(1).is_err());
        drop(other);
        assert!(memory.none().grow(2 * PIECE).is_ok());
        assert!(memory.none().grow(usize::MAX / 2).is_err());
    }

    /// Claim: own memory is used before the shared one, stays where all others have taken that, and comes back last.
    #[test]
    fn own_memory() {
        let (memory, own) = (Memory::new(2 * PIECE), Memory::new(PIECE));
        let mut greedy = memory.none();
        greedy.grow(2 * PIECE).expect("there is room");
        let mut held = memory.none_after(&own);
        assert!(held.grow(PIECE).is_ok() && memory.none_after(&own).grow(1).is_err());
        drop(greedy);
        assert!(held.grow(PIECE + 1).is_ok() && memory.none().grow(1).is_err());
        held.shrink(PIECE + 1);
        assert!(memory.none().grow(2 * PIECE).is_ok() && own.none().grow(1).is_err());
        held.shrink(PIECE);
        assert!(held.bytes() == 0 && own.none().grow(PIECE).is_ok());
    }
}
