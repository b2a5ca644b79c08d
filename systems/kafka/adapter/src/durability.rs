//! Settings that decide what a partition keeps, with the words of Kafka's documentation.

use std::collections::BTreeMap;

use sut::DurabilityFacts;
use sut::durability::{Documented, Promise};

const fn documented(
    name: &'static str,
    default: &'static str,
    promises: &'static [Promise],
) -> Documented {
    Documented { name, default, document: "Kafka 4.3.1", promises }
}

const ACKS: &str = "Producer configs, acks";
const IDEMPOTENCE: &str = "Producer configs, enable.idempotence";
const MIN_INSYNC: &str = "Topic configs, min.insync.replicas";
const UNCLEAN: &str = "Topic configs, unclean.leader.election.enable";
const FLUSH_MESSAGES: &str = "Topic configs, flush.messages";
const FLUSH_MS: &str = "Topic configs, flush.ms";
const NOT_SET: &str = "In general we recommend you not set this and use replication for durability and allow the operating system's background flush capabilities as it is more efficient.";

/// Settings of the producer, which a session is.
pub(crate) const OF_PRODUCER: [Documented; 2] = [
    documented(
        "acks",
        "all",
        &[
            Promise {
                values: &["all"],
                words: "This guarantees that the record will not be lost as long as at least one in-sync replica remains alive. This is the strongest available guarantee.",
                section: ACKS,
            },
            Promise {
                values: &["1"],
                words: "should the leader fail immediately after acknowledging the record but before the followers have replicated it then the record will be lost",
                section: ACKS,
            },
            Promise {
                values: &["0"],
                words: "No guarantee can be made that the server has received the record in this case",
                section: ACKS,
            },
        ],
    ),
    documented(
        "enable.idempotence",
        "true",
        &[
            Promise {
                values: &["true"],
                words: "When set to 'true', the producer will ensure that exactly one copy of each message is written in the stream.",
                section: IDEMPOTENCE,
            },
            Promise {
                values: &["false"],
                words: "If 'false', producer retries due to broker failures, etc., may write duplicates of the retried message in the stream.",
                section: IDEMPOTENCE,
            },
        ],
    ),
];

/// Of the topic, which each run makes.
pub(crate) const OF_TOPIC: Documented = documented("replication.factor", "1", &[]);

/// Settings of brokers, each with the section on its topic's setting, which says more.
pub(crate) const OF_BROKERS: [Documented; 4] = [
    documented(
        "min.insync.replicas",
        "1",
        &[
            Promise {
                values: &["2"],
                words: "A typical scenario would be to create a topic with a replication factor of 3, set min.insync.replicas to 2, and produce with acks of \"all\". This ensures that a majority of replicas must persist a write before it's considered successful by the producer",
                section: MIN_INSYNC,
            },
            Promise {
                values: &[],
                words: "Specifies the minimum number of in-sync replicas (including the leader) required for a write to succeed when a producer sets acks to \"all\" (or \"-1\").",
                section: MIN_INSYNC,
            },
        ],
    ),
    documented(
        "unclean.leader.election.enable",
        "false",
        &[Promise {
            values: &[],
            words: "Indicates whether to enable replicas not in the ISR set to be elected as leader as a last resort, even though doing so may result in data loss.",
            section: UNCLEAN,
        }],
    ),
    documented(
        "log.flush.interval.messages",
        "9223372036854775807",
        &[
            Promise {
                values: &["1"],
                words: "if this was set to 1 we would fsync after every message",
                section: FLUSH_MESSAGES,
            },
            Promise { values: &["9223372036854775807"], words: NOT_SET, section: FLUSH_MESSAGES },
            Promise {
                values: &[],
                words: "This setting allows specifying an interval at which we will force an fsync of data written to the log.",
                section: FLUSH_MESSAGES,
            },
        ],
    ),
    documented(
        "log.flush.interval.ms",
        "null",
        &[
            Promise { values: &["null"], words: NOT_SET, section: FLUSH_MS },
            Promise {
                values: &[],
                words: "This setting allows specifying a time interval at which we will force an fsync of data written to the log.",
                section: FLUSH_MS,
            },
        ],
    ),
];

/// Those of a producer, of a topic with so many replicas, and of brokers with these settings; `None`: the brokers ran already, and do not say theirs.
pub(crate) fn of_brokers(
    version: String,
    producer: [String; 2],
    replicas: usize,
    brokers: Option<&BTreeMap<String, String>>,
) -> DurabilityFacts {
    let of_producer = OF_PRODUCER.iter().zip(producer).map(|(of, value)| of.in_force(Some(value)));
    let value = |of: &Documented| {
        let set = brokers?.get(of.name);
        Some(set.map_or_else(|| of.default.to_owned(), Clone::clone))
    };
    let of_brokers = OF_BROKERS.iter().map(|of| of.in_force(value(of)));
    let of_topic = OF_TOPIC.in_force(Some(replicas.to_string()));
    let settings = of_producer.chain([of_topic]).chain(of_brokers).collect();
    DurabilityFacts { version, settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a setting that the experiment does not name has the default's words, one that it names has those of its value, and
    /// nothing is said of brokers that ran already, whose producer is known all the same.
    #[test]
    fn words_of_brokers() {
        let words = |brokers: Option<&[(&str, &str)]>| -> Vec<Option<String>> {
            let set = brokers.map(|list| {
                list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
            });
            let producer = ["1".to_owned(), "false".to_owned()];
            let facts = of_brokers(String::new(), producer, 3, set.as_ref());
            let start = |words: String| words.chars().take(12).collect();
            facts.settings.into_iter().map(|it| it.promise.map(|it| start(it.words))).collect()
        };
        let found = |words: Vec<Option<String>>| -> Vec<String> {
            words.into_iter().map(|it| it.unwrap_or_else(|| "-".to_owned())).collect()
        };
        let safe = [("log.flush.interval.messages", "1"), ("min.insync.replicas", "2")];
        let of_producer = ["should the l", "If 'false', ", "-"];
        let of_safe = ["A typical sc", "Indicates wh", "if this was ", "In general w"];
        let of_default = ["Specifies th", "Indicates wh", "In general w", "In general w"];
        assert_eq!(found(words(Some(&safe))), [&of_producer[..], &of_safe].concat());
        assert_eq!(found(words(Some(&[]))), [&of_producer[..], &of_default].concat());
        assert_eq!(found(words(None)), [&of_producer[..], &["-"; 4]].concat());
    }
}
