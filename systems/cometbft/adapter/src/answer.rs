//! What a node's reply to a submission means. Every reply is kept: none is taken for success because it came.

use std::borrow::Cow;

use model::{Class, Outcome};
use serde::Deserialize;
use sut::{reply_id, shown};

/// How transactions are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The reply comes at once and says only that the request was read.
    Async,
    /// The reply says what the application's check found.
    Sync,
    /// The reply comes when the transaction stands in a block.
    Commit,
}

impl Method {
    /// The words that an experiment chooses by.
    pub(crate) const WORDS: &'static [&'static str] = &["sync", "async", "commit"];

    /// The method that a word of [`Method::WORDS`] means.
    pub(crate) fn of_word(word: Option<&str>) -> Self {
        match word {
            Some("async") => Self::Async,
            Some("commit") => Self::Commit,
            _ => Self::Sync,
        }
    }

    /// Its name in the protocol.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Async => "broadcast_tx_async",
            Self::Sync => "broadcast_tx_sync",
            Self::Commit => "broadcast_tx_commit",
        }
    }
}

/// A reply of JSON-RPC 2.0 to any of the three methods.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply<'a> {
    /// Absent where the node could not even read the request.
    pub(crate) id: Option<u64>,
    result: Option<Submitted>,
    #[serde(borrow)]
    pub(crate) error: Option<RpcError<'a>>,
}

/// The number of a transaction that was taken, read off a reply in the very words of version 0.38: nearly all
/// replies are this one, and taking it apart as JSON costs three times as much. Anything else, down to a blank, is
/// `None` and is taken apart.
pub(crate) fn quickly_accepted(text: &str) -> Option<u64> {
    let (id, rest) = reply_id(text)?;
    let taken = br#","result":{"code":0,"data":"","log":"","codespace":"","hash":""#;
    let (hash, end) = rest.strip_prefix(taken)?.split_first_chunk::<64>()?;
    let is_whole = hash.iter().all(u8::is_ascii_hexdigit) && end == br#""}}"#;
    is_whole.then_some(id)
}

/// What the three methods answer, those fields that decide.
#[derive(Debug, Deserialize)]
struct Submitted {
    code: Option<u32>,
    check_tx: Option<Checked>,
    tx_result: Option<Checked>,
}

#[derive(Debug, Deserialize)]
struct Checked {
    code: u32,
}

/// An error of JSON-RPC. What went wrong stands in `data`; `message` is "Internal error" for nearly all.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcError<'a> {
    code: i64,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    data: Cow<'a, str>,
}

impl RpcError<'_> {
    /// In words, no more of them than are kept.
    pub(crate) fn words(&self) -> String {
        let (message, data) = (shown(self.message.as_bytes()), shown(self.data.as_bytes()));
        format!("{message} ({}): {data}", self.code)
    }
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The node has taken it.
    Accepted,
    /// It stands in a block.
    Committed,
    /// Neither; with the system's code and words that are the same for all of a kind.
    Ended(Outcome, u16, String),
}

/// Longest text of an error of which nothing more is known.
const TEXT_CHARS_MAX: usize = 100;

impl Reply<'_> {
    /// What it means; `None` if it is no reply to a submission.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        if let Some(error) = &self.error {
            return Some(refusal(error));
        }
        let result = self.result.as_ref()?;
        match (result.code, &result.check_tx, &result.tx_result) {
            (Some(0), ..) => Some(Verdict::Accepted),
            (Some(code), ..) => Some(failed("the check", code)),
            (None, Some(check), Some(_)) if check.code != 0 => {
                Some(failed("the check", check.code))
            }
            (None, Some(_), Some(block)) if block.code != 0 => {
                Some(failed("execution", block.code))
            }
            (None, Some(_), Some(_)) => Some(Verdict::Committed),
            _ => None,
        }
    }
}

/// The application said no.
fn failed(by: &str, code: u32) -> Verdict {
    let number = u16::try_from(code).unwrap_or(u16::MAX);
    let text = format!("refused by {by} of the application, code {code}");
    Verdict::Ended(Outcome::Rejected(Class::BadRequest), number, text)
}

/// Errors of version 0.38 by words of theirs, in lower case; what becomes of the transaction; what a report says.
/// They have no codes of their own (`mempool/errors.go`, `rpc/core/mempool.go`).
const KNOWN: [(&str, Outcome, &str); 8] = [
    ("tx already exists in cache", Outcome::Rejected(Class::Conflict), "already in the cache"),
    ("mempool is full", Outcome::Rejected(Class::Overloaded), "the mempool is full"),
    (
        "mempool is still rechecking",
        Outcome::Rejected(Class::Overloaded),
        "the mempool counts as full while it rechecks",
    ),
    ("tx too large", Outcome::Rejected(Class::BadRequest), "the transaction is too large"),
    // Of `broadcast_tx_commit`, which subscribes to its transaction before it submits it.
    ("max_subscription", Outcome::Rejected(Class::Limited), "too many wait for a commit"),
    // These come after it was accepted, and the node has stopped waiting for the block: nobody knows.
    ("timed out waiting for tx", Outcome::Unknown, GAVE_UP),
    ("txsub was canceled", Outcome::Unknown, GAVE_UP),
    ("broadcast confirmation not received", Outcome::Unknown, GAVE_UP),
];

const GAVE_UP: &str = "not in a block before the node gave up";

/// The node said no.
fn refusal(error: &RpcError<'_>) -> Verdict {
    let said = error.data.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(words, ..)| said.contains(words));
    // JSON-RPC's numbers are negative; what fits is kept without its sign.
    let number = u16::try_from(error.code.unsigned_abs()).unwrap_or(u16::MAX);
    match known {
        Some((_, outcome, text)) => Verdict::Ended(*outcome, number, (*text).to_owned()),
        None => {
            let text = error.words().chars().take(TEXT_CHARS_MAX).collect();
            Verdict::Ended(Outcome::Rejected(Class::Server), number, text)
        }
    }
}
