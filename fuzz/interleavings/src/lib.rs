//! The sampler's ring, its own source, with loom's atomics in place of the processor's: loom runs each test once for every
//! order of the two threads' steps, and for every older value that a load without an order may still see.
#![cfg(test)]

mod codec {
    pub use sampler::{Record, What};
}

mod file {
    pub use sampler::StageTotals;
}

/// Parts of `std` that the ring uses.
mod memory {
    pub use loom::sync::Arc;
    pub use loom::sync::atomic::{AtomicBool, AtomicU64};

    /// Another thread's turn.
    pub fn pause() {
        loom::thread::yield_now();
    }
}

#[path = "../../../base/sampler/src/ring.rs"]
#[expect(dead_code, reason = "what the sampler's own thread needs is not all used here")]
mod ring;

use clock::{Clock, Instant};
use ring::{Ring, Shared};
use sampler::StageTotals;

/// All orders of at most so many switches between threads that neither asked for; three found the one mistake that was tried
/// (decision 096).
const SWITCHES_MAX: usize = 3;

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(SWITCHES_MAX);
    builder.check(test);
}

/// The ring's own clock, which no record of these tests is stamped by.
fn clock() -> Clock {
    Clock::start()
}

fn put(ring: &mut Ring, number: u64) {
    let from = Instant::from_ns(number.cast_signed());
    let to = Instant::from_ns(number.cast_signed() * 3);
    ring.event(0, from, to, number);
}

/// Claim: whatever the order, a reader gets every record once, in order and whole, from a ring that is smaller than what is put
/// in, and the counts agree with them.
#[test]
fn records_come_whole_and_in_order() {
    model(|| {
        let shared = Shared::new(2, 1);
        let mut ring = Ring::new(shared.clone(), clock());
        let writer = loom::thread::spawn(move || (1..=3).for_each(|number| put(&mut ring, number)));
        let mut next = 1;
        loop {
            let is_done = shared.is_done();
            shared.take(u64::MAX, |record| {
                assert_eq!(record.at, Instant::from_ns(next * 3));
                assert_eq!(record.took_ns, next.cast_unsigned() * 2);
                assert_eq!(record.what, sampler::What::Count(next.cast_unsigned()));
                next += 1;
            });
            if is_done {
                break;
            }
            loom::thread::yield_now();
        }
        writer.join().expect("the writer ends");
        assert_eq!((next, shared.lost()), (4, 0));
        let mut totals = [StageTotals::default()];
        shared.add_to(&mut totals);
        assert_eq!((totals[0].events, totals[0].transactions, totals[0].took_ns), (3, 6, 12));
    });
}

/// Claim: a writer that waits for room in a ring that is closed goes on; each record was taken out, is still in the ring, or is
/// counted as lost.
#[test]
fn a_closed_ring_lets_its_writer_go() {
    model(|| {
        let shared = Shared::new(2, 1);
        let mut ring = Ring::new(shared.clone(), clock());
        let writer = loom::thread::spawn(move || (1..=3).for_each(|number| put(&mut ring, number)));
        let before = shared.take(1, |_| {});
        shared.close();
        writer.join().expect("the writer ends");
        let after = shared.take(u64::MAX, |_| {});
        assert_eq!(before + after + shared.lost(), 3);
        assert!(shared.is_done());
    });
}
