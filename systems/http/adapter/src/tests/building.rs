//! From options to requests, and every way in which options can be wrong.

use std::fs;

use model::Seed;
use sut::System as _;

use super::{built, system};
use crate::requests::USER_AGENT;

fn sent(system: &crate::server::HttpSystem) -> Vec<String> {
    let text = |index: &u32| {
        let bytes = &system.requests.prepared[*index as usize].bytes;
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    system.requests.sequence.iter().map(text).collect()
}

/// Claim: a URL alone is enough, and its path is what is asked for.
#[test]
fn a_url_alone() {
    let system = system("http://127.0.0.1:8080/hello?x=1", "{}");
    let expected = format!(
        "GET /hello?x=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\n\r\n"
    );
    assert_eq!(sent(&system), [expected]);
    assert_eq!(sut::Kind::names(&system.kinds()), ["GET /hello?x=1"]);
    assert_eq!(system.stages(), ["committed"]);
    assert_eq!(system.pipeline, 1);
}

/// Claim: method, path, headers (a list of values, an environment variable, one of ours replaced) and body of
/// a single request are sent as described.
#[test]
fn a_single_request() {
    let workload = r#"{"kind":"requests","method":"POST","path":"/tx","body":"{}","pipeline":4,
        "headers":{"Accept":"text/plain","X":["1","2"],"Y":"env:PATH"}}"#;
    let system = system("https://[::1]:8443/", workload);
    let request = sent(&system).remove(0);
    let path = std::env::var("PATH").unwrap();
    let expected = format!(
        "POST /tx HTTP/1.1\r\nHost: [::1]:8443\r\nUser-Agent: {USER_AGENT}\r\nAccept: text/plain\r\nX: 1\r\nX: 2\r\nY: {path}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    assert_eq!(request, expected);
    assert!(system.tls.is_some());
    assert_eq!(system.pipeline, 4);
}

/// Claim: a target file's requests come in its order, bodies are read beside it, headers of the workload are
/// added where a target has none of that name, and the server is taken from the targets if there is no URL.
#[test]
fn a_target_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/body.txt"), "hi").unwrap();
    let text = "POST http://A:81/x\nx-id: 7\n@body.txt\n\nGET http://a:81/y\n\nGET http://a:81/y\n";
    fs::write(folder.path().join("sub/targets.txt"), text).unwrap();
    let workload = r#"{"targets":"sub/targets.txt","headers":{"X-Id":"1"}}"#;
    let system = built("{}", workload, folder.path()).unwrap();
    let common = format!("Host: a:81\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\n");
    let post = format!("POST /x HTTP/1.1\r\n{common}x-id: 7\r\nContent-Length: 2\r\n\r\nhi");
    let get = format!("GET /y HTTP/1.1\r\n{common}X-Id: 1\r\n\r\n");
    assert_eq!(sent(&system), [post, get.clone(), get]);
    assert_eq!(sut::Kind::names(&system.kinds()), ["POST /x", "GET /y"]);
}

/// Claim: targets are used round-robin in file order by transaction id, whoever asks; random order repeats
/// with the seed and differs between workers.
#[test]
fn orders() {
    let text = r#""targets_text":"/a\n/b\n/c\n/a\n""#;
    let fixed = system("http://h/", &format!("{{{text}}}"));
    let mut payload = Vec::new();
    let mut source = fixed.workload(Seed(1), 1, 2);
    let kinds: Vec<u32> = (0..9).map(|id| source.next(id, None, &mut payload).kind).collect();
    assert_eq!(kinds, [0, 1, 2, 0, 0, 1, 2, 0, 0]);
    assert!(payload.is_empty(), "the kind alone says which request it is");

    let random = system("http://h/", &format!("{{{text},\"order\":\"random\"}}"));
    let draw = |seed, worker| {
        let mut source = random.workload(Seed(seed), worker, 2);
        (0..64).map(|id| source.next(id, None, &mut Vec::new()).kind).collect::<Vec<u32>>()
    };
    assert_eq!(draw(1, 0), draw(1, 0));
    assert_ne!(draw(1, 0), draw(1, 1));
    assert_ne!(draw(1, 0), draw(2, 0));
}

/// Claim: every mistake in the options is refused with its exact message, and all of them at once.
#[test]
fn broken_options() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    write("two.txt", b"GET http://a/\nGET http://b:81/\n");
    write("bad.txt", b"GET http://a/\nno header\n");
    write("bad_body.txt", b"POST http://a/\n@absent.json\n");
    write("binary.txt", b"GET /\n\xff\xfe\n");
    write("many.txt", "x\n\n".repeat(30).as_bytes());
    write("empty.pem", b"");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let url = r#"{"url":"http://a/"}"#;
    for (deploy, workload, expected) in [
        (
            "{}",
            "{}",
            "`system.deploy.url` is missing, and no target names a server (add a line such as: url = \"http://127.0.0.1:8080/\")",
        ),
        (r#"{"url":7}"#, "{}", "`system.deploy.url` must be text in quotes, but is a whole number"),
        (r#"{"url":"/x"}"#, "{}", "`/x` names no server (write http://HOST:PORT/)"),
        (r#"{"url":"a:80"}"#, "{}", "`a:80` is not a URL; did you mean `http://a:80`?"),
        (
            r#"{"url":"http://a/","uri":1}"#,
            "{}",
            "`system.deploy.uri` is not a key that Assay knows (did you mean `url`?)",
        ),
        (
            r#"{"url":"http://a/","server_name":"b"}"#,
            "{}",
            "`ca`, `server_name` and `insecure` of `system.deploy` are for https, but the server is http://a:80",
        ),
        (r#"{"url":"https://a/","ca":"empty.pem"}"#, "{}", "empty.pem holds no PEM certificate"),
        (
            r#"{"url":"https://a/","server_name":"a b"}"#,
            "{}",
            "`a b` is not a name that a certificate can carry",
        ),
        (
            url,
            r#"{"kind":"request"}"#,
            "`workload.kind` cannot be `request`; it is one of requests, targets (did you mean `requests`?)",
        ),
        (
            url,
            r#"{"kind":"targets"}"#,
            "`workload.targets` is missing (add a line such as: targets = \"targets.txt\")",
        ),
        (
            url,
            r#"{"kind":"requests","targets_text":"/a"}"#,
            "there are targets, but `workload.kind` is `requests` (write kind = \"targets\")",
        ),
        (
            url,
            r#"{"targets":"two.txt","targets_text":"/a"}"#,
            "`workload.targets` and `workload.targets_text` are two sources of targets; keep one",
        ),
        (
            url,
            r#"{"targets_text":"/a","method":"POST"}"#,
            "`method`, `path`, `body` and `body_file` describe a single request, but there are targets (leave them out, or leave the targets out)",
        ),
        (url, r#"{"method":"post"}"#, "methods are upper case; did you mean `POST`?"),
        (url, r#"{"path":"x"}"#, "`workload.path` must begin with `/`, but is `x`"),
        (url, r#"{"path":"http://b/"}"#, "`workload.path` must begin with `/`, but is `http://b/`"),
        (
            url,
            r#"{"body":"a","body_file":"b"}"#,
            "`workload.body` and `workload.body_file` are two bodies; keep one",
        ),
        (
            url,
            r#"{"headers":{"A":1}}"#,
            "`workload.headers.A` must be text in quotes, but is a whole number",
        ),
        (url, r#"{"headers":{"A b":"c"}}"#, "`A b` is not a header name"),
        (url, r#"{"headers":{"A":"b\nc"}}"#, "the value of header `A` holds a control character"),
        (
            url,
            r#"{"headers":{"A":"env:ASSAY_TEST_NOT_SET"}}"#,
            "header `A`: the environment variable `ASSAY_TEST_NOT_SET` is not set; set it (export ASSAY_TEST_NOT_SET=…), or write $${ASSAY_TEST_NOT_SET} where ${ASSAY_TEST_NOT_SET} itself is meant",
        ),
        (
            url,
            r#"{"redirects":5}"#,
            "`workload.redirects` is for flows, and there is no [[workload.step]] (write the request as a step: assay init --template flow shows one)",
        ),
        (url, r#"{"pipeline":0}"#, "`workload.pipeline` must lie between 1 and 1024, but is 0"),
        (
            url,
            r#"{"targets_text":"/a","order":"shuffled"}"#,
            "`workload.order` cannot be `shuffled`; it is one of sequential, round-robin, random",
        ),
        (
            url,
            r#"{"targets_text":"/a","format":"xml"}"#,
            "`workload.format` cannot be `xml`; it is one of auto, http, json, list",
        ),
        (
            url,
            r#"{"targets":"bad.txt"}"#,
            "bad.txt:2: `no header` is neither a header (Name: value) nor a body (@file)",
        ),
        (
            url,
            r#"{"targets":"binary.txt"}"#,
            "binary.txt:2: the file is not UTF-8 text; a binary body goes into a file of its own",
        ),
        (
            "{}",
            r#"{"targets":"two.txt"}"#,
            "two.txt:2: targets of two servers, http://a:80 and http://b:81; a trial loads one, so split the targets or set system.deploy.url",
        ),
        (
            url,
            r#"{"targets_text":"GET /a\nX: env:ASSAY_TEST_NOT_SET"}"#,
            "targets_text:1: header `X`: the environment variable `ASSAY_TEST_NOT_SET` is not set; set it (export ASSAY_TEST_NOT_SET=…), or write $${ASSAY_TEST_NOT_SET} where ${ASSAY_TEST_NOT_SET} itself is meant",
        ),
        (
            r#"{"url":"x"}"#,
            r#"{"method":"get","pathh":"/"}"#,
            "`x` is not a URL; did you mean `http://x`?\nmethods are upper case; did you mean `GET`?\n`workload.pathh` is not a key that Assay knows (did you mean `path`?)",
        ),
    ] {
        let messages = built(deploy, workload, folder.path()).err().unwrap_or_default();
        assert_eq!(messages.join("\n"), expected, "{deploy} {workload}");
    }
    let first = |deploy: &str, workload: &str| {
        built(deploy, workload, folder.path()).err().unwrap_or_default().join("\n")
    };
    assert_eq!(
        first(url, r#"{"targets":"absent.txt"}"#),
        format!("absent.txt: there is no such file ({})", at("absent.txt"))
    );
    assert_eq!(
        first(url, r#"{"targets":"bad_body.txt"}"#),
        format!("bad_body.txt:1: body absent.json: there is no such file ({})", at("absent.json"))
    );
    let many = built(url, r#"{"targets":"many.txt"}"#, folder.path()).err().unwrap_or_default();
    assert_eq!(many.len(), 21);
    assert_eq!(many[20], "and 10 more mistakes in the targets");
}

/// Claim: a target file beyond the bound is refused, not read.
#[test]
fn a_huge_target_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("huge.txt")).unwrap();
    file.set_len(crate::targets::FILE_BYTES_MAX + 1).unwrap();
    let messages =
        built(r#"{"url":"http://a/"}"#, r#"{"targets":"huge.txt"}"#, folder.path()).err();
    assert_eq!(
        messages.unwrap_or_default(),
        ["huge.txt: longer than 64 MiB, the most that is read"]
    );
}

/// Claim: any bytes as a target file either make the request that was meant or a mistake with a line.
/// (The same entry point is fuzzed with coverage; this keeps it honest in every test run.)
#[test]
fn mutated_target_files() {
    let seeds = [
        "GET http://a/x\nA: b\n\nPOST /y\nC: d\n@f\n# c\n",
        "{\"method\":\"POST\",\"url\":\"http://a/\",\"header\":{\"A\":[\"b\"]},\"body\":\"aGk=\"}\n",
        "http://a/x\nhttps://[::1]:8/y?z\n/w\n",
    ];
    let mut rng = Seed(7).rng();
    for _ in 0..20_000 {
        let mut text = seeds[usize::try_from(rng.below(3)).unwrap()].as_bytes().to_vec();
        for _ in 0..=rng.below(4) {
            let at = usize::try_from(rng.below(text.len() as u64)).unwrap();
            match rng.below(3) {
                0 => text[at] = u8::try_from(rng.below(256)).unwrap(),
                1 => drop(text.remove(at)),
                _ => text.insert(at, b"\r\n:@#/ {\"["[usize::try_from(rng.below(10)).unwrap()]),
            }
        }
        crate::fuzz_targets(&text);
    }
}

/// Claim: `correlate` names a header, and a request that brings that header itself is refused.
#[test]
fn correlation_is_checked() {
    let of = |workload: &str| {
        super::built("{\"url\":\"http://h/\"}", workload, std::path::Path::new(".")).err()
    };
    assert_eq!(of(r#"{"correlate":"header:x-id"}"#), None);
    let message = of(r#"{"correlate":"x-id"}"#).unwrap().join("\n");
    assert!(message.contains("must be a header, but is `x-id`"), "{message}");
    let message = of(r#"{"correlate":"header:x-id","headers":{"X-Id":"7"}}"#).unwrap().join("\n");
    assert!(message.contains("is written by workload.correlate"), "{message}");
}
