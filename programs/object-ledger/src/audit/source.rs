//! Where the audit reads: folders of buckets, where an object is a file for each bucket, or the stores that a ledger's file
//! names. It knows no pieces.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::config::Config;

/// Requests to stores at once.
const AT_ONCE_MAX: usize = 256;
/// Names in one folder at most.
const NAMES_MAX: usize = 1 << 22;

/// The buckets as they are read.
#[derive(Debug)]
pub(super) enum Source {
    /// Their folders.
    Folders(Vec<PathBuf>),
    /// Their stores.
    Stores(Box<Stores>),
}

/// The stores of a ledger's file, with what asks them.
#[derive(Debug)]
pub(super) struct Stores {
    runtime: Runtime,
    buckets: Vec<(String, Arc<dyn ObjectStore>)>,
    attempt_max: Duration,
    retry_max: u32,
}

/// Each bucket's object under one name, in the order of the buckets.
pub(super) type Copies = Vec<Result<Option<Vec<u8>>, String>>;

impl Source {
    pub(super) fn stores(config: &Config) -> Result<Self, String> {
        let buckets = config.open_buckets()?.into_iter().map(|it| (it.name, it.store)).collect();
        let attempt_max = Duration::from_millis(config.storage.attempt_ms_max);
        let retry_max = config.storage.retry_max;
        let runtime = crate::lifecycle::runtime()?;
        Ok(Self::Stores(Box::new(Stores { runtime, buckets, attempt_max, retry_max })))
    }

    /// How many buckets are read.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Folders(folders) => folders.len(),
            Self::Stores(stores) => stores.buckets.len(),
        }
    }

    /// A bucket in words.
    pub(super) fn name(&self, bucket: usize) -> String {
        match self {
            Self::Folders(folders) => folders[bucket].display().to_string(),
            Self::Stores(stores) => stores.buckets[bucket].0.clone(),
        }
    }

    /// The buckets' objects under each of these names.
    pub(super) fn read(&self, names: &[String]) -> Vec<Copies> {
        match self {
            Self::Folders(folders) => {
                let of = |name: &String| {
                    let file = |folder: &PathBuf| match fs::read(folder.join(name)) {
                        Ok(bytes) => Ok(Some(bytes)),
                        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                        Err(error) => Err(error.to_string()),
                    };
                    folders.iter().map(file).collect()
                };
                names.iter().map(of).collect()
            }
            Self::Stores(stores) => stores.read(names),
        }
    }

    /// Names of what stands in a folder of some bucket: `FOLDER/NAME`.
    pub(super) fn list(&self, folder: &str) -> Result<BTreeSet<String>, String> {
        let mut names = BTreeSet::new();
        match self {
            Self::Folders(folders) => {
                for bucket in folders {
                    let path = bucket.join(folder);
                    let entries = match fs::read_dir(&path) {
                        Err(error) if error.kind() == ErrorKind::NotFound => continue,
                        entries => {
                            entries.map_err(|error| format!("{}: {error}", path.display()))?
                        }
                    };
                    let of_entry = |entry: fs::DirEntry| {
                        Some(format!("{folder}/{}", entry.file_name().to_str()?))
                    };
                    names.extend(entries.flatten().filter_map(of_entry));
                }
            }
            Self::Stores(stores) => stores.list(folder, &mut names),
        }
        Ok(names)
    }
}

impl Stores {
    fn read(&self, names: &[String]) -> Vec<Copies> {
        let each = names.iter().flat_map(|name| self.buckets.iter().map(move |it| (name, it)));
        let get = |(name, (_, store)): (&String, &(String, Arc<dyn ObjectStore>))| {
            let (path, store) = (Path::from(name.as_str()), Arc::clone(store));
            let (attempt_max, retry_max) = (self.attempt_max, self.retry_max.min(3));
            async move {
                let mut why = String::new();
                for _ in 0..=retry_max {
                    let get = async { store.get(&path).await?.bytes().await };
                    match timeout(attempt_max, get).await {
                        Ok(Ok(bytes)) => return Ok(Some(bytes.to_vec())),
                        Ok(Err(object_store::Error::NotFound { .. })) => return Ok(None),
                        Ok(Err(error)) => why = crate::storage::words(&error),
                        Err(_) => why = "no answer in time".to_owned(),
                    }
                }
                Err(why)
            }
        };
        let read = stream::iter(each.map(get)).buffered(AT_ONCE_MAX).collect::<Vec<_>>();
        let mut read = self.runtime.block_on(read).into_iter();
        names.iter().map(|_| read.by_ref().take(self.buckets.len()).collect()).collect()
    }

    fn list(&self, folder: &str, names: &mut BTreeSet<String>) {
        for (_, store) in &self.buckets {
            let prefix = Path::from(folder);
            let found = store.list(Some(&prefix)).take(NAMES_MAX);
            let found = found.filter_map(|it| async { it.ok().map(|it| it.location.to_string()) });
            // A bucket that does not answer lists nothing; others do.
            let listed = async {
                timeout(20 * self.attempt_max, found.collect::<Vec<_>>()).await.unwrap_or_default()
            };
            names.extend(self.runtime.block_on(listed));
        }
    }
}
