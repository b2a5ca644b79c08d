//! Messages as the experiment has them, and how the answer to one is known.

use http_adapter::borrowed::{Expectation, Filler, Text};
use model::{Class, Outcome};
use serde_json::Value;

/// A message, ready to be filled in.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The name of its kind.
    pub(crate) name: String,
    pub(crate) text: Text,
    /// Whether it is sent as bytes, and not as text.
    pub(crate) is_binary: bool,
    pub(crate) weight: u64,
    pub(crate) expects: Expectation,
}

/// All messages of a workload, and what is known of their answers.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    pub(crate) list: Vec<Message>,
    pub(crate) matching: Matching,
    pub(crate) error: Option<ErrorRule>,
}

/// How an answer is known.
#[derive(Clone, Debug)]
pub(crate) enum Matching {
    /// By an id, at one place of the message and at one of the answer: JSON pointers.
    Id { sent: String, answered: String },
    /// The first message that is so; without a description the first of all.
    First(Option<Expectation>),
}

/// An error inside an answer.
#[derive(Clone, Debug)]
pub(crate) struct ErrorRule {
    pub(crate) pointer: String,
    pub(crate) class: Class,
}

impl Messages {
    /// Appends what a transaction sends: the length of its id in two bytes, its id, the message.
    ///
    /// # Errors
    /// When the message has no id, in words.
    pub(crate) fn write(
        &self,
        message: &Message,
        filler: &mut Filler,
        (tx, client): (u64, u32),
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut text = Vec::new();
        filler.fill(&message.text, tx, client, 0, &mut text);
        if !message.is_binary && std::str::from_utf8(&text).is_err() {
            return Err("the message is not UTF-8, and so no text; write binary = true".to_owned());
        }
        let id = match &self.matching {
            Matching::First(_) => Vec::new(),
            Matching::Id { sent, .. } => id_at(&text, sent)
                .ok_or_else(|| format!("the message is not JSON with an id at `{sent}`"))?,
        };
        let length = u16::try_from(id.len())
            .map_err(|_| format!("an id of {} bytes, more than 65,535", id.len()))?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&id);
        out.extend_from_slice(&text);
        Ok(())
    }
}

/// A payload's id, and its message.
pub(crate) fn split(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = payload.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

/// The id in a text: as JSON without blanks, so that `7` and `"7"` are two. Null, lists and objects are none.
pub(crate) fn id_at(text: &[u8], pointer: &str) -> Option<Vec<u8>> {
    let json: Value = serde_json::from_slice(text).ok()?;
    id_of(json.pointer(pointer)?)
}

/// The same of a value.
pub(crate) fn id_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Number(_) | Value::String(_) => serde_json::to_vec(value).ok(),
        _ => None,
    }
}

impl ErrorRule {
    /// The error in an answer, if it has one. Of one that is not JSON it is not known, which is not success.
    pub(crate) fn find(&self, json: Option<&Value>) -> Option<(Outcome, String)> {
        let Some(json) = json else {
            return Some((Outcome::Rejected(Class::Server), "the answer is not JSON".to_owned()));
        };
        let error = json.pointer(&self.pointer).filter(|error| !error.is_null())?;
        let said = error.get("message").unwrap_or(error);
        let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
        Some((Outcome::Rejected(self.class), said))
    }
}
