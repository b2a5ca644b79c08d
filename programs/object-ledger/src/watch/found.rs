//! Where a transaction is, with what verification takes.

use super::{STEPS, Times, Watch};
use crate::data::{ATTESTATION_BYTES, Hash, Malformed, PROPOSAL_BYTES, Reader};
use crate::verify::{Refusal, Verified};

/// Answer to a question where a transaction is. Encoded: number, height, place (4 bytes), times of the steps that pipelines
/// told (8 bytes each, 0: none), times seen, cached, decided (8 bytes each), attestation, block with token, proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) number: u64,
    pub(crate) height: u64,
    pub(crate) index: u32,
    pub(crate) steps: [i64; STEPS],
    pub(crate) times: Times,
    pub(crate) attestation: Vec<u8>,
    pub(crate) proposal: Vec<u8>,
    pub(crate) proof: Vec<u8>,
}

impl Found {
    /// Its bytes.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let Times { seen, cached, decided } = self.times;
        let mut bytes = [self.number.to_be_bytes(), self.height.to_be_bytes()].concat();
        bytes.extend_from_slice(&self.index.to_be_bytes());
        for time in self.steps.into_iter().chain([seen, cached, decided]) {
            bytes.extend_from_slice(&time.to_be_bytes());
        }
        bytes.extend_from_slice(&self.attestation);
        bytes.extend_from_slice(&self.proposal);
        bytes.extend_from_slice(&self.proof);
        bytes
    }

    /// Reads one.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (number, height, index) = (reader.u64()?, reader.u64()?, reader.u32()?);
        let mut steps = [0; STEPS];
        for step in &mut steps {
            *step = i64::from_be_bytes(reader.array()?);
        }
        let [seen, cached, decided] = [reader.array()?, reader.array()?, reader.array()?];
        let times = Times {
            seen: i64::from_be_bytes(seen),
            cached: i64::from_be_bytes(cached),
            decided: i64::from_be_bytes(decided),
        };
        let attestation = reader.bytes(ATTESTATION_BYTES)?.to_vec();
        let proposal = reader.bytes(PROPOSAL_BYTES)?.to_vec();
        let proof = reader.rest().to_vec();
        Ok(Self { number, height, index, steps, times, attestation, proposal, proof })
    }
}

impl Watch {
    /// Where a transaction is, if it is on the main chain.
    pub(crate) fn locate(&self, id: &Hash) -> Option<Found> {
        let (stages, verifier) = (self.stages(), self.verifier());
        let (number, index) = *stages.places.get(id)?;
        let cached = &stages.cache[usize::try_from(number - 1).ok()?];
        let (batch, tree) = cached.batch.as_ref()?;
        Some(Found {
            number,
            height: verifier.height_of(number)?,
            index,
            steps: stages.notes.get(&batch.id).copied().unwrap_or_default(),
            times: cached.times,
            attestation: cached.attestation.clone(),
            proposal: cached.proposal.clone(),
            proof: tree.proof(index)?.encoded(),
        })
    }

    /// Whether a transaction was read from the buckets.
    pub(crate) fn is_seen(&self, id: &Hash) -> bool {
        let stages = self.stages();
        stages.seen.contains_key(id) || stages.places.contains_key(id)
    }

    /// Strong verification, by this watcher's own main chain.
    pub(crate) fn verify(&self, transaction: &[u8], found: &Found) -> Result<Verified, Refusal> {
        self.verifier().verify(transaction, &found.proof, found.number)
    }

    /// What was refused, if something was: from there on nothing is decided.
    pub(crate) fn refused(&self) -> Option<Refusal> {
        self.stages().refused
    }

    /// The height of a number's block, if it is on the main chain.
    pub(crate) fn height_of(&self, number: u64) -> Option<u64> {
        self.verifier().height_of(number)
    }
}
