//! Until when what is outstanding after the load is waited for: the plan's bound, or a shorter one from the moment that
//! the trial is asked to end. It waits for nothing itself.

use std::time::Duration;

use model::Stamp;

use crate::Control;
use crate::trial::whole_ns;

/// How long answers are waited for once a stop has been asked for. A person who presses Ctrl-C looks for the end within a
/// second: half of it is for answers that are on their way, the other half for ending what runs and writing the report.
pub const STOPPED_DRAIN_MAX: Duration = Duration::from_millis(500);

/// The drain of one thread of the load.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    /// `None`: the load is not over.
    until: Option<Stamp>,
    /// A stop made it shorter than the plan has it.
    is_hastened: bool,
}

impl Drain {
    /// The load is over: from now on at most so long.
    pub(crate) fn begin(&mut self, now: Stamp, drain_max_ns: i64) {
        self.until = Some(now.saturating_add(drain_max_ns));
    }

    /// Whether it has begun.
    pub(crate) const fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// Whether the time is up. A stop that is asked for in the drain makes it shorter, too.
    pub(crate) fn is_over(&mut self, now: Stamp, control: &Control) -> bool {
        let Some(until) = &mut self.until else { return false };
        if control.is_stopped() && !self.is_hastened {
            let stopped = now.saturating_add(whole_ns(STOPPED_DRAIN_MAX));
            self.is_hastened = stopped < *until;
            *until = stopped.min(*until);
        }
        now >= *until
    }

    /// Whether what is outstanding when it ends was waited for less long than planned.
    pub(crate) const fn is_hastened(&self) -> bool {
        self.is_hastened
    }
}
