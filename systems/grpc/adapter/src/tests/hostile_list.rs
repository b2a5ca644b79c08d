//! Something that a gRPC server may do to a call, after it has greeted as HTTP/2 does: played to sessions here and to the built
//! binary with each of its drivers. The call is the one on stream 1, of `shop.v1.Orders/Get`.

use sut::conformance::Seen;

pub(crate) const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields, each without a place in any table.
pub(crate) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

pub(crate) fn head(stream: u32) -> Vec<u8> {
    frame(1, 4, stream, &fields(&[(":status", "200"), ("content-type", "application/grpc")]))
}

pub(crate) fn message(stream: u32, prefix: &[u8], bytes: &[u8]) -> Vec<u8> {
    frame(0, 0, stream, &[prefix, bytes].concat())
}

pub(crate) fn trailers(stream: u32, list: &[(&str, &str)]) -> Vec<u8> {
    frame(1, 5, stream, &fields(list))
}

/// An order whose id is `7`.
pub(crate) const ORDER: &[u8] = b"\x0a\x017";
pub(crate) const PREFIX: &[u8] = b"\0\0\0\0\x03";

/// The right answer.
pub(crate) fn right(stream: u32) -> Vec<u8> {
    [head(stream), message(stream, PREFIX, ORDER), trailers(stream, &[("grpc-status", "0")])]
        .concat()
}

/// The behaviours: a name, the bytes, the reaction that is expected, and whether the server says nothing more.
pub(crate) fn behaviours() -> Vec<(&'static str, Vec<u8>, Seen)> {
    let ok = || trailers(1, &[("grpc-status", "0")]);
    let only = |list: &[(&str, &str)]| frame(1, 5, 1, &fields(list));
    let said = |frames: &[Vec<u8>]| frames.concat();
    let order = || message(1, PREFIX, ORDER);
    let grpc = ("content-type", "application/grpc");
    vec![
        (
            "answers in HTTP/1.1",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            Seen::Broken,
        ),
        ("answers on another's stream", right(9), Seen::Broken),
        ("answers twice", said(&[right(1), right(1)]), Seen::BrokenBehind),
        ("sends a message before the headers", said(&[order(), ok()]), Seen::Broken),
        ("sends a message after the trailers", said(&[right(1), order()]), Seen::BrokenBehind),
        (
            "sends trailers in the middle",
            said(&[head(1), frame(1, 4, 1, &fields(&[("grpc-status", "0")]))]),
            Seen::Broken,
        ),
        (
            "sends trailers that cannot be read",
            said(&[head(1), order(), frame(1, 5, 1, &[0xff; 8])]),
            Seen::Broken,
        ),
        (
            "goes in the middle of a stream, with an error",
            said(&[head(1), frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11])]),
            Seen::Broken,
        ),
        ("pushes", frame(5, 4, 1, &[0, 0, 0, 2, 0x88]), Seen::Broken),
        (
            "ends without trailers",
            said(&[head(1), frame(0, 1, 1, &[PREFIX, ORDER].concat())]),
            Seen::Failed,
        ),
        (
            "ends with trailers that have no status",
            said(&[head(1), order(), trailers(1, &[("x", "y")])]),
            Seen::Failed,
        ),
        (
            "has its status where there is a message",
            said(&[
                frame(1, 4, 1, &fields(&[(":status", "200"), grpc, ("grpc-status", "0")])),
                frame(0, 1, 1, &[PREFIX, ORDER].concat()),
            ]),
            Seen::Failed,
        ),
        (
            "has a status that is no number",
            said(&[head(1), order(), trailers(1, &[("grpc-status", "fine")])]),
            Seen::Failed,
        ),
        (
            "has a status that there is not",
            said(&[head(1), order(), trailers(1, &[("grpc-status", "99")])]),
            Seen::Failed,
        ),
        ("has no message", said(&[head(1), ok()]), Seen::Failed),
        (
            "has no message, and says so at once",
            only(&[(":status", "200"), grpc, ("grpc-status", "0")]),
            Seen::Failed,
        ),
        ("has two messages", said(&[head(1), order(), order(), ok()]), Seen::Failed),
        (
            "ends within a message",
            said(&[head(1), message(1, b"\0\0\0\0\x09", ORDER), ok()]),
            Seen::Failed,
        ),
        (
            "ends within the length of a message",
            said(&[head(1), message(1, b"\0\0\0", b""), ok()]),
            Seen::Failed,
        ),
        (
            "announces a message of 4 GiB",
            said(&[head(1), message(1, b"\0\xff\xff\xff\xff", ORDER)]),
            Seen::Failed,
        ),
        (
            "compresses what it was not asked to",
            said(&[head(1), message(1, b"\x01\0\0\0\x03", ORDER), ok()]),
            Seen::Failed,
        ),
        (
            "has a flag without a meaning",
            said(&[head(1), message(1, b"\x07\0\0\0\x03", ORDER), ok()]),
            Seen::Failed,
        ),
        (
            "is a web server",
            said(&[
                frame(1, 4, 1, &fields(&[(":status", "200"), ("content-type", "text/html")])),
                frame(0, 1, 1, b"<html>"),
            ]),
            Seen::Failed,
        ),
        ("says 503 as a proxy does", frame(1, 5, 1, &fields(&[(":status", "503")])), Seen::Failed),
        (
            "fails at once",
            only(&[(":status", "200"), grpc, ("grpc-status", "14"), ("grpc-message", "%ff%")]),
            Seen::Failed,
        ),
        (
            "fails after a message",
            said(&[head(1), order(), trailers(1, &[("grpc-status", "13")])]),
            Seen::Failed,
        ),
        (
            "resets the stream",
            said(&[head(1), order(), frame(3, 0, 1, &[0, 0, 0, 2])]),
            Seen::Failed,
        ),
        ("refuses the stream", frame(3, 0, 1, &[0, 0, 0, 7]), Seen::Failed),
        ("goes without having processed it", frame(7, 0, 0, &[0; 8]), Seen::Failed),
        (
            "stops within a message",
            said(&[head(1), message(1, b"\0\0\0\0\x09", ORDER)]),
            Seen::Failed,
        ),
        (
            "goes, and answers what it has",
            said(&[frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]), right(1)]),
            Seen::Fine,
        ),
        (
            "cuts a message into frames",
            said(&[
                head(1),
                message(1, &PREFIX[..2], b""),
                message(1, &PREFIX[2..], &ORDER[..1]),
                message(1, b"", &ORDER[1..]),
                ok(),
            ]),
            Seen::Fine,
        ),
        (
            "resets the stream after its status",
            said(&[right(1), frame(3, 0, 1, &[0; 4])]),
            Seen::Fine,
        ),
        ("pings first", said(&[frame(6, 0, 0, b"12345678"), right(1)]), Seen::Fine),
        (
            "says more than it must",
            said(&[
                head(1),
                order(),
                trailers(1, &[("x", "y"), ("grpc-status", "0"), ("grpc-message", "fine")]),
            ]),
            Seen::Fine,
        ),
    ]
}
