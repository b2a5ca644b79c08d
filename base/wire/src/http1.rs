//! HTTP/1.1 as values: answers read incrementally for clients, requests read and answers written for servers.
//!
//! Goals: correct on any cut of the bytes, bounded, strict where two readers could disagree about where a
//! message ends. Not goals: caching, redirects, content codings, upgrades, HTTP/1.0 chunking.

mod body;
pub mod fuzz;
mod head;
mod learned;
mod limits;
mod request;
mod response;
#[cfg(test)]
mod response_tests;
mod write;

pub use body::BodyReader;
pub use head::Framing;
pub use limits::{HEADERS_MAX, HttpError, Limits};
pub use request::{Request, RequestHead, parse_request, parse_request_head};
pub use response::{Asked, Progress, Response, ResponseReader, header_of};
pub use write::{
    decimal, is_field_value, is_request_target, is_token, reason, write_request, write_response,
};
