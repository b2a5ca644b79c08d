//! gRPC with peers of other makes: servers in Go (etcd, fortio), and a client (grpcurl) that calls what is called here.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{experiment, kinds, server};
use crate::harness::{Place, Server, beside_others, say, trial};

/// The part of etcd's own `rpc.proto` and `kv.proto` that is called here.
const ETCD: &str = r#"syntax = "proto3";
package etcdserverpb;

service KV {
  rpc Range(RangeRequest) returns (RangeResponse);
  rpc Put(PutRequest) returns (PutResponse);
}
service Maintenance { rpc Snapshot(SnapshotRequest) returns (stream SnapshotResponse); }

message ResponseHeader { uint64 cluster_id = 1; uint64 member_id = 2; int64 revision = 3; uint64 raft_term = 4; }
message KeyValue {
  bytes key = 1; int64 create_revision = 2; int64 mod_revision = 3; int64 version = 4; bytes value = 5; int64 lease = 6;
}
message RangeRequest { bytes key = 1; bytes range_end = 2; int64 limit = 3; }
message RangeResponse { ResponseHeader header = 1; repeated KeyValue kvs = 2; bool more = 3; int64 count = 4; }
message PutRequest { bytes key = 1; bytes value = 2; int64 lease = 3; }
message PutResponse { ResponseHeader header = 1; KeyValue prev_kv = 2; }
message SnapshotRequest {}
message SnapshotResponse { ResponseHeader header = 1; uint64 remaining_bytes = 2; bytes blob = 3; string version = 4; }
"#;
/// `key`, as JSON has bytes of protobuf.
const KEY: &str = "a2V5";

/// A program that can be installed; `None`, said by name, if it is not.
fn installed(test: &str, name: &str) -> Option<Command> {
    let found = testbed::install::find(name);
    if found.is_none() {
        say(&format!("SKIPPED {test}: it takes {name}; assay doctor --install {name} gets it"));
    }
    let mut command = Command::new(found?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some(command)
}

/// One member of etcd, with what more its command line has.
fn etcd(test: &str, place: &Place, scheme: &str, more: &[String]) -> Option<Server> {
    let mut command = installed(test, "etcd")?;
    let (clients, members) = (Server::free_address(), Server::free_address());
    command
        .arg(format!("--data-dir={}", place.path().join("data").display()))
        .arg(format!("--listen-client-urls={scheme}://{clients}"))
        .arg(format!("--advertise-client-urls={scheme}://{clients}"))
        .arg(format!("--listen-peer-urls=http://{members}"))
        .arg(format!("--initial-advertise-peer-urls=http://{members}"))
        .arg(format!("--initial-cluster=default=http://{members}"))
        .args(more);
    Some(Server::start(&mut command, clients))
}

/// Claim: etcd counts as many puts as are reported as committed, with and without TLS; its values are read, its snapshot comes as
/// a stream, and that it has no reflection is said.
#[test]
fn etcd_has_what_was_put() {
    let test = "grpc::others::etcd_has_what_was_put";
    let _beside = beside_others();
    for scheme in ["http", "https"] {
        let place = Place::new();
        if !crate::nginx::certificate(test, place.path(), "CA:FALSE") {
            return;
        }
        let with_tls = scheme == "https";
        let file = |name: &str| place.path().join(name).display().to_string();
        let tls = [
            format!("--cert-file={}", file("cert.pem")),
            format!("--key-file={}", file("key.pem")),
        ];
        let Some(server) = etcd(test, &place, scheme, if with_tls { &tls } else { &[] }) else {
            return;
        };
        place.write("etcd.proto", ETCD);
        let url = match with_tls {
            true => format!(
                "url = \"grpcs://{}\"\nca = \"cert.pem\"\nserver_name = \"localhost\"",
                server.address
            ),
            false => format!("url = \"grpc://{}\"", server.address),
        };
        let run = |workload: &str| place.experiment(&experiment(&url, workload));
        let put = format!(
            "method = \"etcdserverpb.KV/Put\"\nmessage = '{{\"key\": \"{KEY}\", \"value\": \"{KEY}\"}}'\npreflight = false"
        );
        let (said, _) = run(&put);
        said.expect_code(1).expect_stderr("the server has no reflection; name its .proto files");
        let (said, document) = run(&format!("proto = \"etcd.proto\"\n{put}"));
        assert_eq!(trial(&document)["counts"]["committed"], 50, "{scheme}: {}", said.stderr);
        let calls = format!(
            r#"proto = "etcd.proto"
[[workload.call]]
method = "etcdserverpb.KV/Range"
message = '{{"key": "{KEY}"}}'
weight = 9
expect = {{ json = {{ "/count" = "1", "/kvs/0/version" = "50", "/kvs/0/value" = "{KEY}" }} }}
[[workload.call]]
method = "etcdserverpb.Maintenance/Snapshot"
expect = {{ contains = "remainingBytes" }}
"#
        );
        let (said, document) = run(&calls);
        assert_eq!(trial(&document)["counts"]["committed"], 50, "{scheme}: {}", said.stderr);
        let found = kinds(&document);
        assert!(found.iter().all(|(_, count)| *count > 0), "{found:?}");
    }
}

/// Claim: a server of Go's own gRPC answers unary calls and knows the reflection, with and without TLS.
#[test]
fn fortio_is_called() {
    let test = "grpc::others::fortio_is_called";
    let _beside = beside_others();
    for with_tls in [false, true] {
        let place = Place::new();
        let Some(mut command) = installed(test, "fortio") else { return };
        if !crate::nginx::certificate(test, place.path(), "CA:FALSE") {
            return;
        }
        let address = Server::free_address();
        command.current_dir(place.path()).args(["server", "-grpc-port", &address.to_string()]);
        command.args(["-http-port", "disabled", "-redirect-port", "disabled"]);
        command.args(["-tcp-port", "disabled", "-udp-port", "disabled"]);
        if with_tls {
            command.args(["-cert", "cert.pem", "-key", "key.pem"]);
        }
        let server = Server::start(&mut command, address);
        let url = match with_tls {
            true => format!(
                "url = \"grpcs://{}\"\nca = \"cert.pem\"\nserver_name = \"localhost\"",
                server.address
            ),
            false => format!("url = \"grpc://{}\"", server.address),
        };
        let workload = "method = \"fgrpc.PingServer/Ping\"\nmessage = '{\"seq\": 7, \"payload\": \"{{$tx}}\"}'\n\
                        expect = { json = { \"/seq\" = \"7\" } }";
        let (said, document) = place.experiment(&experiment(&url, workload));
        assert_eq!(trial(&document)["counts"]["committed"], 50, "{}", said.stderr);
    }
}

/// Claim: each field that grpcurl gets is the one that a load sees, for a unary call and for a stream, of a message in the same
/// JSON.
#[test]
fn grpcurl_gets_the_same() {
    let test = "grpc::others::grpcurl_gets_the_same";
    let Some(server) = server(test) else { return };
    let _beside = beside_others();
    for (method, message, fields) in [
        (
            "shop.v1.Orders/Get",
            r#"{"id": "seven", "count": 3}"#,
            &["/id", "/state", "/lines/0/item", "/lines/0/count", "/cents"][..],
        ),
        ("shop.v1.Orders/Watch", r#"{"id": "w", "messages": 3}"#, &["/state"]),
    ] {
        let Some(mut peer) = installed(test, "grpcurl") else { return };
        let address = server.address.to_string();
        peer.args(["-plaintext", "-d", message, &address, method]);
        let output = peer.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        let answers: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap();
        let expected = |field: &&str| {
            let value = answers[0].pointer(field);
            format!("\"{field}\" = {}", value.unwrap_or_else(|| panic!("{field}: {answers:?}")))
        };
        let json: Vec<String> = fields.iter().map(expected).collect();
        let messages = match answers.len() {
            1 => String::new(),
            count => format!("messages = {count}, "),
        };
        let workload = format!(
            "method = \"{method}\"\nmessage = '{message}'\nexpect = {{ {messages}json = {{ {} }} }}",
            json.join(", ")
        );
        let place = Place::new();
        let url = format!("url = \"grpc://{address}\"");
        let (said, document) = place.experiment(&experiment(&url, &workload));
        assert_eq!(trial(&document)["counts"]["committed"], 50, "{workload}\n{}", said.stderr);
    }
}
