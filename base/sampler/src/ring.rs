//! A thread's own ring of records: one thread writes, one reads, neither locks.
//!
//! A record is three words. The writer stores them and then moves the head on (release); the reader sees the head (acquire)
//! and then the words, so that it never reads half a record. Each side keeps what it last saw of the other's place, and
//! looks again only when that says that there is no room, or nothing more.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clock::{Clock, Instant};

use crate::codec::{Record, What};
use crate::file::StageTotals;
use crate::memory::{Arc, AtomicBool, AtomicU64, pause};

/// Words of a record.
const WORDS: usize = 3;
/// The stage's bits, above the 48 of how long it took (78 hours).
const STAGE_SHIFT: u32 = 48;
const TOOK_NS_MAX: u64 = (1 << STAGE_SHIFT) - 1;
/// Set where the third word is a key.
const SPAN: u64 = 1 << 63;

/// On a cache line of its own (two, as processors fetch them in pairs).
#[repr(align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

#[derive(Debug, Default)]
struct Count {
    events: AtomicU64,
    transactions: AtomicU64,
    took_ns: AtomicU64,
}

/// What both sides share.
#[derive(Debug)]
pub(crate) struct Shared {
    words: Box<[AtomicU64]>,
    mask: u64,
    /// Records that were ever put in.
    head: Apart<AtomicU64>,
    /// Records that were ever taken out.
    tail: Apart<AtomicU64>,
    counts: Box<[Count]>,
    waits: AtomicU64,
    lost: AtomicU64,
    /// Its thread has no use for it any more.
    is_dropped: AtomicBool,
    /// Nobody takes out any more.
    is_closed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(records: usize, stages: usize) -> Arc<Self> {
        let records = records.next_power_of_two().max(2);
        Arc::new(Self {
            words: (0..records * WORDS).map(|_| AtomicU64::new(0)).collect(),
            mask: (records - 1) as u64,
            head: Apart::default(),
            tail: Apart::default(),
            counts: (0..stages).map(|_| Count::default()).collect(),
            waits: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_dropped: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Takes out at most `most` records; how many there were.
    pub(crate) fn take(&self, most: u64, mut each: impl FnMut(Record)) -> u64 {
        let tail = self.tail.0.load(Relaxed);
        let count = (self.head.0.load(Acquire) - tail).min(most);
        for place in tail..tail + count {
            each(self.read(place));
        }
        self.tail.0.store(tail + count, Release);
        count
    }

    fn slot(&self, place: u64) -> usize {
        usize::try_from(place & self.mask).expect("it was a length") * WORDS
    }

    fn read(&self, place: u64) -> Record {
        let slot = self.slot(place);
        let [at, packed, third] = [0, 1, 2].map(|word| self.words[slot + word].load(Relaxed));
        let what = if packed & SPAN == 0 { What::Count(third) } else { What::Span(third) };
        let stage = (packed >> STAGE_SHIFT) & 0x7f;
        Record {
            stage: u8::try_from(stage).expect("seven bits"),
            at: Instant::from_ns(at.cast_signed()),
            took_ns: packed & TOOK_NS_MAX,
            what,
        }
    }

    /// Adds what was counted.
    pub(crate) fn add_to(&self, totals: &mut [StageTotals]) {
        for (sum, count) in totals.iter_mut().zip(&self.counts) {
            sum.events += count.events.load(Relaxed);
            let transactions = count.transactions.load(Relaxed);
            sum.transactions = sum.transactions.saturating_add(transactions);
            sum.took_ns = sum.took_ns.saturating_add(count.took_ns.load(Relaxed));
        }
    }

    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Whether no more will come.
    pub(crate) fn is_done(&self) -> bool {
        // In this order: what was put in before it was dropped is seen.
        self.is_dropped.load(Acquire) && self.head.0.load(Acquire) == self.tail.0.load(Relaxed)
    }

    /// Whoever waits for room waits no longer.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Release);
    }
}

/// A thread's own place for events. It can be given to another thread, and used by one at a time.
#[derive(Debug)]
pub struct Ring {
    shared: Arc<Shared>,
    clock: Clock,
    head: u64,
    /// Up to where there is room, as was last seen.
    room_to: u64,
}

impl Ring {
    pub(crate) fn new(shared: Arc<Shared>, clock: Clock) -> Self {
        let room_to = shared.mask + 1;
        Self { shared, clock, head: 0, room_to }
    }

    /// The clock whose readings events are given in.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Something was done to `count` transactions: begun at `from`, done at `to`. Stages are numbered as they were named.
    /// Sums by stage end at the largest number there is.
    ///
    /// # Panics
    /// If there is no such stage.
    #[inline]
    pub fn event(&mut self, stage: u8, from: Instant, to: Instant, count: u64) {
        let took = took_ns(from, to);
        let of = &self.shared.counts[usize::from(stage)];
        // Nobody else writes: a load and a store, not a locked addition.
        of.events.store(of.events.load(Relaxed) + 1, Relaxed);
        of.transactions.store(of.transactions.load(Relaxed).saturating_add(count), Relaxed);
        of.took_ns.store(of.took_ns.load(Relaxed).saturating_add(took), Relaxed);
        self.put(to, u64::from(stage) << STAGE_SHIFT | took, count);
    }

    /// [`Ring::event`] that is done now; the reading.
    #[inline]
    pub fn done(&mut self, stage: u8, from: Instant, count: u64) -> Instant {
        let to = self.clock.now();
        self.event(stage, from, to, count);
        to
    }

    /// The time of one transaction in a stage, for one that is sampled; it is in no count. `key` says which: whoever
    /// reads the file knows by it what several services say of the same one.
    ///
    /// # Panics
    /// If there is no such stage.
    #[inline]
    pub fn span(&mut self, stage: u8, from: Instant, to: Instant, key: u64) {
        assert!(usize::from(stage) < self.shared.counts.len(), "there is no stage {stage}");
        self.put(to, SPAN | u64::from(stage) << STAGE_SHIFT | took_ns(from, to), key);
    }

    #[inline]
    fn put(&mut self, at: Instant, packed: u64, third: u64) {
        if self.head == self.room_to && !self.has_room() {
            return;
        }
        let slot = self.shared.slot(self.head);
        let words = &self.shared.words[slot..slot + WORDS];
        words[0].store(at.as_ns().cast_unsigned(), Relaxed);
        words[1].store(packed, Relaxed);
        words[2].store(third, Relaxed);
        self.head += 1;
        self.shared.head.0.store(self.head, Release);
    }

    /// Waits for room, if it must; `false`: records are taken out no more, and the record is lost and counted.
    #[cold]
    fn has_room(&mut self) -> bool {
        let mut has_waited = false;
        loop {
            self.room_to = self.shared.tail.0.load(Acquire) + self.shared.mask + 1;
            if self.head < self.room_to {
                return true;
            }
            if self.shared.is_closed.load(Acquire) {
                self.shared.lost.fetch_add(1, Relaxed);
                return false;
            }
            if !has_waited {
                has_waited = true;
                self.shared.waits.fetch_add(1, Relaxed);
            }
            pause();
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.shared.is_dropped.store(true, Release);
    }
}

/// How long something took; a clock that went back makes nothing of it, and the end is kept as it was given.
fn took_ns(from: Instant, to: Instant) -> u64 {
    // Whoever gives the times may give any: two of them can be further apart than a number says.
    let took_ns = to.as_ns().saturating_sub(from.as_ns());
    u64::try_from(took_ns).unwrap_or(0).min(TOOK_NS_MAX)
}
