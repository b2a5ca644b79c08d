//! Which chain a node is of: its number and its first block. What the first connection found holds for all that come later,
//! to whichever node: one of another chain is refused, because all that is kept and all that was signed is of this one.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::rpc::{Answer, Call, Failure};
use crate::view::{Hash, Header, hex};

/// See the module. What a node does not say cannot contradict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    chain_id: Option<Bytes>,
    genesis: Option<Hash>,
}

impl Identity {
    /// The calls that it takes.
    pub fn calls() -> [Call; 2] {
        [
            Call::new("eth_chainId", "[]".to_owned()),
            Call::new("eth_getBlockByNumber", "[\"0x0\",false]".to_owned()),
        ]
    }

    /// Reads it from their answers.
    pub fn read(answers: &[Answer]) -> Result<Self, Failure> {
        let result = |place: usize| match answers.get(place) {
            Some(Ok(result)) => Ok(Some(result)),
            // A node that refuses to say is no other node for it.
            Some(Err(Failure::Refused { .. })) | None => Ok(None),
            Some(Err(failure)) => Err(failure.clone()),
        };
        let genesis = result(1)?.and_then(|block| Header::read(block));
        Ok(Self { chain_id: result(0)?.cloned(), genesis: genesis.map(|header| header.id.hash) })
    }

    fn differs(&self, other: &Self) -> bool {
        let chain_id = self.chain_id.as_ref().zip(other.chain_id.as_ref());
        let genesis = self.genesis.zip(other.genesis);
        chain_id.is_some_and(|(one, other)| one != other)
            || genesis.is_some_and(|(one, other)| one != other)
    }

    fn words(&self) -> String {
        let chain_id = self.chain_id.as_ref().map_or("unknown".into(), |text| {
            String::from_utf8_lossy(text).trim_matches('"').to_owned()
        });
        let genesis = self.genesis.as_ref().map_or_else(|| "unknown".to_owned(), hex);
        format!("chain {chain_id} with the first block {genesis}")
    }
}

/// The chain of the first connection.
#[derive(Debug, Default)]
pub struct Pinned(OnceLock<Identity>);

impl Pinned {
    /// Whether a node is of the same chain as the first one.
    pub fn check(&self, found: Identity) -> Result<(), Failure> {
        if found.chain_id.is_none() && found.genesis.is_none() {
            return Ok(());
        }
        let pinned = self.0.get_or_init(|| found.clone());
        if pinned.differs(&found) {
            let words = format!(
                "expected {}, got {}; restart the gateway to serve that one",
                pinned.words(),
                found.words()
            );
            return Err(Failure::OtherChain(words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(chain_id: &'static str, genesis: u8) -> Identity {
        Identity {
            chain_id: Some(Bytes::from_static(chain_id.as_bytes())),
            genesis: Some([genesis; 32]),
        }
    }

    /// Claim: the first chain is pinned; another number or another first block is refused, and silence is not.
    #[test]
    fn pinned() {
        let pinned = Pinned::default();
        let silent = Identity { chain_id: None, genesis: None };
        assert_eq!(pinned.check(silent.clone()), Ok(()));
        assert_eq!(pinned.check(identity("\"0x1\"", 1)), Ok(()));
        assert_eq!(pinned.check(silent), Ok(()));
        for other in [identity("\"0x2\"", 1), identity("\"0x1\"", 2)] {
            match pinned.check(other) {
                Err(Failure::OtherChain(words)) => assert!(words.contains("expected chain 0x1")),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pinned.check(identity("\"0x1\"", 1)), Ok(()));
    }
}
