//! The main chain as a client reads it by itself: from the buckets, verified number by number.

use std::sync::Arc;

use crate::data::{Attestation, Batch, Proposal, Tree, names};
use crate::storage::Storage;
use crate::verify::{Trust, Verified, Verifier};

/// What was read so far.
pub(super) struct Reading {
    storage: Arc<Storage>,
    verifier: Verifier,
    /// Of blocks on the main chain: number and batch.
    batches: Vec<(u64, Batch)>,
    /// The batch that a block of the main chain is missing.
    missing: Vec<(u64, Proposal)>,
    /// Why it is not certain that nothing follows.
    uncertain: Option<String>,
}

impl Reading {
    pub(super) fn new(storage: Arc<Storage>, trust: Trust) -> Self {
        let (batches, missing) = (Vec::new(), Vec::new());
        Self { storage, verifier: Verifier::new(trust), batches, missing, uncertain: None }
    }

    pub(super) fn height(&self) -> u64 {
        self.verifier.height()
    }

    pub(super) fn next(&self) -> u64 {
        self.verifier.next()
    }

    pub(super) fn height_of(&self, number: u64) -> Option<u64> {
        self.verifier.height_of(number)
    }

    /// Why it is not certain that nothing follows: buckets that are away may have more.
    pub(super) fn uncertain(&self) -> Option<&str> {
        self.uncertain.as_deref()
    }

    /// Reads what is new.
    pub(super) async fn go_on(&mut self) -> Result<(), String> {
        loop {
            let number = self.verifier.next();
            let attestation = match self.storage.fetch(&names::attestation(number)).await {
                Ok(attestation) => attestation,
                Err(error) if error.is_nothing_seen() => {
                    self.uncertain = Some(error.to_string());
                    None
                }
                Err(error) => return Err(error.to_string()),
            };
            let Some(attestation) = attestation else { break };
            self.uncertain = None;
            let parsed = Attestation::parse(&attestation)
                .map_err(|why| format!("refused: the attestation of number {number}: {why}"))?;
            let name = names::proposal(&parsed.link);
            let proposal = self.fetch(&name).await?.ok_or_else(|| {
                format!("refused: the block of number {number} is withheld: {name} is in no bucket")
            })?;
            self.verifier
                .admit(&attestation, &proposal)
                .map_err(|refusal| format!("refused: {refusal}"))?;
            if self.verifier.height_of(number).is_some() {
                let proposal = Proposal::parse(&proposal).expect("it was admitted");
                self.missing.push((number, proposal));
            }
        }
        while let Some((number, proposal)) = self.missing.first().copied() {
            let name = names::batch(&proposal.block.batch);
            let batch = self.fetch(&name).await?;
            let batch =
                batch.ok_or_else(|| format!("refused: {name} of number {number} is withheld"))?;
            let batch = Batch::parse(&batch).map_err(|why| format!("refused: {name}: {why}"))?;
            if Tree::of(&batch).root() != proposal.block.root {
                return Err(format!(
                    "refused: {name} is not the batch of the block with number {number}"
                ));
            }
            self.batches.push((number, batch));
            self.missing.remove(0);
        }
        self.is_complete().await
    }

    /// Nothing is missing while later numbers are there.
    async fn is_complete(&self) -> Result<(), String> {
        let next = self.verifier.next();
        let later = self.storage.list("sequence", &names::attestation(next), 1).await;
        if later.iter().any(|name| names::attestation_number(name) > Some(next)) {
            return Err(format!(
                "refused: number {next} is withheld, so that nothing behind it can be decided"
            ));
        }
        Ok(())
    }

    async fn fetch(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.storage.fetch(name).await.map_err(|error| error.to_string())
    }

    /// Strong verification of a transaction, if it is anywhere.
    pub(super) fn find(&self, transaction: &[u8]) -> Result<Option<Verified>, String> {
        for (number, batch) in &self.batches {
            let place = batch.transactions.iter().position(|it| it == transaction);
            let Some(place) = place.and_then(|place| u32::try_from(place).ok()) else { continue };
            let proof = Tree::of(batch).proof(place).expect("it is one of its leaves").encoded();
            let verified = self.verifier.verify(transaction, &proof, *number);
            return verified.map(Some).map_err(|refusal| format!("refused: {refusal}"));
        }
        Ok(None)
    }

    /// Every transaction, verified, in the order of the main chain.
    pub(super) fn each(
        &self,
        mut each: impl FnMut(&Verified, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        for (number, batch) in &self.batches {
            let tree = Tree::of(batch);
            for (place, transaction) in (0..).zip(&batch.transactions) {
                let proof = tree.proof(place).expect("it is one of its leaves").encoded();
                let verified = self.verifier.verify(transaction, &proof, *number);
                each(&verified.map_err(|refusal| format!("refused: {refusal}"))?, transaction)?;
            }
        }
        Ok(())
    }
}
