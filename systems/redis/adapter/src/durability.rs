//! Settings that decide what a server keeps, with the words of `redis.conf`, which is where Redis documents them.

use sut::DurabilityFacts;
use sut::durability::{Documented, Promise};

const fn documented(
    name: &'static str,
    default: &'static str,
    promises: &'static [Promise],
) -> Documented {
    Documented { name, default, document: "redis.conf of Redis 7.0", promises }
}

const AOF: &str = "APPEND ONLY MODE";

const fn of_file(values: &'static [&'static str], words: &'static str) -> Promise {
    Promise { values, words, section: AOF }
}

pub(crate) const LIST: [Documented; 4] = [
    documented(
        "appendonly",
        "no",
        &[
            of_file(
                &["no"],
                "an issue with the Redis process or a power outage may result into a few minutes of writes lost (depending on the configured save points)",
            ),
            of_file(
                &["yes"],
                "The Append Only File is an alternative persistence mode that provides much better durability.",
            ),
        ],
    ),
    documented(
        "appendfsync",
        "everysec",
        &[
            of_file(&["always"], "fsync after every write to the append only log. Slow, Safest."),
            of_file(
                &["everysec"],
                "using the default data fsync policy […] Redis can lose just one second of writes in a dramatic event like a server power outage, or a single write if something wrong with the Redis process itself happens, but the operating system is still running correctly",
            ),
            of_file(&["no"], "don't fsync, just let the OS flush the data when it wants. Faster."),
        ],
    ),
    documented(
        "save",
        "3600 1 300 100 60 10000",
        &[Promise {
            values: &[""],
            words: "Snapshotting can be completely disabled with a single empty string argument",
            section: "SNAPSHOTTING",
        }],
    ),
    documented(
        "min-replicas-to-write",
        "0",
        &[Promise {
            values: &[],
            words: "Redis replication is asynchronous, but you can configure a master to stop accepting writes if it appears to be not connected with at least a given number of replicas.",
            section: "REPLICATION",
        }],
    ),
];

/// The settings of a server of this version, whose word for a name `say` is; `None`: it does not tell.
pub(crate) fn of_server(
    version: String,
    mut say: impl FnMut(&str) -> Option<String>,
) -> DurabilityFacts {
    let settings = LIST.iter().map(|of| of.in_force(say(of.name))).collect();
    DurabilityFacts { version, settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the words on a setting are those of the value that the server has, and a server that does not tell it has none.
    #[test]
    fn words_of_a_server() {
        let say = |name: &str| match name {
            "appendonly" => Some("yes".to_owned()),
            "appendfsync" => Some("no".to_owned()),
            "save" => Some(String::new()),
            _ => None,
        };
        let facts = of_server("7.0.15".to_owned(), say);
        let words: Vec<_> = facts
            .settings
            .iter()
            .map(|it| it.promise.as_ref().map(|it| it.words.split(' ').next().unwrap_or_default()))
            .collect();
        assert_eq!(words, [Some("The"), Some("don't"), Some("Snapshotting"), None]);
        assert_eq!(facts.settings[3].value, None);
    }
}
