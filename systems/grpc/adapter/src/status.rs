//! Status codes of gRPC, and what each means: a table of outcomes that the experiment can change.

use model::options::{Problems, Section, Value, did_you_mean};
use model::{Class, Outcome};

/// The names, by their codes.
pub(crate) const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The HTTP status that stands for each (google/rpc/code.proto), by which both are counted alike.
const HTTP: [u16; 17] =
    [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];

pub(crate) const OK: u16 = 0;
pub(crate) const CANCELLED: u16 = 1;
pub(crate) const UNKNOWN: u16 = 2;
pub(crate) const RESOURCE_EXHAUSTED: u16 = 8;
pub(crate) const INTERNAL: u16 = 13;
pub(crate) const UNAVAILABLE: u16 = 14;

/// Words for outcomes in `[workload.status]`.
const WORDS: [&str; 7] =
    ["committed", "bad_request", "conflict", "expired", "limited", "overloaded", "server"];

/// The name of a code, for people.
pub(crate) fn name(code: u16) -> &'static str {
    NAMES.get(usize::from(code)).copied().unwrap_or("a code that gRPC does not have")
}

/// The code of a name as it is written in an experiment.
pub(crate) fn code(name: &str) -> Result<u16, String> {
    match NAMES.iter().position(|known| *known == name) {
        Some(at) => Ok(u16::try_from(at).expect("there are 17")),
        None => {
            let near = did_you_mean(&name.to_ascii_uppercase(), NAMES.into_iter());
            let help = near.unwrap_or_else(|| format!("there are {}", NAMES.join(", ")));
            Err(format!("`{name}` is not a status of gRPC; {help}"))
        }
    }
}

/// The code that stands for an HTTP answer that is none of gRPC's (the protocol's `http-grpc-status-mapping.md`).
pub(crate) const fn of_http(status: u16) -> u16 {
    match status {
        400 => INTERNAL,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

/// The code that stands for a reset stream (the protocol's `PROTOCOL-HTTP2.md`).
pub(crate) fn of_reset(why: &str, is_refused: bool) -> u16 {
    match why {
        _ if is_refused => UNAVAILABLE,
        "CANCEL" => CANCELLED,
        "ENHANCE_YOUR_CALM" => RESOURCE_EXHAUSTED,
        "INADEQUATE_SECURITY" => 7,
        _ => INTERNAL,
    }
}

/// Outcome by status.
#[derive(Clone, Debug)]
pub(crate) struct Outcomes([Outcome; NAMES.len()]);

impl Default for Outcomes {
    fn default() -> Self {
        Self(HTTP.map(Outcome::of_http_status))
    }
}

impl Outcomes {
    /// The meaning of a status.
    pub(crate) fn of(&self, code: u16) -> Outcome {
        self.0.get(usize::from(code)).copied().unwrap_or(Outcome::Rejected(Class::Server))
    }

    /// The default, changed by `[workload.status]`.
    pub(crate) fn read(section: Option<Section<'_>>, problems: &mut Problems) -> Self {
        let mut outcomes = Self::default();
        for (key, span, value) in section.map(Section::entries).unwrap_or_default() {
            let code = code(key).map_err(|message| problems.add(span, message, None)).ok();
            let outcome = match &value.value {
                Value::String(word) if word == "committed" => Some(Outcome::Committed),
                Value::String(word) if WORDS.contains(&word.as_str()) => {
                    Class::from_word(word).map(Outcome::Rejected)
                }
                _ => None,
            };
            match (code, outcome) {
                (Some(code), Some(outcome)) => outcomes.0[usize::from(code)] = outcome,
                (_, None) => {
                    let message = format!(
                        "expected an outcome for `workload.status.{key}`, got `{}`; it is one of {}",
                        value.label(),
                        WORDS.join(", ")
                    );
                    problems.add(value.span, message, None);
                }
                (None, Some(_)) => {}
            }
        }
        outcomes
    }
}
