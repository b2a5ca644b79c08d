//! Settings that decide what a server keeps, with the words of PostgreSQL's documentation.

use sut::DurabilityFacts;
use sut::durability::{Documented, Promise};

const fn documented(
    name: &'static str,
    default: &'static str,
    promises: &'static [Promise],
) -> Documented {
    Documented { name, default, document: "PostgreSQL 15", promises }
}

const fn promise(values: &'static [&'static str], words: &'static str) -> Promise {
    Promise { values, words, section: "20.5.1, Settings" }
}

pub(crate) const LIST: [Documented; 6] = [
    documented(
        "fsync",
        "on",
        &[
            promise(
                &["on"],
                "This ensures that the database cluster can recover to a consistent state after an operating system or hardware crash.",
            ),
            promise(
                &["off"],
                "While turning off fsync is often a performance benefit, this can result in unrecoverable data corruption in the event of a power failure or system crash.",
            ),
        ],
    ),
    documented(
        "synchronous_commit",
        "on",
        &[
            promise(
                &["on", "local", "remote_write", "remote_apply"],
                "The local behavior of all non-off modes is to wait for local flush of WAL to disk.",
            ),
            promise(
                &["off"],
                "In off mode, there is no waiting, so there can be a delay between when success is reported to the client and when the transaction is later guaranteed to be safe against a server crash. (The maximum delay is three times wal_writer_delay.)",
            ),
        ],
    ),
    documented(
        "wal_writer_delay",
        "200ms",
        &[promise(&[], "Specifies how often the WAL writer flushes WAL, in time terms.")],
    ),
    documented(
        "wal_sync_method",
        "fdatasync",
        &[
            promise(
                &["fdatasync"],
                "If fsync is off then this setting is irrelevant, since WAL file updates will not be forced out at all. […] fdatasync (call fdatasync() at each commit)",
            ),
            promise(
                &["fsync"],
                "If fsync is off then this setting is irrelevant, since WAL file updates will not be forced out at all. […] fsync (call fsync() at each commit)",
            ),
            promise(
                &["open_datasync"],
                "If fsync is off then this setting is irrelevant, since WAL file updates will not be forced out at all. […] open_datasync (write WAL files with open() option O_DSYNC)",
            ),
            promise(
                &["open_sync"],
                "If fsync is off then this setting is irrelevant, since WAL file updates will not be forced out at all. […] open_sync (write WAL files with open() option O_SYNC)",
            ),
        ],
    ),
    documented(
        "full_page_writes",
        "on",
        &[
            promise(
                &["on"],
                "Storing the full page image guarantees that the page can be correctly restored, but at the price of increasing the amount of data that must be written to WAL.",
            ),
            promise(
                &["off"],
                "Turning this parameter off speeds normal operation, but might lead to either unrecoverable data corruption, or silent data corruption, after a system failure.",
            ),
        ],
    ),
    documented(
        "data_checksums",
        "off",
        &[Promise {
            values: &["on"],
            words: "Use checksums on data pages to help detect corruption by the I/O system that would otherwise be silent.",
            section: "initdb, --data-checksums",
        }],
    ),
];

/// The settings of a server, whose word for a name `say` is.
pub(crate) fn of_server<E>(
    mut say: impl FnMut(&str) -> Result<String, E>,
) -> Result<DurabilityFacts, E> {
    let version = say("server_version")?;
    let in_force = |of: &Documented| Ok(of.in_force(Some(say(of.name)?)));
    let settings = LIST.iter().map(in_force).collect::<Result<_, E>>()?;
    Ok(DurabilityFacts { version, settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: each setting has the server's own word for it; the words on it are those of that value, and none where there are
    /// none.
    #[test]
    fn words_of_a_server() {
        let say = |name: &str| match name {
            "server_version" => Ok("15.18"),
            "wal_writer_delay" => Ok("10ms"),
            "wal_sync_method" => Ok("fsync_writethrough"),
            "synchronous_commit" | "data_checksums" => Ok("off"),
            _ => Ok::<_, ()>("on"),
        };
        let facts = of_server(|name| say(name).map(str::to_owned)).expect("it says all");
        let found: Vec<_> = facts
            .settings
            .iter()
            .map(|it| (it.name.as_str(), it.value.as_deref(), it.promise.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                ("fsync", Some("on"), true),
                ("synchronous_commit", Some("off"), true),
                ("wal_writer_delay", Some("10ms"), true),
                ("wal_sync_method", Some("fsync_writethrough"), false),
                ("full_page_writes", Some("on"), true),
                ("data_checksums", Some("off"), false),
            ]
        );
        let off = facts.settings[1].promise.as_ref().expect("it is quoted");
        assert!(off.words.contains("three times wal_writer_delay"), "{}", off.words);
        assert_eq!((facts.version.as_str(), off.document.as_str()), ("15.18", "PostgreSQL 15"));
    }
}
