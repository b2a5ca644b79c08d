//! What a node's reply to a submission means. Errors come inside of a reply that transport calls a success; every one is
//! kept with the node's own code.

use std::borrow::Cow;

use model::{Class, Outcome};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sut::{reply_id, shown};

use crate::hex::{self, Hash};

/// A reply of JSON-RPC 2.0, of which `R` is what is looked for in a result.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply<'a, R> {
    /// Absent where the node could not even read the request, and in what it tells unasked.
    pub(crate) id: Option<u64>,
    pub(crate) result: Option<R>,
    #[serde(borrow)]
    pub(crate) error: Option<RpcError<'a>>,
    /// What a subscription tells.
    pub(crate) params: Option<IgnoredAny>,
}

/// An error of JSON-RPC. Codes mean little: one node gives −32000 for nearly all, another −32003.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcError<'a> {
    pub(crate) code: i64,
    #[serde(borrow, default)]
    pub(crate) message: Cow<'a, str>,
}

impl RpcError<'_> {
    /// In words, no more of them than are kept.
    pub(crate) fn words(&self) -> String {
        format!("{} ({})", shown(self.message.as_bytes()), self.code)
    }
}

/// The number and the hash of a transaction that was taken, read off a reply as nodes write it: nearly all replies are this
/// one. Anything else, down to a blank, is `None` and is taken apart as JSON.
pub(crate) fn quickly_accepted(text: &str) -> Option<(u64, Hash)> {
    let (id, rest) = reply_id(text)?;
    let (hash, end) = rest.strip_prefix(br#","result":"0x"#)?.split_first_chunk::<64>()?;
    let hash = hex::digits(hash)?;
    (end == br#""}"#).then_some((id, hash))
}

/// The longest text of an error of which nothing more is known.
const TEXT_CHARS_MAX: usize = 100;

/// Errors by words of theirs, in lower case, first match; what becomes of the transaction; what a report says. The words are
/// those of geth 1.17 (`core/txpool/errors.go`, `core/error.go`) and of anvil 1.7.
const KNOWN: [(&str, Class, &str); 19] = [
    ("nonce too low", Class::Conflict, "nonce too low"),
    ("nonce too high", Class::Conflict, "nonce too high"),
    ("replacement transaction underpriced", Class::Conflict, "replacement underpriced"),
    ("future transaction tries to replace pending", Class::Conflict, "would replace a pending one"),
    ("already known", Class::Conflict, "already known"),
    ("already imported", Class::Conflict, "already known"),
    ("txpool is full", Class::Overloaded, "the pool is full"),
    ("pool is full", Class::Overloaded, "the pool is full"),
    ("account limit exceeded", Class::Overloaded, "the account has too many in the pool"),
    ("in-flight transaction limit", Class::Overloaded, "the account has too many in the pool"),
    // A pool that is full takes only what pays more than its cheapest.
    ("transaction underpriced", Class::Overloaded, "underpriced: the pool is full of better"),
    ("insufficient funds", Class::BadRequest, "insufficient funds"),
    ("intrinsic gas", Class::BadRequest, "gas below what it takes"),
    ("gas limit", Class::BadRequest, "more gas than a block has"),
    ("max fee per gas less than block base fee", Class::BadRequest, "max fee below the base fee"),
    ("fee cap", Class::BadRequest, "fee beyond what the node takes"),
    ("rate limit", Class::Limited, "rate limited"),
    ("limit exceeded", Class::Limited, "rate limited"),
    ("too many requests", Class::Limited, "rate limited"),
];

/// The code for what a provider's limiter refuses.
const LIMITED: i64 = -32005;

/// What a node's error makes of a transaction: its outcome, the node's code without its sign, and words that are the same
/// for all of a kind.
pub(crate) fn refusal(error: &RpcError<'_>) -> (Outcome, u16, String) {
    let number = u16::try_from(error.code.unsigned_abs()).unwrap_or(u16::MAX);
    let said = error.message.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(words, ..)| said.contains(words));
    let (class, text) = match known {
        Some((_, class, text)) => (*class, (*text).to_owned()),
        None if error.code == LIMITED => (Class::Limited, "rate limited".to_owned()),
        None => (Class::Server, error.words().chars().take(TEXT_CHARS_MAX).collect()),
    };
    (Outcome::Rejected(class), number, text)
}
