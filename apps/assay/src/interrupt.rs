//! Ctrl-C: the first stops the load, waits half a second at most for answers that are on their way, and reports; the
//! second waits for none; the third ends the process.
//!
//! It never reports by itself and never removes a file: what has been recorded stays.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use load::Control;
use model::quantity::{show_count, show_duration};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The requests of this process's signals so far.
#[derive(Clone, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    is_set: Arc<AtomicBool>,
    control: Mutex<Option<Arc<Control>>>,
}

impl Interrupt {
    /// Starts to listen for SIGINT, SIGTERM and SIGHUP.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn listen() -> Result<Self, String> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| format!("installing signal handlers: {error}"))?;
        let listener = interrupt.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for _ in signals.forever() {
                    listener.signalled();
                }
            })
            .map_err(|error| format!("starting the signal thread: {error}"))?;
        Ok(interrupt)
    }

    /// Whether the run has been asked to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.shared.count.load(Ordering::SeqCst) > 0
    }

    /// Set by the first signal: for what is asked before there is a load to stop.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.is_set)
    }

    /// From now on, signals reach this trial's load.
    pub fn attach(&self, control: Arc<Control>) {
        // A signal that came between two trials must reach the new one.
        match self.shared.count.load(Ordering::SeqCst) {
            0 => {}
            1 => control.stop(),
            _ => control.quit(),
        }
        *self.shared.control.lock().unwrap_or_else(PoisonError::into_inner) = Some(control);
    }

    /// Says of a load that was stopped what became of the transactions without an answer.
    pub fn say_what_was_left(&self, left: u64) {
        if self.is_set() && left > 0 {
            eprintln!(
                "assay: {} transactions had no answer by then and count as unknown",
                show_count(left)
            );
        }
    }

    /// The same as a first signal; whether it is the first.
    pub fn ask(&self) -> bool {
        let is_first = !self.is_set();
        if is_first {
            self.signalled();
        }
        is_first
    }

    fn signalled(&self) {
        let count = self.shared.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.shared.is_set.store(true, Ordering::SeqCst);
        let control = self.shared.control.lock().unwrap_or_else(PoisonError::into_inner);
        match count {
            1 => {
                eprintln!(
                    "\nassay: stopping: answers have {} more, then the report is written",
                    show_duration(load::STOPPED_DRAIN_MAX)
                );
                if let Some(control) = control.as_ref() {
                    control.stop();
                }
            }
            2 => {
                eprintln!(
                    "\nassay: not waiting for answers any more; press Ctrl-C again to quit without a report"
                );
                if let Some(control) = control.as_ref() {
                    control.quit();
                }
            }
            _ => std::process::exit(model::result::Exit::Interrupted as i32),
        }
    }
}
