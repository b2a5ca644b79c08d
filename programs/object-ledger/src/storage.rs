//! Objects in several buckets: written as pieces until enough are durable, the rest in the background; read from whichever
//! buckets answer first. A piece is created and never overwritten: what stands in a bucket stays. A bucket that was away gets
//! what it missed when it is back.

mod counts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clock::Clock;
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::config::{Config, Opened};
use crate::pieces::{Code, Gather, split};
use counts::Counts;

/// Requests to one bucket at once; what comes beyond waits.
const AT_ONCE_MAX: usize = 128;
/// Pieces that wait for one bucket; what comes beyond is not written there, and counted.
const PIECES_MAX: usize = 2_048;
/// The first wait before something is tried again; it doubles, up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(25);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Bytes of pieces that are kept for a bucket that missed them; what comes beyond is left to the next repair.
const MISSED_BYTES_MAX: usize = 64 << 20;
/// How often a bucket that missed something is tried.
const REPAIR_EVERY: Duration = Duration::from_millis(500);

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
    missed: Mutex<Missed>,
}

/// Pieces that a bucket was to have and has not, by name.
#[derive(Default)]
struct Missed {
    pieces: BTreeMap<String, PutPayload>,
    bytes: usize,
}

impl Bucket {
    fn missed(&self) -> std::sync::MutexGuard<'_, Missed> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_missed(&self, name: &str, piece: PutPayload) {
        let mut missed = self.missed();
        let bytes = missed.bytes + piece.content_length();
        if bytes <= MISSED_BYTES_MAX && missed.pieces.insert(name.to_owned(), piece).is_none() {
            missed.bytes = bytes;
        }
        self.counts.missing.store(missed.pieces.len() as u64, Relaxed);
    }

    fn take_missed(&self) -> Option<(String, PutPayload)> {
        let mut missed = self.missed();
        let (name, piece) = missed.pieces.pop_first()?;
        missed.bytes -= piece.content_length();
        self.counts.missing.store(missed.pieces.len() as u64, Relaxed);
        Some((name, piece))
    }
}

/// Why a piece is not in a bucket.
enum NotThere {
    /// Something else stands under its name, and stays.
    Taken(String),
    /// It may be if it is tried again.
    Failed(String),
}

/// Findings and deeds of the repair of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Buckets that have its piece now.
    pub well: usize,
    /// Of these: those in which it was missing.
    pub written: usize,
}

/// The buckets of a ledger.
pub struct Storage {
    code: Code,
    retry_max: u32,
    /// An object is stored when so many buckets have its piece.
    acknowledge: usize,
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
                missed: Mutex::default(),
            })
        };
        Ok(Arc::new(Self {
            code: config.code(),
            retry_max: config.storage.retry_max,
            acknowledge: config.acknowledge(),
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
    /// When so many buckets have failed, each as often as it may be tried, that enough cannot be reached, or when something
    /// else stands under the name.
    pub async fn store(self: &Arc<Self>, name: &str, whole: &[u8]) -> Result<(), Unavailable> {
        let (ended, mut ends) = mpsc::channel(self.buckets.len());
        for (bucket, piece) in self.buckets.iter().zip(split(self.code, name, whole)) {
            let (storage, bucket) = (Arc::clone(self), Arc::clone(bucket));
            let (ended, name) = (ended.clone(), name.to_owned());
            tokio::spawn(async move {
                let done = storage.put(&bucket, &name, piece.into()).await;
                // Nobody waits any more when enough were quicker.
                let _ = ended.send(done).await;
            });
        }
        drop(ended);
        let (mut well, mut why) = (0, String::new());
        while let Some(done) = ends.recv().await {
            match done {
                Ok(()) => well += 1,
                Err(error) => why = error,
            }
            if well == self.acknowledge && self.is_hedged {
                return Ok(());
            }
        }
        if well >= self.acknowledge {
            return Ok(());
        }
        Err(self.unavailable("storing", name, (well, 0), self.acknowledge, why))
    }

    async fn put(&self, bucket: &Bucket, name: &str, piece: PutPayload) -> Result<(), String> {
        let Ok(_waits) = bucket.waiting.try_acquire() else {
            bucket.counts.left_out.fetch_add(1, Relaxed);
            bucket.keep_missed(name, piece);
            return Err(format!("{}: too many pieces wait for it", bucket.name));
        };
        let mut backoff = BACKOFF;
        for attempt in 0.. {
            let place = bucket.places.acquire().await.map_err(|error| error.to_string())?;
            let why = match self.create(bucket, name, &piece).await {
                Ok(()) => return Ok(()),
                Err(NotThere::Taken(why)) => {
                    bucket.counts.taken.fetch_add(1, Relaxed);
                    return Err(format!("{}: {why}", bucket.name));
                }
                Err(NotThere::Failed(why)) => why,
            };
            bucket.counts.put_failed.fetch_add(1, Relaxed);
            if attempt == self.retry_max {
                bucket.counts.left_out.fetch_add(1, Relaxed);
                bucket.keep_missed(name, piece);
                return Err(format!("{}: {why}", bucket.name));
            }
            drop(place);
            sleep(jittered(backoff)).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
        unreachable!("attempts end")
    }

    /// One attempt to create a piece. The same bytes once more are fine; where more buckets acknowledge than rebuild an object,
    /// the piece is read back before it counts.
    async fn create(
        &self,
        bucket: &Bucket,
        name: &str,
        piece: &PutPayload,
    ) -> Result<(), NotThere> {
        let path = Path::from(name);
        let from = self.clock.now();
        let create = bucket.store.put_opts(&path, piece.clone(), PutMode::Create.into());
        let is_new = match timeout(self.attempt_max, create).await {
            Ok(Ok(_)) => true,
            Ok(Err(object_store::Error::AlreadyExists { .. })) => false,
            Ok(Err(error)) => return Err(NotThere::Failed(words(&error))),
            Err(_) => return Err(NotThere::Failed("no answer in time".to_owned())),
        };
        bucket.counts.put(self.clock.now().saturating_since(from));
        if is_new && self.acknowledge <= usize::from(self.code.required) {
            return Ok(());
        }
        let there = async { bucket.store.get(&path).await?.bytes().await };
        match timeout(self.attempt_max, there).await {
            Ok(Ok(there)) if piece.iter().flatten().eq(there.iter()) => Ok(()),
            Ok(Ok(_)) if is_new => {
                Err(NotThere::Failed(format!("{name} was written and reads otherwise")))
            }
            Ok(Ok(_)) => Err(NotThere::Taken(format!(
                "another object stands under {name} already, and is not overwritten"
            ))),
            Ok(Err(error)) => Err(NotThere::Failed(words(&error))),
            Err(_) => Err(NotThere::Failed("no answer in time".to_owned())),
        }
    }

    /// Writes what buckets missed as soon as they take it; never ends.
    pub async fn write_missed(self: Arc<Self>) {
        let each = self.buckets.iter().map(|bucket| async {
            loop {
                sleep(jittered(REPAIR_EVERY)).await;
                while let Some((name, piece)) = bucket.take_missed() {
                    match self.create(bucket, &name, &piece).await {
                        Ok(()) => {
                            bucket.counts.repaired.fetch_add(1, Relaxed);
                        }
                        Err(NotThere::Taken(_)) => {
                            bucket.counts.taken.fetch_add(1, Relaxed);
                        }
                        Err(NotThere::Failed(_)) => {
                            bucket.keep_missed(&name, piece);
                            break;
                        }
                    }
                }
            }
        });
        futures_util::future::join_all(each).await;
    }

    /// Writes the pieces of an object where they are missing. Nothing is overwritten.
    pub async fn repair(&self, name: &str, whole: &[u8]) -> Repaired {
        let each = self.buckets.iter().zip(split(self.code, name, whole));
        let each = each.map(|(bucket, piece)| self.repair_in(bucket, name, piece));
        let each = futures_util::future::join_all(each).await;
        each.iter().fold(Repaired::default(), |sum, it| Repaired {
            well: sum.well + it.well,
            written: sum.written + it.written,
        })
    }

    async fn repair_in(&self, bucket: &Bucket, name: &str, piece: Vec<u8>) -> Repaired {
        match self.get(bucket, &Path::from(name)).await {
            Ok(Some(there)) => Repaired { well: usize::from(there == piece), written: 0 },
            Ok(None) if self.create(bucket, name, &piece.into()).await.is_ok() => {
                bucket.counts.repaired.fetch_add(1, Relaxed);
                Repaired { well: 1, written: 1 }
            }
            _ => Repaired::default(),
        }
    }

    /// Stores an object that may be there: what buckets have of it is read and counts if it is the right piece, and only what is
    /// missing is written. Returns as soon as enough buckets have their piece, as [`Self::store`] does.
    ///
    /// # Errors
    /// Those of [`Self::store`].
    pub async fn ensure(self: &Arc<Self>, name: &str, whole: &[u8]) -> Result<(), Unavailable> {
        let (ended, mut ends) = mpsc::channel(self.buckets.len());
        for (bucket, piece) in self.buckets.iter().zip(split(self.code, name, whole)) {
            let (storage, bucket) = (Arc::clone(self), Arc::clone(bucket));
            let (ended, name) = (ended.clone(), name.to_owned());
            tokio::spawn(async move {
                let Ok(_waits) = bucket.waiting.try_acquire() else {
                    bucket.counts.left_out.fetch_add(1, Relaxed);
                    return bucket.keep_missed(&name, piece.into());
                };
                let repaired = storage.repair_in(&bucket, &name, piece).await;
                // The waiting side is gone when enough were quicker.
                let _ = ended.send(repaired.well).await;
            });
        }
        drop(ended);
        let mut well = 0;
        while let Some(more) = ends.recv().await {
            well += more;
            if well == self.acknowledge && self.is_hedged {
                return Ok(());
            }
        }
        if well >= self.acknowledge {
            return Ok(());
        }
        self.store(name, whole).await
    }

    /// Reads an object that is `wanted` from whichever buckets answer first; `None` if so many have nothing of it that it cannot
    /// be durable. Wholes that are not wanted are passed over: a name may hold a made-up object.
    ///
    /// # Errors
    /// When too few buckets answer to say either. Nothing is tried again: who asks knows whether to.
    pub async fn fetch(
        self: &Arc<Self>,
        name: &str,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, Unavailable> {
        self.wholes(name).next(wanted).await
    }

    /// Everything that stands under a name: wholes one after the other, as buckets answer.
    #[must_use]
    pub fn wholes(self: &Arc<Self>, name: &str) -> Wholes {
        let (ended, ends) = mpsc::channel(self.buckets.len());
        for (place, bucket) in self.buckets.iter().enumerate() {
            let (storage, bucket) = (Arc::clone(self), Arc::clone(bucket));
            let (ended, path) = (ended.clone(), Path::from(name));
            tokio::spawn(async move {
                let got = storage.get(&bucket, &path).await;
                // The waiting side is gone.
                let _ = ended.send((place, got)).await;
            });
        }
        Wholes {
            storage: Arc::clone(self),
            name: name.to_owned(),
            ends,
            gather: Gather::of(name),
            none: 0,
            got: 0,
            why: String::new(),
        }
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

    /// How many buckets there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.buckets.len()
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
        required: usize,
        why: String,
    ) -> Unavailable {
        let total = self.buckets.len();
        Unavailable { what, name: name.to_owned(), well, total, required, none, why }
    }
}

/// A bucket's place, and what it has.
type Answered = (usize, Result<Option<Vec<u8>>, String>);

/// The objects under one name.
pub struct Wholes {
    storage: Arc<Storage>,
    name: String,
    ends: mpsc::Receiver<Answered>,
    gather: Gather,
    none: usize,
    got: usize,
    why: String,
}

impl Wholes {
    /// The next whole that is `wanted`; `None` if so many buckets have nothing of it that it cannot be durable.
    ///
    /// # Errors
    /// When no bucket is left to answer, and too few did to say either.
    pub async fn next(
        &mut self,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, Unavailable> {
        let storage = &self.storage;
        // With so many that have nothing there are not enough that have a piece.
        let none_enough = storage.buckets.len() - usize::from(storage.code.enough()) + 1;
        while let Some((place, piece)) = self.ends.recv().await {
            match piece {
                Ok(None) => self.none += 1,
                Ok(Some(piece)) => match self.gather.offer(place, &piece) {
                    Ok(Some(whole)) if wanted(&whole) => return Ok(Some(whole)),
                    Ok(Some(_)) => self.why = "what stands there is another object".to_owned(),
                    Ok(None) => self.got += 1,
                    Err(unusable) => {
                        storage.buckets[place].counts.unusable.fetch_add(1, Relaxed);
                        self.why = format!("{}: {unusable}", storage.buckets[place].name);
                    }
                },
                Err(error) => self.why = error,
            }
            if self.none == none_enough {
                return Ok(None);
            }
        }
        let required = usize::from(storage.code.enough());
        let why = std::mem::take(&mut self.why);
        Err(storage.unavailable("reading", &self.name, (self.got, self.none), required, why))
    }
}

/// A wait that is not the same for all who wait: between half of it and all of it.
fn jittered(wait: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness the whole wait is as good.
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut byte);
    wait / 2 + wait / 2 * u32::from(byte[0]) / 255
}

/// An error's words with those of what caused it, without the queries of addresses: one may hold a signature.
pub(crate) fn words(error: &object_store::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    without_queries(&deepest.to_string())
}

/// Cuts what follows the `?` of an address, up to where the address ends.
fn without_queries(text: &str) -> String {
    let without = |word: &str| match word.split_once('?') {
        Some((address, _)) if address.contains("://") || address.starts_with('/') => {
            format!("{address}?…")
        }
        _ => word.to_owned(),
    };
    text.split(' ').map(without).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "batch/00";
    const WHOLE: &[u8] = b"a batch";

    /// A bucket of the ledger's file: a folder beside it.
    fn folder_of(it: usize) -> String {
        format!("[[bucket]]\nprovider = \"local\"\nbucket = \"b{it}\"\n")
    }

    /// The ledger of a file in this folder, with what stands in its first buckets.
    fn opened(folder: &std::path::Path, text: &str, there: &[&[u8]]) -> Arc<Storage> {
        let key = "ab".repeat(32);
        let keys = format!("name = \"a\"\n[keys]\ntimestamp = \"{key}\"\nsequencer = \"{key}\"\n");
        let file = folder.join("ledger.toml");
        std::fs::write(&file, format!("{keys}[storage]\n{text}")).unwrap();
        for (it, there) in there.iter().enumerate() {
            let place = folder.join(format!("b{it}")).join(NAME);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, there).unwrap();
        }
        Storage::open(&Config::read(&file).unwrap(), Clock::start()).unwrap()
    }

    /// Claim: an object that is ensured is in as many buckets as have to acknowledge it: one full copy that was there is not
    /// enough, nor are as many pieces as rebuild it; what else stands under its name counts for nothing and stays.
    #[test]
    fn ensured() {
        let runtime = crate::lifecycle::runtime().unwrap();
        for (lines, rightly, wrongly, acknowledge) in [
            ("full_copies = true", 1, 0, 3),
            ("full_copies = true", 1, 3, 3),
            ("full_copies = true", 1, 4, 3),
            ("acknowledge = 4", 3, 0, 4),
            ("acknowledge = 4", 3, 3, 4),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let buckets: String = (0..6).map(folder_of).collect();
            let text = format!("{lines}\n{buckets}");
            let pieces = split(opened(folder.path(), &text, &[]).code, NAME, WHOLE);
            let right = pieces.iter().take(rightly).map(|piece| &piece[..]);
            let there: Vec<&[u8]> = right.chain(vec![&b"another"[..]; wrongly]).collect();
            let storage = opened(folder.path(), &text, &there);
            let ensured = runtime.block_on(storage.ensure(NAME, WHOLE));
            assert_eq!(ensured.is_ok(), 6 - wrongly >= acknowledge, "{lines}: {ensured:?}");
            let is_well = |it: &usize| {
                let place = folder.path().join(format!("b{it}")).join(NAME);
                std::fs::read(place).is_ok_and(|there| there == pieces[*it])
            };
            let well = || (0..6).filter(is_well).count();
            // Those that are not waited for get theirs in the background.
            let mut waits = (0..6_000).map(|_| std::thread::sleep(Duration::from_millis(10)));
            while well() < 6 - wrongly && waits.next().is_some() {}
            assert_eq!(well(), 6 - wrongly, "{lines}");
        }
    }

    /// Claim: an object is ensured without waiting for a bucket that takes connections and never answers.
    #[test]
    fn ensured_beside_a_bucket_that_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let hung = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = hung.local_addr().unwrap();
        let buckets: String = (0..5).map(folder_of).collect();
        let text = format!(
            "attempt_ms_max = 600000\n{buckets}[[bucket]]\nprovider = \"aws\"\nbucket = \"b5\"\nendpoint = \"http://{address}\"\n"
        );
        let pieces = split(opened(folder.path(), &text, &[]).code, NAME, WHOLE);
        let there: Vec<&[u8]> = pieces.iter().take(5).map(|piece| &piece[..]).collect();
        let storage = opened(folder.path(), &text, &there);
        let runtime = crate::lifecycle::runtime().unwrap();
        assert_eq!(runtime.block_on(storage.ensure(NAME, WHOLE)), Ok(()));
        // It is still being asked.
        assert_eq!(storage.buckets[5].counts.get_failed.load(Relaxed), 0);
    }

    /// Claim: an error of S3 keeps its words, and the query of an address, which may hold a signature, is cut.
    #[test]
    fn words_without_secrets() {
        let said = "403 Forbidden: <?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>";
        assert_eq!(without_queries(said), said);
        let said = "GET http://127.0.0.1:9/b/k?X-Amz-Signature=abc failed";
        assert_eq!(without_queries(said), "GET http://127.0.0.1:9/b/k?… failed");
    }
}
