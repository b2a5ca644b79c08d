//! Lines: JSON objects with a line feed behind, of bounded length. What a program may say stands here as types; a key
//! that is none of theirs is an error, so that a mistake of the program's is seen and not passed over.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{Class, Outcome, Seed, TxId};
use serde::Deserialize;
use sut::shown;

/// The longest line in bytes, its end included, in either direction.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The words of one system: what the experiment names, and the program has agreed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// The ladder, lowest first.
    pub stages: Vec<String>,
    /// Kinds of transactions, by [`sut::Transaction::kind`].
    pub kinds: Vec<String>,
    /// Inner steps that the program times.
    pub steps: Vec<String>,
    /// From what the keys of transactions are drawn, where they have one.
    pub keys: Option<Keys>,
}

/// Keys: each transaction has one of `count`, the same whenever its number is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The seed.
    pub seed: Seed,
    /// How many there are.
    pub count: u64,
}

impl Keys {
    /// The key of a transaction.
    #[must_use]
    pub fn of(self, id: TxId) -> u64 {
        self.seed.split_index("key", id).rng().below(self.count)
    }
}

/// The first whole line of `bytes`, without its end, and its length with it; `None`: there is none yet.
///
/// # Errors
/// When it is too long, complete or not.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    let within = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    match within.iter().position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((&bytes[..end], end + 1))),
        None if within.len() == LINE_BYTES_MAX => {
            Err(format!("a line of more than {LINE_BYTES_MAX} bytes: {}", shown(&bytes[..60])))
        }
        None => Ok(None),
    }
}

/// Reads a line as a `T`.
///
/// # Errors
/// When it is none, with what is wrong and how the line begins.
pub(crate) fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        // The words without the place, which is different each time.
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        format!("a line that cannot be read ({why}): {}", shown(&line[..line.len().min(60)]))
    })
}

/// A line of a channel of the load.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Observed<'a> {
    #[serde(borrow)]
    pub(crate) observed: Vec<Observation<'a>>,
}

/// What is said of one transaction.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Observation<'a> {
    pub(crate) id: TxId,
    #[serde(borrow, default)]
    pub(crate) reached: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) ended: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) seen: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) steps: Vec<StepLine>,
    #[serde(default)]
    pub(crate) code: u16,
    #[serde(borrow, default)]
    pub(crate) text: Cow<'a, str>,
}

/// `[step, at, took]` or `[step, at, took, node]`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum StepLine {
    Own(String, i64, u64),
    Of(String, i64, u64, String),
}

/// Outcome by its word; `None`: it is none.
pub(crate) fn outcome(word: &str) -> Option<Outcome> {
    match word {
        "committed" => Some(Outcome::Committed),
        "unknown" => Some(Outcome::Unknown),
        word => Class::from_word(word).map(Outcome::Rejected),
    }
}

/// What a program says on the control channel.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answer {
    /// The question that this answers.
    pub(crate) did: Option<String>,
    /// Why it cannot be answered.
    pub(crate) failed: Option<String>,
    // describe
    pub(crate) version: Option<u64>,
    pub(crate) name: String,
    pub(crate) stages: Vec<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) steps: Vec<String>,
    pub(crate) ledger: bool,
    pub(crate) ordered: Option<bool>,
    pub(crate) way: Option<String>,
    // deploy
    pub(crate) facts: std::collections::BTreeMap<String, String>,
    // ledger
    pub(crate) entries: Option<Vec<Entry>>,
    /// Why its own audit refuses the ledger.
    pub(crate) refused: Option<String>,
}

/// An entry of the ledger.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Entry {
    pub(crate) id: Option<TxId>,
    pub(crate) foreign: bool,
    pub(crate) block: u64,
    pub(crate) refused: bool,
    pub(crate) content: String,
    /// The content where it is no text.
    pub(crate) content_base64: Option<String>,
}

impl Entry {
    /// The content's bytes.
    ///
    /// # Errors
    /// When they are no base64.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        match &self.content_base64 {
            None => Ok(self.content.as_bytes().to_vec()),
            Some(text) => STANDARD.decode(text).map_err(|error| {
                format!("expected base64 in `content_base64`, got `{}` ({error})", sut::cut(text))
            }),
        }
    }
}
