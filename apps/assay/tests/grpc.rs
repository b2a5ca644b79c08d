//! gRPC with a server of others (Python's grpcio): unary calls and streams, by reflection and by a `.proto` file, over TLS and
//! without; the commands of the book's page; and servers that do what they must not, with each driver.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Place, Server, beside_others, hostile_http2, peers, trial};

#[path = "../../../systems/grpc/adapter/src/tests/hostile_list.rs"]
mod list;
mod others;

const PROTO: &str = include_str!("../../../systems/grpc/adapter/src/tests/shop.proto");
const PAGE: &str = include_str!("../../../docs/how-to/grpc.md");

fn server(test: &str) -> Option<Server> {
    Some(peers::start(peers::python(test, "grpc/server.py")?, true, &[]))
}

/// The same, which knows one version of the reflection, or `none`.
fn server_with(test: &str, version: &str) -> Option<Server> {
    let command = peers::python(test, "grpc/server.py")?;
    Some(peers::start(command, true, &[Path::new(&format!("--reflection={version}"))]))
}

/// The experiment of a workload; `more` comes before its tables.
fn experiment(url: &str, workload: &str) -> String {
    format!(
        "name = \"grpc\"\n[system]\nkind = \"grpc\"\n[system.deploy]\n{url}\n[workload]\n{workload}\n\
         [load]\nrate = \"50/s\"\nduration = \"1s\"\nwarmup = \"0s\"\ntimeout = \"10s\"\nconnections = 2\n"
    )
}

fn kinds(document: &Value) -> Vec<(String, u64)> {
    let kinds = trial(document)["kinds"].as_array().unwrap().clone();
    let one = |kind: &Value| {
        (
            kind["name"].as_str().unwrap().to_owned(),
            kind["counts"]["committed"].as_u64().unwrap_or(0),
        )
    };
    kinds.iter().map(one).collect()
}

/// Claim: calls of several kinds are each answered as they should, by a file and by reflection: messages are filled in, a stream
/// is counted, a status counts as the experiment says, metadata arrives and is stored nowhere.
#[test]
fn calls_and_streams() {
    let Some(server) = server("grpc::calls_and_streams") else { return };
    let _beside = beside_others();
    let calls = r#"
metadata = { authorization = "Bearer ${SHOP_TOKEN}" }
CALL
method = "shop.v1.Orders/Get"
message = '{"id": "token-{{$uuid}}", "count": 3}'
expect = { json = { "/lines/0/count" = 3, "/state" = "PAID", "/cents" = "1999" } }
CALL
method = "shop.v1.Orders/Watch"
message = '{"id": "w", "messages": 20}'
expect = { messages = 20, json = { "/state" = "SENT" } }
CALL
name = "missing"
method = "shop.v1.Orders/Get"
message = '{"id": "NOT_FOUND-{{$tx}}"}'
expect = { status = "NOT_FOUND" }
"#
    .replace("CALL", "[[workload.call]]");
    for described in ["proto = \"shop.proto\"\n", ""] {
        let place = Place::new();
        place.write("shop.proto", PROTO);
        let url = format!("url = \"grpc://{}\"", server.address);
        place.write("experiment.toml", experiment(&url, &format!("{described}{calls}")));
        let quietly =
            ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];
        let output = place.command(&quietly).env("SHOP_TOKEN", "s3cret-token").output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        assert_eq!(
            trial(&document)["counts"]["committed"],
            50,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let found = kinds(&document);
        assert!(found.len() == 3 && found.iter().all(|(_, count)| *count > 5), "{found:?}");
        let stages = trial(&document)["latency"].to_string();
        assert!(stages.contains("first_message"), "{stages}");
        let grep = std::process::Command::new("grep")
            .args(["-r", "s3cret-token"])
            .arg(place.run_folder())
            .output()
            .unwrap();
        assert!(
            grep.stdout.is_empty(),
            "the token is stored: {}",
            String::from_utf8_lossy(&grep.stdout)
        );
    }
}

/// Claim: a failure is counted by its status's class, with the server's words; one that every call meets withholds the load.
#[test]
fn failures_have_their_class() {
    let Some(server) = server("grpc::failures_have_their_class") else { return };
    let _beside = beside_others();
    let url = format!("url = \"grpc://{}\"", server.address);
    let percent = "RESOURCE_EXHAUSTED: asked for RESOURCE_EXHAUSTED / 100 %";
    for (id, class, words) in [
        ("RESOURCE_EXHAUSTED-1", "limited", percent),
        ("UNAVAILABLE-1", "overloaded", "UNAVAILABLE: asked for"),
        ("ABORTED-1", "conflict", "ABORTED: asked for"),
        ("DATA_LOSS-1", "server", "DATA_LOSS: asked for"),
        ("token-1", "bad_request", "UNAUTHENTICATED: no token"),
    ] {
        let place = Place::new();
        let workload = format!(
            "method = \"shop.v1.Orders/Get\"\nmessage = '{{\"id\": \"{id}\"}}'\npreflight = false"
        );
        let (said, document) = place.experiment(&experiment(&url, &workload));
        assert_eq!(
            trial(&document)["counts"]["rejected_by_class"][class],
            50,
            "{id}: {}",
            said.stderr
        );
        let errors = trial(&document)["errors"].to_string();
        assert!(errors.contains(words), "{errors}");
    }
    let place = Place::new();
    let workload = "method = \"shop.v1.Orders/Get\"\nmessage = '{\"id\": \"PERMISSION_DENIED\"}'";
    let (said, _) = place.experiment(&experiment(&url, workload));
    said.expect_code(99);
    // A stream that breaks off, and a deadline that the server keeps.
    for (workload, words) in [
        (
            "method = \"shop.v1.Orders/Watch\"\nmessage = '{\"id\": \"broken\", \"messages\": 2}'",
            "DATA_LOSS: in the middle",
        ),
        (
            "method = \"shop.v1.Orders/Get\"\nmessage = '{\"id\": \"slow\"}'\ndeadline = \"20ms\"",
            "DEADLINE_EXCEEDED",
        ),
    ] {
        let place = Place::new();
        let (_, document) =
            place.experiment(&experiment(&url, &format!("{workload}\npreflight = false")));
        assert_eq!(trial(&document)["counts"]["committed"], 0);
        let errors = trial(&document)["errors"].to_string();
        assert!(errors.contains(words), "{errors}");
    }
}

/// Claim: with reflection, a method that is not there and JSON that does not fit are told before any load, with the nearest name.
#[test]
fn mistakes_by_reflection() {
    let Some(server) = server("grpc::mistakes_by_reflection") else { return };
    let _beside = beside_others();
    let url = format!("grpc://{}/", server.address);
    for (method, body, words) in [
        (
            "shop.v1.Orders/Gett",
            "{}",
            "the service shop.v1.Orders has no method `Gett`; did you mean `Get`?",
        ),
        ("shop.v1.Shop/Get", "{}", "shop.v1.Shop"),
        ("shop.v1.Orders/Upload", "{}", "takes a stream of requests"),
        ("shop.v1.Orders/Get", "{\"idd\": 1}", "unrecognized field name 'idd' at line 1 column 6"),
    ] {
        let place = Place::new();
        let said =
            place.assay(&["run", &format!("{url}{method}"), "--body", body, "--duration", "1s"]);
        said.expect_code(1).expect_stderr(words);
    }
}

/// Claim: a `.proto` file that does not parse is said with its file and line, and with those of the experiment, and nothing is
/// sent.
#[test]
fn a_proto_that_does_not_parse() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let place = Place::new();
    place.write("broken.proto", "syntax = \"proto3\";\nmessage A { string id = ; }\n");
    let url = format!("url = \"grpc://{}\"", target.local_addr().unwrap());
    let workload = "proto = \"broken.proto\"\nmethod = \"a.B/C\"";
    place.write("wrong.toml", experiment(&url, workload));
    let said = place.assay(&["run", "wrong.toml"]);
    said.expect_code(2)
        .expect_stderr("broken.proto:2:25: expected an integer, but found ';'")
        .expect_stderr("--> wrong.toml:7:9");
    assert!(target.accept().is_err(), "nothing is sent");
}

/// A unary call and a stream, each with an expectation.
const CALL_AND_STREAM: &str = r#"
[[workload.call]]
method = "shop.v1.Orders/Get"
message = '{"id": "{{$tx}}"}'
expect = { json = { "/state" = "PAID" } }
[[workload.call]]
method = "shop.v1.Orders/Watch"
message = '{"id": "w", "messages": 5}'
expect = { messages = 5 }
"#;

/// Claim: over TLS, verified against the test's own authority, unary calls and streams are answered, by reflection and by a
/// `.proto` file; a certificate of another authority, one of none that this host trusts, and a server without TLS are refused
/// by name before any load.
#[test]
fn over_tls() {
    let test = "grpc::over_tls";
    let Some(command) = peers::python(test, "grpc/server.py") else { return };
    let (place, elsewhere) = (Place::new(), Place::new());
    if ![&place, &elsewhere].iter().all(|it| crate::nginx::certificate(test, it.path(), "CA:FALSE"))
    {
        return;
    }
    let other = std::fs::read(elsewhere.path().join("cert.pem")).unwrap();
    place.write("other.pem", other);
    place.write("shop.proto", PROTO);
    let files = ["cert.pem", "key.pem"].map(|name| place.path().join(name));
    let server = peers::start(command, true, &[&files[0], &files[1]]);
    let _beside = beside_others();
    let with = |more: &str, described: &str| {
        let url =
            format!("url = \"grpcs://{}\"\nserver_name = \"localhost\"\n{more}", server.address);
        experiment(&url, &format!("{described}{CALL_AND_STREAM}"))
    };
    for described in ["", "proto = \"shop.proto\""] {
        let (said, document) = place.experiment(&with("ca = \"cert.pem\"", described));
        assert_eq!(trial(&document)["counts"]["committed"], 50, "{}", said.stderr);
        let found = kinds(&document);
        assert!(found.len() == 2 && found.iter().all(|(_, count)| *count > 5), "{found:?}");
        for more in ["ca = \"other.pem\"", ""] {
            let refused = "the certificate of localhost is signed by an authority that this host does not trust";
            let (said, _) = place.experiment(&with(more, described));
            said.expect_code(1).expect_stderr(refused).expect_stderr("--insecure");
        }
    }
    let Some(plain) = server_with(test, "v1alpha") else { return };
    let url = format!("url = \"grpcs://{}\"\nca = \"cert.pem\"", plain.address);
    let (said, _) = place.experiment(&experiment(&url, CALL_AND_STREAM));
    said.expect_code(1).expect_stderr("the server does not speak TLS on this port; is it grpc://?");
}

/// Claim: a server that knows the reflection in one of its versions alone is asked in that; with one that knows none, the way out
/// is said, and it is one.
#[test]
fn reflection_in_either_version() {
    let _beside = beside_others();
    for version in ["v1", "v1alpha", "none"] {
        let Some(server) = server_with("grpc::reflection_in_either_version", version) else {
            return;
        };
        let place = Place::new();
        place.write("shop.proto", PROTO);
        let url = format!("url = \"grpc://{}\"", server.address);
        let (said, mut document) = place.experiment(&experiment(&url, CALL_AND_STREAM));
        if version == "none" {
            said.expect_code(1).expect_stderr(
                "the server has no reflection; name its .proto files: proto = \"service.proto\"",
            );
            let described = format!("proto = \"shop.proto\"{CALL_AND_STREAM}");
            (_, document) = place.experiment(&experiment(&url, &described));
        }
        assert_eq!(trial(&document)["counts"]["committed"], 50, "{version}: {}", said.stderr);
    }
}

/// Claim: every command of the page for gRPC ends with 0 against a real server, with the files that the page lays out.
#[test]
fn the_page_does_what_it_says() {
    let Some(server) = server("grpc::the_page_does_what_it_says") else { return };
    let _beside = beside_others();
    let place = Place::new();
    place.write("shop.proto", PROTO);
    let said = peers::follow(&place, PAGE, "127.0.0.1:50051", &server.address.to_string());
    assert!(said >= 3, "{said} commands");
}

/// Claim: of each behaviour of a hostile server the built binary counts nothing as committed that was not earned, with each
/// driver, and it ends by itself.
#[test]
fn hostile_servers_with_each_driver() {
    let _beside = beside_others();
    let plays = (list::SETTINGS, b"Orders/Get".as_slice());
    hostile_http2::each_with_both_drivers(
        list::behaviours(),
        plays,
        |address, driver, is_earned| {
            let place = Place::new();
            place.write("shop.proto", PROTO);
            let workload = "proto = \"shop.proto\"\nmethod = \"shop.v1.Orders/Get\"\nmessage = '{\"id\": \"7\"}'\npreflight = false\nstreams = 1";
            let text = experiment(&format!("url = \"grpc://{address}\""), workload);
            peers::loaded_by(driver, &place, &text, is_earned)
        },
    );
}
