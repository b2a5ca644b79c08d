//! Something that an HTTP/2 server may do to a request, after it has greeted: played to sessions here and to the built binary with
//! each of its drivers. The request is the one on stream 1.

use sut::conformance::Seen;

pub(crate) const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The behaviours: a name, the bytes, and the reaction that is expected.
pub(crate) fn behaviours() -> Vec<(&'static str, Vec<u8>, Seen)> {
    let answer = [frame(1, 4, 1, &[0x88]), frame(0, 1, 1, b"ok")].concat();
    let say = |frames: &[Vec<u8>]| frames.concat();
    let ok = || frame(1, 4, 1, &[0x88]);
    let ping = frame(6, 0, 0, b"12345678");
    vec![
        (
            "answers in HTTP/1.1",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            Seen::Broken,
        ),
        ("answers on a stream of nobody's", frame(1, 5, 9, &[0x88]), Seen::Broken),
        ("answers on a stream of its own", frame(1, 5, 2, &[0x88]), Seen::Broken),
        ("answers twice", say(&[answer.clone(), answer.clone()]), Seen::BrokenBehind),
        (
            "sends a body after the end",
            say(&[answer.clone(), frame(0, 1, 1, b"more")]),
            Seen::BrokenBehind,
        ),
        ("sends a body before the headers", frame(0, 1, 1, b"ok"), Seen::Broken),
        ("pushes", frame(5, 4, 1, &[0, 0, 0, 2, 0x88]), Seen::Broken),
        ("sends a frame that is too long", frame(0, 0, 1, &[0; 16_385]), Seen::Broken),
        ("sends headers that cannot be read", frame(1, 5, 1, &[0xff; 8]), Seen::Broken),
        ("uses a field that is in no table", frame(1, 5, 1, &[0x88, 0xfe]), Seen::Broken),
        ("has no status", frame(1, 5, 1, b"\0\x01a\x01b"), Seen::Broken),
        ("has a name in upper case", frame(1, 5, 1, b"\x88\0\x01A\x01b"), Seen::Broken),
        (
            "has a header of HTTP/1.1",
            frame(1, 5, 1, b"\x88\0\x0aconnection\x05close"),
            Seen::Broken,
        ),
        ("has two statuses", frame(1, 5, 1, &[0x88, 0x8d]), Seen::Broken),
        ("interrupts a header block", say(&[frame(1, 0, 1, &[0x88]), ping.clone()]), Seen::Broken),
        ("continues what was not begun", frame(9, 4, 1, &[0x88]), Seen::Broken),
        ("pads more than there is", say(&[ok(), frame(0, 9, 1, b"\x09ok")]), Seen::Broken),
        ("overflows a window", say(&[frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])]), Seen::Broken),
        ("gives a window of nothing", frame(8, 0, 1, &[0; 4]), Seen::Broken),
        ("sends settings of half a length", frame(4, 0, 0, &[0; 5]), Seen::Broken),
        ("takes its settings back", frame(4, 0, 0, &[0, 3, 0, 0, 0, 1]), Seen::Broken),
        (
            "gives the connection up with an error",
            frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]),
            Seen::Broken,
        ),
        ("resets the stream", frame(3, 0, 1, &[0, 0, 0, 2]), Seen::Failed),
        ("refuses the stream", frame(3, 0, 1, &[0, 0, 0, 7]), Seen::Failed),
        ("goes without having processed it", frame(7, 0, 0, &[0; 8]), Seen::Failed),
        ("answers 500", frame(1, 5, 1, &[0x8e]), Seen::Failed),
        ("stops in the body", say(&[ok(), frame(0, 0, 1, b"o")]), Seen::Failed),
        (
            "sends interim answers and pings first",
            say(&[frame(1, 4, 1, b"\x08\x03103"), ping, answer.clone()]),
            Seen::Fine,
        ),
        (
            "resets the stream after its whole answer",
            say(&[answer.clone(), frame(3, 0, 1, &[0; 4])]),
            Seen::Fine,
        ),
        (
            "sends frames of kinds that nobody knows",
            say(&[frame(0x77, 0xff, 1, b"x"), answer.clone()]),
            Seen::Fine,
        ),
        (
            "sends a priority and padding",
            say(&[frame(1, 0x2c, 1, b"\x01\0\0\0\0\x10\x88\0"), frame(0, 9, 1, b"\x02ok\0\0")]),
            Seen::Fine,
        ),
        (
            "ends with trailers",
            say(&[ok(), frame(0, 0, 1, b"ok"), frame(1, 5, 1, b"\0\x01a\x01b")]),
            Seen::Fine,
        ),
    ]
}
