//! The end of an injection, for all of its threads: set once, waited for by each.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use clock::{Clock, Instant};

#[derive(Debug)]
pub(super) struct Stop {
    clock: Clock,
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub fn new(clock: Clock) -> Self {
        Self { clock, is_set: Mutex::new(false), changed: Condvar::new() }
    }

    pub fn set(&self) {
        *self.state() = true;
        self.changed.notify_all();
    }

    pub fn is_set(&self) -> bool {
        *self.state()
    }

    /// Waits until `due`. Gives whether it was set before.
    pub fn comes_before(&self, due: Instant) -> bool {
        let mut is_set = self.state();
        loop {
            let wait = due.saturating_since(self.clock.now());
            if *is_set || wait.is_zero() {
                return *is_set;
            }
            let woken = self.changed.wait_timeout(is_set, wait);
            is_set = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A thread that panicked with the lock has left nothing half done: it is one word.
    fn state(&self) -> MutexGuard<'_, bool> {
        self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
