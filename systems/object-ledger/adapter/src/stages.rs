//! The ladder of a transaction, and the steps of a probe's between them, by name.

/// The ladder. A submission over the wire reaches the first stage; the probe sees all of them.
pub(crate) const STAGES: [&str; 4] = ["accepted", "durable", "on_main_chain", "verified"];

/// What a transaction of the probe waits for, one behind the other: together they are all of its time.
pub(crate) const STEPS: [(&str, &str); 12] = [
    ("queued", "until the queue had acknowledged it"),
    ("dequeued", "in the queue, until a pipeline had its batch"),
    ("tree_made", "until its batch's tree was made"),
    ("timestamped", "until its block was timestamped"),
    ("proposal_stored", "until batch, block and token were durable"),
    ("sequenced", "until its block had a number"),
    ("chained", "until the pipeline knew it on the main chain"),
    ("stored", "until the sequence attestation was durable: the batch is final"),
    ("seen", "until the probe's watcher had read it from the buckets"),
    ("cached", "until it was in the watcher's cache"),
    ("decided", "until the watcher had computed the main chain"),
    ("checked", "until it was verified strongly"),
];

/// Batch finality, as published: from the first pop of a batch to the first stored sequence attestation of it. It is no part
/// of a transaction's time but the sum of some, so it is counted and is in no trace.
pub(crate) const FINALITY: (&str, &str) =
    ("batch_finality", "of a probe's batch: from its first pop to its stored sequence attestation");
