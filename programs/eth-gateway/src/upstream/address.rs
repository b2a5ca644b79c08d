//! Where the node is: the parts of its URL.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use crate::rpc::Failure;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    /// Host and port as the URL has them, without a user.
    pub authority: String,
    pub path: String,
    /// What the URL's user and password make.
    pub authorization: Option<String>,
}

impl Address {
    /// # Errors
    /// When it is no URL of `http` or `https`.
    pub fn read(url: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("upstream `{}`: {why}; write http://HOST:PORT/", without_user(url));
        let uri: Uri = url.parse().map_err(|_| wrong("no URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("neither http nor https")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
        let user = authority.as_str().rsplit_once('@').map(|(user, _)| user);
        let bare = authority.as_str().rsplit('@').next().unwrap_or_default();
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            authority: bare.to_owned(),
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
            authorization: user.map(|user| format!("Basic {}", STANDARD.encode(user))),
        })
    }

    /// The name that the node's certificate must have.
    pub fn server_name(&self) -> Result<ServerName<'static>, Failure> {
        ServerName::try_from(self.host.clone())
            .map_err(|error| Failure::Unreachable(format!("host {}: {error}", self.host)))
    }
}

/// The URL as it may be shown: a user and a password may stand in it.
fn without_user(url: &str) -> &str {
    url.rsplit('@').next().unwrap_or_default()
}

/// TLS that trusts what the host trusts.
pub fn connector() -> Result<TlsConnector, String> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("this host has no certificates that it trusts; install ca-certificates, or name an http upstream".to_owned());
    }
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .map_err(|error| format!("TLS to the node: {error}"))?
    .with_root_certificates(roots)
    .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a URL's parts are found, a password is sent and never shown.
    #[test]
    fn parts() {
        let address = Address::read("https://me:secret@node.example/v3/key?x=1").unwrap();
        assert_eq!(
            (address.host.as_str(), address.port, address.is_tls),
            ("node.example", 443, true)
        );
        assert_eq!(address.path, "/v3/key?x=1");
        assert_eq!(address.authority, "node.example");
        assert_eq!(address.authorization.as_deref(), Some("Basic bWU6c2VjcmV0"));
        let local = Address::read("http://[::1]:8545").unwrap();
        assert_eq!((local.host.as_str(), local.port, local.path.as_str()), ("::1", 8545, "/"));
        let error = Address::read("ftp://me:secret@node.example").unwrap_err();
        assert!(error.contains("neither http nor https") && !error.contains("secret"), "{error}");
        assert!(Address::read("node:8545").is_err());
    }
}
