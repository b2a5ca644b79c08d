//! Settings that decide what a stream keeps, with the words of the documentation of NATS.

use sut::DurabilityFacts;
use sut::durability::{Documented, Promise};

const DOCUMENT: &str = "docs.nats.io, read in December 2025";

const SYNC_INTERVAL: Documented = Documented {
    name: "sync_interval",
    default: "2m",
    document: DOCUMENT,
    promises: &[
        of_disk(
            &["2m"],
            "under the default configuration, JetStream does not immediately fsync data to disk. The server uses a configurable sync_interval option, with a default value of 2 minutes, which controls how often the server will fsync its data. […] If multiple servers fail simultaneously, all due to an OS failure, and before their data has been fsync-ed, the cluster may fail to recover the most recently acknowledged messages.",
        ),
        of_disk(
            &["always"],
            "setting sync_interval: always will make sure servers fsync after every message before it is acknowledged",
        ),
        of_disk(&[], "The data will be fsync-ed no later than this interval."),
    ],
};

const REPLICAS: Documented = Documented {
    name: "num_replicas",
    default: "1",
    document: DOCUMENT,
    promises: &[
        of_stream(
            &["1"],
            "Cannot operate during an outage of the server servicing the stream. Highly performant.",
        ),
        of_stream(
            &["3"],
            "Can tolerate the loss of one server servicing the stream. An ideal balance between risk and performance.",
        ),
        of_stream(
            &["5"],
            "Can tolerate simultaneous loss of two servers servicing the stream. Mitigates risk at the expense of performance.",
        ),
    ],
};

#[cfg(test)]
pub(crate) const LIST: [Documented; 2] = [SYNC_INTERVAL, REPLICAS];

const fn of_disk(values: &'static [&'static str], words: &'static str) -> Promise {
    Promise { values, words, section: "JetStream, Syncing data to disk" }
}

const fn of_stream(values: &'static [&'static str], words: &'static str) -> Promise {
    Promise { values, words, section: "JetStream, Stream replication factor" }
}

/// Those of servers of this version and of a stream with so many replicas; no interval: the servers ran already, and do not
/// say it.
pub(crate) fn of_servers(
    version: String,
    interval: Option<Option<&str>>,
    replicas: usize,
) -> DurabilityFacts {
    let interval = interval.map(|it| it.unwrap_or(SYNC_INTERVAL.default).to_owned());
    let settings =
        vec![SYNC_INTERVAL.in_force(interval), REPLICAS.in_force(Some(replicas.to_string()))];
    DurabilityFacts { version, settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an interval that was not set is the default, by its value; of servers that ran already none is known; and every
    /// other interval has the words on any.
    #[test]
    fn words_of_an_interval() {
        let of = |interval| {
            let facts = of_servers(String::new(), interval, 3);
            let setting = facts.settings[0].clone();
            (setting.value, setting.promise.map(|it| it.words.chars().take(7).collect::<String>()))
        };
        let some = |value: &str, words: &str| (Some(value.to_owned()), Some(words.to_owned()));
        assert_eq!(of(Some(None)), some("2m", "under t"));
        assert_eq!(of(Some(Some("always"))), some("always", "setting"));
        assert_eq!(of(Some(Some("10s"))), some("10s", "The dat"));
        assert_eq!(of(None), (None, None));
    }
}
