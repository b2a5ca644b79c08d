//! TLS for the load and for the checks before it: the host's roots and the user's, TLS 1.2 and 1.3,
//! verification unless the user says otherwise, and errors that say what to do.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use sut::Tls;
use sut::ask::AskError;

/// What is trusted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trust<'a> {
    /// A PEM file beside the host's own roots: its name and content.
    pub(crate) ca: Option<(&'a str, &'a [u8])>,
    /// Whether any certificate will do.
    pub(crate) is_insecure: bool,
    /// Whether HTTP/2 is asked for (ALPN), and not HTTP/1.1.
    pub(crate) is_http2: bool,
}

/// The configuration for a server called `name`.
///
/// # Errors
/// In words, for people.
pub(crate) fn tls(name: &str, trust: Trust<'_>) -> Result<Tls, String> {
    let server_name = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("`{name}` is not a name that a certificate can carry"))?;
    let failed = |error: &dyn std::fmt::Display| format!("TLS cannot be set up: {error}");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let own = trust.ca.map(own_certificates).transpose()?.unwrap_or_default();
    let verifier = if trust.is_insecure {
        Verifier { by_roots: None, own, provider: Arc::clone(&provider) }
    } else {
        let roots = Arc::new(roots(trust.ca, &own)?);
        let by_roots = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let by_roots = Some(by_roots.build().map_err(|error| failed(&error))?);
        Verifier { by_roots, own, provider: Arc::clone(&provider) }
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = config.with_no_client_auth();
    config.alpn_protocols =
        vec![if trust.is_http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    Ok(Tls { config: Arc::new(config), server_name })
}

/// The certificates of a PEM file.
fn own_certificates((path, pem): (&str, &[u8])) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| format!("{path}: not a PEM certificate: {error}"))?;
    if read.is_empty() {
        return Err(format!("{path} holds no PEM certificate"));
    }
    Ok(read)
}

fn roots(
    ca: Option<(&str, &[u8])>,
    own: &[CertificateDer<'static>],
) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    for certificate in own {
        let path = ca.map_or("ca", |(path, _)| path);
        roots
            .add(certificate.clone())
            .map_err(|error| format!("{path}: not a root certificate: {error}"))?;
    }
    if roots.is_empty() {
        return Err(
            "this host has no root certificates; name a PEM file as system.deploy.ca".to_owned()
        );
    }
    Ok(roots)
}

/// Verifies as rustls does, with one thing more: a certificate that the user gave is the server's own, although it is also
/// that of an authority, as `openssl req -x509` makes it. Other tools take such a one, too.
#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate will do. That the server has its key is checked all the same.
    by_roots: Option<Arc<WebPkiServerVerifier>>,
    own: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(by_roots) = &self.by_roots else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            by_roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The times of its validity have been looked at before its constraints.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                if is_authority(&why) && self.own.iter().any(|own| own == end_entity) =>
            {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn is_authority(why: &rustls::OtherError) -> bool {
    why.to_string().contains("CaUsedAsEndEntity")
}

/// Why a server that is known as `name` gave no answer, and what to do, in words.
pub(crate) fn explain(error: &AskError, name: &str) -> String {
    match error {
        AskError::Connect(_) => format!("{error}; is the server running there?"),
        AskError::Tls(rustls::Error::InvalidCertificate(why)) => certificate(why, name),
        AskError::Tls(rustls::Error::InvalidMessage(_)) => {
            "the server does not speak TLS on this port; is it http://?".to_owned()
        }
        AskError::Tls(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            "the server speaks HTTP/2 alone; turn HTTP/1.1 on there, or put a proxy that speaks it in front".to_owned()
        }
        AskError::Tls(rustls::Error::PeerIncompatible(why)) => {
            format!("the server offers no TLS 1.2 or 1.3 that this client speaks ({why:?})")
        }
        other => other.to_string(),
    }
}

fn certificate(why: &CertificateError, name: &str) -> String {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of {name} has expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {name} is not valid yet; is this host's clock right?")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the certificate is not for {name}; if the server is known by another name, set system.deploy.server_name"
            )
        }
        // A bad signature: an authority of this name is trusted, and it is another.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "the certificate of {name} is signed by an authority that this host does not trust; name its PEM file as \
             system.deploy.ca, or say --insecure"
        ),
        CertificateError::Revoked => format!("the certificate of {name} has been revoked"),
        CertificateError::Other(other) if is_authority(other) => format!(
            "the certificate of {name} is self-signed (CA:TRUE); name its PEM file as system.deploy.ca, or say --insecure"
        ),
        other => format!("the certificate of {name} cannot be accepted: {other}"),
    }
}
