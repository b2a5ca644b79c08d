//! TLS towards clients: certificate and key from files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What speaks TLS, with the protocols in their order of preference.
///
/// # Errors
/// When a file cannot be read, or the two do not belong together.
pub fn acceptor(certificate: &Path, key: &Path, protocols: &[&str]) -> Result<TlsAcceptor, String> {
    let at = |path: &Path| path.display().to_string();
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| format!("tls_certificate {}: {error}", at(certificate)))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("tls_key {}: {error}", at(key)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| format!("{} and {}: {error}", at(certificate), at(key)))?;
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
