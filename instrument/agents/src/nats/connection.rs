//! One connection to a server of NATS, plain or encrypted, from its first line to its end. Verification cannot be switched
//! off.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Instant};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};
use wire::nats::{Said, said};

use crate::AgentsError;

/// The longest wait for one address, one read and one write.
const PATIENCE: Duration = Duration::from_secs(5);
/// All of them together until a connection is open, whatever the server says meanwhile.
const OPEN_MAX: Duration = Duration::from_secs(10);
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

/// The moment by which a connection has to be open.
struct Deadline {
    clock: Clock,
    at: Instant,
}

impl Deadline {
    /// The longest that one wait may take now.
    fn patience(&self) -> io::Result<Duration> {
        let left = self.at.saturating_since(self.clock.now());
        if left.is_zero() {
            let why = format!("expected an open connection within {} s", OPEN_MAX.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        Ok(left.min(PATIENCE))
    }
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
        clock: Clock,
    ) -> Result<Self, AgentsError> {
        let by = Deadline { clock, at: clock.now().plus(OPEN_MAX) };
        let failed = |why: String| AgentsError::Nats { server: place.to_string(), why };
        let io = |error: io::Error| match error.kind() {
            // Something listens there that is no server of NATS.
            io::ErrorKind::Other => failed(error.to_string()),
            _ => AgentsError::Away { server: place.to_string(), why: error.to_string() },
        };
        let stream = connect(place, &by).map_err(io)?;
        let mut connection = Self { stream, tls: None, unread: Vec::new() };
        let info = connection.greeting(&by).map_err(io)?;
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
                // Read after the handshake, they would pass for what the server said encrypted.
                if !connection.unread.is_empty() {
                    return Err(failed(format!(
                        "expected nothing between INFO and TLS, got {} bytes before encryption; look for what \
                         stands in the network between here and the server",
                        connection.unread.len()
                    )));
                }
                let session = ClientConnection::new(Arc::clone(configuration), name.clone());
                let session = session.map_err(|error| failed(format!("TLS: {error}")))?;
                connection.tls = Some(Box::new(session));
                connection.shake_hands(&by).map_err(|error| failed(untrusted(&error)))?;
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
        connection.await_pong(&by).map_err(|error| failed(error.to_string()))?;
        connection.stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
        Ok(connection)
    }

    pub(super) const fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads while the connection is being opened.
    fn read_by(&mut self, by: &Deadline) -> io::Result<()> {
        self.stream.set_read_timeout(Some(by.patience()?))?;
        self.read()
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
    fn greeting(&mut self, by: &Deadline) -> io::Result<serde_json::Value> {
        loop {
            if let Some((words, length)) = self.said(0)? {
                let Said::Info(text) = words else {
                    return Err(io::Error::other("expected INFO, got another line"));
                };
                let info = serde_json::from_slice(text).map_err(io::Error::other)?;
                self.unread.drain(..length);
                return Ok(info);
            }
            self.read_by(by)?;
        }
    }

    fn shake_hands(&mut self, by: &Deadline) -> io::Result<()> {
        while let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.stream)?;
            }
            if !tls.is_handshaking() {
                break;
            }
            self.read_by(by)?;
        }
        Ok(())
    }

    fn await_pong(&mut self, by: &Deadline) -> io::Result<()> {
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
            self.read_by(by)?;
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

fn connect(place: &Place, by: &Deadline) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (place.host.as_str(), place.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, by.patience()?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use clock::{Hand, WallTime};

    use super::super::{Nats, Server};
    use super::*;

    /// A server that does one thing with its one client, and its place.
    fn server<T: Send + 'static>(
        is_encrypted: bool,
        work: impl FnOnce(TcpStream) -> T + Send + 'static,
    ) -> (Server, JoinHandle<T>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || work(listener.accept().unwrap().0));
        let trusting_none = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
        let tls = is_encrypted.then(|| {
            let name = ServerName::try_from("127.0.0.1").unwrap();
            (Arc::new(trusting_none.with_no_client_auth()), name)
        });
        let place = Place { host: "127.0.0.1".to_owned(), port, tls };
        (Server { place, credentials: Credentials::default() }, thread)
    }

    fn by_hand() -> (Clock, Hand) {
        Clock::by_hand(Instant::ZERO, WallTime::from_unix_ns(0))
    }

    fn refusal(server: Server, clock: Clock) -> String {
        Nats::connect(server, &["s".to_owned()], clock).err().unwrap().to_string()
    }

    /// Claim: bytes that follow INFO before TLS, which anybody between can have put there, are refused before a handshake, and
    /// never taken for what the server said encrypted.
    #[test]
    fn bytes_before_encryption() {
        let (server, heard) = server(true, |mut stream| {
            let injected = b"INFO {\"tls_required\":true}\r\nPONG\r\nMSG s 1 2\r\n{}\r\n";
            stream.write_all(injected).unwrap();
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard);
            heard
        });
        let why = refusal(server, by_hand().0);
        assert!(why.contains("21 bytes before encryption"), "{why}");
        assert_eq!(heard.join().unwrap(), b"", "no handshake was begun");
    }

    /// Claim: a server that keeps speaking and never says what opens a connection is left after ten seconds, in the greeting,
    /// in the handshake, and after it.
    #[test]
    fn a_server_that_never_comes_to_the_point() {
        let required = &b"INFO {\"tls_required\":true}\r\n"[..];
        // The last is the head of a record of TLS, of which a byte comes at a time.
        let record = &b"\x16\x03\x03\x40\x00"[..];
        for (is_encrypted, first, again) in [
            (false, &b"INFO {"[..], &b" "[..]),
            (false, b"INFO {}\r\n", b"INFO {}\r\n"),
            (true, required, b"\x00"),
        ] {
            let (clock, mut hand) = by_hand();
            let (server, ended) = server(is_encrypted, move |mut stream| {
                stream.write_all(first).unwrap();
                if is_encrypted {
                    // The client has greeted: nothing of the record is read with INFO.
                    stream.read_exact(&mut [0; 5]).unwrap();
                    stream.write_all(record).unwrap();
                }
                for _ in 0..2_000 {
                    hand.move_to(hand.now().plus(Duration::from_millis(100)));
                    if stream.write_all(again).is_err() {
                        break;
                    }
                }
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let why = refusal(server, clock);
            assert!(why.contains("expected an open connection within 10 s"), "{why}");
            ended.join().unwrap();
        }
    }
}
