//! Who may ask, and over what: TLS, pages of other origins, and accounts that sign for a token.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k256::ecdsa::SigningKey;
use ring::hmac;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};

use super::programs::{Answer, Program, connect};

/// One request on a connection of its own, whatever that is over.
fn exchange(
    stream: &mut (impl Read + Write),
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).expect("the gateway reads");
    Answer::read(stream)
}

/// A certificate for `localhost` and its key, in files.
struct Certificate {
    der: CertificateDer<'static>,
    certificate: PathBuf,
    key: PathBuf,
    _folder: tempfile::TempDir,
}

impl Certificate {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("random");
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        std::fs::write(&certificate, made.cert.pem()).expect("room for a file");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("room for a file");
        Self { der: made.cert.der().clone(), certificate, key, _folder: folder }
    }

    /// A connection of a client that trusts this certificate and nothing else.
    fn connect(&self, gateway: &Program) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("it was made just now");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        StreamOwned::new(session, connect(gateway.address))
    }
}

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Claim: over TLS the answers are those that there are without; who speaks no TLS, or begins to and goes silent, is cut
/// off, and keeps nobody from being served.
#[test]
fn tls() {
    let certificate = Certificate::new();
    let node = Program::mock(&[]);
    let words = [
        "--tls-certificate",
        text(&certificate.certificate),
        "--tls-key",
        text(&certificate.key),
        "--head-timeout",
        "4s",
    ];
    let gateway = Program::gateway(node.address, &words);
    let plain = Program::gateway(node.address, &[]);
    for path in ["/block/7", "/gasprice", "/block/last/", "/balance/0x1"] {
        let over_tls = exchange(&mut certificate.connect(&gateway), "GET", path, &[], "");
        let without = plain.get(path);
        assert_eq!((over_tls.status, &over_tls.body), (without.status, &without.body), "{path}");
    }
    let mut wordy = connect(gateway.address);
    // In one piece: it may be cut off after the first bytes.
    wordy.write_all(b"GET /block/7 HTTP/1.1\r\nhost: gateway\r\n\r\n").expect("it listens");
    let mut silent = connect(gateway.address);
    // The first bytes of a greeting, and no more.
    silent.write_all(&[22, 3, 1, 2, 0]).expect("it listens");
    for stream in [&mut wordy, &mut silent] {
        let mut said = Vec::new();
        // Cut off in order or not: it ends, and no HTTP is said.
        let _ = stream.read_to_end(&mut said);
        assert!(!said.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&said));
    }
    let after = exchange(&mut certificate.connect(&gateway), "GET", "/block/7", &[], "");
    assert_eq!(after.status, 200);
}

/// Claim: a key that is not the certificate's, and a certificate without a key, keep the gateway from starting, and the
/// message names the files.
#[test]
fn tls_that_cannot_be() {
    let (one, other) = (Certificate::new(), Certificate::new());
    let fails = |words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_eth-gateway");
        let mut command = Command::new(program);
        let output = command.args(["--listen", "127.0.0.1:0"]).args(words).output();
        let output = output.expect("it starts");
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (certificate, key) = (text(&one.certificate), text(&other.key));
    let said = fails(&["--tls-certificate", certificate, "--tls-key", key]);
    assert!(said.contains(certificate) && said.contains(key), "{said}");
    let said = fails(&["--tls-certificate", certificate]);
    assert!(said.contains("tls_key"), "{said}");
    let said = fails(&["--tls-certificate", certificate, "--tls-key", "/nowhere/key.pem"]);
    assert!(said.contains("/nowhere/key.pem"), "{said}");
}

/// Claim: a browser is told that pages of a listed origin may read answers, failures and what needs a token included, and
/// those of others may not; without origins nothing is said to anybody.
#[test]
fn pages_of_other_origins() {
    let node = Program::mock(&[]);
    let (ours, other) = ("https://app.example", "https://other.example");
    let origins = format!("{ours},http://localhost:3000");
    let gateway = Program::gateway(node.address, &["--cors-origins", &origins]);
    let ask = |gateway: &Program, method: &str, path: &str, origin: &str| {
        let mut headers = vec![("origin", origin)];
        if method == "OPTIONS" {
            headers.push(("access-control-request-method", "GET"));
            headers.push(("access-control-request-headers", "authorization"));
        }
        exchange(&mut connect(gateway.address), method, path, &headers, "")
    };
    let allowed = |answer: &Answer| answer.headers.get("access-control-allow-origin").cloned();
    for path in ["/block/7", "/balance/0x1", "/nothing"] {
        let answer = ask(&gateway, "GET", path, ours);
        assert_eq!(allowed(&answer).as_deref(), Some(ours), "{path}: {answer:?}");
        let varies = answer.headers["vary"].split(", ").any(|name| name == "origin");
        assert!(varies, "{path}: {answer:?}");
        assert!(answer.headers["access-control-expose-headers"].contains("retry-after"));
        assert_eq!(allowed(&ask(&gateway, "GET", path, other)), None, "{path}");
    }
    for path in ["/block/7", "/auth/token"] {
        let asked = ask(&gateway, "OPTIONS", path, ours);
        assert_eq!((asked.status, allowed(&asked).as_deref()), (204, Some(ours)), "{path}");
        assert!(asked.headers["access-control-allow-methods"].contains("POST"), "{asked:?}");
        assert!(asked.headers["access-control-allow-headers"].contains("authorization"));
        assert_eq!(allowed(&ask(&gateway, "OPTIONS", path, other)), None, "{path}");
    }
    let closed = Program::gateway(node.address, &[]);
    assert_eq!(allowed(&ask(&closed, "GET", "/block/7", ours)), None);
    let open = Program::gateway(node.address, &["--cors-origins", "*"]);
    assert_eq!(allowed(&ask(&open, "GET", "/block/7", other)).as_deref(), Some("*"));
}

/// An account with its key.
struct Account {
    key: SigningKey,
    address: String,
}

impl Account {
    fn new(secret: u8) -> Self {
        let key = SigningKey::from_slice(&[secret; 32]).expect("a number of the curve");
        let point = key.verifying_key().to_sec1_point(false);
        let hash = Keccak256::digest(&point.as_bytes()[1..]);
        Self { key, address: hex(&hash[12..]) }
    }

    /// `personal_sign` of a wallet (EIP-191).
    fn sign(&self, message: &str) -> String {
        let text = format!("\u{19}Ethereum Signed Message:\n{}{message}", message.len());
        let hash = Keccak256::digest(text.as_bytes());
        let (signature, recovery) = self.key.sign_prehash_recoverable(&hash[..]);
        let mut all = signature.to_bytes().to_vec();
        all.push(27 + recovery.to_byte());
        hex(&all)
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// What the gateway's secret is in these tests.
const SECRET: &str = "known to the test";

/// A token that nobody was given: one for this account until that second, signed with the secret.
fn token_until(account: &Account, second: i64, secret: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims =
        json!({ "iss": "gateway.example", "sub": account.address, "iat": 0, "exp": second });
    let text = format!("{}.{}", part(&json!({ "alg": "HS256", "typ": "JWT" })), part(&claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}

struct Guarded {
    gateway: Program,
    node: Program,
}

impl Guarded {
    fn new() -> Self {
        let node = Program::mock(&[]);
        let words = ["--auth", "true", "--auth-domain", "gateway.example", "--auth-secret", SECRET];
        Self { gateway: Program::gateway(node.address, &words), node }
    }

    fn challenge(&self, account: &Account) -> String {
        let answer = self.gateway.get(&format!("/auth/challenge/{}", account.address));
        assert_eq!(answer.status, 200, "{answer:?}");
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        body["message"].as_str().expect("a message").to_owned()
    }

    fn ask_for_token(&self, message: &str, signature: &str) -> Answer {
        let body = json!({ "message": message, "signature": signature }).to_string();
        self.post_token(&body)
    }

    fn post_token(&self, body: &str) -> Answer {
        let json = [("content-type", "application/json")];
        exchange(&mut connect(self.gateway.address), "POST", "/auth/token", &json, body)
    }

    fn get_with(&self, path: &str, token: &str) -> Answer {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        exchange(&mut connect(self.gateway.address), "GET", path, &headers, "")
    }
}

fn token_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    let body: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(body["expiresIn"], 3600);
    body["token"].as_str().expect("a token").to_owned()
}

/// Claim: an account signs its challenge and gets a token, which lets its requests in, as a JWT that says whose it is; pages
/// that ask nothing of the node need none, and without one the node is not asked.
#[test]
fn a_signed_challenge_lets_in() {
    let guarded = Guarded::new();
    let calls = guarded.node.calls();
    let refused = guarded.gateway.get("/block/7");
    assert_eq!(refused.says(), (401, "unsigned"));
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    assert_eq!(guarded.node.calls(), calls, "the node was asked for who had no token");
    for open in ["/", "/metrics", "/openapi.json", "/describe"] {
        assert_eq!(guarded.gateway.get(open).status, 200, "{open}");
    }
    let account = Account::new(7);
    let message = guarded.challenge(&account);
    assert!(
        message.starts_with("gateway.example wants you to sign in with your Ethereum account:\n0x")
    );
    assert!(message.contains("\nChain ID: ") && message.contains("\nNonce: "), "{message}");
    let token = token_of(&guarded.ask_for_token(&message, &account.sign(&message)));
    let claims = token.split('.').nth(1).expect("three parts");
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64");
    let claims: Value = serde_json::from_slice(&claims).expect("JSON");
    let subject = claims["sub"].as_str().expect("whose it is");
    assert_eq!(subject.to_ascii_lowercase(), account.address);
    let path = format!("/v1/balance/{}", account.address);
    assert_eq!(guarded.get_with(&path, &token).status, 200);
    assert_eq!(guarded.get_with("/block/7", &token).status, 200);
}

/// Claim: a signature by another account, of another message, or with a bit changed gets no token, and neither does a
/// challenge for the second time, whether or not it had served.
#[test]
fn who_gets_no_token() {
    let guarded = Guarded::new();
    let (account, other) = (Account::new(7), Account::new(8));
    let refused = |answer: Answer, why: &str| {
        assert_eq!(answer.says(), (401, "unsigned"), "{why}: {answer:?}");
    };
    let message = guarded.challenge(&account);
    refused(guarded.ask_for_token(&message, &other.sign(&message)), "another account's");
    // An attempt by another account does not use it up.
    token_of(&guarded.ask_for_token(&message, &account.sign(&message)));
    let message = guarded.challenge(&account);
    let swapped =
        message.replace(&message.lines().nth(1).expect("an address")[2..], &other.address[2..]);
    refused(guarded.ask_for_token(&swapped, &other.sign(&swapped)), "an address put in");
    let message = guarded.challenge(&account);
    let mut signature = account.sign(&message).into_bytes();
    signature[70] = if signature[70] == b'0' { b'1' } else { b'0' };
    let signature = String::from_utf8(signature).expect("digits");
    refused(guarded.ask_for_token(&message, &signature), "a changed signature");
    let message = guarded.challenge(&account);
    token_of(&guarded.ask_for_token(&message, &account.sign(&message)));
    refused(guarded.ask_for_token(&message, &account.sign(&message)), "a nonce that served");
    let made_up = message.replace("Nonce: ", "Nonce: 0");
    refused(guarded.ask_for_token(&made_up, &account.sign(&made_up)), "a nonce of nobody's");
    for body in ["", "{}", "null", r#"{"message":"x","signature":"0x00"}"#, &"[".repeat(4000)] {
        assert_eq!(guarded.post_token(body).says(), (400, "unsigned"), "{body}");
    }
}

/// Claim: a token that is too old, that somebody else signed, that was changed, or that claims to need no signature is
/// refused; the same one in its time is let in.
#[test]
fn tokens_that_are_none() {
    let guarded = Guarded::new();
    let account = Account::new(7);
    let now = clock::WallTime::now().unix_ns() / 1_000_000_000;
    let good = token_until(&account, now + 3600, SECRET);
    assert_eq!(guarded.get_with("/block/7", &good).status, 200);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = part(&json!({ "alg": "none" }));
    let claims = good.split('.').nth(1).expect("three parts");
    let longer = part(&json!({ "sub": account.address, "exp": now + 7200 }));
    for (token, why) in [
        (token_until(&account, now - 1, SECRET), "too old"),
        (token_until(&account, now + 3600, "another secret"), "signed by another"),
        (good.replace(claims, &longer), "its claims changed"),
        (format!("{unsigned}.{claims}."), "no signature"),
        (good[..good.len() - 4].to_owned(), "cut short"),
        (String::new(), "none"),
    ] {
        let answer = guarded.get_with("/block/7", &token);
        assert_eq!(answer.says(), (401, "unsigned"), "{why}: {answer:?}");
    }
}
