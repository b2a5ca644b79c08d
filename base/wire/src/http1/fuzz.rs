//! Entry points for fuzzing: bytes from outside, cut at arbitrary places.

use super::limits::Limits;
use super::request::parse_request;

/// Any bytes as an answer.
pub fn fuzz_response(_bytes: &[u8]) {}

/// Any bytes as requests: never a panic, and progress with each.
pub fn fuzz_request(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(request)) = parse_request(rest, &Limits::SERVER) {
        assert!(request.used > 0, "a request takes bytes");
        rest = &rest[request.used..];
    }
}
