//! Quotations of a system's documentation: the adapter's one list of the settings that decide what the system keeps.
//!
//! It must never judge a value: the words are the documentation's, and a value of which the list says nothing has none.

use model::facts::{DocumentedPromise, DurabilitySetting};

/// A durability setting as its documentation has it.
#[derive(Clone, Copy, Debug)]
pub struct Documented {
    /// By the system's own name.
    pub name: &'static str,
    /// The value where none is set.
    pub default: &'static str,
    /// The documentation, with its version or date.
    pub document: &'static str,
    /// Its promises; the first that is of a value counts.
    pub promises: &'static [Promise],
}

/// The documentation's words on some values of a setting.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// The values; none = any.
    pub values: &'static [&'static str],
    /// Word by word.
    pub words: &'static str,
    /// The section where they stand.
    pub section: &'static str,
}

impl Documented {
    /// The setting with the value in force; `None`: the system ran already, and does not say it.
    #[must_use]
    pub fn in_force(&self, value: Option<String>) -> DurabilitySetting {
        let is_of = |promise: &&Promise, value: &str| {
            promise.values.is_empty() || promise.values.contains(&value)
        };
        let of = |value: &str| self.promises.iter().find(|promise| is_of(promise, value));
        let promise = value.as_deref().and_then(of).map(|promise| DocumentedPromise {
            words: promise.words.to_owned(),
            document: self.document.to_owned(),
            section: promise.section.to_owned(),
        });
        DurabilitySetting {
            name: self.name.to_owned(),
            value,
            default: self.default.to_owned(),
            promise,
        }
    }
}

/// The list as the table of the system's README.
pub(crate) fn readme_table(list: &[Documented]) -> String {
    let code = |value: &str| match value {
        "" => "empty".to_owned(),
        value => format!("`{value}`"),
    };
    let mut text = "| setting | default | value | promise | where |\n".to_owned();
    text.push_str("| --- | --- | --- | --- | --- |\n");
    for of in list {
        let (name, default) = (of.name, code(of.default));
        if of.promises.is_empty() {
            text.push_str(&format!("| `{name}` | {default} | any | none quoted | |\n"));
        }
        for Promise { values, words, section } in of.promises {
            let values = match values {
                [] if of.promises.len() == 1 => "any".to_owned(),
                [] => "any other".to_owned(),
                some => some.iter().map(|it| code(it)).collect::<Vec<_>>().join(", "),
            };
            let place = format!("{}, {section}", of.document);
            text.push_str(&format!(
                "| `{name}` | {default} | {values} | \"{words}\" | {place} |\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Documented = Documented {
        name: "sync",
        default: "lazy",
        document: "Store 2",
        promises: &[
            Promise { values: &["always"], words: "Nothing is lost.", section: "4.1" },
            Promise { values: &["lazy", "late"], words: "A second is lost.", section: "4.2" },
        ],
    };

    /// Claim: a value has the words of the list on it, and one that is not in the list, or not known, has none.
    #[test]
    fn words_of_a_value() {
        let words = |value: Option<&str>| {
            SYNC.in_force(value.map(str::to_owned)).promise.map(|it| it.words)
        };
        assert_eq!(words(Some("always")).as_deref(), Some("Nothing is lost."));
        assert_eq!(words(Some("late")).as_deref(), Some("A second is lost."));
        assert_eq!((words(Some("never")), words(None)), (None, None));
        let any =
            Documented { promises: &[Promise { values: &[], words: "W", section: "S" }], ..SYNC };
        assert_eq!(
            any.in_force(Some("7s".to_owned())).promise.map(|it| it.words).as_deref(),
            Some("W")
        );
        assert_eq!(
            any.in_force(None).promise,
            None,
            "of a value that is not known nothing is promised"
        );
    }

    /// Claim: the table has a row for each promise with its values, the default and the place, and says where none is quoted.
    #[test]
    fn the_table_of_a_readme() {
        let never = Documented { name: "spare", default: "", promises: &[], ..SYNC };
        let rows: Vec<String> =
            readme_table(&[SYNC, never]).lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            rows,
            [
                "| `sync` | `lazy` | `always` | \"Nothing is lost.\" | Store 2, 4.1 |",
                "| `sync` | `lazy` | `lazy`, `late` | \"A second is lost.\" | Store 2, 4.2 |",
                "| `spare` | empty | any | none quoted | |",
            ]
        );
    }
}
