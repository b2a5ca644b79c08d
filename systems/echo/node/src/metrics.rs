//! What the server says of itself, in Prometheus's text format, on a listener of its own: never through the queue, and
//! with no lies in it. It must never say more than its own counters.

/// What is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Transactions and requests that have been served.
    pub(crate) commits: u64,
    /// Those that were taken and have not been served yet.
    pub(crate) queued: u64,
}

/// It as text.
pub(crate) fn text(said: Said) -> String {
    let Said { commits, queued } = said;
    wire::metrics::text(&[
        ("echo_commits_total", true, "Transactions that have been served.", commits),
        ("echo_queue_length", false, "Transactions that wait or are being served.", queued),
    ])
}
