//! The way between the engine and the system: TLS, many connections, large requests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use model::Outcome;
use rustls::pki_types::{PrivateKeyDer, ServerName};

use super::toy::{
    Kept, Toy, ToySystem, closed, constant, count, plan, run, try_run, with_each_driver,
};
use crate::LoadError;
use crate::threads::{Choice, choose};

/// An echo of nine-byte frames over TLS, with a certificate made for the purpose.
pub(super) fn start_tls() -> (SocketAddr, rustls::RootCertStore) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let session = rustls::ServerConnection::new(config).unwrap();
                let mut tls = rustls::StreamOwned::new(session, stream);
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = tls.read(&mut buffer) {
                    // The request's kind comes back as its code: clear it, the code is a stage.
                    let mut answer = buffer[..length].to_vec();
                    answer.iter_mut().skip(8).step_by(9).for_each(|code| *code = 0);
                    if tls.write_all(&answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, roots)
}

pub(super) fn tls_system(
    address: SocketAddr,
    roots: rustls::RootCertStore,
    name: &str,
) -> ToySystem {
    let config =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let server_name = ServerName::try_from(name.to_owned()).unwrap();
    let tls = sut::Tls { config: Arc::new(config), server_name };
    ToySystem { tls: Some(tls), ..ToySystem::new(address) }
}

/// Claim: the same trial runs over TLS, the handshakes are over before the load begins, and the facts name
/// version and cipher.
#[test]
fn tls_carries_the_load() {
    with_each_driver(|choice| {
        let (address, roots) = start_tls();
        let (facts, kept) =
            run(&plan(constant(500)), &tls_system(address, roots, "localhost"), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 150);
        assert!(facts.transport.starts_with("TLSv1_3 TLS13_"), "{}", facts.transport);
        assert_eq!(facts.workers[0].connects, 4);
    });
}

/// Claim: a certificate that does not carry the name is refused, and the message says why.
#[test]
fn tls_verifies_the_name() {
    with_each_driver(|choice| {
        let (address, roots) = start_tls();
        let system = tls_system(address, roots, "elsewhere.example");
        let mut kept = Kept::default();
        let error = try_run(&plan(constant(10)), &system, choice, &mut kept, Arc::default());
        let Err(LoadError::Connect { reason, .. }) = error else { panic!("{error:?}") };
        assert!(reason.contains("certificate"), "{reason}");
    });
}

/// Claim: a thousand connections are opened in waves, all are used, and the engine's memory afterwards does not
/// depend on how long it ran.
#[test]
fn a_thousand_connections() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let mut plan = plan(closed(1_000));
        plan.load.connections = 1_000;
        plan.load.connections_max = 1_000;
        plan.load.threads = 2;
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        let used: std::collections::BTreeSet<_> =
            kept.rows.iter().map(|row| row.connection).collect();
        assert_eq!(used.len(), 1_000);
        assert_eq!(facts.workers.iter().map(|worker| worker.connects).sum::<u64>(), 1_000);
        assert_eq!(count(&kept.rows, Outcome::Committed), kept.rows.len());
    });
}

/// Claim: a request larger than any socket buffer arrives whole, in order, with others after it.
#[test]
fn large_requests_are_sent_to_the_end() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            // A server that reads slowly fills the sender's buffers.
            let pause = if asked.nth == 0 { 30 } else { 0 };
            vec![
                super::toy::Act::Pause(Duration::from_millis(pause)),
                super::toy::Act::Answer(asked.id, 0),
            ]
        });
        let system = ToySystem { in_flight_max: 500_000, ..ToySystem::new(server.address) };
        let mut plan = plan(closed(500_000));
        plan.load.connections = 1;
        plan.load.connections_max = 1;
        plan.load.transactions_max = 500_000;
        let (_, kept) = run(&plan, &system, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 500_000);
    });
}

/// Claim: a driver that is asked for and does not exist is an error that names the choices.
#[test]
fn drivers_are_chosen_by_name() {
    assert_eq!(choose(Some("epoll")).unwrap(), Choice::Epoll);
    let error = choose(Some("kqueue")).unwrap_err().to_string();
    assert_eq!(error, "ASSAY_DRIVER=kqueue: write epoll or io_uring, or leave it out");
}
