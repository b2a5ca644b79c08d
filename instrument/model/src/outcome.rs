//! The outcome of a transaction, as its client saw it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a transaction was refused or failed. Two of these, `Transport` and `Client`, are not the system's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    /// The system says that the request is wrong (malformed, not found, not allowed, check failed). Older records say
    /// `invalid`, which is a verdict's name, too.
    #[serde(alias = "invalid")]
    BadRequest = 1,
    /// It conflicts with another (double spend, version mismatch).
    Conflict = 2,
    /// It came too late for the system's own validity window.
    Expired = 3,
    /// A rate limiter refused it.
    Limited = 4,
    /// A full queue, pool or server refused it.
    Overloaded = 5,
    /// The system failed while serving it.
    Server = 6,
    /// The connection failed: refused, reset, closed, TLS failure, an answer that is not of the protocol.
    Transport = 7,
    /// This client ran out of something (descriptors, ports, name lookup), or a program that is the client failed. Never
    /// the system's fault.
    Client = 8,
}

impl Class {
    /// All classes, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::BadRequest,
        Self::Conflict,
        Self::Expired,
        Self::Limited,
        Self::Overloaded,
        Self::Server,
        Self::Transport,
        Self::Client,
    ];

    /// The word used in files and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Conflict => "conflict",
            Self::Expired => "expired",
            Self::Limited => "limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Transport => "transport",
            Self::Client => "client",
        }
    }

    /// Whether it may come of when transactions were sent, and of how fast the machine was that all ran on: too late, too
    /// often, too many at once, or a failure of this client. The others are the system's whoever was late.
    #[must_use]
    pub const fn is_of_time(self) -> bool {
        match self {
            Self::Expired | Self::Limited | Self::Overloaded | Self::Client => true,
            Self::BadRequest | Self::Conflict | Self::Server | Self::Transport => false,
        }
    }

    /// The class called `word`, now or in older records and programs.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "invalid" { Self::BadRequest.word() } else { word };
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The outcome of a transaction for its client. Unknown is an answer; it is never rounded to success or failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It reached the stage that the experiment calls final.
    Committed,
    /// It was refused or failed, and why.
    Rejected(Class),
    /// It was sent and no final answer came within the timeout, or the connection died under it.
    Unknown,
    /// It was due and never sent: the backlog was full or its wait exceeded the timeout.
    Shed,
}

impl Outcome {
    /// The code that stands in a row: 0 committed, 1–8 rejected by class, 16 unknown, 17 shed.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Committed => 0,
            Self::Rejected(class) => class as u8,
            Self::Unknown => 16,
            Self::Shed => 17,
        }
    }

    /// Whether it is a failure of time: no answer in time, never sent, or rejected in a class of time.
    #[must_use]
    pub const fn is_of_time(self) -> bool {
        match self {
            Self::Committed => false,
            Self::Rejected(class) => class.is_of_time(),
            Self::Unknown | Self::Shed => true,
        }
    }

    /// The word by which failures are counted: the class of what was rejected.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Rejected(class) => class.word(),
            Self::Unknown => "unknown",
            Self::Shed => "shed",
        }
    }

    /// The meaning of an HTTP status where the experiment does not give one.
    #[must_use]
    pub const fn of_http_status(status: u16) -> Self {
        match status {
            200..=399 => Self::Committed,
            429 => Self::Rejected(Class::Limited),
            503 => Self::Rejected(Class::Overloaded),
            409 | 412 => Self::Rejected(Class::Conflict),
            408 => Self::Rejected(Class::Server),
            400..=499 => Self::Rejected(Class::BadRequest),
            _ => Self::Rejected(Class::Server),
        }
    }

    /// The outcome with the given code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Committed),
            1..=8 => Some(Self::Rejected(Class::ALL[usize::from(code) - 1])),
            16 => Some(Self::Unknown),
            17 => Some(Self::Shed),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Committed => f.write_str("committed"),
            Self::Rejected(class) => write!(f, "rejected({class})"),
            Self::Unknown => f.write_str("unknown"),
            Self::Shed => f.write_str("shed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every outcome survives the way through its code, and no other code is one.
    #[test]
    fn codes_round_trip() {
        let mut known = 0;
        for code in 0..=u8::MAX {
            if let Some(outcome) = Outcome::from_code(code) {
                assert_eq!(outcome.code(), code);
                known += 1;
            }
        }
        assert_eq!(known, 11);
    }

    /// Claim: every class is read by the word that it is written as, in files, too, and one by its former word.
    #[test]
    fn words_round_trip() {
        for class in Class::ALL {
            assert_eq!(Class::from_word(class.word()), Some(class));
            assert_eq!(serde_json::to_value(class).unwrap(), class.word());
        }
        let former: Class = serde_json::from_str("\"invalid\"").unwrap();
        assert_eq!([Class::from_word("invalid"), Some(former)], [Some(Class::BadRequest); 2]);
    }
}
