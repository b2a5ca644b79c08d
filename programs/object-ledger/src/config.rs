//! The ledger's file: where everything is and whom a client believes. Keys that are not known are errors.

mod credentials;
mod stores;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use serde::Deserialize;

use crate::data::{Hash, from_hex, genesis};
use crate::known::Secret;
use crate::pieces::{Code, TOTAL_MAX};
use crate::verify::{Endorsement, Keys as KeyRow, Role, Trust};
use credentials::Credentials;

/// What the file says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The ledger's name: its beginning is made of it.
    pub name: String,
    /// Where the queue takes requests.
    #[serde(default)]
    pub queue: Option<String>,
    /// Where the timestamp service does.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// Where the sequencer does.
    #[serde(default)]
    pub sequencer: Option<String>,
    /// Public keys.
    pub keys: Keys,
    /// How objects are kept.
    #[serde(default)]
    pub storage: StorageOptions,
    /// Where, in the order of pieces.
    #[serde(rename = "bucket", default)]
    pub buckets: Vec<BucketOptions>,
    /// Another ledger's file, from the folder of this one, whose buckets and credentials are taken.
    #[serde(default)]
    pub stores: Option<PathBuf>,
    /// The credential whose secret services and pipelines share; without, services take work from anybody.
    #[serde(default)]
    pub secret: Option<String>,
    /// A file, from the folder of this one, that holds the shared secret.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// A file with credentials, from the folder of this one; or the environment has them.
    #[serde(default)]
    pub credentials: Option<PathBuf>,
}

/// Whom a client believes: public keys, 64 hexadecimal digits each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The timestamp service's first.
    pub timestamp: String,
    /// The sequencer's first.
    pub sequencer: String,
    /// Keys that took over later, in the order in which they did: what `object-ledger rotate` prints.
    #[serde(default)]
    pub next: Vec<NextKey>,
}

/// A key that took over.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextKey {
    /// Of which service: timestamp or sequencer.
    pub of: RoleName,
    /// The public key.
    pub key: String,
    /// The first number that it signs for.
    pub from: u64,
    /// The signature of the key before it, 128 hexadecimal digits.
    pub signature: String,
}

/// A service that signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    /// The timestamp service.
    Timestamp,
    /// The sequencer.
    Sequencer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Timestamp => Self::Timestamp,
            RoleName::Sequencer => Self::Sequencer,
        }
    }
}

/// How objects are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageOptions {
    /// An object is durable when so many buckets have a piece.
    pub required_piece_count: u8,
    /// An object counts as stored when so many buckets have their piece: as many as rebuild it, unless said otherwise. With more
    /// each piece is read back before it counts.
    pub acknowledge: Option<u8>,
    /// Prefix of the names of objects in every bucket: several ledgers can share buckets.
    pub prefix: Option<String>,
    /// How often a failed operation on a bucket is tried again.
    pub retry_max: u32,
    /// Whether each piece is the whole object.
    pub full_copies: bool,
    /// Whether a write is done when enough buckets have their piece; otherwise when each has it, or was given up.
    pub hedged_writes: bool,
    /// How long one attempt may take, milliseconds.
    pub attempt_ms_max: u64,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            required_piece_count: 3,
            acknowledge: None,
            prefix: None,
            retry_max: 10,
            full_copies: false,
            hedged_writes: true,
            attempt_ms_max: 3_000,
        }
    }
}

/// A bucket.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketOptions {
    /// Whose protocol is spoken: aws (S3), azure (Blob Storage), gcp (Cloud Storage), or local (a folder).
    pub provider: Provider,
    /// Its name; of a local one the folder, from that of this file.
    pub bucket: String,
    /// Another address than the provider's own, as `http://127.0.0.1:9001`.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The region (aws).
    #[serde(default)]
    pub region: Option<String>,
    /// Which credentials; without, requests are not signed.
    #[serde(default)]
    pub credentials: Option<String>,
}

/// Whose protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// S3.
    Aws,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Gcp,
    /// A folder of this host.
    Local,
}

/// A bucket that can be asked.
pub struct Opened {
    /// Its name for people and metrics: place, provider and bucket.
    pub name: String,
    /// What asks it.
    pub store: Arc<dyn ObjectStore>,
}

/// Buckets of a ledger's file; what else stands there is not looked at.
#[derive(Deserialize)]
struct Stores {
    #[serde(rename = "bucket")]
    buckets: Vec<BucketOptions>,
    #[serde(default)]
    credentials: Option<PathBuf>,
}

impl Stores {
    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("reading the stores of {}: {error}", path.display()))?;
        let stores: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(stores.at(path.parent().unwrap_or(Path::new("."))))
    }

    /// Paths from the folder of their file.
    fn at(mut self, folder: &Path) -> Self {
        self.credentials = self.credentials.map(|file| folder.join(file));
        for bucket in self.buckets.iter_mut().filter(|it| it.provider == Provider::Local) {
            bucket.bucket = folder.join(&bucket.bucket).display().to_string();
        }
        self
    }
}

impl Keys {
    fn of(&self, role: RoleName, ledger: &Hash) -> Result<KeyRow, String> {
        let (name, first) = match role {
            RoleName::Timestamp => ("timestamp", &self.timestamp),
            RoleName::Sequencer => ("sequencer", &self.sequencer),
        };
        let wanted = "64 digits of 0-9a-f are wanted; the service writes them to key.public";
        let none = |name: &str| format!("keys.{name} is no public key: {wanted}");
        let mut keys = KeyRow::one(from_hex(first).ok_or_else(|| none(name))?);
        for next in self.next.iter().filter(|it| it.of == role) {
            let key = from_hex(&next.key).ok_or_else(|| none("next"))?;
            let signature = from_hex(&next.signature)
                .ok_or_else(|| "keys.next.signature: 128 digits of 0-9a-f are wanted".to_owned())?;
            let to = Endorsement { key, from: next.from, signature };
            if !keys.hand_over(ledger, role.into(), &to) {
                return Err(format!(
                    "the key {} of the {name} from number {} is not endorsed by the one before it; use the lines that `object-ledger rotate` printed",
                    next.key, next.from
                ));
            }
        }
        Ok(keys)
    }
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// The defect, in words for people.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("reading the ledger's file {}: {error}", path.display()))?;
        let mut config: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        config.secret_file = config.secret_file.map(|file| folder.join(file));
        let of_stores =
            config.stores.as_ref().map(|file| Stores::read(&folder.join(file))).transpose()?;
        let own = Stores { buckets: config.buckets, credentials: config.credentials };
        let Stores { buckets, credentials } = of_stores.unwrap_or_else(|| own.at(folder));
        (config.buckets, config.credentials) = (buckets, credentials);
        config.check().map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        self.trust()?;
        let (have, most) = (self.buckets.len(), usize::from(TOTAL_MAX));
        if have > most {
            return Err(format!("{have} buckets are more than {most}"));
        }
        let required = self.storage.required_piece_count;
        if !self.code().is_possible() {
            return Err(format!(
                "required_piece_count = {required} cannot be with {have} buckets: it is at least 1 and at most as many"
            ));
        }
        let acknowledge = self.acknowledge();
        if acknowledge < usize::from(required) || acknowledge > have {
            return Err(format!(
                "acknowledge = {acknowledge} cannot be with {have} buckets: it is at least required_piece_count = {required}"
            ));
        }
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return Err(format!(
                "expected a name of letters, digits, `-`, `_` and `.`, got `{}`",
                self.name
            ));
        }
        Ok(())
    }

    /// How many buckets have to have their piece before an object counts as stored.
    #[must_use]
    pub fn acknowledge(&self) -> usize {
        self.storage.acknowledge.unwrap_or(self.storage.required_piece_count).into()
    }

    /// How objects are kept.
    #[must_use]
    pub fn code(&self) -> Code {
        let total = u8::try_from(self.buckets.len()).unwrap_or(u8::MAX);
        let StorageOptions { full_copies, required_piece_count: required, .. } = self.storage;
        Code { full_copies, required, total }
    }

    /// Whom a client believes.
    ///
    /// # Errors
    /// When a key is none.
    pub fn trust(&self) -> Result<Trust, String> {
        let ledger = genesis(&self.name);
        Ok(Trust {
            genesis: ledger,
            timestamp: self.keys.of(RoleName::Timestamp, &ledger)?,
            sequencer: self.keys.of(RoleName::Sequencer, &ledger)?,
        })
    }

    /// The secret that services and pipelines share, if the file names one.
    ///
    /// # Errors
    /// When it is nowhere, or is too short.
    pub fn secret(&self) -> Result<Option<Secret>, String> {
        if let Some(path) = &self.secret_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("reading the secret {}: {error}", path.display()))?;
            return Secret::of(&text).map(Some);
        }
        let Some(name) = &self.secret else { return Ok(None) };
        let credential = Credentials::read(self.credentials.as_deref())?.get(name)?;
        Secret::of(&credential.secret.unwrap_or_default()).map(Some)
    }

    /// An address that the file has to have.
    ///
    /// # Errors
    /// When it has not.
    pub fn address(what: &str, address: Option<&String>) -> Result<String, String> {
        address.cloned().ok_or_else(|| format!("the ledger's file has no `{what} = \"HOST:PORT\"`"))
    }

    /// The buckets, ready to be asked.
    ///
    /// # Errors
    /// When one cannot be; no message has a secret in it.
    pub fn open_buckets(&self) -> Result<Vec<Opened>, String> {
        let credentials = Credentials::read(self.credentials.as_deref())?;
        let open = |(place, options): (usize, &BucketOptions)| {
            let store = stores::open(options, &credentials)
                .map_err(|why| format!("bucket {place} ({}): {why}", options.bucket))?;
            let provider = match options.provider {
                Provider::Aws => "aws",
                Provider::Azure => "azure",
                Provider::Gcp => "gcp",
                Provider::Local => "local",
            };
            let store = match &self.storage.prefix {
                Some(prefix) => Arc::new(PrefixStore::new(store, prefix.as_str())),
                None => store,
            };
            Ok(Opened { name: format!("{place}-{provider}"), store })
        };
        self.buckets.iter().enumerate().map(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: each provider's buckets can be asked, with credentials from a file; what fails says nothing of a secret, and a
    /// credential is not shown either.
    #[test]
    fn providers_and_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";
        let account = r#"{"disable_oauth":true,"client_email":"","private_key_id":"","private_key":"hidden"}"#;
        let secrets =
            format!("[one]\nid = \"me\"\nsecret = \"{secret}\"\n[two]\nsecret = '{account}'\n");
        std::fs::write(folder.path().join("secrets.toml"), secrets).unwrap();
        let key = "ab".repeat(32);
        let bucket = |provider: &str, credentials: &str| {
            format!(
                "[[bucket]]\nprovider = \"{provider}\"\nbucket = \"bucket\"\nendpoint = \"http://127.0.0.1:1\"\ncredentials = \"{credentials}\"\n"
            )
        };
        let text = format!(
            "name = \"a\"\ncredentials = \"secrets.toml\"\n[keys]\ntimestamp = \"{key}\"\nsequencer = \"{key}\"\n[storage]\nretry_max = 1\nrequired_piece_count = 2\n{}{}{}",
            bucket("aws", "one"),
            bucket("azure", "one"),
            bucket("gcp", "two")
        );
        let file = folder.path().join("ledger.toml");
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let credentials = Credentials::read(config.credentials.as_deref()).unwrap();
        assert!(!format!("{credentials:?}").contains(secret));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let storage = crate::storage::Storage::open(&config, clock::Clock::start()).unwrap();
            let why = storage.store("batch/00", b"whole").await.unwrap_err().to_string();
            assert!(why.contains("0 of 3 buckets, and 2 are needed"), "{why}");
            assert!(!why.contains(secret) && !why.contains("hidden"), "{why}");
            let why = storage.fetch("batch/00", |_| true).await.unwrap_err();
            assert!(!why.is_nothing_seen(), "{why}");
        });
    }

    /// Claim: folders of this host keep objects: what was stored is read again, is listed, and what is not there is none.
    #[test]
    fn folders() {
        let folder = tempfile::tempdir().unwrap();
        let key = "ab".repeat(32);
        let buckets: String = (0..6)
            .map(|it| format!("[[bucket]]\nprovider = \"local\"\nbucket = \"b{it}\"\n"))
            .collect();
        let text = format!(
            "name = \"a\"\n[keys]\ntimestamp = \"{key}\"\nsequencer = \"{key}\"\n{buckets}"
        );
        let file = folder.path().join("ledger.toml");
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let storage = crate::storage::Storage::open(&config, clock::Clock::start()).unwrap();
            storage.store("sequence/00000000000000000001", b"one").await.unwrap();
            storage.store("sequence/00000000000000000002", b"two").await.unwrap();
            let read = storage.fetch("sequence/00000000000000000001", |_| true).await;
            assert_eq!(read, Ok(Some(b"one".to_vec())));
            assert_eq!(storage.fetch("sequence/00000000000000000003", |_| true).await, Ok(None));
            let listed = storage.list("sequence", "sequence/00000000000000000001", 10).await;
            assert_eq!(Vec::from_iter(listed), ["sequence/00000000000000000002"]);
        });
    }
}
