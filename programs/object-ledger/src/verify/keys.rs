//! Keys that hand over to each other: a client who knows the first key of a service follows it to the one that signs now.

use ring::signature::{ED25519, UnparsedPublicKey};

use crate::data::{Hash, PublicKey, Signature};

/// The service whose key is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The timestamp service.
    Timestamp,
    /// The sequencer.
    Sequencer,
}

/// A key with its term: numbers from one on, up to another where the term has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    key: PublicKey,
    from: u64,
    until: u64,
}

/// The keys of one service, first key first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(Vec<Term>);

/// A key that took over, and the signature of the key before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endorsement {
    /// The key.
    pub key: PublicKey,
    /// The first number that it signs for; the key before it signs for none from there on.
    pub from: u64,
    /// The signature of the key before it over [`endorsed_bytes`].
    pub signature: Signature,
}

/// Bytes that a key signs to hand its role over: `KEY1`, the ledger's beginning, the role (1 byte), the first number (8), the
/// key that follows.
#[must_use]
pub fn endorsed_bytes(ledger: &Hash, role: Role, from: u64, next: &PublicKey) -> Vec<u8> {
    [&b"KEY1"[..], ledger, &[role as u8], &from.to_be_bytes(), next].concat()
}

impl Keys {
    /// One key for all numbers.
    #[must_use]
    pub fn one(key: PublicKey) -> Self {
        Self(vec![Term { key, from: 1, until: u64::MAX }])
    }

    /// Takes up a key that the last one endorses; `false` if it does not, or if the numbers do not go on.
    #[must_use]
    pub fn hand_over(&mut self, ledger: &Hash, role: Role, to: &Endorsement) -> bool {
        let Some(last) = self.0.last_mut() else { return false };
        let bytes = endorsed_bytes(ledger, role, to.from, &to.key);
        let key = UnparsedPublicKey::new(&ED25519, last.key);
        if to.from <= last.from || key.verify(&bytes, &to.signature).is_err() {
            return false;
        }
        last.until = to.from - 1;
        self.0.push(Term { key: to.key, from: to.from, until: u64::MAX });
        true
    }

    /// Takes up a key that whoever says so vouches for: for all numbers, beside those before it.
    pub fn also(&mut self, key: PublicKey) {
        self.0.push(Term { key, from: 1, until: u64::MAX });
    }

    /// The key that signs for a number.
    pub fn of(&self, number: u64) -> impl Iterator<Item = &PublicKey> {
        self.0.iter().filter(move |it| (it.from..=it.until).contains(&number)).map(|it| &it.key)
    }

    /// All of them, first key first.
    pub fn all(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter().map(|it| &it.key)
    }
}
