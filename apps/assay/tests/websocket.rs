//! WebSocket with a server of others (Python's websockets): answers by id and in turn, over TLS and without; the commands of the
//! book's page; and servers that do what they must not, with each driver.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

use crate::harness::{Place, Server, beside_others, locked, peers, trial};

const PAGE: &str = include_str!("../../../docs/how-to/websocket.md");
const DRIVERS: [&str; 2] = ["epoll", "io_uring"];

fn server(test: &str) -> Option<Server> {
    Some(peers::start(peers::python(test, "websocket/server.py")?, false, &[]))
}

fn experiment(url: &str, workload: &str) -> String {
    format!(
        "name = \"websocket\"\n[system]\nkind = \"websocket\"\n[system.deploy]\n{url}\n[workload]\n{workload}\n\
         [load]\nrate = \"50/s\"\nduration = \"1s\"\nwarmup = \"0s\"\ntimeout = \"10s\"\nconnections = 2\n"
    )
}

fn counts(document: &Value) -> &Value {
    &trial(document)["counts"]
}

/// Claim: messages are answered by their ids in any order and in fragments, past events of the server's own, and by the first
/// message that is as awaited where there is no id; errors and closes have their class.
#[test]
fn messages_and_their_answers() {
    let Some(server) = server("websocket::messages_and_their_answers") else { return };
    let _beside = beside_others();
    let at = |path: &str| format!("url = \"ws://{}{path}\"", server.address);
    let by_id = |method: &str| {
        format!(
            "id = \"/id\"\nerror_pointer = \"/error\"\npreflight = false\nmessage = '{{\"id\": {{{{$tx}}}}, \"method\": \"{method}\"}}'"
        )
    };
    for (path, workload, class, words) in [
        (
            "/",
            format!("{}\nexpect = {{ json = {{ \"/result/ok\" = true }} }}", by_id("pay")),
            "",
            "",
        ),
        ("/", by_id("later"), "", ""),
        (
            "/",
            format!("{}\nexpect = {{ json = {{ \"/result/ok\" = false }} }}", by_id("pay")),
            "server",
            "expected false at `/result/ok`",
        ),
        ("/", by_id("fail"), "bad_request", "no funds"),
        ("/", by_id("close"), "overloaded", "closed: 1013 try again later: full"),
        (
            "/turn",
            "message = \"{{$uuid}}\"\nawait = { json = { \"/kind\" = \"done\" } }".to_owned(),
            "",
            "",
        ),
        (
            "/token",
            format!(
                "{}\nheaders = {{ Authorization = \"Bearer s3cret-token\" }}\nsubprotocol = \"json\"",
                by_id("pay")
            ),
            "",
            "",
        ),
    ] {
        let place = Place::new();
        let (said, document) =
            place.experiment(&experiment(&at(path), &workload).replace("\"10s\"", "\"2s\""));
        let counts = counts(&document);
        let found = match class {
            "" => counts["committed"].as_u64(),
            class => counts["rejected_by_class"][class].as_u64(),
        };
        // A connection that the server closes takes others' answers with it.
        let least = if class == "overloaded" { 40 } else { 50 };
        assert!(found.unwrap_or(0) >= least, "{workload}: {counts} {}", said.stderr);
        let errors = trial(&document)["errors"].to_string();
        assert!(errors.contains(words), "{errors}");
    }
}

/// Claim: a handshake that is refused withholds the load, and says why; TLS works as it does for HTTP.
#[test]
fn handshakes() {
    let test = "websocket::handshakes";
    let Some(command) = peers::python(test, "websocket/server.py") else { return };
    let place = Place::new();
    if !crate::nginx::certificate(test, place.path(), "CA:FALSE") {
        return;
    }
    let files = ["cert.pem", "key.pem"].map(|name| place.path().join(name));
    let server = peers::start(command, false, &[&files[0], &files[1]]);
    let _beside = beside_others();
    let workload = "message = \"hello\"\nawait = { contains = \"done\" }";
    let with = |url: String, more: &str| experiment(&format!("url = \"{url}\"\n{more}"), workload);
    let trusted = "ca = \"cert.pem\"\nserver_name = \"localhost\"";
    let (said, document) =
        place.experiment(&with(format!("wss://{}/turn", server.address), trusted));
    assert_eq!(counts(&document)["committed"], 50, "{}", said.stderr);
    let (said, _) = place.experiment(&with(format!("wss://{}/turn", server.address), ""));
    said.expect_code(1).expect_stderr("--insecure");
    let refusing = hostile(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"");
    let (said, document) = place.experiment(&with(format!("ws://{}/", refusing.address), ""));
    said.expect_code(99);
    let found = document.to_string();
    assert!(found.contains("with status 404 instead of 101"), "{found}");
}

/// Claim: every command of the page for WebSocket ends with 0 against a real server.
#[test]
fn the_page_does_what_it_says() {
    let Some(server) = server("websocket::the_page_does_what_it_says") else { return };
    let _beside = beside_others();
    let place = Place::new();
    let said = peers::follow(&place, PAGE, "127.0.0.1:8765", &server.address.to_string());
    assert!(said >= 2, "{said} commands");
}

/// Answers each handshake with `greeting`, in which `ACCEPT` is the proof that it asks for, and the first frame after it with
/// `frames`; then keeps the connection.
fn hostile(greeting: &[u8], frames: &[u8]) -> Server {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/websocket/hostile.py");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let address = Server::free_address();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let mut command = Command::new("python3");
    command.args([script, &host, &port, &hex(greeting), &hex(frames)]);
    Server::start(&mut command, address)
}

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n\r\n";

/// Claim: of each behaviour of a hostile server the built binary counts nothing as committed that was not earned, with each
/// driver, and it ends by itself.
#[test]
fn hostile_servers_with_each_driver() {
    let _beside = beside_others();
    let no_proof =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let list: [(&str, &str, &[u8], bool); 11] = [
        ("answers", SWITCHED, b"\x81\x08{\"id\":0}", true),
        ("answers in fragments", SWITCHED, b"\x01\x03{\"i\x89\x00\x80\x05d\":0}", true),
        ("has no proof", no_proof, b"\x81\x08{\"id\":0}", false),
        ("speaks HTTP", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"", false),
        ("masks its frames", SWITCHED, b"\x81\x88\x00\x00\x00\x00{\"id\":0}", false),
        ("announces 1 GiB", SWITCHED, b"\x81\x7f\x00\x00\x00\x00\x40\x00\x00\x00", false),
        ("sends text that is none", SWITCHED, b"\x81\x02\xff\xfe", false),
        ("closes in a message", SWITCHED, b"\x01\x03{\"i\x88\x02\x03\xe8", false),
        ("closes with half a reason", SWITCHED, b"\x88\x01x", false),
        ("stops in a frame", SWITCHED, b"\x81\x08{\"id\"", false),
        ("compresses", SWITCHED, b"\xc1\x08{\"id\":0}", false),
    ];
    let all: Vec<_> = list.into_iter().flat_map(|it| DRIVERS.map(|driver| (it, driver))).collect();
    let (left, wrong) = (Mutex::new(all), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let Some(((does, greeting, frames, is_earned), driver)) = locked(&left).pop()
                    else {
                        return;
                    };
                    let server = hostile(greeting.as_bytes(), frames);
                    let committed = committed(server.address, driver, is_earned);
                    let is_right = match &committed {
                        Ok(count) => (*count > 0) == is_earned,
                        // No connection was opened, and the run says why.
                        Err(why) => !is_earned && why.contains("WebSocket handshake"),
                    };
                    if is_right {
                        continue;
                    }
                    locked(&wrong).push(format!("{does}, {driver}: {committed:?}"));
                }
            });
        }
    });
    assert!(locked(&wrong).is_empty(), "{:#?}", locked(&wrong));
}

fn committed(address: SocketAddr, driver: &str, is_earned: bool) -> Result<u64, String> {
    let place = Place::new();
    let workload = "id = \"/id\"\nmessage = '{\"id\": {{$tx}}}'\npreflight = false";
    let text = experiment(&format!("url = \"ws://{address}\""), workload);
    let document = peers::loaded_by(driver, &place, &text, is_earned)?;
    counts(&document)["committed"].as_u64().ok_or_else(|| "no count".to_owned())
}
