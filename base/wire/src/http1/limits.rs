//! What an HTTP/1.1 peer may make us hold, and how its bytes can be wrong. Bounds and errors only.

/// The most header lines that a head may have, whatever [`Limits`] say: the parser's table is on the stack.
pub const HEADERS_MAX: usize = 128;

/// Bounds on one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest head (start line and headers).
    pub head_bytes_max: usize,
    /// The most header lines; at most [`HEADERS_MAX`].
    pub headers_max: usize,
    /// The longest body.
    pub body_bytes_max: u64,
    /// The longest line in front of a chunk (its size and extensions).
    pub chunk_line_bytes_max: usize,
    /// The longest trailer section behind the last chunk.
    pub trailer_bytes_max: usize,
    /// How much of a body is kept; the rest is counted and dropped.
    pub body_kept_max: usize,
}

impl Limits {
    /// For a client: heads up to 64 KiB (servers allow themselves 8 to 32), bodies up to 4 GiB (a row counts
    /// them in 32 bits), nothing kept.
    pub const CLIENT: Self = Self {
        head_bytes_max: 64 << 10,
        headers_max: HEADERS_MAX,
        body_bytes_max: u32::MAX as u64,
        chunk_line_bytes_max: 4 << 10,
        trailer_bytes_max: 16 << 10,
        body_kept_max: 0,
    };

    /// For a client that keeps answers whole, of bodies up to `bytes`.
    #[must_use]
    pub const fn keeping(bytes: usize) -> Self {
        Self { body_bytes_max: bytes as u64, body_kept_max: bytes, ..Self::CLIENT }
    }

    /// For a server of ours: heads up to 16 KiB, bodies up to 1 MiB, all of them kept.
    pub const SERVER: Self = Self {
        head_bytes_max: 16 << 10,
        headers_max: HEADERS_MAX,
        body_bytes_max: 1 << 20,
        chunk_line_bytes_max: 256,
        trailer_bytes_max: 4 << 10,
        body_kept_max: 1 << 20,
    };
}

/// Why bytes are not an HTTP/1.1 message that we accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// A line that does not end in CR LF: two parsers could disagree on where the head ends.
    #[error("a header line ends in a bare line feed")]
    BareLineFeed,
    /// The head goes beyond its bound.
    #[error("the head is longer than {0} bytes")]
    HeadTooLong(usize),
    /// Too many header lines.
    #[error("the head has more than {0} header lines")]
    TooManyHeaders(usize),
    /// The frames of HTTP/2 where an answer of HTTP/1.1 is due.
    #[error(
        "the server answers in HTTP/2; turn HTTP/1.1 on there, or put a proxy that speaks it in front"
    )]
    Http2,
    /// The records of TLS where plain text is due.
    #[error("the server speaks TLS on this port; is it https://?")]
    Tls,
    /// The start line is not one.
    #[error("the answer does not begin with an HTTP/1.x status line")]
    StatusLine,
    /// The request line is not one.
    #[error("the request does not begin with an HTTP/1.x request line")]
    RequestLine,
    /// A header line is not one.
    #[error("a header line is malformed")]
    HeaderLine,
    /// Both framings at once: the classic smuggling case.
    #[error(
        "the head has both Content-Length and Transfer-Encoding; where the body ends is ambiguous"
    )]
    AmbiguousLength,
    /// Lengths that contradict each other.
    #[error("the head has several Content-Length values that differ")]
    ConflictingLengths,
    /// A length that is not a number.
    #[error("the Content-Length is not a whole number")]
    ContentLength,
    /// A transfer coding that does not end the body.
    #[error("the Transfer-Encoding cannot be read; only `chunked`, last and once, is")]
    TransferEncoding,
    /// The body goes beyond its bound.
    #[error("the body is longer than {0} bytes")]
    BodyTooLong(u64),
    /// The line in front of a chunk is not one.
    #[error("a chunk does not begin with its size in hexadecimal")]
    ChunkSize,
    /// The line in front of a chunk is too long.
    #[error("the line in front of a chunk is longer than {0} bytes")]
    ChunkLineTooLong(usize),
    /// No CR LF behind a chunk.
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    /// The trailers go beyond their bound or are malformed.
    #[error("the trailer section is malformed or longer than {0} bytes")]
    Trailers(usize),
    /// An unsolicited switch of protocols.
    #[error("the server switched protocols (101), which was not asked for")]
    SwitchingProtocols,
    /// A status that has no body, with a head that announces one: whether it comes is anybody's guess.
    #[error("the head announces a body, which an answer of status {0} cannot have")]
    BodyAnnounced(u16),
    /// Endless interim answers.
    #[error("more than {0} interim (1xx) answers came in front of one answer")]
    TooManyInterim(u32),
    /// The connection ended in the middle.
    #[error("the connection was closed in the middle of an answer")]
    Truncated,
    /// An HTTP/1.1 request must name its host, once.
    #[error("the request has no Host header, or more than one")]
    Host,
}
