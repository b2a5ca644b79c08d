//! A `nats-server` with TLS and credentials: those who belong there work as without, everybody else is refused by name, and
//! no credential is ever shown.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;

use super::{LIMIT, QUIETLY, agents_of, experiment, nats_server};
use crate::harness::{Echo, Place, Running, Said, Server, beside_others, finish};

const PASSWORD: &str = "tell-no-one-of-this";
const TOKEN: &str = "this-is-nobodys-business";

/// An authority made for a test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("it has no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        Self(CertifiedIssuer::self_signed(params, key).expect("it signs itself"))
    }

    /// Writes its own certificate; gives the file's name.
    fn write(&self, place: &Place, name: &str) -> String {
        place.write(name, self.0.pem()).display().to_string()
    }

    /// Writes the certificate and the key of a server called `name`; gives the line of its configuration.
    fn certify(&self, place: &Place, name: &str, until_year: i32) -> String {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate().expect("there is randomness");
        let chain = params.signed_by(&key, &self.0).expect("it is signed").pem();
        let chain = place.write(&format!("{name}-{until_year}.pem"), chain);
        let key = place.write(&format!("{name}-{until_year}.key"), key.serialize_pem());
        format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n", chain.display(), key.display())
    }
}

/// Starts a server with a configuration beside where it listens.
fn serve(place: &Place, program: &Path, address: SocketAddr, configuration: &str) -> Server {
    let text = format!("listen: \"{address}\"\n{configuration}");
    let path = place.write(&format!("nats-{}.conf", address.port()), text);
    let mut command = Command::new(program);
    command.arg("--config").arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    Server::start(&mut command, address)
}

/// An agent of `place`, or a run over two of its group, with these words and variables.
fn command(place: &Place, words: &[&str], variables: &[(&str, &str)]) -> Command {
    let spool = place.path().display().to_string();
    let mut all = match words {
        ["agent", ..] => vec!["agent", "--group", "g", "--spool", &spool],
        _ => [&QUIETLY[..], &["--agents", "g=2"]].concat(),
    };
    all.extend(&words[1..]);
    let mut command = place.command(&all);
    command.envs(variables.iter().copied());
    command
}

/// Claim: with the server's own authority and the right password, over TLS, two agents carry out a run as without both; no
/// credential stands in what is said and kept.
#[test]
fn the_right_authority_and_password_work() {
    let _beside = beside_others();
    let Some(program) = nats_server() else { return };
    let (echo, place) = (Echo::start(&[]), Place::new());
    let (ours, address) = (Authority::new("ours"), Server::free_address());
    let ca = ours.write(&place, "ours.pem");
    let user = format!("authorization {{ user: \"load\", password: \"{PASSWORD}\" }}\n");
    let tls = ours.certify(&place, &address.ip().to_string(), 4000);
    let _server = serve(&place, &program, address, &(tls + &user));
    let url = format!("tls://{address}");
    place.write("experiment.toml", experiment(&echo, "rate = \"100/s\"", 1, "1s"));
    let of = |what| {
        let right = [("NATS_USER", "load"), ("NATS_PASSWORD", PASSWORD)];
        Running::start(&mut command(&place, &[what, "--nats", &url, "--nats-ca", &ca], &right))
    };
    let (agents, run) = ([of("agent"), of("agent")], of("run"));
    let said = run.finish_within(LIMIT);
    let parts = agents_of(&place);
    assert_eq!(parts.len(), 2, "{}", said.stderr);
    assert!(parts.iter().all(|it| it["lost"] == "" && it["not_offered"] == 0), "{parts:?}");
    let rows: u64 = parts.iter().filter_map(|it| it["rows"].as_u64()).sum();
    assert_eq!(rows, 150, "{parts:?}");
    let mut all = said.stderr + &said.stdout;
    for agent in agents {
        agent.signal(Signal::TERM);
        let said = agent.finish();
        all += &(said.stderr + &said.stdout);
    }
    assert!(!all.contains(PASSWORD), "{all}");
    record::each_file(&place.run_folder(), &mut |path| {
        let bytes = std::fs::read(path).expect("it can be read");
        let is_told = bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
        assert!(!is_told, "{}", path.display());
    });
}

/// Asserts that an agent and a run are refused by a server at `address` with these words, and that neither tells a secret.
#[track_caller]
fn refused(place: &Place, url: &str, ca: &[&str], variables: &[(&str, &str)], words: &[&str]) {
    for what in ["agent", "run"] {
        let all = [&[what, "--nats", url], ca].concat();
        let said: Said = finish(&mut command(place, &all, variables));
        let server = url.split_once("://").expect("a URL").1;
        said.expect_code(1).expect_stderr(&format!("NATS at {server}: "));
        for words in words {
            said.expect_stderr(words);
        }
        for (_, value) in variables {
            assert!(!said.stderr.contains(value), "{}", said.stderr);
        }
    }
}

/// Claim: agents and coordinators refuse a server whose certificate is of another authority, of another name or of another
/// time, each by name; a server without encryption where some was asked for, and the other way round.
#[test]
fn a_wrong_certificate_is_refused() {
    let _beside = beside_others();
    let Some(program) = nats_server() else { return };
    let (echo, place) = (Echo::start(&[]), Place::new());
    place.write("experiment.toml", experiment(&echo, "rate = \"10/s\"", 1, "1s"));
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (ours_file, theirs_file) =
        (ours.write(&place, "ours.pem"), theirs.write(&place, "theirs.pem"));
    let address = Server::free_address();
    let ip = address.ip().to_string();
    let url = format!("tls://{address}");
    {
        let _server = serve(&place, &program, address, &ours.certify(&place, &ip, 4000));
        let words = ["UnknownIssuer", "--nats-ca"];
        refused(&place, &url, &["--nats-ca", &theirs_file], &[], &words);
        refused(&place, &format!("nats://{address}"), &[], &[], &["expected tls://, got nats://"]);
    }
    let ca = ["--nats-ca", ours_file.as_str()];
    {
        let other = ours.certify(&place, "other.example", 4000);
        let _server = serve(&place, &program, address, &other);
        refused(&place, &url, &ca, &[], &["not valid for name", "other.example"]);
    }
    {
        let _server = serve(&place, &program, address, &ours.certify(&place, &ip, 2002));
        refused(&place, &url, &ca, &[], &["expired"]);
    }
    let _server = serve(&place, &program, address, "");
    refused(&place, &url, &ca, &[], &["expected a server with TLS, got one without"]);
}

/// Claim: a wrong password, a wrong token and none at all are refused with the variables that hold them; the right token
/// is taken, and credentials in the URL are not.
#[test]
fn wrong_credentials_are_refused() {
    let _beside = beside_others();
    let Some(program) = nats_server() else { return };
    let (echo, place) = (Echo::start(&[]), Place::new());
    place.write("experiment.toml", experiment(&echo, "rate = \"10/s\"", 1, "1s"));
    let address = Server::free_address();
    let url = format!("nats://{address}");
    let words = ["Authorization Violation", "NATS_USER and NATS_PASSWORD, or NATS_TOKEN"];
    {
        let user = format!("authorization {{ user: \"load\", password: \"{PASSWORD}\" }}\n");
        let _server = serve(&place, &program, address, &user);
        let wrong = [("NATS_USER", "load"), ("NATS_PASSWORD", "not-the-right-one")];
        refused(&place, &url, &[], &wrong, &words);
        refused(&place, &url, &[], &[("NATS_TOKEN", TOKEN)], &words);
        refused(&place, &url, &[], &[], &words);
    }
    let token = format!("authorization {{ token: \"{TOKEN}\" }}\n");
    let _server = serve(&place, &program, address, &token);
    refused(&place, &url, &[], &[("NATS_TOKEN", "this-is-somebody-elses")], &words);
    let right = finish(&mut command(&place, &["run", "--nats", &url], &[("NATS_TOKEN", TOKEN)]));
    right.expect_code(1).expect_stderr("expected 2 idle agents in group g, got none");
    let within = format!("nats://load:{PASSWORD}@{address}");
    let said = finish(&mut command(&place, &["run", "--nats", &within], &[]));
    said.expect_code(2).expect_stderr("expected no credentials in the URL");
    assert!(!said.stderr.contains(PASSWORD), "{}", said.stderr);
}

/// Claim: an agent that a coordinator of another version calls says so with both versions, answers in its own, so that the
/// coordinator can name it, and waits on.
#[test]
fn a_foreign_coordinator_is_refused() {
    let _beside = beside_others();
    let Some(program) = nats_server() else { return };
    let place = Place::new();
    let address = Server::free_address();
    let token = format!("authorization {{ token: \"{TOKEN}\" }}\n");
    let _server = serve(&place, &program, address, &token);
    let url = format!("nats://{address}");
    let agent = ["agent", "--nats", url.as_str()];
    let agent = Running::start(&mut command(&place, &agent, &[("NATS_TOKEN", TOKEN)]));
    let mut stream = TcpStream::connect(address).expect("NATS is there");
    stream.set_read_timeout(Some(LIMIT)).expect("it has a limit");
    let call =
        "{\"version\":\"assay.agents/9\",\"from\":\"new\",\"run\":\"r-1\",\"order\":\"call\"}\n";
    let call = format!("PUB assay.g.call {}\r\n{call}\r\n", call.len());
    let hello = format!(
        "CONNECT {{\"verbose\":false,\"auth_token\":\"{TOKEN}\"}}\r\nSUB assay.g.run.r-1 1\r\n"
    );
    stream.write_all(hello.as_bytes()).expect("it reads");
    // It may not have subscribed yet; a call that no agent hears is lost.
    let mut caller = stream.try_clone().expect("a socket can be copied");
    let mut answer = String::new();
    let heard = crate::harness::until(LIMIT, || {
        caller.write_all(call.as_bytes()).expect("NATS is there");
        let mut part = [0; 4_096];
        let count = stream.read(&mut part).expect("NATS answers");
        answer.push_str(&String::from_utf8_lossy(&part[..count]));
        answer.contains("\"said\":\"hello\"").then_some(())
    });
    assert!(heard.is_some(), "{answer}");
    assert!(answer.contains("\"version\":\"assay.agents/1\""), "{answer}");
    agent.signal(Signal::TERM);
    let said = agent.finish();
    said.expect_code(0).expect_stderr("assay.agents/9").expect_stderr("assay.agents/1");
}
