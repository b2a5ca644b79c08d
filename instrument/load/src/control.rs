//! How a trial is stopped from outside. Two requests, never taken back; whoever asks does not wait here.

use std::sync::atomic::{AtomicU8, Ordering};

/// Stops a trial: first the load, then the drain.
#[derive(Debug, Default)]
pub struct Control(AtomicU8);

const STOP: u8 = 1;
const QUIT: u8 = 2;

impl Control {
    /// No more due times; what is outstanding has [`crate::STOPPED_DRAIN_MAX`], or the plan's drain if that is shorter,
    /// and is resolved (the first Ctrl-C).
    pub fn stop(&self) {
        self.0.fetch_max(STOP, Ordering::Relaxed);
    }

    /// Cuts the drain: what is outstanding is resolved as unknown now (the second Ctrl-C).
    pub fn quit(&self) {
        self.0.fetch_max(QUIT, Ordering::Relaxed);
    }

    /// Whether [`Control::stop`] or [`Control::quit`] was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= STOP
    }

    /// Whether [`Control::quit`] was called.
    #[must_use]
    pub fn is_quit(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= QUIT
    }
}
