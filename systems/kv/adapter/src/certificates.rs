//! Who is who on encrypted connections: a development authority made anew for each group, a certificate for each replica and
//! one for clients, and what the instrument shows and believes. A client's certificate opens no port of the replicas' own.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CipherSuite, ClientConfig, RootCertStore};
use sut::Tls;

/// The files of a folder that `--tls` takes.
const AUTHORITIES: &str = "ca.pem";
pub(crate) const CLIENT: &str = "client.pem";
const CLIENT_KEY: &str = "client.key";

/// The name by which clients know a replica.
const NAME: &str = "localhost";

/// Makes an authority in `folder`, and certificates of it for so many replicas on this machine and for clients. The
/// authority's own key is thrown away: nobody else can ever be certified by it.
pub(crate) fn make(folder: &Path, replicas: u8) -> Result<(), String> {
    let failed = |error: rcgen::Error| format!("making certificates: {error}");
    let mut params = CertificateParams::new(Vec::<String>::new()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "kv development authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().map_err(failed)?;
    let authority = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
    let mut files = vec![(AUTHORITIES.to_owned(), authority.pem())];
    let mut certify = |of: &str, names: Vec<String>| -> Result<(), rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        files.push((format!("{of}.pem"), certificate.pem()));
        files.push((format!("{of}.key"), key.serialize_pem()));
        Ok(())
    };
    certify("client", vec!["client".to_owned()]).map_err(failed)?;
    for number in 0..replicas {
        let names = vec![NAME.to_owned(), format!("replica-{number}")];
        certify(&format!("replica{number}"), names).map_err(failed)?;
    }
    let write = || -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        files.iter().try_for_each(|(name, text)| write_private(&folder.join(name), text))
    };
    write().map_err(|error| format!("writing certificates to {}: {error}", folder.display()))
}

/// Only for this user to read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// How clients of the group with this folder connect.
pub(crate) fn client(folder: &Path) -> Result<Tls, String> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| format!("reading {}: {error}", path.display()))
    };
    let wrong = |name: &str| format!("{} is not PEM, or has none", folder.join(name).display());
    let refused =
        |error: rustls::Error| format!("the certificates in {}: {error}", folder.display());
    let certificates = |name: &str| -> Result<Vec<CertificateDer<'static>>, String> {
        let pem = read(name)?;
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        read.ok().filter(|read| !read.is_empty()).ok_or_else(|| wrong(name))
    };
    let mut believed = RootCertStore::empty();
    for authority in certificates(AUTHORITIES)? {
        believed.add(authority).map_err(refused)?;
    }
    let key = PrivateKeyDer::from_pem_slice(&read(CLIENT_KEY)?).map_err(|_| wrong(CLIENT_KEY))?;
    let mut provider = rustls::crypto::ring::default_provider();
    // The cheapest of the strong ciphers first, as the replicas have it.
    let is_other = |suite: CipherSuite| suite != CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.sort_by_key(|suite| is_other(suite.suite()));
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_root_certificates(believed)
        .with_client_auth_cert(certificates(CLIENT)?, key)
        .map_err(refused)?;
    let server_name = ServerName::try_from(NAME).expect("it is a name");
    Ok(Tls { config: Arc::new(config), server_name })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what was made can be used, the key is for nobody else to read, and what is not there or damaged is said by its
    /// name.
    #[test]
    fn certificates_are_made_and_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("tls");
        make(&at, 2).unwrap();
        assert!(client(&at).is_ok());
        let mode = std::fs::metadata(at.join("replica1.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        std::fs::write(at.join(CLIENT), "nothing").unwrap();
        assert!(client(&at).err().unwrap().contains("client.pem is not PEM"));
        std::fs::remove_file(at.join(CLIENT)).unwrap();
        assert!(client(&at).err().unwrap().contains("reading"));
    }
}
