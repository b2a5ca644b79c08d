//! The contract's own suite, against a peer that is a function from requests to answers.

use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Session, System as _, Workload};
use wire::http1::{Limits, parse_request, write_response};

use super::system;
use crate::session::HttpSession;

/// A server of the simplest kind: 404 for `/missing`, a chunked answer for `/chunked`, else 200.
pub(super) fn peer() -> Peer {
    let mut received = Vec::new();
    Box::new(move |bytes| {
        received.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(request) = parse_request(&received, &Limits::SERVER).unwrap() {
            let is_head = request.head.method == "HEAD";
            match request.head.path() {
                "/missing" => write_response(&mut out, 404, &[], b"no", true),
                "/chunked" => out.extend_from_slice(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                ),
                _ => write_response(&mut out, 200, &[], if is_head { b"" } else { b"hello" }, true),
            }
            let used = request.used;
            received.drain(..used);
        }
        out
    })
}

/// Claim: sessions keep the contract, one request at a time and pipelined, whatever the targets.
#[test]
fn sessions_conform() {
    let targets = "GET /a\nHEAD /a\nGET /missing\nGET /chunked\nPOST /b\nContent-Type: text/plain\n\nPOST /b\nX: 2\n";
    for pipeline in [1, 16] {
        let workload = format!("{{\"pipeline\":{pipeline},\"targets_text\":{targets:?}}}");
        let system = system("http://127.0.0.1:8080/", &workload);
        let session = || -> Box<dyn Session> {
            Box::new(HttpSession::new(
                system.requests.clone(),
                system.rules.clone(),
                system.pipeline,
            ))
        };
        let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
        session_conformance(&Subject::new(&session, &peer, &source)).unwrap();
    }
}

/// Claim: the system keeps the contract, in file order and at random.
#[test]
fn systems_conform() {
    for workload in ["{}", r#"{"targets_text":"/a\n/b\n/c","order":"random"}"#] {
        system_conformance(&system("http://127.0.0.1:8080/", workload)).unwrap();
    }
}
