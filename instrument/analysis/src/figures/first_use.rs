//! The first transaction on each connection of a trial, its warm-up's included: what a server does once for a connection
//! is in these alone, and most of them fall before the measured window.

use model::{FinalStages, NO_STAMP, Row, Stamp};

use crate::figures::known::Known;
use crate::figures::part::Part;
use stats::carry::Carry;
use stats::trend::median;

/// Connections of one engine thread that are told apart; what more there are is left out.
const CONNECTIONS_MAX: usize = 1 << 16;

/// The first transaction of a connection.
#[derive(Clone, Copy, Debug)]
struct First {
    sent: Stamp,
    due: Stamp,
    /// Sent to the final stage; [`NO_STAMP`] where it never got there.
    service_ns: i64,
}

/// By engine thread and connection.
#[derive(Clone, Debug)]
pub(crate) struct FirstUse {
    ends: FinalStages,
    threads: Vec<Vec<Option<First>>>,
}

/// Service times of the first transactions of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstTimes {
    /// Connections whose first transaction reached the final stage.
    pub connections: usize,
    /// Those among them whose first transaction was due before the window.
    pub before: usize,
    /// The median of their service times, ns.
    pub median_ns: f64,
}

impl Part for FirstUse {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self { ends: trial.ends, threads: Vec::new() }
    }

    fn block(&mut self, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        for thread in 0..it.length(self.threads.len(), usize::from(u8::MAX) + 1) {
            let of = |at: usize| self.threads.get(thread).and_then(|it| *it.get(at)?);
            let mine =
                (0..self.threads.get(thread).map_or(0, Vec::len)).filter(|at| of(*at).is_some());
            let told: Vec<_> = it
                .places(mine, CONNECTIONS_MAX)
                .into_iter()
                .map(|at| {
                    let mine = of(at).unwrap_or(First { sent: 0, due: 0, service_ns: 0 });
                    let (sent, due) = (it.told(mine.sent), it.told(mine.due));
                    (at, First { sent, due, service_ns: it.told(mine.service_ns) })
                })
                .collect();
            it.adding(|| told.into_iter().for_each(|(at, first)| self.first(thread, at, first)));
        }
    }
}

impl FirstUse {
    /// Adds a plausible row.
    #[inline]
    pub fn row(&mut self, row: &Row) {
        let (thread, connection) = (usize::from(row.worker), row.connection as usize);
        if let Some(Some(known)) = self.threads.get(thread).and_then(|it| it.get(connection))
            && known.sent <= row.sent
        {
            return;
        }
        if row.sent == NO_STAMP || connection >= CONNECTIONS_MAX {
            return;
        }
        let service_ns = row.service_ns(self.ends.of(row.stream)).unwrap_or(NO_STAMP);
        self.first(thread, connection, First { sent: row.sent, due: row.due, service_ns });
    }

    /// Keeps it, if it is before what is known; of equals the one that is known.
    fn first(&mut self, thread: usize, connection: usize, first: First) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Vec::new());
        }
        let thread = &mut self.threads[thread];
        if thread.len() <= connection {
            thread.resize(connection + 1, None);
        }
        let known = &mut thread[connection];
        if known.is_none_or(|known| first.sent < known.sent) {
            *known = Some(first);
        }
    }

    /// Of all connections, for a window that begins at `start`.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    pub fn times(&self, start: Stamp) -> Option<FirstTimes> {
        let firsts =
            || self.threads.iter().flatten().flatten().filter(|it| it.service_ns != NO_STAMP);
        let mut services: Vec<f64> = firsts().map(|it| it.service_ns as f64).collect();
        let before = firsts().filter(|it| it.due < start).count();
        let connections = services.len();
        median(&mut services).map(|median_ns| FirstTimes { connections, before, median_ns })
    }
}
