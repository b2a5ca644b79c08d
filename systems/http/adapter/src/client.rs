//! A small blocking client for what comes before the load: is the server there, is its certificate good, can
//! each target succeed. It times nothing, and the load never uses it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use clock::{Clock, Instant};
use rustls::{ClientConnection, StreamOwned};
use sut::Tls;
use wire::http1::{Asked, Limits, Response, ResponseReader};

/// Bytes taken from the socket at once.
const RECEIPT_BYTES: usize = 16 << 10;

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    pub(crate) reader: ResponseReader,
    received: Vec<u8>,
    clock: Clock,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connection {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// In words, for people: refused, timed out, a bad certificate.
    pub(crate) fn open(
        address: SocketAddr,
        tls: Option<&Tls>,
        limits: Limits,
        clock: Clock,
        wait: Duration,
    ) -> Result<Self, String> {
        let deadline = clock.now().plus(wait);
        let tcp = TcpStream::connect_timeout(&address, wait)
            .map_err(|error| format!("{}; is the server running there?", plain(&error, wait)))?;
        let stream = match tls {
            None => Stream::Plain(tcp),
            Some(tls) => Stream::Tls(Box::new(handshake(tcp, tls, clock, deadline, wait)?)),
        };
        let reader = ResponseReader::new(limits);
        Ok(Self { stream, reader, received: Vec::new(), clock })
    }

    /// `TLS 1.3, TLS13_AES_256_GCM_SHA384`, or `plain`.
    pub(crate) fn transport(&self) -> String {
        let Stream::Tls(stream) = &self.stream else { return "plain".to_owned() };
        let version = match stream.conn.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
            other => format!("{other:?}"),
        };
        let suite = stream.conn.negotiated_cipher_suite();
        suite.map_or(version.clone(), |suite| format!("{version}, {:?}", suite.suite()))
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// In words, for people.
    pub(crate) fn ask(
        &mut self,
        request: &[u8],
        asked: Asked,
        wait: Duration,
    ) -> Result<Response, String> {
        let deadline = self.clock.now().plus(wait);
        self.limit(deadline, wait)?;
        self.send(request).map_err(|error| plain(&error, wait))?;
        loop {
            let progress =
                self.reader.read(&self.received, asked).map_err(|error| error.to_string())?;
            self.received.drain(..progress.used);
            if let Some(response) = progress.response {
                return Ok(response);
            }
            self.limit(deadline, wait)?;
            let start = self.received.len();
            self.received.resize(start + RECEIPT_BYTES, 0);
            let count = self.receive(start).map_err(|error| plain(&error, wait))?;
            self.received.truncate(start + count);
            if count == 0 {
                let ended = self.reader.closed().map_err(|error| error.to_string())?;
                return ended.ok_or_else(|| {
                    "the server closed the connection without an answer".to_owned()
                });
            }
        }
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(request),
            Stream::Tls(stream) => stream.write_all(request).and_then(|()| stream.flush()),
        }
    }

    fn receive(&mut self, start: usize) -> io::Result<usize> {
        let into = &mut self.received[start..];
        let result = match &mut self.stream {
            Stream::Plain(stream) => stream.read(into),
            Stream::Tls(stream) => stream.read(into),
        };
        match result {
            // Many servers end a TLS connection without saying so; the reader knows whether something is missing.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            result => result,
        }
    }

    fn limit(&self, deadline: Instant, wait: Duration) -> Result<(), String> {
        let tcp = match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => &stream.sock,
        };
        limit(tcp, self.clock, deadline, wait)
    }
}

fn handshake(
    mut tcp: TcpStream,
    tls: &Tls,
    clock: Clock,
    deadline: Instant,
    wait: Duration,
) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let mut connection = ClientConnection::new(tls.config.clone(), tls.server_name.clone())
        .map_err(|error| format!("TLS: {error}"))?;
    let name = tls.server_name.to_str();
    while connection.is_handshaking() {
        limit(&tcp, clock, deadline, wait)?;
        connection.complete_io(&mut tcp).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "the server closed the connection during the TLS handshake".to_owned()
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => plain(&error, wait),
            _ => crate::tls::explain(&error, &name),
        })?;
    }
    Ok(StreamOwned::new(connection, tcp))
}

/// No single read or write goes on beyond the deadline.
fn limit(tcp: &TcpStream, clock: Clock, deadline: Instant, wait: Duration) -> Result<(), String> {
    let left = deadline.saturating_since(clock.now());
    if left.is_zero() {
        return Err(no_answer(wait));
    }
    let set = tcp.set_read_timeout(Some(left)).and_then(|()| tcp.set_write_timeout(Some(left)));
    set.map_err(|error| error.to_string())
}

fn plain(error: &io::Error, wait: Duration) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => no_answer(wait),
        _ => error.to_string(),
    }
}

fn no_answer(wait: Duration) -> String {
    format!("no answer within {} s", wait.as_secs_f32())
}
