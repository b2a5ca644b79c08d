//! Encrypted connections: who comes to stand, who does not and why, and that every byte arrives.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use clock::Clock;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::peers::Script;
use crate::shell::{
    Bounds, Facts, Identity, Peer, Shell, TlsError, TlsFailures, Until, listen_address,
};
use crate::{Input, Outputs};

/// An authority made for a test.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Chain and key of somebody with a name, valid until a year.
    fn certify(&self, name: &str, year: i32) -> (String, String) {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// Somebody certified by this authority who believes another.
    fn identity(&self, name: &str, year: i32, believed: &Self) -> Identity {
        let (chain, key) = self.certify(name, year);
        Identity::from_pem(chain.as_bytes(), key.as_bytes(), believed.0.pem().as_bytes()).unwrap()
    }

    /// Somebody of this authority.
    pub(super) fn of(&self, name: &str) -> Identity {
        self.identity(name, 4000, self)
    }
}

/// A server that gives back what it is sent, at most 100 kB of it waiting, until the pipe is dropped.
fn serve(identity: &Identity, bounds: Bounds) -> (SocketAddr, impl FnOnce() -> Facts + use<>) {
    let shell = Shell::bind(&[("back", listen_address("0").unwrap())], bounds)
        .unwrap()
        .encrypting(0, identity);
    let address = shell.addresses()[0];
    let (until, pipe) = std::io::pipe().unwrap();
    let thread = std::thread::spawn(move || {
        let mut node = Script(|_, input: Input<'_>, out: &mut Outputs| {
            if let Input::Bytes(connection, bytes) = input {
                out.send(connection).extend_from_slice(bytes);
                out.used(bytes.len());
            }
        });
        let until = [Until::EndOfFile(OwnedFd::from(until))];
        shell.run(&mut node, Clock::start(), &until).unwrap()
    });
    (address, move || {
        drop(pipe);
        thread.join().unwrap()
    })
}

/// What a dialling node sees: whether it stood, what came back, and whether it was closed or never stood.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    stood: bool,
    bytes: Vec<u8>,
    closed: bool,
    unreachable: bool,
}

/// Dials once, sends `bytes`, and ends when all are back, or with the connection.
fn dial(peer: Peer, bytes: &[u8]) -> (Seen, Facts) {
    let shell = Shell::bind(&[], Bounds::default()).unwrap().dialling(vec![peer]);
    let (until, pipe) = std::io::pipe().unwrap();
    let mut pipe = Some(pipe);
    let mut seen = Seen::default();
    let mut node = Script(|_, input: Input<'_>, out: &mut Outputs| {
        match input {
            Input::Wake => out.dial(0),
            Input::Dialled { connection, .. } => {
                seen.stood = true;
                out.send(connection).extend_from_slice(bytes);
            }
            Input::Bytes(_, more) => {
                seen.bytes.extend_from_slice(more);
                out.used(more.len());
            }
            Input::Closed(_) => seen.closed = true,
            Input::Unreachable { .. } => seen.unreachable = true,
            _ => {}
        }
        if seen.closed || seen.unreachable || seen.stood && seen.bytes.len() == bytes.len() {
            pipe = None;
        }
    });
    let until = [Until::EndOfFile(OwnedFd::from(until))];
    let facts = shell.run(&mut node, Clock::start(), &until).unwrap();
    (seen, facts)
}

/// Claim: two that believe each other come to stand, and 20 MB go there and back unaltered, with the kernel's
/// buffers full on the way.
#[test]
fn there_and_back() {
    let authority = Authority::new("ours");
    let bounds = Bounds { unsent_bytes_max: 1 << 30, ..Bounds::default() };
    let (address, end) = serve(&authority.of("one.test"), bounds);
    let peer = Peer::at(address).encrypted("one.test", &authority.of("two.test")).unwrap();
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
    let (seen, facts) = dial(peer, &bytes);
    assert!(seen.bytes == bytes);
    assert_eq!((seen.closed, seen.unreachable), (false, false));
    assert!(facts.tls_failures.is_empty());
    let served = end();
    assert!(served.tls_failures.is_empty());
}

/// Claim: a server of another name, of another authority, or with an old certificate is unreachable, and the
/// reason is counted by the one that refused it and by the one that was refused; a client that the server does not
/// believe never reaches the server's node.
#[test]
fn who_is_refused() {
    let (ours, others) = (Authority::new("ours"), Authority::new("others"));
    let cases = [
        ("the name", ours.of("other.test"), "certificate of another name"),
        (
            "the authority",
            others.identity("one.test", 4000, &ours),
            "certificate of an unknown authority",
        ),
        (
            "an authority of our name and another key",
            Authority::new("ours").identity("one.test", 4000, &ours),
            "certificate with a wrong signature",
        ),
        ("the age", ours.identity("one.test", 2002, &ours), "certificate expired"),
    ];
    for (what, server, reason) in cases {
        let (address, end) = serve(&server, Bounds::default());
        let peer = Peer::at(address).encrypted("one.test", &ours.of("two.test")).unwrap();
        let (seen, facts) = dial(peer, b"secret");
        assert_eq!(seen, Seen { unreachable: true, ..Seen::default() }, "{what}");
        assert_eq!(facts.tls_failures.get(reason), Some(&1), "{what}: {:?}", facts.tls_failures);
        assert_eq!(end().tls_failures.get("refused by the peer"), Some(&1), "{what}");
    }
    let (address, end) = serve(&ours.of("one.test"), Bounds::default());
    let stranger = others.identity("two.test", 4000, &ours);
    let peer = Peer::at(address).encrypted("one.test", &stranger).unwrap();
    let (seen, _) = dial(peer, b"secret");
    // Its own side is done before the server has seen its certificate: it may stand for a moment.
    assert!((seen.closed || seen.unreachable) && seen.bytes.is_empty());
    let facts = end();
    let reason = "certificate of an unknown authority";
    assert_eq!(facts.tls_failures.get(reason), Some(&1), "{:?}", facts.tls_failures);
}

/// Claim: garbage, a plain client and one that says nothing are ended, counted and bounded; another is served
/// meanwhile. Those that say nothing take no handshake from others; those that say half of one do, and a listener whose
/// handshakes are all taken serves again when they are given up.
#[test]
fn strangers() {
    let authority = Authority::new("ours");
    let bounds =
        Bounds { handshakes_max: 2, handshake_max: Duration::from_secs(2), ..Bounds::default() };
    let (address, end) = serve(&authority.of("one.test"), bounds);
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(&[b'G'; 4000]).unwrap();
    let mut answer = Vec::new();
    // Reset or ended, with an alert before it or not.
    let _ = garbage.read_to_end(&mut answer);
    let silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let peer = || Peer::at(address).encrypted("one.test", &authority.of("two.test")).unwrap();
    assert_eq!(dial(peer(), b"hello").0.bytes, b"hello");
    let half: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut half = TcpStream::connect(address).unwrap();
            // The head of a record of 64 bytes, of a handshake.
            half.write_all(&[0x16, 3, 1, 0, 64, 1]).unwrap();
            half
        })
        .collect();
    assert_eq!(dial(peer(), b"hello again").0.bytes, b"hello again");
    let facts = end();
    assert_eq!(facts.tls_failures.get("not the protocol"), Some(&1), "{:?}", facts.tls_failures);
    assert!(facts.counters.late >= 5, "the silent ones, and two at a time: {:?}", facts.counters);
    drop((silent, half));
}

/// Claim: where all places are taken by connections that do not come to stand, those make room for others, the oldest
/// first; places that are reserved are let to whoever comes by another listener.
#[test]
fn whoever_does_not_come_to_stand_makes_room() {
    let authority = Authority::new("ours");
    let bounds = Bounds { connections_max: 4, connections_reserved: 1, ..Bounds::default() };
    let (address, end) = serve(&authority.of("one.test"), bounds);
    let silent: Vec<TcpStream> = (0..9).map(|_| TcpStream::connect(address).unwrap()).collect();
    let peer = || Peer::at(address).encrypted("one.test", &authority.of("two.test")).unwrap();
    assert_eq!(dial(peer(), b"hello").0.bytes, b"hello");
    let counters = end().counters;
    assert_eq!((counters.displaced, counters.refused, counters.accepted), (7, 0, 10));
    drop(silent);
}

/// Claim: what cannot be used is said without saying what stands in it.
#[test]
fn mistakes() {
    let authority = Authority::new("ours");
    let (chain, key) = authority.certify("one.test", 4000);
    let (_, other_key) = authority.certify("two.test", 4000);
    let believed = authority.0.pem();
    let from = |chain: &str, key: &str, believed: &str| {
        Identity::from_pem(chain.as_bytes(), key.as_bytes(), believed.as_bytes()).unwrap_err()
    };
    for (error, words) in [
        (from("", &key, &believed), "the certificate chain is not PEM"),
        (from(&chain, "key", &believed), "the key is not PEM"),
        (from(&chain, &key, &key), "the list of authorities is not PEM"),
        (from(&chain, &other_key, &believed), "the certificate, its key or the authorities"),
    ] {
        let text = format!("{error} {error:?}");
        assert!(text.contains(words), "{text}");
        assert!(!text.contains(key.lines().nth(1).unwrap()), "{text}");
    }
    let peer = Peer::at(listen_address("1").unwrap());
    let named = peer.encrypted("not a name", &authority.of("one.test"));
    assert!(matches!(named, Err(TlsError::Name(..))));
}

/// Claim: a listener that asks for names takes only certificates that have one, tells the node which, and counts the others;
/// that they are of an authority that is believed is not enough.
#[test]
fn names_are_asked_for() {
    let authority = Authority::new("ours");
    let served = |name: &str| {
        let names = ["zero.test", "one.test"].map(str::to_owned);
        let shell = Shell::bind(&[("back", listen_address("0").unwrap())], Bounds::default())
            .unwrap()
            .encrypting_for(0, &authority.of("server.test"), &names)
            .unwrap();
        let address = shell.addresses()[0];
        let (until, pipe) = std::io::pipe().unwrap();
        let thread = std::thread::spawn(move || {
            let mut certified = None;
            let mut node = Script(|_, input: Input<'_>, out: &mut Outputs| {
                if let Input::Bytes(connection, bytes) = input {
                    certified = out.certified(connection);
                    out.send(connection).extend_from_slice(bytes);
                    out.used(bytes.len());
                }
            });
            let until = [Until::EndOfFile(OwnedFd::from(until))];
            let facts = shell.run(&mut node, Clock::start(), &until).unwrap();
            (certified, facts)
        });
        let peer = Peer::at(address).encrypted("server.test", &authority.of(name)).unwrap();
        let (seen, _) = dial(peer, b"here");
        drop(pipe);
        let (certified, facts) = thread.join().unwrap();
        (seen.bytes == b"here", certified, facts.tls_failures)
    };
    assert_eq!(served("one.test"), (true, Some(1), TlsFailures::new()));
    let refused = TlsFailures::from([("certificate of another name", 1)]);
    assert_eq!(served("client.test"), (false, None, refused));
}
