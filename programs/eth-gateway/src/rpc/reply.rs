//! Answers of the node, read: one reply or a batch of them, in any order.

use std::time::Duration;

use bytes::Bytes;

use super::call::{Answer, Failure};
use crate::json;

/// What providers say when their limiter refuses; some say the same code when a search found too much.
const LIMIT_CODE: i64 = -32005;
/// Of a node's words this much is passed on.
const WORDS_MAX: usize = 300;

/// Said by a refusal of the node's limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stated {
    /// Calls a second that are allowed.
    pub allowed_rps: Option<f64>,
    /// How long to send nothing.
    pub backoff: Option<Duration>,
}

/// A reply's end: the result, a failure, or the limiter's refusal with what it said.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// A result or an error of this call.
    Answer(Answer),
    /// The limiter's.
    Limited(Stated),
}

/// Reads what came for `count` calls with the ids from 0. Always gives `count` replies.
#[must_use]
pub fn read(status: u16, retry_after: Option<Duration>, text: &Bytes, count: usize) -> Vec<Reply> {
    let all = |make: &dyn Fn() -> Reply| (0..count).map(|_| make()).collect();
    let limited = |stated: Stated| Stated { backoff: retry_after.or(stated.backoff), ..stated };
    let is_json = json::is_valid(text);
    if status == 429 {
        let stated = if is_json {
            stated(json::member(text, "error").unwrap_or(text))
        } else {
            Stated::default()
        };
        return all(&|| Reply::Limited(limited(stated)));
    }
    if !is_json {
        let words = match status {
            200 => format!("{} bytes that are no JSON", text.len()),
            status => format!("status {status} without JSON"),
        };
        return all(&|| Reply::Answer(Err(Failure::Garbage(words.clone()))));
    }
    if text.trim_ascii_start().first() != Some(&b'[') {
        // A batch that is answered by one object was refused as a whole.
        let is_error = json::member(text, "error").is_some_and(|error| error != b"null");
        // The id of an error may be null: a node that could not read the call could not read its id.
        let id = json::member(text, "id");
        if !is_error && count == 1 && id != Some(b"0") {
            let words = "a reply to another call".to_owned();
            return all(&|| Reply::Answer(Err(Failure::Garbage(words.clone()))));
        }
        return all(&|| one(text, count > 1 || is_error));
    }
    let mut replies: Vec<Option<Reply>> = (0..count).map(|_| None).collect();
    for element in json::elements(text) {
        let id =
            json::member(element, "id").and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        let place = id.and_then(|id: usize| replies.get_mut(id));
        if let Some(place) = place {
            *place = Some(one(&text.slice_ref(element), false));
        }
    }
    let missing = || Reply::Answer(Err(Failure::Garbage("a batch without this call".to_owned())));
    replies.into_iter().map(|reply| reply.unwrap_or_else(missing)).collect()
}

fn one(text: &Bytes, is_whole: bool) -> Reply {
    if let Some(error) = json::member(text, "error").filter(|error| *error != b"null") {
        return error_of(error, is_whole);
    }
    match json::member(text, "result") {
        Some(result) if !is_whole => Reply::Answer(Ok(text.slice_ref(result))),
        _ => Reply::Answer(Err(Failure::Garbage("neither a result nor an error".to_owned()))),
    }
}

fn error_of(error: &[u8], is_whole: bool) -> Reply {
    let number =
        |name| json::member(error, name).and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
    let code: i64 = number("code").unwrap_or_default();
    let message: String = json::member(error, "message")
        .and_then(|text| serde_json::from_slice::<String>(text).ok())
        .unwrap_or_default();
    let message: String = message.chars().take(WORDS_MAX).collect();
    let stated = stated(error);
    let says_rate = message.contains("rate") || message.contains("Too Many");
    if stated != Stated::default() || code == 429 || (code == LIMIT_CODE && says_rate) {
        return Reply::Limited(stated);
    }
    if is_whole && code == -32600 {
        let words = format!("the node takes no batches ({message}); set batch = false");
        return Reply::Answer(Err(Failure::Garbage(words)));
    }
    Reply::Answer(Err(Failure::Refused { code, message }))
}

/// What `data.rate` of an error says.
fn stated(error: &[u8]) -> Stated {
    let rate = json::member(error, "data").and_then(|data| json::member(data, "rate"));
    let number = |name| -> Option<f64> {
        std::str::from_utf8(json::member(rate?, name)?).ok()?.parse().ok()
    };
    let backoff = number("backoff_seconds");
    Stated {
        allowed_rps: number("allowed_rps"),
        backoff: backoff.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, count: usize) -> Vec<Reply> {
        read(200, None, &Bytes::copy_from_slice(text.as_bytes()), count)
    }

    fn result(text: &'static str) -> Reply {
        Reply::Answer(Ok(Bytes::from_static(text.as_bytes())))
    }

    /// Claim: a result is passed on byte for byte, and a batch's results by their ids.
    #[test]
    fn results() {
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","id":0,"result":{"a": [1]}}"#, 1),
            [result(r#"{"a": [1]}"#)]
        );
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":0,"result":null}"#, 1), [result("null")]);
        let batch = r#"[{"id":1,"result":"0x2"},{"id":0,"result":"0x1"}]"#;
        assert_eq!(of(batch, 2), [result("\"0x1\""), result("\"0x2\"")]);
    }

    /// Claim: a reply with another id than the call's is no answer to it; an error without one is.
    #[test]
    fn ids() {
        for text in
            [r#"{"id":77,"result":"0x1"}"#, r#"{"result":"0x1"}"#, r#"{"id":"0","result":1}"#]
        {
            assert!(matches!(&of(text, 1)[0], Reply::Answer(Err(Failure::Garbage(_)))), "{text}");
        }
        let error = r#"{"id":null,"error":{"code":-32602,"message":"no"}}"#;
        assert!(matches!(&of(error, 1)[0], Reply::Answer(Err(Failure::Refused { .. }))));
    }

    /// Claim: the limiter's refusal is told from errors of a call, by what it says of the rate, also for a whole batch.
    #[test]
    fn limited() {
        let stated = Stated { allowed_rps: Some(50.0), backoff: Some(Duration::from_secs(30)) };
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"project ID request rate exceeded","data":{"rate":{"allowed_rps":50,"backoff_seconds":30,"current_rps":83.7}}}}"#;
        assert_eq!(of(error, 1), [Reply::Limited(stated)]);
        assert_eq!(of(error, 2).len(), 2);
        let status = read(429, Some(Duration::from_secs(7)), &Bytes::from_static(b"slow down"), 1);
        assert_eq!(
            status,
            [Reply::Limited(Stated { backoff: Some(Duration::from_secs(7)), allowed_rps: None })]
        );
        let many = r#"{"id":0,"error":{"code":-32005,"message":"query returned more than 10000 results"}}"#;
        assert!(matches!(
            &of(many, 1)[0],
            Reply::Answer(Err(Failure::Refused { code: -32005, .. }))
        ));
    }

    /// Claim: what is no answer is named as such, for every call that waited for it.
    #[test]
    fn garbage() {
        for text in
            ["", "<html>", "{", "{}", "[]", "7", "[{\"id\":9,\"result\":1}]", "[{\"id\":-1}]"]
        {
            for reply in of(text, 2) {
                assert!(
                    matches!(reply, Reply::Answer(Err(Failure::Garbage(_)))),
                    "{text}: {reply:?}"
                );
            }
            assert_eq!(of(text, 2).len(), 2);
        }
    }
}
