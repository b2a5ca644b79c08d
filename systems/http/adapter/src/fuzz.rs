//! Entry point for fuzzing: any bytes as a target file. What is claimed is asserted: a target that is accepted
//! makes exactly one well-formed request, the one that was meant.

use wire::http1::{Limits, parse_request};

use crate::requests::{Requests, Wish};
use crate::targets::{self, Body, Format, Target};
use crate::url::Origin;

/// Any bytes as a target file, in each format.
///
/// # Panics
/// If an accepted target makes a request that a server would read differently.
pub fn fuzz_targets(bytes: &[u8]) {
    let Ok(text) = targets::text(bytes) else { return };
    for format in [Format::of(text), Format::Http, Format::Json, Format::List] {
        match targets::parse(text, format) {
            Ok(found) => found.iter().for_each(check),
            Err(mistakes) => {
                let lines = text.lines().count().max(1);
                assert!(mistakes.iter().all(|mistake| (1..=lines).contains(&mistake.line)));
            }
        }
    }
}

fn check(target: &Target) {
    let fallback = Origin { is_tls: false, host: "h".to_owned(), port: 80 };
    let origin = target.place.origin.as_ref().unwrap_or(&fallback);
    let body = match &target.body {
        Body::Bytes(bytes) => bytes.clone(),
        Body::None | Body::File(_) => Vec::new(),
    };
    let wish = Wish {
        method: target.method.clone(),
        target: target.place.target.clone(),
        shown: target.place.target.clone(),
        headers: target.headers.clone(),
        body,
    };
    let mut requests = Requests::default();
    requests.add(origin, &wish).expect("one target is within every bound");
    let is_one_host =
        wish.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case("host")).count() <= 1;
    let limits = Limits { head_bytes_max: 1 << 30, body_bytes_max: 1 << 30, ..Limits::SERVER };
    let sent = &requests.prepared[0].bytes;
    // More headers than our own parser takes, or two hosts, are the user's to send.
    if wish.headers.len() > 100 || !is_one_host {
        return;
    }
    let read = parse_request(sent, &limits).expect("a request is well formed").expect("and whole");
    assert_eq!((read.head.method, read.head.target), (wish.method.as_str(), wish.target.as_str()));
    assert_eq!((read.body, read.used), (wish.body.as_slice(), sent.len()));
}

/// Any bytes as a file to import. What comes out must be targets that the target file's own reader takes.
///
/// # Panics
/// If it is not.
pub fn fuzz_import(bytes: &[u8]) {
    let is_flow = bytes.len() % 2 == 1;
    let options = crate::import::ImportOptions { host: None, all_methods: true, is_flow };
    let Ok(found) = crate::import::import("(bytes)", bytes, &options) else { return };
    if let Some(text) = &found.targets {
        let read = targets::parse(text, Format::Json).expect("an import makes a target file");
        assert_eq!(read.len(), found.target_count);
    }
    assert!(!crate::import::experiment(&found, "x", Some("targets.json")).is_empty());
}
