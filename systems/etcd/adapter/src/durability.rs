//! Settings that decide what members keep, with the words of etcd's documentation.

use sut::DurabilityFacts;
use sut::durability::{Documented, Promise};

pub(crate) const LIST: [Documented; 1] = [Documented {
    name: "unsafe-no-fsync",
    default: "false",
    document: "etcd 3.6",
    promises: &[
        Promise {
            values: &["false"],
            words: "Any completed operations are durable. All accessible data is also durable data.",
            section: "etcd API guarantees, Durability",
        },
        Promise {
            values: &["true"],
            words: "Disables fsync, unsafe, will cause data loss.",
            section: "Configuration options",
        },
    ],
}];

/// Those of members of this version with these options, without their dashes; `None`: they ran already, and do not say theirs.
pub(crate) fn of_members(version: &str, options: Option<&[String]>) -> DurabilityFacts {
    let value = |of: &Documented| {
        let mut set = options?.iter().filter_map(|option| option.strip_prefix(of.name));
        Some(match set.next_back() {
            None => of.default.to_owned(),
            // A switch without a value is on.
            Some("") => "true".to_owned(),
            Some(value) => value.trim_start_matches('=').to_owned(),
        })
    };
    let settings = LIST.iter().map(|of| of.in_force(value(of))).collect();
    DurabilityFacts { version: version.to_owned(), settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the words are those of the option as it was given, of the default where it was not, and none where it is not known.
    #[test]
    fn words_of_options() {
        let words = |options: Option<&[&str]>| {
            let options: Option<Vec<String>> =
                options.map(|list| list.iter().map(|it| (*it).to_owned()).collect());
            let [setting] = &of_members("3.7.3", options.as_deref()).settings[..] else {
                panic!("one setting");
            };
            setting
                .promise
                .as_ref()
                .map(|it| it.words.split(' ').next().unwrap_or_default().to_owned())
        };
        assert_eq!(words(Some(&["max-txn-ops=9", "unsafe-no-fsync"])).as_deref(), Some("Disables"));
        assert_eq!(words(Some(&["unsafe-no-fsync=true"])).as_deref(), Some("Disables"));
        assert_eq!(words(Some(&["unsafe-no-fsync=false"])).as_deref(), Some("Any"));
        assert_eq!(words(Some(&[])).as_deref(), Some("Any"));
        assert_eq!(words(None), None);
    }
}
