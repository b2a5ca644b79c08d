//! The ledger's file: where everything is and whom a client believes. Keys that are not known are errors.

mod credentials;
mod stores;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use serde::Deserialize;

use crate::data::{PublicKey, from_hex, genesis};
use crate::pieces::{Code, TOTAL_MAX};
use crate::verify::Trust;
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
    #[serde(rename = "bucket")]
    pub buckets: Vec<BucketOptions>,
    /// A file with credentials, from the folder of this one; or the environment has them.
    #[serde(default)]
    pub credentials: Option<PathBuf>,
}

/// Whom a client believes: public keys, 64 hexadecimal digits each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The timestamp service's.
    pub timestamp: String,
    /// The sequencer's.
    pub sequencer: String,
}

/// How objects are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageOptions {
    /// An object is durable when so many buckets have a piece.
    pub required_piece_count: u8,
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

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("reading the ledger's file {}: {error}", path.display()))?;
        let mut config: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        config.check().map_err(|why| format!("{}: {why}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        config.credentials = config.credentials.map(|file| folder.join(file));
        for bucket in config.buckets.iter_mut().filter(|it| it.provider == Provider::Local) {
            bucket.bucket = folder.join(&bucket.bucket).display().to_string();
        }
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
        Ok(())
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
        let key = |name: &str, text: &str| -> Result<PublicKey, String> {
            let wanted = "64 digits of 0-9a-f are wanted; the service writes them to key.public";
            from_hex(text).ok_or_else(|| format!("keys.{name} is no public key: {wanted}"))
        };
        Ok(Trust {
            genesis: genesis(&self.name),
            timestamp: key("timestamp", &self.keys.timestamp)?,
            sequencer: key("sequencer", &self.keys.sequencer)?,
        })
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
            let why = storage.fetch("batch/00").await.unwrap_err();
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
            let read = storage.fetch("sequence/00000000000000000001").await;
            assert_eq!(read, Ok(Some(b"one".to_vec())));
            assert_eq!(storage.fetch("sequence/00000000000000000003").await, Ok(None));
            let listed = storage.list("sequence", "sequence/00000000000000000001", 10).await;
            assert_eq!(Vec::from_iter(listed), ["sequence/00000000000000000002"]);
        });
    }
}
