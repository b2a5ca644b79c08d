//! How connections fared, from the counters of the engine's threads.

use model::facts::{ConnectionFacts, LoadFacts};
use model::result::HealthResult;

/// Of all threads together; `None` where no thread had a connection, because a client library keeps its own.
#[expect(clippy::cast_precision_loss, reason = "a mean of counts")]
pub(crate) fn result(load: &LoadFacts) -> Option<HealthResult> {
    let workers = &load.workers;
    let of = workers.iter().fold(ConnectionFacts::default(), |sum, it| sum.with(&it.connections));
    let sum = |count: fn(&model::facts::WorkerFacts) -> u64| {
        workers.iter().map(count).fold(0, u64::saturating_add)
    };
    let (protocol_errors, unopened) = (sum(|it| it.protocol_errors), sum(|it| it.connect_failures));
    if of.opened == 0 && unopened == 0 && protocol_errors == 0 {
        return None;
    }
    Some(HealthResult {
        opened: of.opened,
        reopened: of.reopened,
        closed: of.closed,
        reset: of.reset,
        unopened,
        protocol_errors,
        unasked_bytes: of.unasked_bytes,
        lost: of.lost,
        doubtful: of.doubtful,
        answers_min: of.answers_min,
        answers_mean: (of.opened > 0).then(|| of.answers as f64 / of.opened as f64),
        answers_max: of.answers_max,
    })
}
