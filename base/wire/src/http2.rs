//! HTTP/2 (RFC 9113) as a value, for clients: bytes in, answers out. It knows no socket and no time, follows no redirect, and
//! makes nothing of what it reads.
//!
//! Goals: many requests on one connection, each with its answer; bounded whatever a server sends; every breach of the protocol
//! that could give an answer to the wrong request ends the connection. Not goals: server push (it is refused), priorities,
//! CONNECT, extended frames (they are skipped, as RFC 9113 §4.1 asks).

mod client;
#[cfg(test)]
mod client_tests;
mod fields;
mod frame;
mod hpack;
mod huffman;

pub use client::{Answer, Client, Ended, Limits, Request, Told};
pub use fields::{FieldName, request_block, server_block, write_header, write_place};

/// Why a connection is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Http2Error {
    /// The server speaks something else.
    #[error("the server answers in HTTP/1.1, and not in HTTP/2")]
    Http1,
    /// It begins with another frame than SETTINGS.
    #[error("the server does not begin with SETTINGS: it speaks no HTTP/2")]
    Preface,
    /// A frame that is longer than was allowed, or has a length that it cannot have.
    #[error("a frame of a size that it cannot have")]
    FrameSize,
    /// A frame where it cannot stand.
    #[error("{0} where it cannot stand")]
    Misplaced(&'static str),
    /// A header block that cannot be read.
    #[error("a header block that cannot be read")]
    Compression,
    /// More headers than are read.
    #[error("a header block of more than {0} bytes")]
    HeadTooLong(usize),
    /// An answer whose headers are none.
    #[error("an answer whose headers are not those of an answer: {0}")]
    Head(&'static str),
    /// A body of another length than was announced, or beyond the bound.
    #[error("a body of another length than was announced")]
    BodyLength,
    /// A window that overflows.
    #[error("a flow-control window beyond 2^31 − 1")]
    Window,
    /// Frames for a stream that has ended, or that was never begun.
    #[error("frames on a stream that no request is outstanding on")]
    Unasked,
    /// Control frames without end.
    #[error("more than {0} control frames without an answer between them")]
    Flood(u32),
    /// The server takes fewer streams than are wanted.
    #[error("the server takes {allowed} streams on a connection; write streams = {allowed}")]
    TooFewStreams {
        /// How many.
        allowed: u32,
    },
    /// The server gives the connection up.
    #[error("the server gives the connection up: {0}")]
    GoneAway(&'static str),
}

/// The name of an error code (RFC 9113 §7).
#[must_use]
pub const fn code_name(code: u32) -> &'static str {
    match code {
        0 => "NO_ERROR",
        1 => "PROTOCOL_ERROR",
        2 => "INTERNAL_ERROR",
        3 => "FLOW_CONTROL_ERROR",
        4 => "SETTINGS_TIMEOUT",
        5 => "STREAM_CLOSED",
        6 => "FRAME_SIZE_ERROR",
        7 => "REFUSED_STREAM",
        8 => "CANCEL",
        9 => "COMPRESSION_ERROR",
        10 => "CONNECT_ERROR",
        11 => "ENHANCE_YOUR_CALM",
        12 => "INADEQUATE_SECURITY",
        13 => "HTTP_1_1_REQUIRED",
        _ => "an unknown error",
    }
}
