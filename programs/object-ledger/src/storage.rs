//! Objects in several buckets: written as pieces until enough are durable, the rest in the background; read from whichever
//! buckets answer first.

mod counts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clock::Clock;
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::config::{Config, Opened};
use crate::pieces::{Code, Gather, split};
use counts::Counts;

/// Requests to one bucket at once; what comes beyond waits.
const AT_ONCE_MAX: usize = 64;
/// Pieces that wait for one bucket; what comes beyond is not written there, and counted.
const PIECES_MAX: usize = 2_048;
/// The first wait before something is tried again; it doubles, up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(25);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Why an object could not be stored or read now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} {name}: {well} of {total} buckets, and {required} are needed; the last failure: {why}"
)]
pub struct Unavailable {
    what: &'static str,
    name: String,
    /// How many buckets did it.
    pub well: usize,
    total: usize,
    required: usize,
    /// Of a reading: how many buckets have nothing under the name.
    none: usize,
    why: String,
}

impl Unavailable {
    /// Nothing of the object was seen, by as many buckets as could have rebuilt it. Those that are away may have it all the
    /// same: what is read ends here, and nobody can say yet whether more follows.
    #[must_use]
    pub const fn is_nothing_seen(&self) -> bool {
        self.well == 0 && self.none >= self.required
    }
}

struct Bucket {
    name: String,
    store: Arc<dyn ObjectStore>,
    places: Semaphore,
    waiting: Semaphore,
    counts: Counts,
}

/// The buckets of a ledger.
pub struct Storage {
    code: Code,
    retry_max: u32,
    is_hedged: bool,
    attempt_max: Duration,
    buckets: Vec<Arc<Bucket>>,
    clock: Clock,
}

impl Storage {
    /// The buckets that the ledger's file names.
    ///
    /// # Errors
    /// When one cannot be asked.
    pub fn open(config: &Config, clock: Clock) -> Result<Arc<Self>, String> {
        let make = |Opened { name, store }| {
            Arc::new(Bucket {
                name,
                store,
                places: Semaphore::new(AT_ONCE_MAX),
                waiting: Semaphore::new(PIECES_MAX),
                counts: Counts::default(),
            })
        };
        Ok(Arc::new(Self {
            code: config.code(),
            retry_max: config.storage.retry_max,
            is_hedged: config.storage.hedged_writes,
            attempt_max: Duration::from_millis(config.storage.attempt_ms_max),
            buckets: config.open_buckets()?.into_iter().map(make).collect(),
            clock,
        }))
    }

    /// Stores an object: returns as soon as enough buckets have their piece. The others get theirs in the background; where
    /// writes are not hedged they are waited for, too, until each has it or was given up.
    ///
    /// # Errors
    /// When so many buckets have failed, each as often as it may be tried, that enough cannot be reached.
    pub async fn store(self: &Arc<Self>, name: &str, whole: &[u8]) -> Result<(), Unavailable> {
        let (ended, mut ends) = mpsc::channel(self.buckets.len());
        for (bucket, piece) in self.buckets.iter().zip(split(self.code, name, whole)) {
            let (storage, bucket) = (Arc::clone(self), Arc::clone(bucket));
            let (ended, path) = (ended.clone(), Path::from(name));
            tokio::spawn(async move {
                let done = storage.put(&bucket, &path, piece.into()).await;
                // Nobody waits any more when enough were quicker.
                let _ = ended.send(done).await;
            });
        }
        drop(ended);
        let (mut well, mut why) = (0, String::new());
        let required = usize::from(self.code.required);
        while let Some(done) = ends.recv().await {
            match done {
                Ok(()) => well += 1,
                Err(error) => why = error,
            }
            if well == required && self.is_hedged {
                return Ok(());
            }
        }
        if well >= required {
            return Ok(());
        }
        Err(self.unavailable("storing", name, (well, 0), why))
    }

    async fn put(&self, bucket: &Bucket, path: &Path, piece: PutPayload) -> Result<(), String> {
        let Ok(_waits) = bucket.waiting.try_acquire() else {
            bucket.counts.left_out.fetch_add(1, Relaxed);
            return Err(format!("{}: too many pieces wait for it", bucket.name));
        };
        let mut backoff = BACKOFF;
        for attempt in 0.. {
            let _place = bucket.places.acquire().await.map_err(|error| error.to_string())?;
            let from = self.clock.now();
            let asked = timeout(self.attempt_max, bucket.store.put(path, piece.clone())).await;
            let took = self.clock.now().saturating_since(from);
            let why = match asked {
                Ok(Ok(_)) => {
                    bucket.counts.put(took);
                    return Ok(());
                }
                Ok(Err(error)) => words(&error),
                Err(_) => "no answer in time".to_owned(),
            };
            bucket.counts.put_failed.fetch_add(1, Relaxed);
            if attempt == self.retry_max {
                bucket.counts.left_out.fetch_add(1, Relaxed);
                return Err(format!("{}: {why}", bucket.name));
            }
            drop(_place);
            sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
        unreachable!("attempts end")
    }

    /// Reads an object from whichever buckets answer first; `None` if so many have nothing of it that it cannot be durable.
    ///
    /// # Errors
    /// When too few buckets answer to say either. Nothing is tried again: who asks knows whether to.
    pub async fn fetch(self: &Arc<Self>, name: &str) -> Result<Option<Vec<u8>>, Unavailable> {
        let (ended, mut ends) = mpsc::channel(self.buckets.len());
        for (place, bucket) in self.buckets.iter().enumerate() {
            let (storage, bucket) = (Arc::clone(self), Arc::clone(bucket));
            let (ended, path) = (ended.clone(), Path::from(name));
            tokio::spawn(async move {
                let got = storage.get(&bucket, &path).await;
                let _ = ended.send((place, got)).await;
            });
        }
        drop(ended);
        let (mut gather, mut none, mut got, mut why) = (Gather::of(name), 0, 0, String::new());
        // With so many that have nothing there are not enough that have a piece.
        let none_enough = self.buckets.len() - usize::from(self.code.enough()) + 1;
        while let Some((place, piece)) = ends.recv().await {
            match piece {
                Ok(None) => none += 1,
                Ok(Some(piece)) => match gather.offer(place, &piece) {
                    Ok(Some(whole)) => return Ok(Some(whole)),
                    Ok(None) => got += 1,
                    Err(unusable) => {
                        self.buckets[place].counts.unusable.fetch_add(1, Relaxed);
                        why = format!("{}: {unusable}", self.buckets[place].name);
                    }
                },
                Err(error) => why = error,
            }
            if none == none_enough {
                return Ok(None);
            }
        }
        Err(self.unavailable("reading", name, (got, none), why))
    }

    async fn get(&self, bucket: &Bucket, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let _place = bucket.places.acquire().await.map_err(|error| error.to_string())?;
        let from = self.clock.now();
        let ask = async { bucket.store.get(path).await?.bytes().await };
        let why = match timeout(self.attempt_max, ask).await {
            Ok(Ok(piece)) => {
                bucket.counts.got(self.clock.now().saturating_since(from));
                return Ok(Some(piece.to_vec()));
            }
            Ok(Err(object_store::Error::NotFound { .. })) => {
                bucket.counts.got(self.clock.now().saturating_since(from));
                return Ok(None);
            }
            Ok(Err(error)) => words(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        bucket.counts.get_failed.fetch_add(1, Relaxed);
        Err(format!("{}: {why}", bucket.name))
    }

    /// Names behind `after` with this prefix, from all buckets that answer, at most so many of each.
    pub async fn list(&self, prefix: &str, after: &str, count_max: usize) -> BTreeSet<String> {
        let lists = self.buckets.iter().map(|bucket| async move {
            let (prefix, after) = (Path::from(prefix), Path::from(after));
            let found = bucket.store.list_with_offset(Some(&prefix), &after);
            // Not every server heeds where a list is to begin.
            let names = found.filter_map(|it| {
                let name = it.ok().map(|it| it.location).filter(|it| *it > after);
                async { name.map(|it| it.to_string()) }
            });
            let names = names.take(count_max).collect::<Vec<String>>();
            timeout(self.attempt_max, names).await.unwrap_or_default()
        });
        futures_util::future::join_all(lists).await.into_iter().flatten().collect()
    }

    /// What each bucket did, in Prometheus's text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        counts::text(self.buckets.iter().map(|bucket| (bucket.name.as_str(), &bucket.counts)))
    }

    fn unavailable(
        &self,
        what: &'static str,
        name: &str,
        (well, none): (usize, usize),
        why: String,
    ) -> Unavailable {
        let (total, required) = (self.buckets.len(), usize::from(self.code.required));
        Unavailable { what, name: name.to_owned(), well, total, required, none, why }
    }
}

/// An error's words with those of what caused it, without addresses: a query may hold a signature.
fn words(error: &object_store::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let text = deepest.to_string();
    text.split('?').next().unwrap_or_default().to_owned()
}
