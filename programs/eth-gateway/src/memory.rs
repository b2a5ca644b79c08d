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
    of: Arc<Semaphore>,
    pieces: Option<OwnedSemaphorePermit>,
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
        Held { of: Arc::clone(&self.0), pieces: None, bytes: 0 }
    }
}

impl Held {
    /// Holds so many bytes more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        self.bytes += bytes;
        let held = self.pieces.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = self.bytes.div_ceil(PIECE).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_| Full)?;
        let more = Arc::clone(&self.of).try_acquire_many_owned(missing).map_err(|_| Full)?;
        match &mut self.pieces {
            Some(pieces) => pieces.merge(more),
            none => *none = Some(more),
        }
        Ok(())
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
}
