//! Imports of small files of each form, and of damaged ones.

use super::*;

mod k6;

fn imported(text: &str) -> Imported {
    imported_with(text, ImportOptions::default()).unwrap_or_else(|why| panic!("{why}"))
}

fn imported_with(text: &str, options: ImportOptions<'_>) -> Result<Imported, String> {
    import("x", text.as_bytes(), &options)
}

/// Every line of the targets is one that the target file's own reader takes.
fn targets(imported: &Imported) -> Vec<String> {
    let text = imported.targets.as_deref().unwrap();
    let found = crate::targets::parse(text, crate::targets::Format::Json).unwrap();
    assert_eq!(found.len(), imported.target_count);
    found
        .iter()
        .map(|target| {
            let body = match &target.body {
                crate::targets::Body::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                _ => String::new(),
            };
            let headers: Vec<String> =
                target.headers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
            format!("{} {} [{}] {body}", target.method, target.place.target, headers.join("; "))
        })
        .collect()
}

const HAR: &str = include_str!("tests/browser.har");

/// Claim: of a recording the requests of the most frequent server stay, in order, with their bodies and harmless
/// headers; what was left out is counted.
#[test]
fn har_keeps_one_server() {
    let found = imported(HAR);
    assert_eq!(found.url.as_deref(), Some("https://api.example.org"));
    assert_eq!(
        targets(&found),
        [
            "GET /items?page=1&access_token=REMOVED [Accept: application/json] ",
            "POST /login [Content-Type: application/json] {\"user\":\"me\",\"password\":\"REMOVED\"}",
            "POST /form [Content-Type: application/x-www-form-urlencoded] a=b%20c&d=",
        ]
    );
    let notes = found.notes.join("\n");
    for expected in [
        "left out: 1 request, to other servers: cdn.example.org (1)",
        "left out: 1 request, neither http nor https, or a websocket",
        "left out: 1 request, with a body that names a secret",
        "left out: 3 headers with secrets: Authorization, cookie, X-Api-Key",
        "replaced by REMOVED: 2 secrets",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
    let other =
        imported_with(HAR, ImportOptions { host: Some("cdn.example.org"), ..Default::default() });
    assert_eq!(targets(&other.unwrap()), ["GET /logo.png [] "]);
    let none =
        imported_with(HAR, ImportOptions { host: Some("x"), ..Default::default() }).unwrap_err();
    assert!(none.contains("no request in it went to x"), "{none}");
}

/// Claim: no secret of a recording stands anywhere in what is made of it.
#[test]
fn secrets_are_never_copied() {
    let found = imported(HAR);
    let text = experiment(&found, "x", None);
    let decoded = targets(&found).join("\n");
    for secret in ["hunter2", "s3cr3t", "tok-123", "sess-456", "key-789", "multi-000"] {
        assert!(HAR.contains(secret), "{secret} is in the recording");
        assert!(!text.contains(secret) && !decoded.contains(secret), "{secret}\n{text}\n{decoded}");
    }
    assert!(text.contains("# headers.\"Authorization\" = \"env:AUTHORIZATION\""), "{text}");
}

const YAML: &str = include_str!("tests/shop.yaml");

/// Claim: every GET and HEAD of a description is a target, its path and required query filled from examples,
/// defaults, enumerations and bounds, and what was made up is named.
#[test]
fn openapi_reads_get_and_head() {
    let found = imported(YAML);
    assert_eq!(
        (found.form.as_str(), found.url.as_deref()),
        ("OpenAPI 3.0.3", Some("https://eu.example.org:8443"))
    );
    assert_eq!(
        targets(&found),
        [
            "GET /v1/items?limit=20&sort=name [] ",
            "HEAD /v1/items [] ",
            "GET /v1/items/42 [X-Trace: abc] ",
            "GET /v1/users/00000000-0000-4000-8000-000000000000/orders/3?tag=a%20b&tag=c [] ",
            "GET /v1/odd/1 [] ",
        ]
    );
    let notes = found.notes.join("\n");
    for expected in [
        "left out: 3 operations of other methods than GET and HEAD; --all-methods takes them",
        "made up for GET /users/{user}/orders/{order}: user = 00000000-0000-4000-8000-000000000000",
        "made up for GET /odd/{undescribed}: undescribed = 1",
        "left out of GET /items/{id}: X-Token (header), which may be a secret",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
    assert_eq!(found.secret_headers, ["Authorization", "X-Shop-Key"]);
}

/// Claim: with all methods, bodies come from examples and schemas; a schema that refers to itself ends.
#[test]
fn openapi_makes_bodies() {
    let found =
        imported_with(YAML, ImportOptions { all_methods: true, ..Default::default() }).unwrap();
    let targets = targets(&found);
    let of = |start: &str| targets.iter().find(|target| target.starts_with(start)).unwrap().clone();
    assert_eq!(
        of("POST /v1/items "),
        "POST /v1/items [Content-Type: application/json] {\"name\":\"pen\",\"price\":1.5}"
    );
    assert_eq!(of("DELETE /v1/items/42"), "DELETE /v1/items/42 [] ");
    let tree = of("PUT /v1/tree");
    assert!(
        tree.contains("{\"label\":\"text\",\"child\":{\"label\":\"text\",") && tree.len() < 1000,
        "{tree}"
    );
}

/// Claim: the same description as JSON and as YAML gives the same targets.
#[test]
fn json_is_yaml() {
    let json = yaml::parse(YAML).unwrap().to_string();
    assert_eq!(imported(&json), imported(YAML));
}

/// Claim: what cannot be imported is refused with what to do.
#[test]
fn refusals() {
    for (text, expected) in [
        ("swagger: '2.0'\n", "convert it to OpenAPI 3"),
        ("{\"swagger\":\"2.0\"}", "convert it to OpenAPI 3"),
        ("openapi: 4.0.0\n", "3.0 and 3.1 are read"),
        ("openapi: 3.1.0\npaths: {}\n", "it describes no path"),
        ("openapi: 3.1.0\npaths: {/a: {post: {}}}\n", "--all-methods takes them"),
        ("openapi: [\n", "it is not YAML"),
        ("{\"log\":{\"entries\":[]}}", "no http or https request"),
        ("{\"log\":{\"entries\":[{\"request\"", "not a whole HAR recording"),
        ("GET http://a/\nGET http://b/\n", "targets of two servers"),
        ("{\"openapi\":\"3.0.0\",\"paths\":{\"/a\"", "it is not whole JSON"),
        ("hello\n", "as a target file it has 1 mistake:"),
    ] {
        let why = imported_with(text, ImportOptions::default()).unwrap_err();
        assert!(why.starts_with("reading x: ") && why.contains(expected), "{text}\n{why}");
    }
}

/// Claim: a tree of aliases is refused before it has grown.
#[test]
fn aliases_are_counted() {
    let mut text = "openapi: 3.0.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
    }
    let why = imported_with(&text, ImportOptions::default()).unwrap_err();
    assert!(why.contains("with its aliases it has more than"), "{why}");
    let deep = "[".repeat(10_000);
    assert!(imported_with(&format!("openapi: {deep}"), ImportOptions::default()).is_err());
}

/// Claim: long texts behind aliases count by their length, so that few bytes cannot ask for much memory.
#[test]
fn aliases_of_long_texts_are_counted() {
    let text =
        format!("openapi: 3.0.0\na: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a,".repeat(1000));
    let why = imported_with(&text, ImportOptions::default()).unwrap_err();
    assert!(why.contains("with its aliases it has more than"), "{why}");
}

/// Claim: an example that is referred to any number of times does not make a body of that many times its size.
#[test]
fn examples_are_bounded() {
    let names: Vec<String> = (0..1000).map(|index| format!("p{index}")).collect();
    let properties: Vec<String> =
        names.iter().map(|name| format!("\"{name}\":{{\"$ref\":\"#/x\"}}")).collect();
    let text = format!(
        r##"{{"openapi":"3.0.0","x":{{"example":"{}"}},"paths":{{"/a":{{"post":{{"requestBody":{{"content":{{
        "application/json":{{"schema":{{"required":{names:?},"properties":{{{}}}}}}}}}}}}}}}}}}}"##,
        "x".repeat(100_000),
        properties.join(",")
    );
    let found =
        imported_with(&text, ImportOptions { all_methods: true, ..Default::default() }).unwrap();
    let bytes = found.targets.as_ref().map_or(0, String::len);
    assert!((1_000_000..2_000_000).contains(&bytes), "{bytes}");
}

/// A recording of one request.
fn har(url: &str, headers: &str, post_data: &str) -> String {
    format!(
        r#"{{"log":{{"version":"1.2","entries":[{{"request":{{"method":"POST","url":"{url}","headers":{headers},"postData":{post_data}}}}}]}}}}"#
    )
}

/// Claim: secrets are known by their form too, and by their names wherever a text or a path holds them.
#[test]
fn secrets_in_odd_places() {
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc";
    let bearer = format!(
        r#"[{{"name":"X-Id","value":"Bearer s3cr3t"}},{{"name":"X-B","value":"{token}"}}]"#
    );
    let json = |text: &str| format!(r#"{{"mimeType":"application/json","text":{text:?}}}"#);
    for (text, expected) in [
        (
            har("http://h/a;jsessionid=s3cr3t/b?x=1", "[]", "null"),
            "POST /a;jsessionid=REMOVED/b?x=1 [] ",
        ),
        (har("http://h/a;jsessionid=s3cr3t", "null", "null"), "POST /a;jsessionid=REMOVED [] "),
        (har(&format!("http://h/a?x={token}"), "[]", "null"), "POST /a?x=REMOVED [] "),
        (har("http://h/a", &bearer, "null"), "POST /a [] "),
        (
            har("http://h/a", "[]", &json(&format!("{{\"a\":[\"{token}\"]}}"))),
            "POST /a [Content-Type: application/json] {\"a\":[\"REMOVED\"]}",
        ),
        (
            har("http://h/a", "[]", &json("{\"sid\":\"s3cr3t\"}\n{\"jwt\":\"s3cr3t\"}")),
            "POST /a [Content-Type: application/json] {\"sid\":\"REMOVED\"}\n{\"jwt\":\"REMOVED\"}",
        ),
        (
            har(
                "http://h/a",
                "[]",
                r#"{"params":[{"name":"pwd","value":"s3cr3t"},{"name":"a","value":"b"}]}"#,
            ),
            "POST /a [Content-Type: application/x-www-form-urlencoded] pwd=REMOVED&a=b",
        ),
    ] {
        assert_eq!(targets(&imported(&text)), [expected], "{text}");
    }
    for body in ["{\"sessionId\":\"s3cr3t\", cut", "<pwd>s3cr3t</pwd>", "user=a&pwd=s3cr3t", token]
    {
        let post = format!(r#"{{"mimeType":"text/plain","text":{body:?}}}"#);
        let why = imported_with(&har("http://h/a", "[]", &post), ImportOptions::default());
        assert!(why.unwrap_err().contains("none of its 1 requests can be sent"), "{body}");
    }
    let harmless = har(
        "http://h/a",
        "[]",
        r#"{"mimeType":"text/plain","text":"pass the salt, key to it all"}"#,
    );
    assert_eq!(
        targets(&imported(&harmless)),
        ["POST /a [Content-Type: text/plain] pass the salt, key to it all"]
    );
}

/// Claim: a websocket that was recorded under an http URL is left out, and a header that cannot be sent is counted.
#[test]
fn websockets_and_odd_headers() {
    let socket = har("http://h/a", r#"[{"name":"Upgrade","value":"websocket"}]"#, "null");
    let why = imported_with(&socket, ImportOptions::default()).unwrap_err();
    assert!(why.contains("no http or https request"), "{why}");
    let odd = imported(&har("http://h/a", r#"[{"name":"x-a","value":"env:HOME"}]"#, "null"));
    assert_eq!(odd.notes, ["left out: 1 header that cannot be sent"]);
}

/// Claim: what descriptions write in many ways is read as it is meant: numbers for texts, merged tables, servers of
/// their own, requirements beside the parts that they are of, ids longer than numbers.
#[test]
fn openapi_as_it_is_written() {
    let text = "\
openapi: 3.1
servers:
  - url: 'http://me:s3cr3t@{host}:{port}/v2'
    variables: {host: {enum: [127.0.0.1]}, port: {default: 8097}}
paths:
  /reset/{token}:
    get: &get {parameters: [{name: token, in: path, example: s3cr3t}]}
  /id/{id}:
    head:
      <<: *get
      parameters: [{name: id, in: path, example: 123456789012345678901234}]
    get: {parameters: [{name: id, in: path, example: 12345678901234567890}]}
  /merged/{token}:
    get:
      <<: *get
  /own:
    servers: [{url: 'http://127.0.0.1:8097/v3'}]
    get: {}
  /away:
    get: {servers: [{url: 'http://elsewhere/'}]}
  /file: {$ref: 'other.yaml#/x'}
  /parts:
    post:
      requestBody:
        content:
          application/json:
            schema:
              allOf:
                - {properties: {a: {type: integer}, b: {type: boolean}}}
                - {required: [b]}
              required: [a]
";
    let found =
        imported_with(text, ImportOptions { all_methods: true, ..Default::default() }).unwrap();
    assert_eq!(found.url.as_deref(), Some("http://127.0.0.1:8097"));
    assert_eq!(
        targets(&found),
        [
            "GET /v2/reset/REMOVED [] ",
            "GET /v2/id/12345678901234567890 [] ",
            "HEAD /v2/id/123456789012345678901234 [] ",
            "GET /v2/merged/REMOVED [] ",
            "GET /v3/own [] ",
            "POST /v2/parts [Content-Type: application/json] {\"a\":1,\"b\":true}",
        ]
    );
    let notes = found.notes.join("\n");
    for expected in [
        "left out: 1 operation on other servers than",
        "left out: 1 path described in other files",
        "made up for GET /reset/{token}: token = REMOVED",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
    let relative = imported("{openapi: 3.0.0, servers: [{url: /v1}], paths: {/a: {get: {}}}}");
    assert_eq!(targets(&relative), ["GET /v1/a [] "]);
    assert!(relative.notes[0].contains("relative to where the description was found"));
}

/// Claim: damaged files are imported or refused, and never more.
#[test]
fn damage() {
    let mut rng = model::Seed(9).rng();
    let mut refused = 0;
    for text in [HAR, YAML, "GET http://a/\nA: b\n\nPOST /x\n@y\n"] {
        for _ in 0..1500 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=rng.below(3) {
                let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
                match rng.below(3) {
                    0 => bytes[at] = u8::try_from(rng.below(256)).unwrap(),
                    1 => drop(bytes.drain(at..bytes.len().min(at + 20))),
                    _ => {
                        bytes.insert(at, b"{}[]:&*-\"'\n "[usize::try_from(rng.below(12)).unwrap()])
                    }
                }
                if bytes.is_empty() {
                    bytes.push(b' ');
                }
            }
            let options = ImportOptions { all_methods: rng.below(2) == 0, ..Default::default() };
            match import("x", &bytes, &options) {
                Ok(found) if found.targets.is_some() => drop(targets(&found)),
                Ok(_) => {}
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

/// Claim: a body whose media type cannot stand in a header is left out and said to be, and the target file that is
/// made can be read.
#[test]
fn openapi_of_a_media_type_that_cannot_be_sent() {
    let text = r#"{"openapi": "3.0.3", "servers": [{"url": "http://127.0.0.1:8080/"}], "paths": {"/a": {"post":
        {"requestBody": {"content": {"application/\u0007json": {"example": {"a": 1}}}}}}}}"#;
    let options = ImportOptions { all_methods: true, ..Default::default() };
    let found = imported_with(text, options).unwrap();
    assert_eq!(targets(&found), ["POST /a [] "]);
    let notes = found.notes.join("\n");
    assert!(notes.contains("the body, whose media type cannot stand in a header"), "{notes}");
}
