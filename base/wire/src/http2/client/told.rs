//! The words of a client: requests, the bounds on their answers, and the news of them.

/// Bounds on answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an answer's headers.
    pub head_bytes_max: usize,
    /// Bytes of a body that are kept.
    pub body_kept_max: usize,
    /// Bytes of a body.
    pub body_bytes_max: u64,
    /// Whether headers are kept.
    pub keeps_heads: bool,
    /// Requests that may be outstanding.
    pub streams_max: u32,
}

/// A request's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its header block: [`super::super::request_block`].
    pub block: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
    /// Whether its answer has no body, whatever its headers say (HEAD).
    pub is_head: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    /// With an answer.
    Answered(Answer<'a>),
    /// The server reset the stream: the name of its reason, and whether it says that it did nothing.
    Reset {
        /// Such as `CANCEL`.
        why: &'static str,
        /// The request was not processed.
        is_refused: bool,
    },
}

/// Something that arrived of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// A part of its body, with the status and the headers that came before it.
    Part {
        /// 200 to 999.
        status: u16,
        /// As in [`Answer::head`].
        head: &'a [u8],
        /// The part.
        body: &'a [u8],
    },
    /// The request has ended.
    End(Ended<'a>),
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// 200 to 999.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// The part of the body that is kept.
    pub body: &'a [u8],
    /// Its headers and trailers, a line each as in HTTP/1.1, where they are kept.
    pub head: &'a [u8],
    /// The trailers alone: the end of `head`.
    pub trailers: &'a [u8],
}
