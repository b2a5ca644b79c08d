//! When transactions are due: pure functions of the plan, as data. Nothing here reads a clock, and no due
//! time depends on when an earlier transaction was sent or answered.
//!
//! Stamps are nanoseconds after the trial's start. The warm-up is `[0, warmup)`, the measured window
//! `[warmup, warmup + duration)`; nothing is due at or after its end. Events are numbered over the whole trial,
//! and worker `w` of `n` takes events `w, w + n, w + 2n, …`, so the number of workers changes who sends a
//! transaction, never when or which.

use std::sync::Arc;
use std::time::Duration;

use model::plan::{Schedule, Step};
use model::quantity::Rate;
use model::seed::Rng;
use model::{Seed, Stamp};

/// The window that due times fall in.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Length of the warm-up.
    pub warmup: Duration,
    /// Length of the measured window.
    pub duration: Duration,
    /// No event has this number or a larger one; `u64::MAX` = no bound.
    pub events_max: u64,
}

/// The due times of one worker, in order: an iterator of (event number, due stamp).
#[derive(Clone, Debug)]
pub struct DueTimes {
    shape: Shape,
    next_event: u64,
    stride: u64,
    end_ns: u64,
    events_max: u64,
}

#[derive(Clone, Debug)]
enum Shape {
    Never,
    /// Pieces of constant rate, one after another; the last one goes on.
    Pieces(Vec<Piece>),
    Ramp {
        held: Piece,
        warmup_ns: u64,
        from_per_ns: f64,
        to_per_ns: f64,
        duration_ns: f64,
    },
    /// Drawn in sequence: every worker draws all of it from the same seed and takes its share.
    Poisson {
        rng: Box<Rng>,
        mean_ns: f64,
        at_ns: f64,
        drawn: u64,
    },
    Burst {
        rate: Rate,
        every_ns: u64,
    },
    Trace(Arc<[u64]>),
    Every {
        start_ns: u64,
        interval_ns: u64,
    },
}

/// Evenly spaced events `first_event, first_event + 1, …` from `start_ns`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    rate: Rate,
    start_ns: u64,
    first_event: u64,
    /// One past its last event.
    end_event: u64,
}

impl DueTimes {
    /// The share of worker `worker` of `workers` in `schedule`. `seed` matters to `poisson` alone and must be
    /// the same for every worker.
    ///
    /// # Panics
    /// If the rate is `max`: that load has no due times (see [`is_saturating`]).
    #[must_use]
    pub fn new(schedule: &Schedule, window: Window, seed: Seed, worker: u32, workers: u32) -> Self {
        assert!(!is_saturating(schedule), "a load of rate max has no due times");
        let warmup_ns = whole_ns(window.warmup);
        let end_ns = warmup_ns.saturating_add(whole_ns(window.duration));
        let shape = match schedule {
            Schedule::Constant { rate } if rate.is_zero() => Shape::Never,
            Schedule::Constant { rate } => Shape::Pieces(vec![Piece::forever(*rate)]),
            Schedule::Poisson { rate } if rate.is_zero() => Shape::Never,
            Schedule::Poisson { rate } => Shape::Poisson {
                rng: Box::new(seed.split("arrivals").rng()),
                mean_ns: 1e9 / rate.as_per_second(),
                at_ns: 0.0,
                drawn: 0,
            },
            Schedule::Ramp { from, to } => ramp(*from, *to, warmup_ns, window.duration),
            Schedule::Steps { steps } => Shape::Pieces(pieces(steps, warmup_ns, end_ns)),
            Schedule::Burst { rate, every } if rate.is_zero() || every.is_zero() => Shape::Never,
            Schedule::Burst { rate, every } => {
                Shape::Burst { rate: *rate, every_ns: whole_ns(*every) }
            }
            Schedule::Trace { due_ns } => Shape::Trace(due_ns.as_slice().into()),
        };
        Self {
            shape,
            next_event: u64::from(worker),
            stride: u64::from(workers.max(1)),
            end_ns,
            events_max: window.events_max,
        }
    }

    /// An event at the start of the measured window and one every `interval` after it: an open probe.
    #[must_use]
    pub fn every(interval: Duration, window: Window) -> Self {
        let start_ns = whole_ns(window.warmup);
        Self {
            shape: Shape::Every { start_ns, interval_ns: whole_ns(interval).max(1) },
            next_event: 0,
            stride: 1,
            end_ns: start_ns.saturating_add(whole_ns(window.duration)),
            events_max: window.events_max,
        }
    }
}

impl Iterator for DueTimes {
    type Item = (u64, Stamp);

    fn next(&mut self) -> Option<(u64, Stamp)> {
        let event = self.next_event;
        if event >= self.events_max {
            return None;
        }
        let due_ns = self.shape.due_ns(event)?;
        if due_ns >= self.end_ns {
            return None;
        }
        self.next_event = event + self.stride;
        Some((event, Stamp::try_from(due_ns).expect("a trial is shorter than 292 years")))
    }
}

/// Whether a schedule asks for as much as the connections can take, so that nothing is due at a time of its own.
#[must_use]
pub fn is_saturating(schedule: &Schedule) -> bool {
    matches!(
        schedule,
        Schedule::Constant { rate } | Schedule::Poisson { rate } if rate.is_max()
    )
}

impl Shape {
    /// When event `event` is due. Asked for ascending events only.
    fn due_ns(&mut self, event: u64) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::Pieces(pieces) => {
                let piece = pieces.iter().find(|piece| event < piece.end_event)?;
                Some(piece.due_ns(event))
            }
            Self::Ramp { held, warmup_ns, from_per_ns, to_per_ns, duration_ns } => {
                if event < held.end_event {
                    return Some(held.due_ns(event));
                }
                let nth = event - held.end_event;
                let after = ramp_offset_ns(nth, *from_per_ns, *to_per_ns, *duration_ns)?;
                Some(*warmup_ns + after)
            }
            Self::Poisson { rng, mean_ns, at_ns, drawn } => {
                while *drawn <= event {
                    *at_ns += rng.exponential(*mean_ns);
                    *drawn += 1;
                }
                Some(float_ns(*at_ns))
            }
            Self::Burst { rate, every_ns } => Some(burst_ns(*rate, *every_ns, event)),
            Self::Trace(due) => due.get(usize::try_from(event).ok()?).copied(),
            Self::Every { start_ns, interval_ns } => {
                Some(start_ns.saturating_add(event.saturating_mul(*interval_ns)))
            }
        }
    }
}

impl Piece {
    fn forever(rate: Rate) -> Self {
        Self { rate, start_ns: 0, first_event: 0, end_event: u64::MAX }
    }

    fn due_ns(&self, event: u64) -> u64 {
        self.start_ns.saturating_add(self.rate.due_ns(event - self.first_event))
    }
}

/// The warm-up at the first step's rate, then the steps. What follows the last step is empty.
fn pieces(steps: &[Step], warmup_ns: u64, end_ns: u64) -> Vec<Piece> {
    let warmup = steps.first().map(|first| (first.rate, 0, warmup_ns));
    let mut start_ns = warmup_ns;
    let steps = steps.iter().map(|step| {
        let begin_ns = start_ns;
        start_ns = start_ns.saturating_add(whole_ns(step.length)).min(end_ns);
        (step.rate, begin_ns, start_ns)
    });
    let mut first_event = 0_u64;
    let mut pieces = Vec::new();
    for (rate, begin_ns, until_ns) in warmup.into_iter().chain(steps) {
        let events = rate.events_in(Duration::from_nanos(until_ns - begin_ns));
        let end_event = first_event.saturating_add(events);
        pieces.push(Piece { rate, start_ns: begin_ns, first_event, end_event });
        first_event = end_event;
    }
    pieces
}

fn ramp(from: Rate, to: Rate, warmup_ns: u64, duration: Duration) -> Shape {
    let held_events = from.events_in(Duration::from_nanos(warmup_ns));
    Shape::Ramp {
        held: Piece { rate: from, start_ns: 0, first_event: 0, end_event: held_events },
        warmup_ns,
        from_per_ns: from.as_per_second() / 1e9,
        to_per_ns: to.as_per_second() / 1e9,
        duration_ns: duration.as_secs_f64() * 1e9,
    }
}

/// When the expected number of events of a linear ramp reaches `nth`: the smaller root t of
/// `from·t + (to − from)·t²/(2·duration) = nth`, in the form that loses no digits when the slope is small
/// (`2c / (b + √(b² − 4ac))`). `None` if the ramp never gets there.
fn ramp_offset_ns(nth: u64, from: f64, to: f64, duration_ns: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "a trial has fewer than 2^53 events")]
    let wanted = nth as f64;
    if wanted == 0.0 {
        // The event at the very start exists only if there is any rate at all.
        return (from > 0.0 || to > 0.0).then_some(0);
    }
    let slope = (to - from) / duration_ns;
    let discriminant = from * from + 2.0 * slope * wanted;
    if discriminant < 0.0 {
        return None;
    }
    let denominator = from + discriminant.sqrt();
    (denominator > 0.0).then(|| float_ns(2.0 * wanted / denominator))
}

/// Event `event` of a load that sends all of a period's events at its start: the first period by whose end the
/// mean rate has produced more than `event` events.
fn burst_ns(rate: Rate, every_ns: u64, event: u64) -> u64 {
    rate.due_ns(event) / every_ns * every_ns
}

fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating by definition; never negative"
)]
fn float_ns(ns: f64) -> u64 {
    ns as u64
}

#[cfg(test)]
mod tests;
