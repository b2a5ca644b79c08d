//! Is what happens once slow: the first request on a connection, and the first request of all? A warm-up and a preflight
//! are there to keep it out of the numbers, and do; a user who opens a connection meets it all the same. So it is told,
//! with its figures, and voids nothing.

use model::quantity::{show_count, show_ns};
use model::result::FigureUnit;

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use crate::figures::first_use::FirstTimes;

/// So many times the median of the window, and above its p99: else it is a request like others.
const TIMES_MIN: f64 = 3.0;
/// Where the firsts are fewer than this, their median is one request's time: so many times p99 then.
const FEW: usize = 5;
/// A difference that nobody feels is not told, ns.
const MORE_NS_MIN: f64 = 10e6;

pub(super) const AUDIT: Audit = Audit {
    name: "first_use",
    question: "Is the first request of all, or of a connection, slower than those that are measured?",
    voids: &[],
    figures: &[("connection", FigureUnit::Ns), ("first", FigureUnit::Ns)],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let Some(typical) = Typical::of(evidence) else {
        return skipped("too few transactions were committed in the window");
    };
    let on_connections = evidence.figures.first_use.times(evidence.trial.grid.start);
    let in_preflight = first_of_preflight(evidence);
    let mut told = Vec::new();
    if let Some(firsts) =
        on_connections.filter(|it| typical.is_far_below(it.median_ns, it.connections))
    {
        told.push(of_connections(&firsts, &typical));
    }
    if let Some(ns) = in_preflight.filter(|ns| typical.is_far_below(*ns, 1)) {
        told.push(format!(
            "the first request of all took {}, in the preflight, and is in no number of the window (its median is {})",
            shown(ns),
            shown(typical.p50_ns)
        ));
    }
    let finding = if told.is_empty() {
        ok("no first request took much longer than those of the window")
    } else {
        warn(told.join("; "))
    };
    let of_connection = on_connections.map_or(f64::NAN, |it| it.median_ns);
    finding.with("connection", of_connection).with("first", in_preflight.unwrap_or(f64::NAN))
}

fn of_connections(firsts: &FirstTimes, typical: &Typical) -> String {
    let times = format!(
        "took {} (the median of the window is {})",
        shown(firsts.median_ns),
        shown(typical.p50_ns)
    );
    let of = match firsts.connections {
        1 => "the first request on the one connection".to_owned(),
        n => format!("the first request on each of {} connections", show_count(n as u64)),
    };
    let where_to = match (firsts.before, firsts.connections - firsts.before) {
        (0, _) => "all of them are in the window".to_owned(),
        (_, 0) => "the warm-up has kept all of them out of the numbers".to_owned(),
        (before, inside) => format!(
            "the warm-up has kept {before} of them out of the numbers, and {inside} are in them"
        ),
    };
    format!("{of} {times}: {where_to}; who opens a connection waits so long")
}

/// The time of a request of the window, ns.
struct Typical {
    p50_ns: f64,
    p99_ns: f64,
}

impl Typical {
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let times = evidence.response?.all();
        let at = |q: f64| times.quantile(q).map(|ns| ns as f64);
        (times.count() >= 20).then_some(Self { p50_ns: at(0.5)?, p99_ns: at(0.99)? })
    }

    fn is_far_below(&self, ns: f64, of: usize) -> bool {
        let p99_ns = if of < FEW { TIMES_MIN * self.p99_ns } else { self.p99_ns };
        ns > TIMES_MIN * self.p50_ns && ns > p99_ns && ns - self.p50_ns > MORE_NS_MIN
    }
}

/// How long the preflight waited for its first answer, ns.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
fn first_of_preflight(evidence: &Evidence<'_>) -> Option<f64> {
    let first = evidence.trial.facts.declared.preflight.first()?;
    first.took_ns.map(|ns| ns as f64)
}

#[expect(clippy::cast_possible_truncation, reason = "a time, for people")]
fn shown(ns: f64) -> String {
    show_ns(ns as i64)
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::facts::PreflightFinding;
    use model::result::{AuditOutcome, AuditResult};

    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit, row};
    use model::Row;

    pub(in crate::audits) const GUILTY: &[Guilt] = &[
        ("the first request on each of 40 connections takes 1.5 s", |trial| {
            for (old, n) in trial.rows.iter_mut().zip(0..) {
                let time = if n < 40 { 1_500 * MS } else { old.end - old.due };
                *old = Row { connection: n % 40, ..row(old.tx, old.due, time, Outcome::Committed) };
            }
        }),
        ("the first request of all takes 3 s", |trial| {
            trial.facts.declared.preflight[0].took_ns = Some(3_000 * MS);
        }),
    ];

    const MS: i64 = 1_000_000;

    /// Over forty connections in turn, after a second of warm-up; the first request of each takes `first_ns`.
    fn with(first_ns: i64, took_ns: Option<i64>) -> AuditResult {
        let mut trial = Trial::clean();
        trial.facts.declared.measure_start = 1_000 * MS;
        for (old, n) in trial.rows.iter_mut().zip(0..) {
            if n < 40 {
                *old = row(old.tx, old.due, first_ns, Outcome::Committed);
            }
            old.connection = n % 40;
        }
        let first =
            PreflightFinding { kind: "GET /".into(), ok: true, took_ns, ..Default::default() };
        trial.facts.declared.preflight = vec![first];
        audit(&trial.result(), "first_use").clone()
    }

    /// Claim: first requests of 1.5 s on connections that the warm-up swallowed, and one of 3 s in the preflight, are told
    /// with their figures; where neither is slow nothing is.
    #[test]
    fn what_happens_once() {
        let slow = with(1_500 * MS, Some(3_000 * MS));
        assert_eq!(slow.outcome, AuditOutcome::Warn, "{}", slow.detail);
        for said in [
            "the first request on each of 40 connections took 1.50 s (the median of the window is 2.5",
            "the warm-up has kept all of them out of the numbers; who opens a connection waits so long",
            "the first request of all took 3.00 s, in the preflight, and is in no number of the window",
        ] {
            assert!(slow.detail.contains(said), "{}", slow.detail);
        }
        for took in [None, Some(4 * MS)] {
            let calm = with(2 * MS, took);
            assert_eq!(calm.outcome, AuditOutcome::Ok, "{}", calm.detail);
        }
    }
}
