//! A secret that services and pipelines share: a service takes work from those that prove that they have it, and proves it to
//! them. The secret itself is never sent.
//!
//! An asker sends 32 random bytes; the service answers with 32 of its own and an HMAC-SHA256 of both; the asker sends another.
//! Later bytes on the connection are not protected one by one: who can change bytes on the way needs TLS against
//! him, as a tunnel has it.

use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use crate::data::Hash;

/// The shortest secret.
const BYTES_MIN: usize = 16;

/// A shared secret.
#[derive(Clone)]
pub struct Secret(Key);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The side that proves that it has the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who asks.
    Asker,
    /// Who answers.
    Service,
}

impl Secret {
    /// One of a text.
    ///
    /// # Errors
    /// When it is too short.
    pub fn of(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < BYTES_MIN {
            return Err(format!(
                "expected a shared secret of at least {BYTES_MIN} bytes, got {}",
                text.len()
            ));
        }
        Ok(Self(Key::new(HMAC_SHA256, text.as_bytes())))
    }

    fn message(side: Side, asker: &Hash, service: &Hash) -> Vec<u8> {
        let label: &[u8] = match side {
            Side::Asker => b"object-ledger asker",
            Side::Service => b"object-ledger service",
        };
        [label, asker, service].concat()
    }

    /// The proof of one side, of what both have sent.
    #[must_use]
    pub fn proof(&self, side: Side, asker: &Hash, service: &Hash) -> Hash {
        let tag = sign(&self.0, &Self::message(side, asker, service));
        *tag.as_ref().first_chunk().expect("HMAC-SHA256 has 32 bytes")
    }

    /// Whether a proof is that of one side.
    #[must_use]
    pub fn is_proof(&self, side: Side, asker: &Hash, service: &Hash, proof: &[u8]) -> bool {
        verify(&self.0, &Self::message(side, asker, service), proof).is_ok()
    }

    /// Unpredictable bytes: of a start and a count.
    fn nonce(&self, start: &[u8; 16], count: u64) -> Hash {
        let tag = sign(&self.0, &[&b"nonce"[..], start, &count.to_be_bytes()].concat());
        *tag.as_ref().first_chunk().expect("HMAC-SHA256 has 32 bytes")
    }
}

/// A service's half of the handshake.
#[derive(Debug)]
pub struct Guard {
    secret: Secret,
    /// Another one at each start.
    start: [u8; 16],
    count: u64,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was proven.
    #[default]
    Stranger,
    /// It has said hello: its bytes and ours.
    Greeted(Hash, Hash),
    /// It has the secret.
    Known,
}

impl Guard {
    /// One with a secret; `start` is another one at each start.
    #[must_use]
    pub const fn new(secret: Secret, start: [u8; 16]) -> Self {
        Self { secret, start, count: 0 }
    }

    /// Answers a hello: our bytes and our proof.
    pub fn greet(&mut self, asker: Hash) -> (Standing, [u8; 64]) {
        self.count += 1;
        let service = self.secret.nonce(&self.start, self.count);
        let proof = self.secret.proof(Side::Service, &asker, &service);
        let mut answer = [0; 64];
        answer[..32].copy_from_slice(&service);
        answer[32..].copy_from_slice(&proof);
        (Standing::Greeted(asker, service), answer)
    }

    /// Whether the asker has proven that it has the secret.
    #[must_use]
    pub fn is_proven(&self, standing: Standing, proof: &[u8]) -> bool {
        match standing {
            Standing::Greeted(asker, service) => {
                self.secret.is_proof(Side::Asker, &asker, &service, proof)
            }
            Standing::Stranger | Standing::Known => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: who has the secret is known; who has another one, repeats another connection's proof, gives back the service's
    /// own, or never said hello is not.
    #[test]
    fn handshake() {
        let secret = Secret::of("sixteen letters!").unwrap();
        let mut guard = Guard::new(secret.clone(), [1; 16]);
        let asker = [7; 32];
        let (greeted, answer) = guard.greet(asker);
        let service: Hash = *answer.first_chunk().unwrap();
        assert!(secret.is_proof(Side::Service, &asker, &service, &answer[32..]));
        let proof = secret.proof(Side::Asker, &asker, &service);
        assert!(guard.is_proven(greeted, &proof));
        let (other, _) = guard.greet(asker);
        assert!(!guard.is_proven(other, &proof), "each connection has bytes of its own");
        assert!(!guard.is_proven(greeted, &answer[32..]));
        assert!(!guard.is_proven(Standing::Stranger, &proof));
        let another = Secret::of("sixteen LETTERS!").unwrap();
        assert!(!guard.is_proven(greeted, &another.proof(Side::Asker, &asker, &service)));
        assert!(Secret::of("too short").is_err());
    }
}
