//! The rate that the plan asks for.

use model::plan::{Arrivals, LoadPlan, Schedule};

/// The mean rate that an open schedule asks for over the measured window; `None` where there is none.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub(crate) fn planned_rate(load: &LoadPlan) -> Option<f64> {
    let Arrivals::Open { schedule } = &load.arrivals else { return None };
    let window = load.duration.as_secs_f64();
    let rate = match schedule {
        Schedule::Constant { rate } | Schedule::Poisson { rate } | Schedule::Burst { rate, .. } => {
            rate.as_per_second()
        }
        Schedule::Ramp { from, to } => (from.as_per_second() + to.as_per_second()) / 2.0,
        Schedule::Steps { steps } => {
            let mut left = window;
            let mut events = 0.0;
            for step in steps {
                let length = step.length.as_secs_f64().min(left);
                events += step.rate.as_per_second() * length;
                left -= length;
            }
            events / window
        }
        Schedule::Trace { due_ns } => {
            let (from, to) = (load.warmup.as_nanos(), (load.warmup + load.duration).as_nanos());
            let inside = due_ns.iter().filter(|due| (from..to).contains(&u128::from(**due)));
            inside.count() as f64 / window
        }
    };
    rate.is_finite().then_some(rate)
}
