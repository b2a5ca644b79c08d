//! What a status means: a table of outcomes that the experiment can change. What is written for one status
//! outranks a range, a range outranks a class of a hundred, and that outranks the default.

use model::options::{Problems, Section, Value};
use model::{Class, Outcome};

/// Statuses have three digits.
const STATUS_COUNT: usize = 1000;

/// Words for outcomes in `[workload.status]`. `transport` and `client` are not among them: they are not a
/// system's answers.
const WORDS: [&str; 7] =
    ["committed", "bad_request", "conflict", "expired", "limited", "overloaded", "server"];

/// Outcome by status.
#[derive(Clone, Debug)]
pub(crate) struct OutcomeTable {
    outcomes: Box<[Outcome; STATUS_COUNT]>,
    /// Those that the experiment speaks of, first and last.
    told: Vec<(usize, usize)>,
}

impl OutcomeTable {
    /// What the status means.
    pub(crate) fn outcome(&self, status: u16) -> Outcome {
        self.outcomes.get(usize::from(status)).copied().unwrap_or(Outcome::Rejected(Class::Server))
    }

    /// Whether the experiment says what the status means.
    pub(crate) fn is_told(&self, status: u16) -> bool {
        self.told.iter().any(|(first, last)| (*first..=*last).contains(&usize::from(status)))
    }

    /// The default, changed by the section's entries.
    pub(crate) fn read(section: Option<Section<'_>>, problems: &mut Problems) -> Self {
        let mut table = Self::default();
        let mut changes = Vec::new();
        for (key, span, value) in section.map(Section::entries).unwrap_or_default() {
            let range = range(key).ok_or_else(|| {
                (span, format!("`workload.status.{key}` is not a status; write \"404\", \"5xx\" or \"500-503\""))
            });
            let outcome = match &value.value {
                Value::String(word) => outcome(word).ok_or_else(|| {
                    (
                        value.span,
                        format!(
                            "`{word}` is not an outcome of a status; it is one of {}",
                            WORDS.join(", ")
                        ),
                    )
                }),
                _ => Err((
                    value.span,
                    format!(
                        "`workload.status.{key}` must be text in quotes, but is {}",
                        value.type_word()
                    ),
                )),
            };
            match (range, outcome) {
                (Ok(range), Ok(outcome)) => changes.push((range, outcome)),
                (range, outcome) => {
                    for (span, message) in [range.err(), outcome.err()].into_iter().flatten() {
                        problems.add(span, message, None);
                    }
                }
            }
        }
        // The widest first, so that the narrowest has the last word, whatever the order in the file.
        changes.sort_by_key(|((first, last), _)| (std::cmp::Reverse(last - first), *first));
        for ((first, last), outcome) in changes {
            table.outcomes[first..=last].fill(outcome);
            table.told.push((first, last));
        }
        table
    }
}

impl Default for OutcomeTable {
    fn default() -> Self {
        let of = |status: usize| u16::try_from(status).map(Outcome::of_http_status);
        let outcome = |status| of(status).expect("statuses have three digits");
        Self { outcomes: Box::new(std::array::from_fn(outcome)), told: Vec::new() }
    }
}

fn outcome(word: &str) -> Option<Outcome> {
    if word == "committed" {
        return Some(Outcome::Committed);
    }
    WORDS.contains(&word).then(|| Class::from_word(word).map(Outcome::Rejected)).flatten()
}

/// `404`, `4xx` or `500-503`, as first and last.
pub(crate) fn range(key: &str) -> Option<(usize, usize)> {
    let status = |text: &str| {
        let is_status = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_status.then(|| text.parse().ok()).flatten().filter(|status| *status >= 100)
    };
    if let Some(hundred) = key.strip_suffix("xx") {
        let first = status(&format!("{hundred}00"))?;
        return Some((first, first + 99));
    }
    match key.split_once('-') {
        Some((first, last)) => Some((status(first)?, status(last)?)).filter(|(a, b)| a <= b),
        None => status(key).map(|status| (status, status)),
    }
}

#[cfg(test)]
mod tests {
    use model::options::{Options, Span};

    use super::*;

    fn table(entries: &[(&str, &str)]) -> (OutcomeTable, Vec<String>) {
        let mut options = Options::empty();
        for (key, word) in entries {
            options
                .set(key, Options { value: Value::String((*word).into()), span: Span::default() });
        }
        let mut problems = Problems::default();
        let section = Section::open(&options, "workload.status", &mut problems);
        let table = OutcomeTable::read(Some(section), &mut problems);
        (table, problems.list.into_iter().map(|p| p.message).collect())
    }

    /// Claim: without entries, statuses mean what the README's table says.
    #[test]
    fn the_default() {
        let (table, problems) = table(&[]);
        assert_eq!(problems, Vec::<String>::new());
        for (status, class) in [
            (400, Class::BadRequest),
            (404, Class::BadRequest),
            (410, Class::BadRequest),
            (408, Class::Server),
            (409, Class::Conflict),
            (412, Class::Conflict),
            (429, Class::Limited),
            (500, Class::Server),
            (502, Class::Server),
            (503, Class::Overloaded),
            (504, Class::Server),
            (777, Class::Server),
        ] {
            assert_eq!(table.outcome(status), Outcome::Rejected(class), "{status}");
        }
        for status in [200, 204, 301, 399] {
            assert_eq!(table.outcome(status), Outcome::Committed, "{status}");
        }
    }

    /// Claim: the narrowest entry decides, whatever the order.
    #[test]
    fn the_narrowest_entry_decides() {
        let (table, problems) = table(&[
            ("503", "limited"),
            ("500-503", "bad_request"),
            ("5xx", "overloaded"),
            ("404", "committed"),
        ]);
        assert_eq!(problems, Vec::<String>::new());
        let word = |status| table.outcome(status).to_string();
        assert_eq!(word(503), "rejected(limited)");
        assert_eq!(word(501), "rejected(bad_request)");
        assert_eq!(word(599), "rejected(overloaded)");
        assert_eq!(word(404), "committed");
        assert_eq!(word(200), "committed");
    }

    /// Claim: what is no status or no outcome is refused, each with its own message.
    #[test]
    fn broken_entries() {
        let (_, problems) = table(&[
            ("40x", "bad_request"),
            ("503-500", "server"),
            ("404", "ok"),
            ("500", "client"),
            ("099", "server"),
        ]);
        assert_eq!(
            problems,
            [
                "`workload.status.099` is not a status; write \"404\", \"5xx\" or \"500-503\"",
                "`ok` is not an outcome of a status; it is one of committed, bad_request, conflict, expired, limited, overloaded, server",
                "`workload.status.40x` is not a status; write \"404\", \"5xx\" or \"500-503\"",
                "`client` is not an outcome of a status; it is one of committed, bad_request, conflict, expired, limited, overloaded, server",
                "`workload.status.503-500` is not a status; write \"404\", \"5xx\" or \"500-503\"",
            ]
        );
    }
}
