//! Encryption between the kernel and a node: TLS 1.3, with certificates on both sides. The node never sees it.
//!
//! Whom a process believes is in its [`Identity`] alone; nothing here can switch verification off, and no message
//! of here shows a key.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{Resumption, verify_server_name};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection, Error,
    RootCertStore, ServerConfig, ServerConnection,
};

use super::waiting::Waiting;

/// Encrypted at once: some records of 16 KiB, so that a slow peer's bytes wait before they are encrypted.
const ENCRYPTED_BYTES_MAX: usize = 256 << 10;

/// Why an identity cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("reading {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What is not what it should be. It never says what stands in it.
    #[error("{0} is not PEM, or has none")]
    Pem(&'static str),
    /// Certificate and key are not used together, or an authority is none.
    #[error("the certificate, its key or the authorities: {0}")]
    Refused(String),
    /// A peer's name is none.
    #[error("`{0}` is not a name that a certificate can have")]
    Name(String, #[source] InvalidDnsNameError),
}

/// Who a process is to others, and whom it believes: a certificate chain, its key, and authorities.
#[derive(Clone)]
pub struct Identity {
    pub(super) server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Reads the three files, each PEM.
    ///
    /// # Errors
    /// When one cannot be read or used.
    pub fn read(chain: &Path, key: &Path, authorities: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
        };
        Self::from_pem(&read(chain)?, &read(key)?, &read(authorities)?)
    }

    /// From PEM: the certificate and those between it and an authority, its key, and the authorities whose
    /// certificates are believed, those of peers that are dialled and of those that dial alike.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn from_pem(chain: &[u8], key: &[u8], authorities: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain, "the certificate chain")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Pem("the key"))?;
        let mut believed = RootCertStore::empty();
        for authority in certificates(authorities, "the list of authorities")? {
            believed.add(authority).map_err(refused)?;
        }
        let (believed, provider) = (Arc::new(believed), Arc::new(provider()));
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::clone(&believed),
            Arc::clone(&provider),
        );
        let verifier = verifier.build().map_err(|error| TlsError::Refused(error.to_string()))?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(refused)?;
        // Connections of nodes are few and long: tickets would only be work.
        server.send_tls13_tickets = 0;
        server.ignore_client_order = true;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .with_root_certificates(believed)
            .with_client_auth_cert(chain, key)
            .map_err(refused)?;
        client.resumption = Resumption::disabled();
        Ok(Self { server: Arc::new(server), client: Arc::new(client) })
    }
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok().filter(|read| !read.is_empty()).ok_or(TlsError::Pem(what))
}

fn refused(error: Error) -> TlsError {
    TlsError::Refused(error.to_string())
}

/// The library's own algorithms, with the cheapest of the strong ciphers first.
fn provider() -> rustls::crypto::CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

/// A name that certificates have.
pub(super) fn name(name: &str) -> Result<ServerName<'static>, TlsError> {
    let wrong = |error| TlsError::Name(name.to_owned(), error);
    ServerName::try_from(name.to_owned()).map_err(wrong)
}

/// How a peer is dialled.
#[derive(Clone)]
pub(super) struct Dialling {
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for Dialling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialling({:?})", self.name)
    }
}

impl Dialling {
    pub(super) fn new(name: &str, identity: &Identity) -> Result<Self, TlsError> {
        Ok(Self { client: Arc::clone(&identity.client), name: self::name(name)? })
    }
}

/// One encrypted connection.
#[derive(Debug)]
pub(super) struct Layer {
    connection: Connection,
    /// Encrypted, and not taken by the kernel yet.
    pub(super) wire: Waiting,
}

impl Layer {
    pub(super) fn accepting(identity: &Identity) -> Result<Self, Error> {
        Ok(Self::new(ServerConnection::new(Arc::clone(&identity.server))?.into()))
    }

    pub(super) fn dialling(dialling: &Dialling) -> Result<Self, Error> {
        let client = Arc::clone(&dialling.client);
        Ok(Self::new(ClientConnection::new(client, dialling.name.clone())?.into()))
    }

    fn new(mut connection: Connection) -> Self {
        // What is written here was counted before: a second bound would only lose bytes.
        connection.set_buffer_limit(None);
        Self { connection, wire: Waiting::default() }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Which of these names the peer's certificate has.
    pub(super) fn certified(&self, names: &[ServerName<'static>]) -> Option<u8> {
        let certificate = self.connection.peer_certificates()?.first()?;
        let certificate = ParsedCertificate::try_from(certificate).ok()?;
        let has = |name| verify_server_name(&certificate, name).is_ok();
        names.iter().position(has).and_then(|place| u8::try_from(place).ok())
    }

    /// Takes bytes from the wire; plain ones are added to `plain`.
    pub(super) fn receive(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::General(error.to_string());
        while !wire.is_empty() {
            let count = self.connection.read_tls(&mut wire).map_err(failed)?;
            let mut readable = self.connection.process_new_packets()?.plaintext_bytes_to_read();
            let mut reader = self.connection.reader();
            while readable > 0 {
                let part = reader.fill_buf().map_err(failed)?;
                let length = part.len();
                plain.extend_from_slice(part);
                reader.consume(length);
                readable -= length;
            }
            if count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Encrypts what comes next of `plain`, and gives how much that was.
    pub(super) fn encrypt(&mut self, plain: &[u8]) -> usize {
        let part = &plain[..plain.len().min(ENCRYPTED_BYTES_MAX)];
        self.connection.writer().write_all(part).expect("writing to memory without a bound");
        part.len()
    }

    /// Says that nothing comes behind what was encrypted.
    pub(super) fn finish(&mut self) {
        self.connection.send_close_notify();
    }

    /// Fills the wire's buffer; gives whether there is anything in it.
    pub(super) fn fill(&mut self) -> bool {
        while self.connection.wants_write() {
            let wire = self.wire.buffer(0);
            self.connection.write_tls(wire).expect("writing to memory");
        }
        !self.wire.is_empty()
    }
}

/// Why encrypted connections ended other than by being closed, and how often.
pub type TlsFailures = BTreeMap<&'static str, u64>;

/// The certificate is believed, and is not of one who is to connect there.
pub(super) const OF_ANOTHER_NAME: &str = "certificate of another name";

/// The kind of a failure, of which there are few: a peer cannot make the list long.
pub(super) fn reason(error: &Error) -> &'static str {
    use CertificateError as Certificate;
    match error {
        Error::NoCertificatesPresented => "no certificate",
        Error::InvalidCertificate(why) => match why {
            Certificate::Expired | Certificate::ExpiredContext { .. } => "certificate expired",
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                "certificate not valid yet"
            }
            Certificate::UnknownIssuer => "certificate of an unknown authority",
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                OF_ANOTHER_NAME
            }
            Certificate::BadSignature => "certificate with a wrong signature",
            _ => "certificate not usable",
        },
        Error::AlertReceived(_) => "refused by the peer",
        Error::PeerIncompatible(_) => "another protocol version or cipher",
        Error::DecryptError => "altered on its way",
        _ => "not the protocol",
    }
}
