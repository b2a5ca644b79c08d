//! Answers that are to wait: a sync of a slow disk. One thread holds them until they are due.
//!
//! It must never hold an answer that is due at once, and never keep a request without an answer: what is left when
//! it ends is answered then.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, CpuTime, Instant};

use crate::network::take_precedence;

/// What is to be done when its time has come.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The thread, and the way to it.
#[derive(Debug)]
pub(super) struct Pacer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    bell: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// By time, and of one time in the order given.
    due: BTreeMap<(Instant, u64), Work>,
    given: u64,
    is_over: bool,
    /// Nothing waits for its time.
    is_hurried: bool,
    cpu: Duration,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} waiting", self.lock().due.len())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pacer {
    pub(super) fn start(clock: Clock) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let held = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("testbed-disk-pace".to_owned());
        let thread = thread.spawn(move || pace(clock, &held))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Does `work` at this time, on the thread.
    pub(super) fn at(&self, due: Instant, work: Work) {
        let mut waiting = self.shared.lock();
        let given = waiting.given;
        waiting.given += 1;
        waiting.due.insert((due, given), work);
        drop(waiting);
        self.shared.bell.notify_one();
    }

    /// While this is so, what waits and what is given is done at once.
    pub(super) fn hurry(&self, is_hurried: bool) {
        self.shared.lock().is_hurried = is_hurried;
        self.shared.bell.notify_one();
    }

    pub(super) fn cpu(&self) -> Duration {
        self.shared.lock().cpu
    }

    /// Does at once what waits, and ends.
    pub(super) fn stop(&self) {
        self.shared.lock().is_over = true;
        self.shared.bell.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there has been printed by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn pace(clock: Clock, shared: &Shared) {
    take_precedence();
    // The kernel may add 50 µs to a sleep to save energy; refused, it only makes answers that much later.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let began = CpuTime::of_this_thread();
    let mut waiting = shared.lock();
    loop {
        let now = clock.now();
        let first = waiting.due.first_key_value().map(|((due, _), _)| *due);
        match first {
            Some(due) if due <= now || waiting.is_over || waiting.is_hurried => {
                let (_, work) = waiting.due.pop_first().expect("it was there a moment ago");
                drop(waiting);
                work();
                waiting = shared.lock();
                waiting.cpu = CpuTime::of_this_thread().since(began);
            }
            None if waiting.is_over => return,
            Some(due) => {
                let woken = shared.bell.wait_timeout(waiting, due.saturating_since(now));
                waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            None => waiting = shared.bell.wait(waiting).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: work is done in the order of its times, not of its giving, and what waits when the thread is ended is
    /// done then.
    #[test]
    fn by_time() {
        let clock = Clock::start();
        let pacer = Pacer::start(clock).unwrap();
        let done = Arc::new(Mutex::new(Vec::new()));
        let at = |ms: u64, what: u32| {
            let done = Arc::clone(&done);
            let due = clock.now().plus(Duration::from_millis(ms));
            pacer.at(due, Box::new(move || done.lock().unwrap().push(what)));
        };
        at(60_000, 3);
        at(30, 2);
        at(10, 1);
        while done.lock().unwrap().len() < 2 {
            clock.sleep_until(clock.now().plus(Duration::from_millis(1)));
        }
        assert_eq!(*done.lock().unwrap(), [1, 2]);
        pacer.stop();
        assert_eq!(*done.lock().unwrap(), [1, 2, 3]);
    }

    /// Claim: in a hurry nothing waits for its time, and afterwards it does again.
    #[test]
    fn in_a_hurry() {
        let clock = Clock::start();
        let pacer = Pacer::start(clock).unwrap();
        let done = Arc::new(Mutex::new(0));
        let give = || {
            let done = Arc::clone(&done);
            let work = Box::new(move || *done.lock().unwrap() += 1);
            pacer.at(clock.now().plus(Duration::from_secs(3_600)), work);
        };
        give();
        pacer.hurry(true);
        give();
        while *done.lock().unwrap() < 2 {
            clock.sleep_until(clock.now().plus(Duration::from_millis(1)));
        }
        pacer.hurry(false);
        give();
        clock.sleep_until(clock.now().plus(Duration::from_millis(20)));
        assert_eq!(*done.lock().unwrap(), 2);
    }
}
