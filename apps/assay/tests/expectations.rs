//! What answers must be, on a real server: three in ten say with 200 that the database is down, in chunks that are cut
//! anywhere; and a megabyte that is not looked at to its end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::{Place, Said, beside_others, trial};

const DOWN: &str = "{\"error\":\"database is down\"}";
const UP: &str = "{\"status\":\"up\"}";

/// A server that answers the n-th request of all as `answer` says, a few bytes at a time.
fn server(answer: fn(u64) -> Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let count = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = count.clone();
            std::thread::spawn(move || serve(stream, &count, answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, count: &AtomicU64, answer: fn(u64) -> Vec<u8>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            let bytes = answer(count.fetch_add(1, Ordering::Relaxed));
            let piece = (bytes.len() / 5).max(1);
            if bytes.chunks(piece).any(|part| stream.write_all(part).is_err()) {
                return;
            }
        }
    }
}

fn chunked(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (first, rest) = body.split_at(5);
    format!("{head}5\r\n{first}\r\n{:x};x=y\r\n{rest}\r\n0\r\n\r\n", rest.len()).into_bytes()
}

fn run(address: SocketAddr, rate: &str, more: &[&str]) -> (Said, serde_json::Value) {
    let _beside = beside_others();
    let place = Place::new();
    let url = format!("http://{address}/");
    let quick = ["--rate", rate, "--duration", "1s", "--warmup", "0s", "--timeout", "5s"];
    let quietly = ["--no-calibration", "--progress", "none", "--threshold", "success >= 99%"];
    let first = ["run", &url].into_iter().chain(quick).chain(quietly);
    let said = place.assay(&first.chain(more.iter().copied()).collect::<Vec<_>>());
    let (_, document) = place.report();
    (said, document)
}

/// Claim: three of ten answers that are an error with 200 pass where nothing is expected of them, and fail the run with what
/// was expected and what came where something is, however their bytes are cut; the code is kept.
#[test]
fn errors_with_200_are_failures() {
    let address = server(|n| chunked(if n % 10 < 3 && n > 0 { DOWN } else { UP }));
    let (said, document) = run(address, "100/s", &[]);
    assert_ne!(said.code, 99, "{}", said.stdout);
    assert_eq!(trial(&document)["counts"]["committed"], 100);
    let header = "header.content-type=application/json";
    for (expect, text) in [
        (
            "json./status=up",
            "200 OK: expected \"up\" at `/status` of a JSON body, got `{\"error\":\"database is down\"}`",
        ),
        (
            "contains=status",
            "200 OK: expected a body that contains `status`, got `{\"error\":\"database is down\"}`",
        ),
    ] {
        let (said, document) = run(
            address,
            "100/s",
            &["--expect", "status=200", "--expect", header, "--expect", expect],
        );
        said.expect_code(99).expect_stdout("expected");
        let counts = &trial(&document)["counts"];
        let wrong = counts["rejected_by_class"]["server"].as_u64().expect("a count");
        assert!((28..=31).contains(&wrong), "{counts}");
        let errors = trial(&document)["errors"].to_string();
        let quoted = serde_json::Value::from(text).to_string();
        assert!(errors.contains(quoted.trim_matches('"')), "{errors}");
        let codes = trial(&document)["codes"].as_array().expect("a list").clone();
        assert!(codes.iter().all(|code| code["name"] == "200"), "{codes:?}");
    }
}

/// Claim: of a megabyte a length is known, and the rest after the kept part is not called the server's failure.
#[test]
fn a_megabyte() {
    let address = server(|_| {
        let body = "x".repeat(1 << 20);
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    });
    let (said, document) = run(address, "10/s", &["--expect", "length=1048576"]);
    assert_ne!(said.code, 99, "{}", said.stdout);
    assert_eq!(trial(&document)["counts"]["committed"], 10);
    let (_, document) =
        run(address, "10/s", &["--set", "workload.preflight=false", "--expect", "contains=y"]);
    let counts = &trial(&document)["counts"];
    assert_eq!(counts["rejected_by_class"]["client"], 10, "{counts}");
}

/// Claim: what is no expectation is refused before anything is sent, with the form that is meant.
#[test]
fn mistakes() {
    let place = Place::new();
    for (expect, said) in [
        ("200", "is not of the form WHAT=VALUE"),
        ("status=20x", "`20x` is not a status"),
        ("bodi=x", "`workload.expect.bodi` is not a key"),
    ] {
        let refused = place.assay(&["run", "http://127.0.0.1:9/", "--expect", expect]);
        refused.expect_code(2).expect_stderr(said);
    }
    let file = place.assay(&["run", "my.toml", "--expect", "status=200"]);
    file.expect_code(2);
}
