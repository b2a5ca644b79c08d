//! Expectations, by dialogue: what a session makes of answers that are as expected, and of those that are not.

use std::path::Path;

use sut::{Mark, Marks, Session as _, Transaction};

use crate::session::HttpSession;
use crate::tests::{built, system};

/// What a session with this workload makes of an answer to request `index`, given in pieces of so many bytes.
fn judged(workload: &str, index: u32, answer: &str, piece: usize) -> String {
    let system = system("http://h/", workload);
    let mut session = HttpSession::new(system.requests.clone(), system.rules.clone(), 1);
    session.submit(&Transaction::new(7, index, &[]), &mut Vec::new());
    let mut marks = Marks::default();
    let mut given = Vec::new();
    for part in answer.as_bytes().chunks(piece) {
        given.extend_from_slice(part);
        let used = session.receive(&given, &mut Vec::new(), &mut marks).expect("it is HTTP");
        given.drain(..used);
    }
    match marks.list() {
        [Mark::Reached { .. }] => "committed".to_owned(),
        [Mark::Ended { answer, .. }] => {
            assert_ne!(answer.code, 0, "the code is kept");
            format!("{} {}", answer.outcome, marks.text(answer))
        }
        others => panic!("{} marks", others.len()),
    }
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn chunked(body: &str) -> String {
    let chunks = body.as_bytes().chunks(3).map(|part| {
        format!("{:x}\r\n{}\r\n", part.len(), std::str::from_utf8(part).expect("ASCII"))
    });
    let chunks: String = chunks.collect();
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
}

/// Claim: what is expected of a body, and is not so, is a failure that says what was expected and what came; what is so is
/// committed; whole, byte for byte, and in chunks.
#[test]
fn bodies() {
    let good = r#"{"status":"up","items":[{"id":7}],"n":1.0}"#;
    let bad = r#"{"error":"database is down"}"#;
    for (expect, said) in [
        (
            r#"{"contains":"\"up\""}"#,
            r#"200 OK: expected a body that contains `"up"`, got `{"error":"database is down"}`"#,
        ),
        (
            r#"{"contains":["up","items"]}"#,
            r#"200 OK: expected a body that contains `up`, got `{"error":"database is down"}`"#,
        ),
        (
            r#"{"regex":"^\\{.status"}"#,
            r#"200 OK: expected a body that matches `^\{.status`, got `{"error":"database is down"}`"#,
        ),
        (r#"{"length":42}"#, "200 OK: expected a body of 42 bytes, got 28"),
        (
            r#"{"json":{"/status":"up"}}"#,
            r#"200 OK: expected "up" at `/status` of a JSON body, got `{"error":"database is down"}`"#,
        ),
        (
            r#"{"json":{"/items/0/id":7,"/n":1}}"#,
            r#"200 OK: expected 7 at `/items/0/id` of a JSON body, got `{"error":"database is down"}`"#,
        ),
    ] {
        let workload = format!("{{\"expect\":{expect}}}");
        for piece in [1, 7, 4096] {
            for (body, wanted) in [(good, "committed"), (bad, &*format!("rejected(server) {said}"))]
            {
                assert_eq!(
                    judged(&workload, 0, &answer("200 OK", body), piece),
                    wanted,
                    "{expect}"
                );
                assert_eq!(judged(&workload, 0, &chunked(body), piece), wanted, "{expect}");
            }
        }
    }
    let equals = r#"{"expect":{"equals":"pong"}}"#;
    assert_eq!(judged(equals, 0, &answer("200 OK", "pong"), 9), "committed");
    for (body, got) in
        [("ping", "got `ping`"), ("", "got an empty one"), ("pong\n", "got `pong\\n`")]
    {
        let said = format!("rejected(server) 200 OK: expected the body `pong`, {got}");
        assert_eq!(judged(equals, 0, &answer("200 OK", body), 9), said);
    }
    let other = judged(
        r#"{"expect":{"json":{"/status":"up"}}}"#,
        0,
        &answer("200 OK", r#"{"status":"down"}"#),
        9,
    );
    assert_eq!(
        other,
        r#"rejected(server) 200 OK: expected "up" at `/status` of a JSON body, got "down""#
    );
}

/// Claim: an expected status is a commit though the table calls it a failure, another that the table commits is a failure,
/// and one that failed by the table keeps its class; an expected header may have parameters, and is looked for in each head.
#[test]
fn heads() {
    let status = r#"{"expect":{"status":[404,"200-201"]}}"#;
    assert_eq!(judged(status, 0, &answer("404 Not Found", "x"), 99), "committed");
    assert_eq!(
        judged(status, 0, &answer("302 Found", ""), 99),
        "rejected(server) 302 Found: expected status 404 or 200-201"
    );
    assert_eq!(judged(status, 0, &answer("429 Slow", ""), 99), "rejected(limited) 429 Slow");
    let header = r#"{"expect":{"header":{"content-type":"application/json"}}}"#;
    for (line, wanted) in [
        ("Content-Type: application/json", "committed"),
        ("CONTENT-TYPE:application/json; charset=utf-8", "committed"),
        (
            "Content-Type: application/jsonp",
            "rejected(server) 200 OK: expected header content-type `application/json`, got `application/jsonp`",
        ),
        (
            "X: y",
            "rejected(server) 200 OK: expected header content-type `application/json`, got none",
        ),
    ] {
        for piece in [1, 99] {
            assert_eq!(
                judged(header, 0, &answer(&format!("200 OK\r\n{line}"), "x"), piece),
                wanted
            );
        }
    }
}

/// Claim: a target may have expectations of its own, instead of those of all; a HEAD has no body to look at.
#[test]
fn by_target() {
    let workload = r#"{"targets_text":"GET http://h/a\n\nGET http://h/b\n\nHEAD http://h/c","expect":{"contains":"all"},"expect_of":{"GET /b":{"contains":"own"}}}"#;
    for (index, body, is_good) in
        [(0, "all", true), (0, "own", false), (1, "own", true), (1, "all", false)]
    {
        let found = judged(workload, index, &answer("200 OK", body), 99);
        assert_eq!(found == "committed", is_good, "{index} {body}: {found}");
    }
    assert_eq!(
        judged(workload, 2, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 99),
        "committed"
    );
}

/// Claim: of a megabyte only as much is looked at as is kept: what is found there is found, and what is not is this
/// client's failure and not the server's; a length is known all the same.
#[test]
fn long_bodies() {
    let mut body = "x".repeat(1 << 20);
    let end = r#"{"expect":{"contains":"end"}}"#;
    let told = "rejected(client) 200 OK: the body is longer than workload.body_kept_max";
    assert_eq!(judged(end, 0, &answer("200 OK", &body), 1_000), told);
    assert_eq!(
        judged(r#"{"expect":{"length":1048576}}"#, 0, &answer("200 OK", &body), 1_000),
        "committed"
    );
    let kept = r#"{"body_kept_max":"2MiB","expect":{"contains":"end"}}"#;
    body.push_str("end");
    assert_eq!(judged(kept, 0, &answer("200 OK", &body), 100_000), "committed");
    body.replace_range(..3, "end");
    assert_eq!(judged(end, 0, &answer("200 OK", &body), 100_000), "committed");
    let equals = r#"{"expect":{"equals":"short"}}"#;
    assert!(judged(equals, 0, &answer("200 OK", &body), 100_000).starts_with("rejected(server)"));
}

/// Claim: what cannot be expected is refused, each mistake with what to write instead.
#[test]
fn mistakes() {
    let workload = r#"{"expect":{"status":"20x","contains":"","regex":"(","json":{"status":"up"},"header":{"a b":"c","d":1},"bodi":"x"},"expect_of":{"GET /x":{"length":-1}}}"#;
    let messages = built(r#"{"url":"http://h/"}"#, workload, Path::new("."))
        .err()
        .expect("nothing of it is right");
    for said in [
        "`20x` is not a status; write 200, \"2xx\" or \"200-204\"",
        "`workload.expect.contains` holds an empty text",
        "`workload.expect.regex` is not a regular expression",
        "`status` is not a JSON pointer: it does not begin with `/` (did you mean `/status`?)",
        "`a b` is not a header name",
        "header `d` must be text in quotes",
        "`workload.expect.bodi` is not a key",
        "`workload.expect_of.\"GET /x\".length` must lie between 0",
        "`GET /x` is not a target of this workload (did you mean `GET /`?)",
    ] {
        assert!(messages.iter().any(|message| message.contains(said)), "{said}: {messages:#?}");
    }
}
