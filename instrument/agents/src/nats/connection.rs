//! One connection to a server of NATS, plain or encrypted, from its first line to its end. Verification cannot be switched
//! off.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};
use wire::nats::{Said, said};

use crate::AgentsError;

/// How long connecting, a greeting and a write may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Name and password, or a token; never shown, never recorded.
#[derive(Clone, Default)]
pub struct Credentials {
    /// User name.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// A token instead.
    pub token: Option<String>,
}

/// The place of a server.
#[derive(Clone)]
pub(super) struct Place {
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Place {
    pub(super) fn new(
        host: &str,
        port: u16,
        is_encrypted: bool,
        ca: Option<&Path>,
    ) -> Result<Self, AgentsError> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let wrong = |why: String| AgentsError::Nats { server: format!("{host}:{port}"), why };
        let tls = match is_encrypted {
            false => None,
            true => {
                let name = ServerName::try_from(host.clone());
                let name = name.map_err(|_| wrong("expected a host name or an address".into()))?;
                Some((configuration(ca).map_err(wrong)?, name))
            }
        };
        Ok(Self { host, port, tls })
    }

    /// A URL without what may stand before its host.
    pub(super) fn shown(url: &str) -> String {
        url.rsplit_once('@').map_or(url, |(_, host)| host).to_owned()
    }
}

/// Trusts the certificates of the file, or those of the host.
fn configuration(ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let shown = path.display();
            let read = CertificateDer::pem_file_iter(path);
            let all: Result<Vec<_>, _> = read.and_then(Iterator::collect);
            let all = all.map_err(|error| format!("reading certificates from {shown}: {error}"))?;
            if all.is_empty() {
                return Err(format!("expected certificates in {shown}, got none"));
            }
            for one in all {
                roots.add(one).map_err(|error| format!("a certificate of {shown}: {error}"))?;
            }
        }
        None => {
            for one in rustls_native_certs::load_native_certs().certs {
                let _ = roots.add(one);
            }
            if roots.is_empty() {
                return Err("this host trusts no certificates; name a file with --nats-ca".into());
            }
        }
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// An open connection.
pub(super) struct Connection {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    unread: Vec<u8>,
}

impl Connection {
    /// Connects, greets and subscribes.
    pub(super) fn open(
        place: &Place,
        credentials: &Credentials,
        subjects: &[String],
    ) -> Result<Self, AgentsError> {
        let failed = |why: String| AgentsError::Nats { server: place.to_string(), why };
        let io = |error: io::Error| match error.kind() {
            // Something listens there that is no server of NATS.
            io::ErrorKind::Other => failed(error.to_string()),
            _ => AgentsError::Away { server: place.to_string(), why: error.to_string() },
        };
        let stream = connect(place).map_err(io)?;
        let mut connection = Self { stream, tls: None, unread: Vec::new() };
        let info = connection.greeting().map_err(io)?;
        let wants_tls = info["tls_required"].as_bool().unwrap_or(false);
        match &place.tls {
            None if wants_tls => {
                return Err(failed(
                    "expected tls://, got nats://; the server takes encrypted \
                     connections alone"
                        .to_owned(),
                ));
            }
            None => {}
            Some((configuration, name)) => {
                if !wants_tls && info["tls_available"].as_bool() != Some(true) {
                    return Err(failed(
                        "expected a server with TLS, got one without; write \
                         nats:// or configure its `tls`"
                            .to_owned(),
                    ));
                }
                let session = ClientConnection::new(Arc::clone(configuration), name.clone());
                let session = session.map_err(|error| failed(format!("TLS: {error}")))?;
                connection.tls = Some(Box::new(session));
                connection.shake_hands().map_err(|error| failed(untrusted(&error)))?;
            }
        }
        let hello = serde_json::json!({
            "verbose": false, "pedantic": false, "lang": "assay", "version": "1", "protocol": 1,
            "echo": false, "name": "assay", "tls_required": place.tls.is_some(),
            "user": credentials.user, "pass": credentials.password, "auth_token": credentials.token,
        });
        let mut first = format!("CONNECT {hello}\r\n");
        for (index, subject) in subjects.iter().enumerate() {
            first.push_str(&format!("SUB {subject} {}\r\n", index + 1));
        }
        first.push_str("PING\r\n");
        connection.write(first.as_bytes()).map_err(io)?;
        connection.await_pong().map_err(|error| failed(error.to_string()))?;
        Ok(connection)
    }

    pub(super) const fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads what is there; waits if there is nothing.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut part = [0; READ_BYTES];
        let Some(tls) = &mut self.tls else {
            let count = self.stream.read(&mut part)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unread.extend_from_slice(&part[..count]);
            return Ok(());
        };
        if tls.read_tls(&mut self.stream)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let processed = tls.process_new_packets();
        // An alert says the other side why.
        while tls.wants_write() {
            tls.write_tls(&mut self.stream)?;
        }
        processed.map_err(io::Error::other)?;
        loop {
            match tls.reader().read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.unread.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.stream.write_all(bytes) };
        // The session's buffer has a bound; what fills it leaves first.
        for part in bytes.chunks(16 << 10) {
            tls.writer().write_all(part)?;
            while tls.wants_write() {
                tls.write_tls(&mut self.stream)?;
            }
        }
        Ok(())
    }

    /// The contents of all whole messages that were read. PING is answered.
    pub(super) fn take_messages(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let (mut used, mut found, mut pings) = (0, Vec::new(), 0);
        while let Some((words, length)) = self.said(used)? {
            match words {
                Said::Message(message) => found.push(message.payload.to_vec()),
                Said::Ping => pings += 1,
                Said::Info(_) | Said::Pong => {}
                Said::Error(text) => return Err(refused(text)),
            }
            used += length;
        }
        self.unread.drain(..used);
        for _ in 0..pings {
            self.write(b"PONG\r\n")?;
        }
        Ok(found)
    }

    fn said(&self, from: usize) -> io::Result<Option<(Said<'_>, usize)>> {
        said(&self.unread[from..])
            .map_err(|strange| io::Error::other(format!("malformed: {}", strange.0)))
    }

    /// The description that a server begins with, before any encryption.
    fn greeting(&mut self) -> io::Result<serde_json::Value> {
        loop {
            if let Some((words, length)) = self.said(0)? {
                let Said::Info(text) = words else {
                    return Err(io::Error::other("expected INFO, got another line"));
                };
                let info = serde_json::from_slice(text).map_err(io::Error::other)?;
                self.unread.drain(..length);
                return Ok(info);
            }
            self.read()?;
        }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.is_handshaking() {
            tls.complete_io(&mut self.stream)?;
        }
        Ok(())
    }

    fn await_pong(&mut self) -> io::Result<()> {
        loop {
            while let Some((words, length)) = self.said(0)? {
                let is_pong = words == Said::Pong;
                if let Said::Error(text) = words {
                    return Err(refused(text));
                }
                self.unread.drain(..length);
                if is_pong {
                    return Ok(());
                }
            }
            self.read()?;
        }
    }
}

/// The reason why a server's certificate does not hold, with what to do about the commonest one.
fn untrusted(error: &io::Error) -> String {
    let of_tls = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    let todo = match of_tls {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; name the certificates of its authority with --nats-ca"
        }
        _ => "",
    };
    format!("TLS: {error}{todo}")
}

/// The complaint of a server, with what to do about the commonest one.
fn refused(text: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(text);
    let todo = match text.to_ascii_lowercase().contains("authorization") {
        true => "; set NATS_USER and NATS_PASSWORD, or NATS_TOKEN",
        false => "",
    };
    io::Error::other(format!("the server refuses: {text}{todo}"))
}

fn connect(place: &Place) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (place.host.as_str(), place.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
