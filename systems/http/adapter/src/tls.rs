//! TLS for the load and for the checks before it: the host's roots and the user's, TLS 1.2 and 1.3,
//! verification always on, and errors that say what to do.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use sut::Tls;
use sut::ask::AskError;

/// The configuration for a server called `name`, trusting the host's roots and those in `ca` (PEM).
///
/// # Errors
/// In words, for people.
pub(crate) fn tls(name: &str, ca: Option<(&str, &[u8])>) -> Result<Tls, String> {
    let server_name = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("`{name}` is not a name that a certificate can carry"))?;
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .with_root_certificates(roots(ca)?);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls { config: Arc::new(config), server_name })
}

fn roots(ca: Option<(&str, &[u8])>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    if let Some((path, pem)) = ca {
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| format!("{path}: not a PEM certificate: {error}"))?;
            roots
                .add(certificate)
                .map_err(|error| format!("{path}: not a root certificate: {error}"))?;
            count += 1;
        }
        if count == 0 {
            return Err(format!("{path} holds no PEM certificate"));
        }
    }
    if roots.is_empty() {
        return Err(
            "this host has no root certificates; name a PEM file as system.deploy.ca".to_owned()
        );
    }
    Ok(roots)
}

/// Why a server that is known as `name` gave no answer, and what to do, in words.
pub(crate) fn explain(error: &AskError, name: &str) -> String {
    match error {
        AskError::Connect(_) => format!("{error}; is the server running there?"),
        AskError::Tls(rustls::Error::InvalidCertificate(why)) => certificate(why, name),
        AskError::Tls(rustls::Error::InvalidMessage(_)) => {
            "the server does not speak TLS on this port; is it http://?".to_owned()
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
        CertificateError::UnknownIssuer => format!(
            "the certificate of {name} is signed by an authority that this host does not trust; name its PEM file as system.deploy.ca"
        ),
        CertificateError::Revoked => format!("the certificate of {name} has been revoked"),
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            format!(
                "the certificate of {name} is an authority's own (CA:TRUE) and cannot be a server's as well; make one with basicConstraints CA:FALSE"
            )
        }
        other => format!("the certificate of {name} cannot be accepted: {other}"),
    }
}
