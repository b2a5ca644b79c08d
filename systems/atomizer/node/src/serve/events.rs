//! Stages into a file, by the sampler: one ring, because a node's machine is one thread.

use std::path::Path;

use clock::{Clock, Instant};
use sampler::{Options, Ring, Sampler};

use crate::protocol::Hash;
use crate::stamps::{Stage, Stamps};

/// Of so many transactions one is followed by name, unless it is said otherwise.
pub(super) const FOLLOWED: u64 = 1024;

/// Begins a file of the stages of `node`; gives what closes it at the end, and who is to be told.
pub(super) fn begin(
    path: &Path,
    node: &str,
    clock: Clock,
    followed: u64,
) -> Result<(Sampler, Box<dyn Stamps + Send>), String> {
    let stages: Vec<_> =
        Stage::ALL.iter().map(|it| sampler::Stage::new(it.name(), it.label())).collect();
    let sampler = Sampler::create(path, node, &stages, clock, Options::default())
        .map_err(|error| format!("making {} for events: {error}", path.display()))?;
    let ring = sampler.ring();
    Ok((sampler, Box::new(Events { ring, followed: followed.max(1) })))
}

struct Events {
    ring: Ring,
    followed: u64,
}

impl Events {
    fn span(&self, since_ns: u64) -> (Instant, Instant) {
        (Instant::from_ns(since_ns.cast_signed()), self.ring.now())
    }
}

/// The place of a stage among those of the file.
const fn place(stage: Stage) -> u8 {
    stage as u8 - 1
}

fn key(id: &Hash) -> u64 {
    u64::from_le_bytes(*id.first_chunk().expect("32 bytes"))
}

impl Stamps for Events {
    fn now_ns(&mut self) -> u64 {
        self.ring.now().as_ns().cast_unsigned()
    }

    fn stage(&mut self, stage: Stage, since_ns: u64, count: u64) {
        let (from, to) = self.span(since_ns);
        self.ring.event(place(stage), from, to, count);
    }

    fn trace(&mut self, stage: Stage, id: &Hash, since_ns: u64) {
        let (from, to) = self.span(since_ns);
        self.ring.span(place(stage), from, to, key(id));
    }

    fn follows(&self, id: &Hash) -> bool {
        key(id).is_multiple_of(self.followed)
    }
}
