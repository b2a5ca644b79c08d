//! A certificate made for the purpose: the server leaves it in a folder, where the client finds it.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Makes one and leaves it in the folder.
pub fn server(folder: &str) -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    std::fs::write(Path::new(folder).join("certificate.der"), made.cert.der()).expect("written");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they belong together");
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

/// Trusts the one in the folder.
pub fn client(folder: &str) -> sut::Tls {
    let der = std::fs::read(Path::new(folder).join("certificate.der")).expect("the server runs");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(der)).expect("a certificate");
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let server_name = ServerName::try_from("localhost").expect("a name");
    sut::Tls { config: Arc::new(config), server_name }
}
