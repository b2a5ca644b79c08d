//! A plan in few words, for those who read it before the run and after it.

use super::{Arrivals, LoadPlan, Schedule, Step};
use crate::quantity::show_duration;

impl LoadPlan {
    /// The load in few words: `160/s poisson`, `64 clients, think 5.00 ms`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match &self.arrivals {
            Arrivals::Open { schedule } => match schedule {
                Schedule::Constant { rate } => format!("{rate}"),
                Schedule::Poisson { rate } => format!("{rate} poisson"),
                Schedule::Ramp { from, to } => format!("{from} → {to}"),
                Schedule::Steps { steps } => match (steps.first(), steps.last()) {
                    (Some(first), Some(last)) => {
                        let highest = |a: &&Step, b: &&Step| {
                            a.rate.as_per_second().total_cmp(&b.rate.as_per_second())
                        };
                        let top = steps.iter().max_by(highest).expect("there is a first").rate;
                        let ends = format!("{} steps {}", steps.len(), first.rate);
                        match top == first.rate || top == last.rate {
                            true => format!("{ends} → {}", last.rate),
                            false => format!("{ends} → {top} → {}", last.rate),
                        }
                    }
                    _ => "no steps".to_owned(),
                },
                Schedule::Burst { rate, every } => {
                    format!("{rate} in bursts every {}", show_duration(*every))
                }
                Schedule::Trace { due_ns } => format!("trace of {} due times", due_ns.len()),
            },
            Arrivals::Closed { clients, think, window, steps, .. } => {
                let mut words =
                    format!("{clients} {}", if *clients == 1 { "client" } else { "clients" });
                if !steps.is_empty() {
                    words = format!("{} steps of up to {words}", steps.len());
                }
                if !think.is_zero() {
                    words.push_str(&format!(", think {}", show_duration(*think)));
                }
                if *window > 0 {
                    words.push_str(&format!(", window {window}"));
                }
                words
            }
        }
    }
}
