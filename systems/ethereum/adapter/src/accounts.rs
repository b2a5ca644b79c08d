//! The accounts of a trial: keys that are made of the run's mark, so that every trial has fresh ones whose nonces begin at
//! zero, and anybody can say whose they were. They hold money of test chains; no key is kept or read anywhere else.

use k256::ecdsa::SigningKey;
use sha3::{Digest as _, Keccak256};

use crate::hex::Hash;

/// Of an account or a contract.
pub(crate) type Address = [u8; 20];

/// The place of the account that only prepares: it makes the contract that refuses what it is sent.
pub(crate) const PREPARING: u32 = u32::MAX;

/// Somebody who can sign.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) key: SigningKey,
    pub(crate) address: Address,
}

/// What Ethereum hashes with: Keccak as it was before the standard changed its padding.
pub(crate) fn keccak(bytes: &[u8]) -> Hash {
    Keccak256::digest(bytes).into()
}

impl Account {
    /// The account at `place` of the run.
    pub(crate) fn of_run(run_mark: u64, place: u32) -> Self {
        // Of 2^256 numbers all but some 2^128 are keys; the next try is for the day on which one is not.
        let mut tries = 0..u8::MAX;
        let found = tries.find_map(|again| {
            let mut text = b"assay account".to_vec();
            text.extend_from_slice(&run_mark.to_be_bytes());
            text.extend_from_slice(&place.to_be_bytes());
            text.push(again);
            Self::of_secret(&keccak(&text))
        });
        found.expect("one of 255 hashes is a key")
    }

    /// The account of a secret key, if it is one.
    pub(crate) fn of_secret(secret: &Hash) -> Option<Self> {
        let key = SigningKey::from_slice(secret).ok()?;
        let point = key.verifying_key().to_sec1_point(false);
        // Behind the tag of an uncompressed point.
        let hash = keccak(&point.as_bytes()[1..]);
        let address = hash[12..].try_into().expect("twenty of 32 bytes");
        Some(Self { key, address })
    }
}

/// The address of the first contract that an account makes: the hash of its address and nonce 0.
pub(crate) fn first_contract(creator: &Address) -> Address {
    let mut text = vec![0xd6, 0x94];
    text.extend_from_slice(creator);
    text.push(0x80);
    keccak(&text)[12..].try_into().expect("twenty of 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    /// Claim: the address of a known key, the hash of nothing, and the first contract of a known account are those that
    /// every node says.
    #[test]
    fn known_answers() {
        let secret =
            hex::bytes("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
        let account = Account::of_secret(&secret.unwrap()).unwrap();
        assert_eq!(hex::text(&account.address), "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
        assert_eq!(
            hex::text(&first_contract(&account.address)),
            "0x5fbdb2315678afecb367f032d93f642f64180aa3"
        );
        assert_eq!(
            hex::text(&keccak(b"")),
            "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
        );
        assert!(Account::of_secret(&[0; 32]).is_none() && Account::of_secret(&[255; 32]).is_none());
    }

    /// Claim: accounts differ by run and place, and are the same each time.
    #[test]
    fn of_runs() {
        let of = |run, place| Account::of_run(run, place).address;
        assert_eq!(of(1, 2), of(1, 2));
        assert!(of(1, 2) != of(1, 3) && of(1, 2) != of(2, 2) && of(1, PREPARING) != of(1, 0));
    }
}
