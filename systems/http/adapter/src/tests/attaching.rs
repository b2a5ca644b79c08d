//! Attaching to servers on loopback: addresses, certificates, and the pass over the targets.

use std::fs;
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use sut::{Link, Role, System as _};

use super::server::Server;
use super::{built, system};

/// Claim: the pass tries every target once and names those that cannot succeed with the answer; a limiter's
/// answer is not held against the target, and one target that breaks its connection does not harm the next.
#[test]
fn preflight_names_what_cannot_succeed() {
    let server = Server::start(None);
    let paths = "/\n/missing\n/limited\n/moved\n/last\n/until-close\n/cut\n/nothing\n/garbage\n/ok";
    let workload = format!("{{\"targets_text\":{paths:?}}}");
    let system = system(&server.url("http", "127.0.0.1"), &workload);
    let deployment = system.attach(clock::Clock::start()).unwrap();
    assert_eq!(deployment.facts["http.transport"], "plain");
    assert_eq!(deployment.facts["http.targets"], "10");
    let findings = system.preflight(&deployment).unwrap();
    let found: Vec<_> =
        findings.iter().map(|f| format!("{} {} {}", f.kind, f.ok, f.detail)).collect();
    assert_eq!(
        found,
        [
            "GET / true 200 OK",
            "GET /missing false 404 Not Found",
            "GET /limited true 429 Too Many Requests (limited; this says nothing about the target)",
            "GET /moved true 301 Moved Permanently to /elsewhere (not followed)",
            "GET /last true 200 OK",
            "GET /until-close true 200 OK",
            "GET /cut false the connection was closed in the middle of an answer, 3 times of 3",
            "GET /nothing false the server closed the connection without an answer, 3 times of 3",
            "GET /garbage false the answer does not begin with an HTTP/1.x status line, 3 times of 3",
            "GET /ok true 200 OK",
        ]
    );
}

/// Claim: where answers count by the id that they bring back, a target whose answer does not bring it is named before the
/// load; and a redirect that the experiment itself calls committed is nothing to remark.
#[test]
fn preflight_looks_for_the_id() {
    let server = Server::start(None);
    let workload = r#"{"targets_text":"/echo\n/ok\n/same\n/missing\n/moved","correlate":"header:x-request-id","status":{"3xx":"committed"}}"#;
    let system = system(&server.url("http", "127.0.0.1"), workload);
    let deployment = system.attach(clock::Clock::start()).unwrap();
    let findings = system.preflight(&deployment).unwrap();
    let found: Vec<_> =
        findings.iter().map(|f| format!("{} {} {}{}", f.kind, f.ok, f.detail, f.remark)).collect();
    assert_eq!(
        found,
        [
            "GET /echo true 200 OK",
            "GET /ok false 200 OK, but the answer does not echo x-request-id, by which workload.correlate counts",
            "GET /same false 200 OK, but the answer carries another request's x-request-id, by which workload.correlate counts",
            "GET /missing false 404 Not Found",
            "GET /moved false 301 Moved Permanently to /elsewhere (not followed), but the answer does not echo x-request-id, by which workload.correlate counts",
        ]
    );
    assert_eq!(system.code_remarks(), [], "the experiment says what it means");
    let unasked = super::system(&server.url("http", "127.0.0.1"), "{}").code_remarks();
    assert_eq!(unasked.iter().map(|it| it.code).collect::<Vec<_>>(), [301, 302, 303, 307, 308]);
}

/// Claim: what fails once and then succeeds can succeed, and what came before is said; bytes behind an answer and a
/// redirect that is not followed are remarked on; and a pass that is asked to stop ends at once.
#[test]
fn preflight_tries_again_and_remarks() {
    let server = Server::start(None);
    let workload = r#"{"targets_text":"/once-reset\n/once-500\n/moved\n/stray\n/ok"}"#;
    let system = system(&server.url("http", "127.0.0.1"), workload);
    let deployment = system.attach(clock::Clock::start()).unwrap();
    let findings = system.preflight(&deployment).unwrap();
    let found: Vec<_> =
        findings.iter().map(|f| format!("{} {} {}", f.kind, f.ok, f.remark)).collect();
    assert_eq!(
        found,
        [
            "GET /once-reset true it failed before it succeeded: the server closed the connection without an answer",
            "GET /once-500 true it failed before it succeeded: 500 Internal Server Error",
            "GET /moved true a redirect is not followed, and counts as committed",
            "GET /stray true 5 unsolicited bytes came after its answer",
            "GET /ok true ",
        ]
    );
    deployment.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(system.preflight(&deployment).unwrap().len() <= 1, "what is left out is said");
}

/// Claim: of many targets as many as the bound are tried, evenly spread, and that is said; switched off,
/// nothing is tried.
#[test]
fn preflight_is_bounded() {
    let server = Server::start(None);
    let paths: String = (0..1500).map(|n| format!("/{n}\n")).collect();
    let url = server.url("http", "127.0.0.1");
    let workload = |more: &str| format!("{{\"targets_text\":{paths:?}{more}}}");
    let tried = system(&url, &workload(""));
    let deployment = tried.attach(clock::Clock::start()).unwrap();
    let findings = tried.preflight(&deployment).unwrap();
    assert_eq!(findings.len(), 501);
    assert_eq!(findings[499].kind, "GET /1497");
    assert_eq!(findings[500].detail, "500 of 1500 targets were tried, evenly spread over the file");
    let off = system(&url, &workload(",\"preflight\":false"));
    assert!(off.preflight(&deployment).unwrap().is_empty());
}

/// Claim: nobody listening and no such name are errors that name the server and what to look at.
#[test]
fn servers_that_are_not_there() {
    // The near end of a connection holds a port where nobody listens and that nobody else can be given.
    let server = Server::start(None);
    let held = TcpStream::connect(server.address).unwrap();
    let port = held.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let message = system(&url, "{}").attach(clock::Clock::start()).unwrap_err().to_string();
    let expected = "connection refused; is the server running there?";
    assert_eq!(message, format!("connecting to {url}: 127.0.0.1:{port}: {expected}"));
    // A label of 64 characters cannot be a name, so no resolver is asked.
    let host = format!("{}.invalid", "x".repeat(64));
    let message = system(&format!("http://{host}/"), "{}")
        .attach(clock::Clock::start())
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with(&format!("looking up `{host}` of http://{host}:80: ")),
        "{message}"
    );
    assert!(message.ends_with("; is the name right, and is there a network?"), "{message}");
}

/// Claim: of a name's addresses only those where somebody listens are used, in turn.
#[test]
fn connections_go_round_the_addresses() {
    let server = Server::start(None);
    let system = system(&server.url("http", "localhost"), "{}");
    let deployment = system.attach(clock::Clock::start()).unwrap();
    assert!(
        deployment.endpoints.iter().all(|(_, address)| *address == server.address),
        "{deployment:?}"
    );
    for index in 0..3 {
        let Link::Wire(endpoint, session) =
            system.connect(&deployment, Role::Submit, index).unwrap()
        else {
            panic!("HTTP goes over the wire");
        };
        assert_eq!(endpoint.address, server.address);
        assert_eq!(session.in_flight_max(), 1);
    }
    assert!(system.connect(&deployment, Role::Observe, 0).is_err());
}

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn server(&self, name: &str, last_year: Option<i32>) -> Server {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if let Some(year) = last_year {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Server::start(Some(Arc::new(config)))
    }
}

/// Claim: a server that refuses plain HTTP on a port for TLS is named as such, whatever its certificate; one that merely
/// answers 400 is not.
#[test]
fn plain_http_to_a_port_for_tls() {
    let encrypted = Authority::new("ours").server("localhost", None);
    let found = |server: &Server| {
        let system = system(&server.url("http", "127.0.0.1"), "{\"path\":\"/bad\"}");
        let deployment = system.attach(clock::Clock::start()).unwrap();
        system.preflight(&deployment).unwrap().remove(0).detail
    };
    let said = "400 Bad Request; the server speaks TLS on this port: is it https://?";
    assert_eq!(found(&encrypted), said);
    assert_eq!(found(&Server::start(None)), "400 Bad Request");
}

/// Claim: HTTPS works with the user's authority, and each bad certificate is refused for its own reason.
#[test]
fn certificates() {
    let authority = Authority::new("ours");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), authority.issuer.pem()).unwrap();
    let good = authority.server("localhost", None);
    let named = authority.server("inner.example", None);
    let expired = authority.server("localhost", Some(2002));
    let stranger = Authority::new("another").server("localhost", None);
    let plain = Server::start(None);
    let attach = |server: &Server, more: &str| {
        let url = server.url("https", "localhost");
        let deploy = format!("{{\"url\":\"{url}\",\"ca\":\"ca.pem\"{more}}}");
        let system = built(&deploy, "{}", folder.path()).unwrap();
        let deployment = system.attach(clock::Clock::start()).map_err(|error| error.to_string())?;
        let findings = system.preflight(&deployment).map_err(|error| error.to_string())?;
        assert_eq!(findings[0].detail, "200 OK");
        Ok::<String, String>(deployment.facts["http.transport"].clone())
    };
    assert_eq!(attach(&good, "").as_deref(), Ok("TLS 1.3, TLS13_AES_256_GCM_SHA384"));
    assert!(attach(&named, ",\"server_name\":\"inner.example\"").is_ok());
    for (server, expected) in [
        (
            &named,
            "the certificate is not for localhost; if the server is known by another name, set system.deploy.server_name",
        ),
        (&expired, "the certificate of localhost has expired"),
        (
            &stranger,
            "the certificate of localhost is signed by an authority that this host does not trust; name its PEM file as system.deploy.ca",
        ),
        (&plain, "the server closed the connection during the TLS handshake"),
    ] {
        let message = attach(server, "").unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}
