//! The opening handshake (RFC 6455 §4): a client's request written, a server's answer read. The key comes from
//! the caller. It must never accept an answer that is not to this very request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::limits::{Limits, WebSocketError};

/// Bytes of a handshake's key.
pub const KEY_BYTES: usize = 16;

/// The text that a server appends to the key before it hashes it (§1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Header lines that an answer may have.
const HEADERS_MAX: usize = 64;

/// The request that opens a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// `Host`.
    pub host: String,
    /// Path and query.
    pub target: String,
    /// More headers, by name and value: fit for a header line, and none that the handshake has.
    pub headers: Vec<(String, String)>,
    /// Subprotocols that the server may choose from.
    pub protocols: Vec<String>,
}

/// Appends the request that opens a connection.
pub fn write_handshake(out: &mut Vec<u8>, opening: &Opening, key: [u8; KEY_BYTES]) {
    let key = STANDARD.encode(key);
    for part in [
        "GET ",
        &opening.target,
        " HTTP/1.1\r\nHost: ",
        &opening.host,
        "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ",
        &key,
        "\r\nSec-WebSocket-Version: 13\r\n",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    let protocols = opening.protocols.join(", ");
    let offered = (!protocols.is_empty()).then_some(("Sec-WebSocket-Protocol", protocols.as_str()));
    let given = opening.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in offered.into_iter().chain(given) {
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The server's answer to a key as it stands in the request.
#[must_use]
pub fn accept_value(key: &str) -> String {
    let mut hash = sha1_smol::Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID.as_bytes());
    STANDARD.encode(hash.digest().bytes())
}

/// A client's side, waiting for the answer.
#[derive(Clone, Debug)]
pub struct Handshake {
    accept: String,
    protocols: Vec<String>,
    head_bytes_max: usize,
}

impl Handshake {
    /// After a request with `key` was sent.
    #[must_use]
    pub fn new(key: [u8; KEY_BYTES], limits: &Limits) -> Self {
        let accept = accept_value(&STANDARD.encode(key));
        Self { accept, protocols: Vec::new(), head_bytes_max: limits.head_bytes_max }
    }

    /// The same, where the server may choose one of these subprotocols.
    #[must_use]
    pub fn offering(self, protocols: &[String]) -> Self {
        Self { protocols: protocols.to_vec(), ..self }
    }

    /// Reads the answer at the beginning of `bytes`. Gives its length; `None` while it is incomplete. Frames
    /// begin behind it.
    ///
    /// # Errors
    /// When the server does not switch, or not as it was asked to.
    pub fn read(&self, bytes: &[u8]) -> Result<Option<usize>, WebSocketError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut headers);
        let parsed = answer.parse(bytes).map_err(|_| WebSocketError::Head)?;
        let length = match parsed {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial => bytes.len(),
        };
        if length > self.head_bytes_max {
            return Err(WebSocketError::HeadTooLong(self.head_bytes_max));
        }
        if parsed.is_partial() {
            return Ok(None);
        }
        match answer.code {
            Some(101) => {}
            status => return Err(WebSocketError::NotSwitched(status.unwrap_or_default())),
        }
        self.check(answer.headers)?;
        Ok(Some(length))
    }

    fn check(&self, headers: &[httparse::Header<'_>]) -> Result<(), WebSocketError> {
        let has = |name: &'static str, holds: &dyn Fn(&[u8]) -> bool| {
            let mut named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            let is_there = named.any(|header| holds(header.value.trim_ascii()));
            if is_there { Ok(()) } else { Err(WebSocketError::HandshakeHeader(name)) }
        };
        has("Upgrade", &|value| value.eq_ignore_ascii_case(b"websocket"))?;
        has("Connection", &|value| {
            let mut words = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            words.any(|word| word.eq_ignore_ascii_case(b"upgrade"))
        })?;
        has("Sec-WebSocket-Accept", &|value| value == self.accept.as_bytes())?;
        let is_offered =
            |value: &[u8]| self.protocols.iter().any(|offered| offered.as_bytes() == value);
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("Sec-WebSocket-Extensions") {
                return Err(WebSocketError::NotAskedFor("Sec-WebSocket-Extensions"));
            }
            if is("Sec-WebSocket-Protocol") && !is_offered(header.value.trim_ascii()) {
                return Err(WebSocketError::NotAskedFor("Sec-WebSocket-Protocol"));
            }
        }
        Ok(())
    }
}
