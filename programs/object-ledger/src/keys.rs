//! The key of a service, and what it signs.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::data::{Attestation, Hash, PublicKey, Signature, Token, from_hex, hex, signed_bytes};
use crate::verify::{Role, endorsed_bytes};

/// A file in a service's folder: the seed of its key in hexadecimal. Nobody but its owner may read it.
const SECRET_FILE: &str = "key.secret";
/// A file beside it: the public key in hexadecimal.
pub const PUBLIC_FILE: &str = "key.public";

/// A service's key.
pub struct Key {
    pair: Ed25519KeyPair,
    /// Signatures that it has made.
    signatures: AtomicU64,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", hex(&self.public()))
    }
}

impl Key {
    /// The key of a seed.
    ///
    /// # Panics
    /// Never: every 32 bytes are a seed.
    #[must_use]
    pub fn of_seed(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("32 bytes are a seed");
        Self { pair, signatures: AtomicU64::new(0) }
    }

    /// The key in a folder; a new one is made where none is.
    ///
    /// # Errors
    /// When the folder cannot be read or written, or what is there is no key.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SECRET_FILE);
        let key = match fs::read_to_string(&path) {
            Ok(text) => {
                let seed = from_hex(text.trim_end()).ok_or_else(|| {
                    io::Error::other(format!("{} is no key: 64 digits are wanted", path.display()))
                })?;
                Self::of_seed(&seed)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut seed = [0; 32];
                let failed = |_| io::Error::other("the system has no randomness");
                SystemRandom::new().fill(&mut seed).map_err(failed)?;
                write_new(folder, SECRET_FILE, &hex(&seed), 0o600)?;
                Self::of_seed(&seed)
            }
            Err(error) => return Err(error),
        };
        write_new(folder, PUBLIC_FILE, &hex(&key.public()), 0o644)?;
        Ok(key)
    }

    /// Puts a new key into a folder in place of the old one, whose seed stays beside it under the name of its public half.
    ///
    /// # Errors
    /// When the folder has no key, or cannot be written.
    pub fn replaced_in(folder: &Path) -> io::Result<(Self, Self)> {
        let path = folder.join(SECRET_FILE);
        if !path.exists() {
            return Err(io::Error::other(format!("{} is not there", path.display())));
        }
        let old = Self::in_folder(folder)?;
        fs::rename(&path, folder.join(format!("{SECRET_FILE}.{}", hex(&old.public()))))?;
        Ok((old, Self::in_folder(folder)?))
    }

    /// Its public half.
    ///
    /// # Panics
    /// Never: Ed25519 has keys of 32 bytes.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.pair.public_key().as_ref().try_into().expect("Ed25519 has keys of 32 bytes")
    }

    /// A signed timestamp token of the ledger that begins with `ledger`.
    #[must_use]
    pub fn token(&self, ledger: &Hash, link: Hash, issued_unix_ns: i64) -> Token {
        let unsigned = Token { link, issued_unix_ns, signature: [0; 64] };
        Token { signature: self.sign(&signed_bytes(ledger, &unsigned.encoded())), ..unsigned }
    }

    /// A signed sequence attestation of the ledger that begins with `ledger`.
    #[must_use]
    pub fn attestation(&self, ledger: &Hash, number: u64, link: Hash) -> Attestation {
        let unsigned = Attestation { number, link, signature: [0; 64] };
        Attestation { signature: self.sign(&signed_bytes(ledger, &unsigned.encoded())), ..unsigned }
    }

    /// The signature that hands a role over to another key from a number on.
    #[must_use]
    pub fn endorse(&self, ledger: &Hash, role: Role, from: u64, next: &PublicKey) -> Signature {
        self.sign(&endorsed_bytes(ledger, role, from, next))
    }

    /// Signatures that it has made since it was read.
    #[must_use]
    pub fn signatures(&self) -> u64 {
        self.signatures.load(Relaxed)
    }

    /// A signature of any bytes: of a checkpoint.
    ///
    /// # Panics
    /// Never: Ed25519 has signatures of 64 bytes.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        self.signatures.fetch_add(1, Relaxed);
        let signature = self.pair.sign(bytes);
        signature.as_ref().try_into().expect("Ed25519 has signatures of 64 bytes")
    }
}

/// Whole or not at all: written beside, synced, put in place.
pub(crate) fn write_new(folder: &Path, name: &str, text: &str, mode: u32) -> io::Result<()> {
    let beside = folder.join(format!("{name}.new"));
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&beside, folder.join(name))?;
    fs::File::open(folder)?.sync_all()
}
