//! What a WebSocket peer may make us hold, and how its bytes can be wrong. Bounds and errors only.

/// Bounds on what a peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest answer to the opening handshake.
    pub head_bytes_max: usize,
    /// The longest payload of one frame.
    pub frame_bytes_max: u64,
    /// The longest message, all its frames together.
    pub message_bytes_max: usize,
}

impl Limits {
    /// For a client: a head of up to 16 KiB, messages of up to 64 MiB. A block of 21 MiB, which consensus
    /// networks allow, is 28 MiB in base64.
    pub const CLIENT: Self =
        Self { head_bytes_max: 16 << 10, frame_bytes_max: 64 << 20, message_bytes_max: 64 << 20 };
}

/// Why bytes are not a WebSocket connection that we accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketError {
    /// The answer to the handshake goes beyond its bound.
    #[error("the answer to the WebSocket handshake is longer than {0} bytes")]
    HeadTooLong(usize),
    /// The answer to the handshake is no HTTP.
    #[error("the answer to the WebSocket handshake is not an HTTP/1.1 head")]
    Head,
    /// The server does not want to speak WebSocket there.
    #[error("the server answered the WebSocket handshake with status {0} instead of 101")]
    NotSwitched(u16),
    /// A header that must be there is missing or wrong.
    #[error("the server's WebSocket handshake has no proper `{0}` header")]
    HandshakeHeader(&'static str),
    /// The server wants something that was not asked for.
    #[error("the server's WebSocket handshake has a `{0}` header, which was not asked for")]
    NotAskedFor(&'static str),
    /// Reserved bits without an extension that gives them a meaning.
    #[error("a WebSocket frame has reserved bits set, and no extension was agreed on")]
    ReservedBits,
    /// An opcode that RFC 6455 does not define.
    #[error("a WebSocket frame has the reserved opcode {0}")]
    ReservedOpcode(u8),
    /// A control frame in pieces, or longer than 125 bytes.
    #[error("a WebSocket control frame is fragmented or longer than 125 bytes")]
    ControlFrame,
    /// A length that is not in its shortest form, or has its highest bit set.
    #[error("a WebSocket frame's length is not written in its shortest form")]
    Length,
    /// A frame goes beyond its bound.
    #[error("a WebSocket frame announces {0} bytes, more than are allowed")]
    FrameTooLong(u64),
    /// A message goes beyond its bound.
    #[error("a WebSocket message is longer than {0} bytes")]
    MessageTooLong(usize),
    /// A server that masks, or a client that does not.
    #[error("a WebSocket frame is masked by a server or not masked by a client")]
    Mask,
    /// A continuation of nothing, or a new message inside another.
    #[error("WebSocket frames of two messages are mixed")]
    Fragmentation,
    /// Text that is not UTF-8.
    #[error("a WebSocket text message is not UTF-8")]
    Text,
    /// A close frame that is malformed.
    #[error("a WebSocket close frame has a malformed body")]
    CloseBody,
}
