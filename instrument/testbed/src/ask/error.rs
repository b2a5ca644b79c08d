//! Why a question got no answer: typed, so that an adapter can add what only it knows (which option names a
//! certificate, which program ought to run there).

use std::io;
use std::time::Duration;

use wire::http1::HttpError;

/// Why a question got no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no connection.
    #[error("{}", io_in_words(.0))]
    Connect(io::Error),
    /// The handshake failed.
    #[error("TLS: {0}")]
    Tls(rustls::Error),
    /// The server closed the connection during the handshake.
    #[error("the server closed the connection during the TLS handshake")]
    HandshakeClosed,
    /// The connection broke before the answer was complete.
    #[error("{}", io_in_words(.0))]
    Lost(io::Error),
    /// The server closed the connection without an answer.
    #[error("the server closed the connection without an answer")]
    ClosedEarly,
    /// It closed in the middle of one, or what it sent is none.
    #[error("{0}")]
    Answer(HttpError),
    /// Nothing, or not all of it, came in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// Whoever asked was told to stop.
    #[error("it was asked to stop")]
    Stopped,
}

impl AskError {
    /// Whether no process listens there: the process is gone, or was never started.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

fn io_in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        _ => error.to_string(),
    }
}
