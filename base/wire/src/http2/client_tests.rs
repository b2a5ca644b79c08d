//! The client's connection against frames written by hand: answers, windows, ends, and everything that must end it.

use super::Http2Error;
use super::client::*;
use super::fields::request_block;
use super::frame::*;
use super::hpack::write_field;

const LIMITS: Limits = Limits {
    head_bytes_max: 1 << 12,
    body_kept_max: 4,
    body_bytes_max: 1 << 20,
    keeps_heads: true,
    streams_max: 8,
};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

fn block(status: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    write_field(&mut block, ":status", status.as_bytes());
    more.iter().for_each(|(name, value)| write_field(&mut block, name, value.as_bytes()));
    block
}

fn settings(all: &[(u16, u32)]) -> Vec<u8> {
    let bytes =
        |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &all.iter().flat_map(bytes).collect::<Vec<_>>())
}

/// A connection whose server has greeted, with so many requests outstanding: 1, 3, …
fn open(requests: u64, body: &[u8]) -> (Client, Vec<u8>) {
    let (mut client, mut out) = (Client::new(LIMITS), Vec::new());
    client.open(&mut out);
    assert!(out.starts_with(PREFACE) && !client.is_ready());
    read(&mut client, &settings(&[(3, 100)])).unwrap();
    assert!(client.is_ready());
    out.clear();
    let block = request_block("GET", "http", "h", "/", &[]);
    for tag in 0..requests {
        client.submit(tag, &Request { block: &block, body, is_head: false }, &mut out);
    }
    (client, out)
}

fn read(client: &mut Client, bytes: &[u8]) -> Result<(Vec<String>, Vec<u8>), Http2Error> {
    let (mut said, mut out) = (Vec::new(), Vec::new());
    let used = client.read(bytes, &mut out, &mut |tag, ended| {
        said.push(match ended {
            Ended::Answered(answer) => {
                let body = String::from_utf8_lossy(answer.body);
                format!("{tag}: {} {} {body}", answer.status, answer.body_bytes)
            }
            Ended::Reset { why, is_refused } => format!("{tag}: {why} {is_refused}"),
        });
    })?;
    assert!(used <= bytes.len());
    Ok((said, out))
}

/// Claim: answers in any order and any pieces are those of their requests, with their headers, what is kept of a body, and
/// trailers and interim answers where they may stand.
#[test]
fn answers() {
    let whole = [
        frame(HEADERS, END_HEADERS, 3, &block("103", &[("link", "a")])),
        frame(HEADERS, END_HEADERS, 3, &block("200", &[("content-length", "6")])),
        frame(HEADERS, END_HEADERS | END_STREAM, 5, &block("204", &[])),
        frame(DATA, PADDED, 3, b"\x02abcd\0\0"),
        frame(0x42, 0xff, 3, b"unknown"),
        frame(PING, 0, 0, b"12345678"),
        frame(DATA, END_STREAM, 3, b"ef"),
        frame(HEADERS, PRIORITISED, 1, &[&[0; 5], &block("404", &[])[..1]].concat()),
        frame(CONTINUATION, END_HEADERS, 1, &block("404", &[])[1..]),
        frame(DATA, 0, 1, b"no"),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &{
            let mut trailer = Vec::new();
            write_field(&mut trailer, "grpc-status", b"0");
            trailer
        }),
    ]
    .concat();
    for piece in [1, 7, 9, 64, whole.len()] {
        let (mut client, _) = open(3, b"");
        let (mut held, mut said, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        for part in whole.chunks(piece) {
            held.extend_from_slice(part);
            let mut out = Vec::new();
            let used = client
                .read(&held, &mut out, &mut |tag, ended| match ended {
                    Ended::Answered(answer) => {
                        let head = String::from_utf8_lossy(answer.head).replace("\r\n", "|");
                        said.push(format!(
                            "{tag} {} {} {:?}{head}",
                            answer.status, answer.body_bytes, answer.body
                        ));
                    }
                    Ended::Reset { .. } => panic!("nothing was reset"),
                })
                .unwrap();
            held.drain(..used);
            sent.append(&mut out);
        }
        assert_eq!(
            said,
            [
                "2 204 0 []",
                "1 200 6 [97, 98, 99, 100]|content-length: 6",
                "0 404 2 [110, 111]|grpc-status: 0"
            ]
        );
        assert_eq!(client.outstanding(), 0);
        assert_eq!(sent, frame(PING, ACK, 0, b"12345678"));
    }
}

/// Claim: a body is sent as far as the server's windows allow, and goes on when they grow.
#[test]
fn windows() {
    let body = vec![7; 100_000];
    let (mut client, out) = open(1, &body);
    let sent = |bytes: &[u8]| {
        let (mut rest, mut sum, mut ends) = (bytes, 0, false);
        while let Some(head) = Head::read(rest) {
            sum += if head.kind == DATA { head.length } else { 0 };
            ends |= head.kind == DATA && head.has(END_STREAM);
            rest = &rest[HEAD_BYTES + head.length..];
        }
        (sum, ends)
    };
    assert_eq!(sent(&out), (65_535, false));
    let update = |stream, more: u32| frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    assert_eq!(sent(&read(&mut client, &update(1, 10_000)).unwrap().1), (0, false));
    assert_eq!(sent(&read(&mut client, &update(0, 20_000)).unwrap().1), (10_000, false));
    let (_, out) = read(&mut client, &settings(&[(4, 1_000_000)])).unwrap();
    assert_eq!(sent(&out), (10_000, false), "what is left of the connection's window");
    assert_eq!(sent(&read(&mut client, &update(0, 1 << 20)).unwrap().1), (100_000 - 85_535, true));
    assert_eq!(read(&mut client, &update(0, 0x7fff_ffff)), Err(Http2Error::Window));
}

/// Claim: a reset ends its request, and after its answer nothing; a GOAWAY ends those that were not processed; and what was
/// given up may be answered all the same.
#[test]
fn ends() {
    let (mut client, _) = open(4, b"");
    client.give_up(1);
    let (said, out) = read(&mut client, &frame(RST_STREAM, 0, 1, &7_u32.to_be_bytes())).unwrap();
    assert_eq!(said, ["0: REFUSED_STREAM true"]);
    assert_eq!(out, frame(RST_STREAM, 0, 3, &CANCEL.to_be_bytes()));
    let late = frame(HEADERS, END_HEADERS | END_STREAM, 3, &block("200", &[]));
    assert_eq!(read(&mut client, &late).unwrap().0, Vec::<String>::new());
    let away = frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]);
    assert_eq!(read(&mut client, &away).unwrap().0, ["3: NO_ERROR true"]);
    assert!(client.is_closing() && client.outstanding() == 1);
    let last = frame(HEADERS, END_HEADERS | END_STREAM, 5, &block("200", &[]));
    assert_eq!(read(&mut client, &last).unwrap().0, ["2: 200 0 "]);
    let after = frame(RST_STREAM, 0, 5, &0_u32.to_be_bytes());
    assert_eq!(read(&mut client, &after).unwrap().0, Vec::<String>::new());
    client.reset();
    assert!(!client.is_closing() && !client.is_ready() && client.outstanding() == 0);
}

/// Claim: whatever could give an answer to the wrong request, or grow without bound, ends the connection.
#[test]
fn breaches() {
    let good = block("200", &[]);
    let headers = |stream, flags, block: &[u8]| frame(HEADERS, END_HEADERS | flags, stream, block);
    let flood = frame(PING, 0, 0, b"12345678").repeat(IDLE_FRAMES_MAX as usize + 1);
    let endless =
        [frame(HEADERS, 0, 1, &good), frame(CONTINUATION, 0, 1, &vec![0x88; 8_000])].concat();
    let mut bad_name = good.clone();
    write_field(&mut bad_name, "X-Upper", b"1");
    for (name, bytes, expected) in [
        (
            "push",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]),
            Http2Error::Misplaced("PUSH_PROMISE"),
        ),
        ("nobody's", headers(9, END_STREAM, &good), Http2Error::Unasked),
        ("an even stream", headers(2, END_STREAM, &good), Http2Error::Unasked),
        ("a reset of nothing", frame(RST_STREAM, 0, 9, &[0; 4]), Http2Error::Unasked),
        (
            "again",
            [headers(1, END_STREAM, &good), headers(1, END_STREAM, &good)].concat(),
            Http2Error::Unasked,
        ),
        ("no stream", headers(0, 0, &good), Http2Error::Misplaced("a frame of no stream")),
        ("data first", frame(DATA, 0, 1, b"x"), Http2Error::Misplaced("DATA before the headers")),
        (
            "within a block",
            [frame(HEADERS, 0, 1, &good), frame(PING, 0, 0, b"12345678")].concat(),
            Http2Error::Misplaced("a frame within a header block"),
        ),
        (
            "a lone continuation",
            frame(CONTINUATION, END_HEADERS, 1, &good),
            Http2Error::Misplaced("CONTINUATION"),
        ),
        (
            "too long",
            frame(DATA, 0, 1, &vec![0; PAYLOAD_BYTES_MAX])[..9]
                .iter()
                .enumerate()
                .map(|(at, b)| if at == 2 { 1 } else { *b })
                .collect(),
            Http2Error::FrameSize,
        ),
        (
            "padding",
            [headers(1, 0, &good), frame(DATA, PADDED, 1, b"\x09abc")].concat(),
            Http2Error::Misplaced("padding"),
        ),
        ("bad block", headers(1, 0, &[0xff; 3]), Http2Error::Compression),
        (
            "upper case",
            headers(1, 0, &bad_name),
            Http2Error::Head("a header that cannot stand there"),
        ),
        ("no status", headers(1, 0, &[0x82 + 30]), Http2Error::Head("a header before the status")),
        (
            "a longer body",
            [headers(1, 0, &block("200", &[("content-length", "1")])), frame(DATA, 0, 1, b"xy")]
                .concat(),
            Http2Error::BodyLength,
        ),
        (
            "a shorter body",
            [
                headers(1, 0, &block("200", &[("content-length", "9")])),
                frame(DATA, END_STREAM, 1, b"xy"),
            ]
            .concat(),
            Http2Error::BodyLength,
        ),
        ("a zero window", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Http2Error::Window),
        ("settings of a stream", frame(SETTINGS, 0, 1, &[]), Http2Error::Misplaced("SETTINGS")),
        ("half a setting", frame(SETTINGS, 0, 0, &[0; 5]), Http2Error::FrameSize),
        ("pings without end", flood, Http2Error::Flood(IDLE_FRAMES_MAX)),
        ("headers without end", endless, Http2Error::HeadTooLong(1 << 12)),
        ("few streams", settings(&[(3, 2)]), Http2Error::TooFewStreams { allowed: 2 }),
        (
            "gone",
            frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]),
            Http2Error::GoneAway("ENHANCE_YOUR_CALM"),
        ),
    ] {
        let (mut client, _) = open(2, b"");
        assert_eq!(read(&mut client, &bytes), Err(expected), "{name}");
    }
    let mut client = Client::new(LIMITS);
    assert_eq!(read(&mut client, b"HTTP/1.1 400 Bad Request\r\n\r\n"), Err(Http2Error::Http1));
    assert_eq!(read(&mut client, &frame(PING, 0, 0, b"12345678")), Err(Http2Error::Preface));
}

/// Claim: no bytes make it panic or hold more than it may.
#[test]
fn arbitrary_bytes() {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for _ in 0..20_000 {
        let (mut client, _) = open(3, b"body");
        let payload: Vec<u8> = (0..next() % 40).map(|_| next()).collect();
        let stream = u32::from(next() % 8);
        let bytes = frame(next() % 11, next(), stream, &payload);
        let _ = read(&mut client, &bytes);
    }
}

/// Claim: what still comes of a request that was given up, headers, body and trailers, harms no other, and a table entry that
/// stands in them is there for those that follow.
#[test]
fn answers_to_what_was_given_up() {
    let (mut client, _) = open(2, b"");
    client.give_up(0);
    // A literal with indexing: `a: b` becomes the first entry of the dynamic table.
    let trailer = b"\x40\x01a\x01b";
    let late = [
        frame(HEADERS, END_HEADERS, 1, &block("200", &[])),
        frame(DATA, 0, 1, b"late"),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, trailer),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &[&block("200", &[])[..], b"\xbe"].concat()),
    ]
    .concat();
    let mut said = Vec::new();
    let mut parts = |tag, told: Told<'_>| {
        said.push(match told {
            Told::Part { .. } => format!("{tag}: a part"),
            Told::End(Ended::Answered(answer)) => {
                format!("{tag}: {}", String::from_utf8_lossy(answer.head))
            }
            Told::End(Ended::Reset { .. }) => format!("{tag}: reset"),
        });
        true
    };
    client.read_parts(&late, &mut Vec::new(), &mut parts).unwrap();
    assert_eq!(said, ["1: \r\na: b"]);
}

/// Claim: parts are told as they arrive, with what came before them, and trailers apart from headers.
#[test]
fn parts_and_trailers() {
    let (mut client, _) = open(1, b"");
    let mut trailer = Vec::new();
    write_field(&mut trailer, "x-sum", b"3");
    let whole = [
        frame(HEADERS, END_HEADERS, 1, &block("200", &[("x", "y")])),
        frame(DATA, 0, 1, b"ab"),
        frame(DATA, 0, 1, b"c"),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailer),
    ]
    .concat();
    let mut said = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "|");
    let mut parts = |_, told: Told<'_>| {
        said.push(match told {
            Told::Part { status, head, body } => format!("{status} {} {}", text(head), text(body)),
            Told::End(Ended::Answered(answer)) => text(answer.trailers),
            Told::End(Ended::Reset { .. }) => panic!("nothing was reset"),
        });
        true
    };
    client.read_parts(&whole, &mut Vec::new(), &mut parts).unwrap();
    assert_eq!(said, ["200 |x: y ab", "200 |x: y c", "|x-sum: 3"]);
}
