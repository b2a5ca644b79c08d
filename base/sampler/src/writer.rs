//! The thread that takes records out of all rings and writes them to the file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::STAGES_MAX;
use crate::codec::{self, Record, Stage};
use crate::file::{self, BLOCK_BYTES_MAX, Head, Kind, StageTotals, Totals};
use crate::ring::{Ring, Shared};

/// Bounds of a sampler.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Records that a ring holds, rounded up to a power of two; each takes 24 bytes.
    pub records: usize,
    /// How often they are taken out.
    pub every: Duration,
}

impl Default for Options {
    /// A ring of 6 MB, which holds a tenth of a second at 2.6 million events a second, and is emptied ten times as often.
    fn default() -> Self {
        Self { records: 1 << 18, every: Duration::from_millis(10) }
    }
}

/// What all threads of a service stamp into one file.
#[derive(Debug)]
pub struct Sampler {
    common: Arc<Common>,
    clock: Clock,
    records: usize,
    stages: usize,
    head: Head,
    thread: Option<JoinHandle<io::Result<Totals>>>,
}

#[derive(Debug, Default)]
struct Common {
    rings: Mutex<Vec<Arc<Shared>>>,
    is_closing: AtomicBool,
}

impl Common {
    fn rings(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Shared>>> {
        // A list is whole between its operations, whoever panicked with it.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampler {
    /// Begins a file of what `node` does at `stages`.
    ///
    /// # Errors
    /// When there are no stages or too many, the file cannot be made, or another sampler writes it.
    pub fn create(
        path: &Path,
        node: &str,
        stages: &[Stage],
        clock: Clock,
        options: Options,
    ) -> io::Result<Self> {
        if stages.is_empty() || stages.len() > STAGES_MAX {
            let words =
                format!("a file of events has 1 to {STAGES_MAX} stages, not {}", stages.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        // Locked before it is emptied: what another sampler writes there stays.
        let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
        // A file system without locks never refuses.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            let words = format!("another sampler writes {}", path.display());
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, words));
        }
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let (event_ps, clock_ps) = cost(clock);
        let origin = clock.wall_now_at(clock::Instant::ZERO);
        let head =
            Head { node: node.to_owned(), origin, event_ps, clock_ps, stages: stages.to_vec() };
        let (mut bytes, mut payload) = (file::MAGIC.to_vec(), Vec::new());
        head.write(&mut payload);
        file::block(Kind::Head, &payload, &mut bytes);
        file.write_all(&bytes)?;
        let common = Arc::new(Common::default());
        let mut writer = Writer {
            common: Arc::clone(&common),
            clock,
            file,
            every: options.every,
            origin: origin.unix_ns(),
            out: Vec::new(),
            payload: Vec::new(),
            gone: Totals {
                stages: vec![StageTotals::default(); stages.len()],
                ..Totals::default()
            },
            failure: None,
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned());
        let thread = Some(thread.spawn(move || writer.run())?);
        Ok(Self { common, clock, records: options.records, stages: stages.len(), head, thread })
    }

    /// A ring, for a thread that will stamp events.
    #[must_use]
    pub fn ring(&self) -> Ring {
        let shared = Shared::new(self.records, self.stages);
        self.common.rings().push(Arc::clone(&shared));
        Ring::new(shared, self.clock)
    }

    /// The clock whose readings events are given in.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// What the file says of itself, what an event costs among it.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Writes what there is and ends the file. What is stamped later is lost, and counted nowhere.
    ///
    /// # Errors
    /// When something could not be written: the file lacks it.
    pub fn close(mut self) -> io::Result<Totals> {
        self.common.is_closing.store(true, Release);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that writes events has panicked")),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.common.is_closing.store(true, Release);
        if let Some(thread) = self.thread.take() {
            // Who wants to know how it ended calls `close`.
            let _ = thread.join();
        }
    }
}

struct Writer {
    common: Arc<Common>,
    clock: Clock,
    file: File,
    every: Duration,
    origin: i64,
    out: Vec<u8>,
    payload: Vec<u8>,
    /// What was counted in rings that are no more, and records that could not be written.
    gone: Totals,
    failure: Option<io::Error>,
}

impl Drop for Writer {
    /// However it ends, no thread may wait for room that never comes.
    fn drop(&mut self) {
        self.common.rings().iter().for_each(|ring| ring.close());
    }
}

impl Writer {
    fn run(&mut self) -> io::Result<Totals> {
        let mut next = self.clock.now();
        loop {
            // Before the records: what was stamped before the closing is written.
            let is_closing = self.common.is_closing.load(Acquire);
            let count = self.take_all();
            if is_closing {
                let totals = self.totals(true);
                return self.failure.take().map_or(Ok(totals), Err);
            }
            if count > 0 {
                self.totals(false);
            }
            next = next.plus(self.every).max(self.clock.now());
            std::thread::sleep(next.saturating_since(self.clock.now()));
        }
    }

    /// Takes out what all rings hold.
    fn take_all(&mut self) -> u64 {
        let rings: Vec<Arc<Shared>> = self.common.rings().clone();
        let mut count = 0;
        for ring in &rings {
            loop {
                let taken = self.take(ring);
                count += taken;
                if taken < BLOCK_RECORDS {
                    break;
                }
            }
        }
        let gone = &mut self.gone;
        self.common.rings().retain(|ring| {
            let is_done = ring.is_done();
            if is_done {
                ring.add_to(&mut gone.stages);
                gone.waits += ring.waits();
                gone.lost += ring.lost();
            }
            !is_done
        });
        count
    }

    /// A block of a ring.
    fn take(&mut self, ring: &Shared) -> u64 {
        let Self { payload, .. } = self;
        payload.clear();
        let mut last = 0;
        let count = ring.take(BLOCK_RECORDS, |record: Record| {
            if payload.is_empty() {
                last = record.at.as_ns();
                payload.extend_from_slice(&last.to_le_bytes());
            }
            codec::write(&record, &mut last, payload);
        });
        if count > 0 && !self.write(Kind::Records) {
            self.gone.lost += count;
        }
        count
    }

    /// Writes what was counted so far.
    fn totals(&mut self, is_end: bool) -> Totals {
        let mut totals = self.gone.clone();
        for ring in self.common.rings().iter() {
            ring.add_to(&mut totals.stages);
            totals.waits += ring.waits();
            totals.lost += ring.lost();
        }
        let origin = self.clock.wall_now_at(clock::Instant::ZERO).unix_ns();
        (totals.wall_drift_ns, totals.is_end) = (origin - self.origin, is_end);
        self.payload.clear();
        totals.write(&mut self.payload);
        self.write(Kind::Totals);
        totals
    }

    fn write(&mut self, kind: Kind) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.out.clear();
        file::block(kind, &self.payload, &mut self.out);
        self.failure = self.file.write_all(&self.out).err();
        self.failure.is_none()
    }
}

/// Records of a block: at most 32 bytes each.
const BLOCK_RECORDS: u64 = (BLOCK_BYTES_MAX as u64 - 8) / 32;

/// What an event and a reading of the clock cost on this machine, picoseconds: the least of a few rounds, for what
/// interrupts only adds. Nothing of virtual time.
fn cost(clock: Clock) -> (u64, u64) {
    const TIMES: u32 = 1_000;
    const ROUNDS: u32 = 8;
    if clock.is_virtual() {
        return (0, 0);
    }
    let least = |mut of: Box<dyn FnMut()>| {
        let round = |_| {
            let from = clock.now();
            (0..TIMES).for_each(|_| of());
            u64::try_from(clock.now().ns_since(from)).unwrap_or(0) * 1_000 / u64::from(TIMES)
        };
        (0..ROUNDS).map(round).min().unwrap_or(0)
    };
    let shared = Shared::new((TIMES * ROUNDS) as usize, 1);
    let mut ring = Ring::new(shared, clock);
    let at = clock.now();
    let event_ps = least(Box::new(move || ring.event(0, at, at, 1)));
    let clock_ps = least(Box::new(move || {
        std::hint::black_box(clock.now());
    }));
    (event_ps, clock_ps)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::{EventFileError, Reader, What};

    fn stages() -> Vec<Stage> {
        vec![Stage::new("receive", "received"), Stage::new("apply", "applied")]
    }

    fn read(bytes: &[u8]) -> (Vec<Record>, Reader<Cursor<Vec<u8>>>, Option<EventFileError>) {
        let mut reader = Reader::open(Cursor::new(bytes.to_vec())).unwrap();
        let mut records = Vec::new();
        loop {
            match reader.next(|record| records.push(*record)) {
                Ok(true) => {}
                Ok(false) => return (records, reader, None),
                Err(error) => return (records, reader, Some(error)),
            }
        }
    }

    /// Claim: several threads that stamp far more than their rings hold, in any order, lose nothing; the file has every
    /// record of each thread in its order, and its totals are what was stamped.
    #[test]
    fn nothing_is_lost() {
        const EACH: u64 = 20_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let clock = Clock::start();
        let options = Options { records: 512, every: Duration::from_micros(200) };
        let sampler = Sampler::create(&path, "node", &stages(), clock, options).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let mut ring = sampler.ring();
                scope.spawn(move || {
                    for n in 0..EACH {
                        let from = ring.now();
                        if n % 100 == 0 {
                            ring.span(1, from, from, thread);
                        }
                        ring.done(u8::try_from(n % 2).unwrap(), from, thread << 32 | n);
                    }
                });
            }
        });
        let totals = sampler.close().unwrap();
        assert!(totals.is_end && totals.lost == 0, "{totals:?}");
        let (records, reader, error) = read(&std::fs::read(&path).unwrap());
        assert!(error.is_none() && reader.problem().is_none(), "{:?}", reader.problem());
        assert_eq!(reader.totals(), &totals);
        assert_eq!((reader.head().node.as_str(), &reader.head().stages), ("node", &stages()));
        let mut next = [0; 3];
        let mut spans = 0;
        for record in &records {
            match record.what {
                What::Span(key) => spans += u64::from(key < 3),
                What::Count(count) => {
                    let thread = usize::try_from(count >> 32).unwrap();
                    assert_eq!(count & 0xffff_ffff, next[thread], "of thread {thread}");
                    next[thread] += 1;
                }
            }
        }
        assert_eq!((next, spans), ([EACH; 3], 3 * EACH / 100));
        assert_eq!(totals.stages[0].events + totals.stages[1].events, 3 * EACH);
    }

    /// Claim: a file that was cut off anywhere gives what stands before the cut and says that it has no end; one with any
    /// byte changed says so or gives no wrong record.
    #[test]
    fn cut_and_damaged_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (clock, mut hand) =
            Clock::by_hand(clock::Instant::ZERO, clock::WallTime::from_unix_ns(7));
        let options = Options { records: 64, every: Duration::from_micros(100) };
        let sampler = Sampler::create(&path, "node", &stages(), clock, options).unwrap();
        let mut ring = sampler.ring();
        for n in 0..20 {
            let from = ring.now();
            hand.move_to(from.plus(Duration::from_nanos(n)));
            ring.done(1, from, n);
        }
        drop(ring);
        sampler.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let (whole, reader, error) = read(&bytes);
        assert!(error.is_none() && reader.problem().is_none());
        assert_eq!(whole.len(), 20);
        assert_eq!(reader.wall(clock::Instant::from_ns(3)).unix_ns(), 10);
        for length in 0..bytes.len() {
            match Reader::open(Cursor::new(bytes[..length].to_vec())) {
                Err(_) => continue,
                Ok(_) => {
                    let (records, reader, error) = read(&bytes[..length]);
                    assert!(whole.starts_with(&records));
                    assert!(error.is_some() || reader.problem().is_some(), "{length}");
                }
            }
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x41;
            if Reader::open(Cursor::new(damaged.clone())).is_ok() {
                let (records, reader, error) = read(&damaged);
                assert!(whole.starts_with(&records), "{place}");
                assert!(error.is_some() || reader.problem().is_some(), "{place}");
            }
        }
    }

    /// Claim: no count and no time that a service may give stops it: sums end at the largest number, in the file as in what is
    /// read of it, and what took less than nothing took nothing.
    #[test]
    fn any_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let sampler =
            Sampler::create(&path, "node", &stages(), Clock::start(), Options::default()).unwrap();
        let ends = [i64::MIN, -1, 0, 1, i64::MAX].map(clock::Instant::from_ns);
        let mut rings = [sampler.ring(), sampler.ring()];
        for ring in &mut rings {
            for from in ends {
                for to in ends {
                    ring.event(0, from, to, u64::MAX);
                    ring.span(1, from, to, u64::MAX);
                }
            }
        }
        drop(rings);
        let totals = sampler.close().unwrap();
        assert_eq!((totals.stages[0].events, totals.stages[0].transactions), (50, u64::MAX));
        let (records, reader, error) = read(&std::fs::read(&path).unwrap());
        assert!(error.is_none() && reader.problem().is_none(), "{:?}", reader.problem());
        assert_eq!(records.len(), 100);
    }

    /// Claim: a file whose service has stamped nothing yet lacks nothing so far; it only has no end.
    #[test]
    fn nothing_yet() {
        let (mut bytes, mut payload) = (file::MAGIC.to_vec(), Vec::new());
        let origin = clock::WallTime::from_unix_ns(7);
        let head =
            Head { node: "node".to_owned(), origin, event_ps: 0, clock_ps: 0, stages: stages() };
        head.write(&mut payload);
        file::block(Kind::Head, &payload, &mut bytes);
        let (records, reader, error) = read(&bytes);
        assert!(records.is_empty() && error.is_none());
        assert!(reader.problem_so_far().is_none() && reader.problem().is_some());
    }

    /// Claim: a file that a sampler writes is not begun again by another one, and can be once the first has ended.
    #[test]
    fn one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let create =
            || Sampler::create(&path, "node", &stages(), Clock::start(), Options::default());
        let first = create().unwrap();
        first.ring().event(0, clock::Instant::ZERO, clock::Instant::ZERO, 3);
        assert!(create().unwrap_err().to_string().starts_with("another sampler writes"));
        assert_eq!(first.close().unwrap().stages[0].transactions, 3);
        let (records, reader, _) = read(&std::fs::read(&path).unwrap());
        assert_eq!((records.len(), reader.problem()), (1, None));
        create().unwrap().close().unwrap();
        assert_eq!(read(&std::fs::read(&path).unwrap()).0.len(), 0);
    }

    /// Claim: a disk that takes nothing is said at the end and keeps nobody waiting.
    #[test]
    fn a_full_disk() {
        let clock = Clock::start();
        let options = Options { records: 16, every: Duration::from_micros(100) };
        let made = Sampler::create(Path::new("/dev/full"), "node", &stages(), clock, options);
        // The head is written at once, so that a disk that is full from the start is said there.
        assert!(made.is_err());
    }
}
