//! A proof that a transaction stands on the main chain, in a file that anybody can verify without the ledger: the way from the
//! transaction to the block, the block's token and number, and the number's leaf in the tree under a signed checkpoint
//! (c2sp.org/tlog-proof), which witnesses may have cosigned.

use serde::{Deserialize, Serialize};

use crate::data::{Attestation, Batch, Hash, Proposal, PublicKey, Tree, genesis};
use crate::note::{
    Checkpoint, LogTree, base64, from_base64, hash_of, leaf_hash, leaf_of, lines_of, origin,
    root_of_inclusion,
};
use crate::verify::{Keys, Trust, Verified, weak};

const LOG_PROOF: &str = "c2sp.org/tlog-proof@v1";

/// The file. Bytes are base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exported {
    ledger: String,
    transaction: String,
    /// The way from the transaction to the block's root.
    proof: String,
    /// Block and token.
    proposal: String,
    attestation: String,
    /// The height of the block on the main chain.
    height: u64,
    /// The number's leaf in the tree under the checkpoint.
    log_proof: String,
}

/// The keys and the ledger that a verifier of a file believes.
pub(crate) struct Believed {
    pub(crate) timestamp: PublicKey,
    pub(crate) sequencer: PublicKey,
    /// Names and keys of witnesses, each of which has to have cosigned.
    pub(crate) witnesses: Vec<(String, PublicKey)>,
}

impl Exported {
    pub(crate) fn new(
        ledger: &str,
        transaction: &[u8],
        at: &Verified,
        (batch, attestation, proposal): (&Batch, &Attestation, &Proposal),
        (tree, checkpoint): (&LogTree, &str),
        size: u64,
    ) -> Self {
        let way = tree.inclusion(at.number - 1, size);
        let index = at.number - 1;
        let proof = Tree::of(batch).proof(at.index).expect("it was verified");
        Self {
            ledger: ledger.to_owned(),
            transaction: base64(transaction),
            proof: base64(&proof.encoded()),
            proposal: base64(&proposal.encoded()),
            attestation: base64(&attestation.encoded()),
            height: at.height,
            log_proof: format!("{LOG_PROOF}\nindex {index}\n{}\n{checkpoint}", lines_of(&way)),
        }
    }

    /// Verifies all of it; gives the transaction, and where it stands.
    ///
    /// # Errors
    /// The first thing that does not hold, for people.
    pub(crate) fn verify(&self, believed: &Believed) -> Result<(Vec<u8>, Verified), String> {
        let bytes = |what: &str, text: &str| {
            from_base64(text).ok_or_else(|| format!("refused: {what} is no base64"))
        };
        let transaction = bytes("transaction", &self.transaction)?;
        let attestation = bytes("attestation", &self.attestation)?;
        let trust = Trust {
            genesis: genesis(&self.ledger),
            timestamp: Keys::one(believed.timestamp),
            sequencer: Keys::one(believed.sequencer),
        };
        let (proof, proposal) = (bytes("proof", &self.proof)?, bytes("proposal", &self.proposal)?);
        let verified = weak(&trust, &transaction, &proof, &attestation, &proposal)
            .map_err(|refusal| format!("refused: {refusal}"))?;
        let attestation = Attestation::parse(&attestation).expect("it was verified");
        if self.height == 0 {
            return Err("refused: the block is not on the main chain".to_owned());
        }
        let (index, way, note) = self.log_proof().ok_or("refused: log_proof is malformed")?;
        let checkpoint = Checkpoint::parse(note).ok_or("refused: the checkpoint is malformed")?;
        let name = origin(&self.ledger);
        if checkpoint.origin != name || !checkpoint.is_signed(&name, &believed.sequencer) {
            return Err("refused: the sequencer has not signed the checkpoint".to_owned());
        }
        let leaf = leaf_hash(&leaf_of(&attestation, Some(self.height)));
        let root = root_of_inclusion(leaf, index, checkpoint.size, &way);
        if index.checked_add(1) != Some(verified.number) || root != Some(checkpoint.root) {
            return Err("refused: the number is not under the checkpoint at this height".to_owned());
        }
        for (name, key) in &believed.witnesses {
            if checkpoint.cosigned(name, key).is_none() {
                return Err(format!("refused: the witness {name} has not cosigned the checkpoint"));
            }
        }
        Ok((transaction, Verified { height: self.height, ..verified }))
    }

    fn log_proof(&self) -> Option<(u64, Vec<Hash>, &str)> {
        let (head, note) = self.log_proof.split_once("\n\n")?;
        let mut lines = head.lines();
        (lines.next()? == LOG_PROOF).then_some(())?;
        let index = lines.next()?.strip_prefix("index ")?.parse().ok()?;
        Some((index, lines.map(hash_of).collect::<Option<Vec<Hash>>>()?, note))
    }
}
