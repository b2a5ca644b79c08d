//! Entry point for fuzzing: any bytes as each thing that is read from outside. What is claimed is asserted: what is read and
//! written again is the same bytes.

use crate::data::{Attestation, Batch, Block, Proof, Proposal, Token, Tree};
use crate::pieces::{Gather, Piece};
use crate::protocol::{GivenOut, HEAD_BYTES, PAYLOAD_BYTES_MAX, Pop, next_frame, write_frame};

/// Any bytes.
///
/// # Panics
/// If one of the claims does not hold.
pub fn fuzz_data(bytes: &[u8]) {
    if let Ok(batch) = Batch::parse(bytes) {
        assert_eq!(batch.encoded(), bytes);
        let tree = Tree::of(&batch);
        let last = tree.count() - 1;
        let proof = tree.proof(last).expect("the last leaf is one");
        let transaction = batch.transactions.last().expect("a batch has one");
        assert_eq!(proof.root(&batch.id, tree.count(), transaction), Some(tree.root()));
    }
    if let Ok(proof) = Proof::parse(bytes) {
        assert_eq!(proof.encoded(), bytes);
    }
    if let Ok(block) = Block::parse(bytes) {
        assert_eq!(block.encoded(), bytes);
    }
    if let Ok(token) = Token::parse(bytes) {
        assert_eq!(token.encoded(), bytes);
    }
    if let Ok(attestation) = Attestation::parse(bytes) {
        assert_eq!(attestation.encoded(), bytes);
    }
    if let Ok(proposal) = Proposal::parse(bytes) {
        assert_eq!(proposal.encoded(), bytes);
    }
    if let Ok(pop) = Pop::parse(bytes) {
        assert_eq!(pop.encoded(), bytes);
    }
    if let Ok(given) = GivenOut::parse(bytes) {
        assert!(given.attempt > 0);
    }
    if let Ok(Some(frame)) = next_frame(bytes, PAYLOAD_BYTES_MAX) {
        assert_eq!(frame.used, HEAD_BYTES + frame.payload.len());
        let mut again = Vec::new();
        write_frame(&mut again, frame.kind, frame.id, &[frame.payload]);
        assert_eq!(again, &bytes[..frame.used]);
    }
    if let Ok(piece) = Piece::parse(bytes) {
        let offered = Gather::of("a").offer(usize::from(piece.index), bytes);
        assert_eq!(piece.encoded(), bytes);
        assert!(piece.code().enough() > 1 || offered != Ok(None));
    }
}
