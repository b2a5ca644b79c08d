//! Servers that know this or that version of the reflection, by dialogue over a socket: which is asked, and when the other is.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use clock::Clock;
use prost::Message as _;
use sut::{System as _, Testbed};

use super::hostile_list::{SETTINGS, fields, frame, head, message, trailers};
use super::{built, folder};

const V1: &str = "grpc.reflection.v1.ServerReflection";
const V1ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

/// A server's answer to a version of the reflection.
#[derive(Clone, Copy)]
enum Answer {
    /// The description of the shop.
    Shop,
    /// A status of gRPC's.
    Status(&'static str),
    /// An answer of a web server, such as a proxy that has no such path.
    Http(&'static str),
    /// An error within the answer, as a server gives it that has the service and not the symbol.
    Within(u8),
}

/// The answer with a file's description: `file_descriptor_response` of `reflection.proto`.
fn shop() -> Vec<u8> {
    let folder = folder();
    let pool = crate::described::of_files(&["shop.proto"], &[], folder.path()).unwrap();
    let file = pool.get_file_by_name("shop.proto").unwrap();
    let bytes = file.file_descriptor_proto().encode_to_vec();
    field(4, &field(1, &bytes))
}

/// A field of bytes in protobuf.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn frames(answer: Answer, stream: u32) -> Vec<u8> {
    let said = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        let prefix = [&[0], &length[..]].concat();
        [head(stream), message(stream, &prefix, bytes), trailers(stream, &[("grpc-status", "0")])]
            .concat()
    };
    match answer {
        Answer::Shop => said(&shop()),
        Answer::Within(code) => said(&field(7, &[8, code])),
        Answer::Status(code) => {
            let list =
                [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", code)];
            trailers(stream, &list)
        }
        Answer::Http(status) => frame(1, 5, stream, &fields(&[(":status", status)])),
    }
}

/// Attaches to a server that gives these answers, with no `.proto` file; what came of it, and which versions were asked in turn.
fn attach(v1: Answer, v1alpha: Answer, method: &str) -> (Result<(), String>, Vec<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let deploy = format!("{{\"url\":\"grpc://{}\"}}", listener.local_addr().unwrap());
    let folder = folder();
    let workload = format!("{{\"method\":\"{method}\",\"preflight\":false}}");
    let system = built(&deploy, &workload, folder.path()).unwrap();
    let mut asked = Vec::new();
    let result = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, v1, v1alpha));
        let result = system.deploy(&mut Testbed::new(&folder.path().join("run"), Clock::start()));
        drop(system);
        asked = server.join().unwrap();
        result.map(drop).map_err(|error| error.to_string())
    });
    (result, asked)
}

/// Two connections: the one that attaching tries, and the one of the questions. Gives which versions were asked.
fn serve(listener: &TcpListener, v1: Answer, v1alpha: Answer) -> Vec<&'static str> {
    let mut asked = Vec::new();
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut received, mut piece) = (Vec::new(), [0; 4096]);
        stream.write_all(SETTINGS).unwrap();
        let mut next = 1;
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            received.extend_from_slice(&piece[..read]);
            for (service, answer) in [(V1, v1), (V1ALPHA, v1alpha)] {
                let path = format!("/{service}/ServerReflectionInfo");
                let is_asked = received.windows(path.len()).any(|part| part == path.as_bytes());
                // The question is a message of its own, which follows the path.
                if is_asked && received.ends_with(b"shop.v1.Orders") {
                    received.clear();
                    asked.push(service);
                    stream.write_all(&frames(answer, next)).unwrap();
                    next += 2;
                }
            }
        }
    }
    asked
}

/// Claim: v1 is asked first, v1alpha only when v1 is answered with UNIMPLEMENTED (or as a web server says that it has no such
/// path), and with neither the way out is said.
#[test]
fn versions() {
    let (unknown, denied) = (Answer::Status("12"), Answer::Status("7"));
    let none = "the server has no reflection; name its .proto files: proto = \"service.proto\"";
    let of_symbol = "asking the server's reflection for `shop.v1.Orders`: ";
    for (what, v1, v1alpha, expected, versions) in [
        ("only v1", Answer::Shop, unknown, Ok(()), &[V1][..]),
        ("only v1alpha", unknown, Answer::Shop, Ok(()), &[V1, V1ALPHA]),
        ("both", Answer::Shop, Answer::Shop, Ok(()), &[V1]),
        ("neither", unknown, unknown, Err(none.to_owned()), &[V1, V1ALPHA]),
        ("a proxy that knows v1alpha", Answer::Http("404"), Answer::Shop, Ok(()), &[V1, V1ALPHA]),
        (
            "v1 for others",
            denied,
            Answer::Shop,
            Err(format!("{of_symbol}PERMISSION_DENIED ")),
            &[V1],
        ),
        (
            "v1 through a proxy that is overloaded",
            Answer::Http("503"),
            Answer::Shop,
            Err(format!("{of_symbol}UNAVAILABLE ")),
            &[V1],
        ),
        (
            "v1 without the symbol",
            Answer::Within(5),
            Answer::Shop,
            Err(format!("{of_symbol}NOT_FOUND: ")),
            &[V1],
        ),
        (
            "v1 that answers UNIMPLEMENTED about the symbol",
            Answer::Within(12),
            Answer::Shop,
            Err(format!("{of_symbol}UNIMPLEMENTED: ")),
            &[V1],
        ),
    ] {
        let (result, asked) = attach(v1, v1alpha, "shop.v1.Orders/Get");
        assert_eq!(asked, versions, "{what}: {result:?}");
        match (result, expected) {
            (Ok(()), Ok(())) => {}
            (Err(words), Err(expected)) => assert!(words.ends_with(&expected), "{what}: {words}"),
            (result, _) => panic!("{what}: {result:?}"),
        }
    }
}
