//! Target files, good and broken: text in, targets or exact messages out.

use super::*;

fn origin(text: &str) -> String {
    let targets = parse(text, Format::of(text)).unwrap();
    targets
        .iter()
        .map(|t| format!("{} {} {}", t.line, t.method, t.place.target))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Claim: each format is recognised by itself, and its targets come in file order with their lines.
#[test]
fn formats() {
    for (text, expected) in [
        ("GET http://a/x\nGET http://a/y\n", "1 GET /x; 2 GET /y"),
        ("# one\n\nGET http://a/x\n# two\nHEAD http://a/\n", "3 GET /x; 5 HEAD /"),
        ("POST http://a/x\nA: b\n@body\n\nGET /y", "1 POST /x; 5 GET /y"),
        ("M-SEARCH /a\r\nX: 1\r\nDELETE /b\r\n", "1 M-SEARCH /a; 3 DELETE /b"),
        (
            "{\"method\":\"GET\",\"url\":\"http://a/x\"}\n\n{\"method\":\"PUT\",\"url\":\"/y\"}",
            "1 GET /x; 3 PUT /y",
        ),
        ("http://a/x?y\nhttps://a/y\n", "1 GET /x?y; 2 GET /y"),
        ("# paths\n/a\n  /b  \n", "2 GET /a; 3 GET /b"),
    ] {
        assert_eq!(origin(text), expected, "{text:?}");
    }
}

/// Claim: headers and bodies come out as written, in both of vegeta's formats.
#[test]
fn headers_and_bodies() {
    let text =
        "POST http://a/x\nContent-Type: text/plain\n# between\nX-Id:  1:2 \n@ dir/body.txt\n";
    let target = parse(text, Format::Http).unwrap().remove(0);
    let expected = [("Content-Type", "text/plain"), ("X-Id", "1:2")]
        .map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(
        (target.headers.as_slice(), target.body),
        (&expected[..], Body::File("dir/body.txt".into()))
    );

    let text = r#"{"method":"POST","url":"/x","header":{"A":["1","2"],"B":"3"},"body":"aGk="}"#;
    let target = parse(text, Format::Json).unwrap().remove(0);
    let expected = [("A", "1"), ("A", "2"), ("B", "3")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(
        (target.headers.as_slice(), target.body),
        (&expected[..], Body::Bytes(b"hi".to_vec()))
    );
}

/// Claim: every broken target file is refused with its line and what to write instead; all mistakes at once.
#[test]
fn broken_files() {
    let http = Format::Http;
    let json = Format::Json;
    let list = Format::List;
    for (format, text, expected) in [
        (
            http,
            "",
            "1: there is no target in it; a target is a line such as: GET http://127.0.0.1:8080/",
        ),
        (
            json,
            "# only a comment\n",
            "1: there is no target in it; a target is a line such as: GET http://127.0.0.1:8080/",
        ),
        (
            http,
            "GET",
            "1: `GET` is not a target; a target is a method and a URL, such as: GET http://127.0.0.1:8080/",
        ),
        (
            http,
            "http://a/",
            "1: `http://a/` is not a target; a target is a method and a URL, such as: GET http://127.0.0.1:8080/",
        ),
        (http, "get http://a/", "1: methods are upper case; did you mean `GET`?"),
        (http, "G(T http://a/", "1: `G(T` is not a method"),
        (
            http,
            "CONNECT a:443",
            "1: CONNECT opens a tunnel and is not a request that can be measured",
        ),
        (http, "GET a/b", "1: `a/b` is not a URL; did you mean `http://a/b`?"),
        (http, "GET ws://a/b", "1: expected a URL of http:// or https://, got one of `ws://`"),
        (
            http,
            "GET http://a/b c",
            "1: `http://a/b c` holds ' '; write it percent-encoded (a host name in its xn-- form)",
        ),
        (http, "GET http://a:x/", "1: `http://a:x/`: `x` is not a port; ports are 1 to 65535"),
        (
            http,
            "GET /a\nno colon",
            "2: `no colon` is neither a header (Name: value) nor a body (@file)",
        ),
        (http, "GET /a\nBad Name: x", "2: `Bad Name` is not a header name"),
        (http, "GET /a\n: x", "2: `` is not a header name"),
        (http, "GET /a\nA: b\u{7}c", "2: the value of header `A` holds a control character"),
        (
            http,
            "POST /a\ncontent-length: 3",
            "2: header `content-length` is written by Assay from the body; leave it out",
        ),
        (
            http,
            "POST /a\nTransfer-Encoding: chunked",
            "2: header `Transfer-Encoding` is written by Assay from the body; leave it out",
        ),
        (http, "POST /a\n@", "2: `@` names no file; write @body.json"),
        (
            http,
            "POST /a\n@b\n@c",
            "3: nothing may follow the body of a target; put an empty line before the next one",
        ),
        (
            http,
            "POST /a\n@b\nA: b",
            "3: nothing may follow the body of a target; put an empty line before the next one",
        ),
        (
            http,
            "GET x\nA: b\nC: d\n\nGET y\n",
            "1: `x` is not a URL; did you mean `http://x`?\n5: `y` is not a URL; did you mean `http://y`?",
        ),
        (
            http,
            "@body\n",
            "1: `@body` is not a target; a target is a method and a URL, such as: GET http://127.0.0.1:8080/",
        ),
        (json, "{", "1: this line is not one JSON object: EOF while parsing an object (column 1)"),
        (
            json,
            "[]",
            "1: a target is a JSON object, such as: {\"method\":\"GET\",\"url\":\"http://127.0.0.1:8080/\"}",
        ),
        (json, "{\"url\":\"/\"}", "1: the target has no `method`"),
        (json, "{\"method\":\"GET\"}", "1: the target has no `url`"),
        (json, "{\"method\":\"GET\",\"url\":1}", "1: `url` must be a text"),
        (json, "{\"method\":\"\",\"url\":\"/\"}", "1: `` is not a method"),
        (json, "{\"method\":\"GET\",\"url\":\"\"}", "1: the URL is empty"),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"headers\":{}}",
            "1: `headers` is not a key of a target; did you mean `header`?",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"z\":1}",
            "1: `z` is not a key of a target; known are method, url, header, body",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"header\":[]}",
            "1: `header` must be a table of lists, such as {\"Accept\":[\"*/*\"]}",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"header\":{\"A\":[1]}}",
            "1: `header` must be a table of lists, such as {\"Accept\":[\"*/*\"]}",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"header\":{\"A\":[\"a\\nb\"]}}",
            "1: the value of header `A` holds a control character",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"body\":\"*\"}",
            "1: `body` is not base64: Invalid symbol 42, offset 0.",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\",\"body\":7}",
            "1: `body` must be a text in base64",
        ),
        (
            json,
            "{\"method\":\"GET\",\"url\":\"/\"} {}",
            "1: this line is not one JSON object: trailing characters (column 28)",
        ),
        (json, "GET /\n", "1: this line is not one JSON object: expected value (column 1)"),
        (list, "/a\nb\n", "2: `b` is not a URL; did you mean `http://b`?"),
        (list, "http://a/\n{}\n", "2: `{}` is not a URL; did you mean `http://{}`?"),
    ] {
        let mistakes = parse(text, format).expect_err(text);
        let found: Vec<_> = mistakes.iter().map(|m| format!("{}: {}", m.line, m.message)).collect();
        assert_eq!(found.join("\n"), expected, "{text:?}");
    }
}

/// Claim: a file that is not text is refused at its line, and a byte-order mark is not part of it.
#[test]
fn encodings() {
    assert_eq!(text(b"GET /\n\xff").map_err(|m| m.line), Err(2));
    assert_eq!(text(b"\xef\xbb\xbfGET /"), Ok("GET /"));
}
