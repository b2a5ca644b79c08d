//! Mistakes in an experiment, each with its sentence; nothing is sent for them.

use super::{built, system};

/// Claim: each mistake is told in one sentence.
#[test]
fn mistakes_are_told() {
    for (workload, expected) in [
        ("{}", "`workload.message` is missing (add a line such as: message = '{\"id\": {{$tx}}}')"),
        (
            r#"{"message":"{{$id}}"}"#,
            "`{{$id}}` is not a value; there are $user, $iteration, $loop, $tx, $time, $uuid, $random:LOW:HIGH",
        ),
        (
            r#"{"message":"{{$time}}"}"#,
            "`{{$time}}` is not known when a message is made, ahead of its time",
        ),
        (r#"{"message":7}"#, "`workload.message` must be text in quotes, but is"),
        (
            r#"{"message":"a","message_file":"b"}"#,
            "`message` and `message_file` are two messages; keep one",
        ),
        (r#"{"message":"hello","id":"/id"}"#, "the message is not JSON with an id at `/id`"),
        (
            r#"{"message":"{\"id\":null}","id":"/id"}"#,
            "the message is not JSON with an id at `/id`",
        ),
        (
            r#"{"message":"{}","id":"id"}"#,
            "expected a JSON pointer for `workload.id`, got `id` (did you mean `/id`?)",
        ),
        (
            r#"{"message":"a","answer_id":"/id"}"#,
            "`workload.answer_id` says nothing without `workload.id` (name the id's place in the message: id = \"/id\")",
        ),
        (
            r#"{"message":"{\"id\":1}","id":"/id","await":{"contains":"a"}}"#,
            "`workload.id` and `workload.await` are two ways to know an answer (keep one)",
        ),
        (
            r#"{"message":"a","await":{}}"#,
            "`workload.await` says nothing of the message that is awaited (write await = { contains = \"…\" }, or equals, json, regex)",
        ),
        (
            r#"{"message":"a","in_flight":2}"#,
            "several messages outstanding on a connection need answers that carry an id (name its place: id = \"/id\")",
        ),
        (
            r#"{"message":"a","error_class":"server"}"#,
            "`workload.error_class` says nothing without `workload.error_pointer` (add a line such as: error_pointer = \"/error\")",
        ),
        (
            r#"{"message":"a","headers":{"Sec-WebSocket-Protocol":"x"}}"#,
            "`Sec-WebSocket-Protocol` is the handshake's own and cannot be given (write subprotocol = \"…\")",
        ),
        (
            r#"{"message":"a","expect":{"status":200}}"#,
            "`workload.expect.status` is for HTTP (leave it out)",
        ),
        (
            r#"{"message":"a","expect":{"header":{"x-v":"1"}}}"#,
            "`workload.expect.header` cannot be met: a message has no headers (leave it out)",
        ),
        (
            r#"{"message":"a","await":{"contains":"a","header":{"x-v":"1"}}}"#,
            "`workload.await.header` cannot be met: a message has no headers (leave it out)",
        ),
        (
            r#"{"message":"a","message_bytes_max":"1GiB"}"#,
            "expected `workload.message_bytes_max` between 0B and 64MiB, got 1GiB",
        ),
        (
            r#"{"call":[{"message":"a"}]}"#,
            "`workload.call[0].name` is missing (add a line such as: name = \"…\")",
        ),
        (
            r#"{"call":[{"name":"a","message":"a"},{"name":"a","message":"b"}]}"#,
            "two calls are called `a`",
        ),
        (
            r#"{"message":"a","call":[{"name":"a","message":"a"}]}"#,
            "`workload.message` says nothing beside [[workload.call]] (write it into a call)",
        ),
    ] {
        let found = built(r#"{"url":"ws://h:1"}"#, workload).map(|_| ()).unwrap_err();
        assert_eq!(found.len(), 1, "{workload}: {found:?}");
        assert!(found[0].starts_with(expected), "{workload}: {found:?}");
    }
    let found = built(r#"{"url":"https://h:1"}"#, r#"{"message":"a"}"#).map(|_| ()).unwrap_err();
    assert!(
        found[0].contains("expected a URL of ws:// or wss://, got one of `https://`"),
        "{found:?}"
    );
}

/// Claim: several messages have their own names and weights.
#[test]
fn calls() {
    let system = system(
        r#"{"call":[{"name":"buy","message":"a","weight":9},{"name":"sell","message":"b"}]}"#,
    );
    assert_eq!(sut::Kind::names(&sut::System::kinds(&system)), ["buy", "sell"]);
    let mut source = sut::System::workload(&system, model::Seed(7), 0, 1);
    let sold = (0..5_000).filter(|tx| source.next(*tx, None, &mut Vec::new()).kind == 1).count();
    assert!((400..600).contains(&sold), "{sold}");
}
