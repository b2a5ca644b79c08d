//! What goes wrong, and how often. Faults are drawn one after another from the world's seed.

use std::ops::RangeInclusive;
use std::time::Duration;

use clock::Instant;

use crate::random::Random;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A process is killed and started again after a while; its disk keeps what it was given.
    Kill {
        /// Which process.
        process: usize,
        /// How long it is down.
        down: Duration,
    },
    /// A process loses its power: what was not synced is lost or torn, without a word.
    Power {
        /// Which process.
        process: usize,
        /// How long it is down.
        down: Duration,
    },
    /// As [`Fault::Power`], but in the middle of its next write to the disk.
    PowerInWrite {
        /// Which process.
        process: usize,
        /// How long it is down.
        down: Duration,
    },
    /// A process is killed, and begins again with an empty disk. No weather draws it: of how many at once a system survives
    /// that is the system's own.
    LostDisk {
        /// Which process.
        process: usize,
        /// How long it is down.
        down: Duration,
    },
    /// A process is killed, and begins again with a copy of what another one's disk holds durably: what whoever runs it does
    /// where it cannot go on from its own. No weather draws it.
    CopiedDisk {
        /// Which process.
        process: usize,
        /// The owner of the disk that is copied.
        of: usize,
        /// How long it is down.
        down: Duration,
    },
    /// A process stands still while time goes on.
    Pause {
        /// Which process.
        process: usize,
        /// How long.
        pause: Duration,
    },
    /// Nothing gets from one process to another; the way back is open.
    Block {
        /// From which process.
        from: usize,
        /// To which.
        to: usize,
        /// How long.
        lasts: Duration,
    },
    /// A process and all others cannot reach one another.
    Isolate {
        /// Which process.
        process: usize,
        /// How long.
        lasts: Duration,
    },
    /// A connection is reset; both ends are told.
    Cut,
    /// Writes of a process take much longer.
    SlowDisk {
        /// Which process.
        process: usize,
        /// How long.
        lasts: Duration,
    },
    /// The disk of a process takes nothing.
    FullDisk {
        /// Which process.
        process: usize,
        /// How long.
        lasts: Duration,
    },
}

/// Kinds of faults, in the order of [`Weather::weights`].
const KINDS: usize = 9;

/// How faults are drawn.
#[derive(Clone, Debug)]
pub struct Weather {
    /// Between one fault and the next.
    pub every: RangeInclusive<Duration>,
    /// How long a fault lasts, or a process is down.
    pub lasts: RangeInclusive<Duration>,
    /// Which processes they happen to: the first so many.
    pub processes: usize,
    /// How often each kind comes beside the others, in the order of [`Fault`]; 0 is never.
    pub weights: [u64; KINDS],
    /// After this nothing goes wrong any more, and what had gone wrong ends.
    pub until: Instant,
}

impl Weather {
    /// Every kind of fault to the first `processes` processes, until `until`.
    #[must_use]
    pub fn all(processes: usize, until: Instant) -> Self {
        Self {
            every: Duration::from_millis(20)..=Duration::from_millis(400),
            lasts: Duration::from_millis(10)..=Duration::from_millis(600),
            processes,
            weights: [3, 2, 3, 3, 2, 3, 3, 2, 1],
            until,
        }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> Option<Fault> {
        let mut left = random.below(self.weights.iter().sum());
        let kind = self.weights.iter().position(|weight| {
            let is_it = left < *weight;
            left = left.saturating_sub(*weight);
            is_it
        })?;
        let process = random.place(self.processes);
        let lasts = random.within(&self.lasts);
        Some(match kind {
            0 => Fault::Kill { process, down: lasts },
            1 => Fault::Power { process, down: lasts },
            2 => Fault::PowerInWrite { process, down: lasts },
            3 => Fault::Pause { process, pause: lasts },
            4 => {
                let to = (process + 1 + random.place(self.processes.max(2) - 1)) % self.processes;
                Fault::Block { from: process, to, lasts }
            }
            5 => Fault::Isolate { process, lasts },
            6 => Fault::Cut,
            7 => Fault::SlowDisk { process, lasts },
            _ => Fault::FullDisk { process, lasts },
        })
    }
}
