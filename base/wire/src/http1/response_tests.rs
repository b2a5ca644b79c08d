//! What the reader of answers finds, by dialogue: bytes in, findings out.

use super::fuzz::{fuzz_request, fuzz_response};
use super::*;

fn read(text: &str, asked: Asked) -> Result<(Response, String, usize), HttpError> {
    let limits = Limits { body_kept_max: 1000, ..Limits::CLIENT };
    let mut reader = ResponseReader::new(limits);
    let progress = reader.read(text.as_bytes(), asked)?;
    let response = match progress.response {
        Some(response) => response,
        None => reader.closed()?.ok_or(HttpError::Truncated)?,
    };
    let body = String::from_utf8(reader.body().to_vec()).unwrap();
    Ok((response, body, progress.used))
}

/// Claim: every way to delimit a body gives its bytes, its length and whether the connection lives on.
#[test]
fn framings() {
    let other = Asked::Other;
    for (text, asked, status, body, keep_alive) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", other, 200, "hello", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", other, 200, "hello", true),
        ("HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", other, 200, "", true),
        (
            "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
            other,
            404,
            "no",
            false,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", other, 200, "ok", false),
        (
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
            other,
            200,
            "ok",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", other, 200, "until the end", false),
        ("HTTP/1.1 200 OK\r\n\r\n", other, 200, "", false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n\r\n",
            other,
            200,
            "abc0123456789",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1 \r\nz\r\n00\r\nDigest: a\r\nX: \r\n\r\n",
            other,
            200,
            "z",
            true,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", other, 204, "", true),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", other, 304, "", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", Asked::Head, 200, "", true),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            other,
            200,
            "x",
            true,
        ),
    ] {
        let (response, kept, used) = read(text, asked).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        let expected = Response { status, body_bytes: body.len() as u64, keep_alive };
        assert_eq!((response, kept.as_str(), used), (expected, body, text.len()), "{text:?}");
    }
}

/// Claim: what is malformed, ambiguous or beyond a bound is refused, each for its own reason.
#[test]
fn refusals() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(129));
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(70_000));
    let line =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "x".repeat(5000));
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
    let chunked =
        |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let with = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n");
    for (text, expected) in [
        ("SSH-2.0-OpenSSH\r\n\r\n".to_owned(), HttpError::StatusLine),
        ("HTTP/2 200 OK\r\n\r\n".to_owned(), HttpError::StatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n".to_owned(), HttpError::StatusLine),
        ("HTTP/1.1 099 Low\r\n\r\n".to_owned(), HttpError::StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(), HttpError::StatusLine),
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n".to_owned(), HttpError::BareLineFeed),
        ("\nHTTP/1.1 200 OK\r\n\r\n".to_owned(), HttpError::BareLineFeed),
        (with("A b: c"), HttpError::HeaderLine),
        (with("A : c"), HttpError::HeaderLine),
        (with("A: b\r\n folded"), HttpError::HeaderLine),
        (with("Content-Length: 1\r\nTransfer-Encoding: chunked"), HttpError::AmbiguousLength),
        (with("Content-Length: 1\r\nContent-Length: 2"), HttpError::ConflictingLengths),
        (with("Content-Length: 1, 2"), HttpError::ConflictingLengths),
        (with("Content-Length: -1"), HttpError::ContentLength),
        (with("Content-Length: 0x1"), HttpError::ContentLength),
        (with("Content-Length:"), HttpError::ContentLength),
        (with("Content-Length: 99999999999999999999"), HttpError::ContentLength),
        (with("Content-Length: 4294967296"), HttpError::BodyTooLong(4_294_967_295)),
        (with("Transfer-Encoding: identity"), HttpError::TransferEncoding),
        (with("Transfer-Encoding: chunked, gzip"), HttpError::TransferEncoding),
        (with("Transfer-Encoding: chunked, chunked"), HttpError::TransferEncoding),
        (with("Transfer-Encoding: xchunked"), HttpError::TransferEncoding),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            HttpError::TransferEncoding,
        ),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(), HttpError::SwitchingProtocols),
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nno".to_owned(),
            HttpError::BodyAnnounced(204),
        ),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            HttpError::BodyAnnounced(204),
        ),
        (
            "HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\n".to_owned(),
            HttpError::BodyAnnounced(100),
        ),
        (many, HttpError::TooManyHeaders(128)),
        (long, HttpError::HeadTooLong(65_536)),
        (line, HttpError::ChunkLineTooLong(4096)),
        (interim, HttpError::TooManyInterim(16)),
        (chunked("g\r\n"), HttpError::ChunkSize),
        (chunked("\r\n"), HttpError::ChunkSize),
        (chunked("-1\r\n"), HttpError::ChunkSize),
        (chunked("1\n"), HttpError::ChunkSize),
        (chunked("1;a\nb"), HttpError::ChunkSize),
        (chunked("1 2\r\n"), HttpError::ChunkSize),
        (chunked("1000000000000000\r\n"), HttpError::ChunkSize),
        (chunked("FFFFFFFFF\r\n"), HttpError::BodyTooLong(4_294_967_295)),
        (chunked("1\r\nab\r\n"), HttpError::ChunkEnd),
        (chunked("0\r\nno colon\r\n\r\n"), HttpError::Trailers(16_384)),
        (chunked("0\r\nA: b\n\r\n"), HttpError::Trailers(16_384)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell".to_owned(), HttpError::Truncated),
        ("HTTP/1.1 200 OK\r\nContent-Le".to_owned(), HttpError::Truncated),
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), HttpError::Truncated),
        (chunked("0\r\n"), HttpError::Truncated),
    ] {
        assert_eq!(read(&text, Asked::Other), Err(expected), "{:?}", &text[..text.len().min(80)]);
        let mut input = vec![0, 7];
        input.extend_from_slice(text.as_bytes());
        fuzz_response(&input);
    }
}

/// Claim: the same head but for its date, and but for an id that was seen to vary, is recognised; a head that
/// differs anywhere else is parsed and its own meaning is found.
#[test]
fn a_learned_head_is_only_taken_for_itself() {
    let answer = |date: &str, id: &str, length: usize| {
        let body = "x".repeat(length);
        format!(
            "HTTP/1.1 200 OK\r\nDate: {date}\r\nX-Id: {id}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let mut reader = ResponseReader::new(Limits::CLIENT);
    let monday = "Mon, 01 Jan 2029 00:00:00 GMT";
    for (date, id, length, learned) in [
        (monday, "aaaa", 5, 0),
        (monday, "aaaa", 5, 1),
        ("Tue, 02 Jan 2029 00:00:01 GMT", "aaaa", 5, 2),
        (monday, "bbbb", 5, 2), // the id differs for the first time: parsed, and known to vary from now on
        (monday, "cccc", 5, 3),
        (monday, "dddd", 6, 3), // another length: parsed
        (monday, "ddddd", 6, 3),
        (monday, "ddddd", 6, 4),
    ] {
        let text = answer(date, id, length);
        let progress = reader.read(text.as_bytes(), Asked::Other).unwrap();
        assert_eq!(progress.response.map(|r| r.body_bytes), Some(length as u64));
        assert_eq!(progress.used, text.len());
        assert_eq!(reader.learned_count(), learned, "{date} {id} {length}");
    }
}

/// Claim: the value of the header that is watched is that of the last head, recognised or parsed; a head that has it not,
/// or twice, has none.
#[test]
fn one_header_is_watched() {
    let mut reader = ResponseReader::new(Limits::CLIENT).watching("X-Id");
    for (line, expected, learned) in [
        ("x-id: aaaa\r\n", Some("aaaa"), 0),
        ("x-id: bbbb\r\n", Some("bbbb"), 0), // it differs for the first time: parsed
        ("x-id: cccc\r\n", Some("cccc"), 1),
        ("X-ID: dddd\r\n", Some("dddd"), 1),
        ("x-id:\r\n", Some(""), 1),
        ("", None, 1),
        ("x-id: a\r\nx-id: a\r\n", None, 1),
        ("x-other: a\r\n", None, 1),
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{line}Content-Length: 0\r\n\r\n");
        reader.read(text.as_bytes(), Asked::Other).unwrap();
        assert_eq!(reader.watched(), expected.map(str::as_bytes), "{line:?}");
        assert_eq!(reader.learned_count(), learned, "{line:?}");
    }
}

/// Claim: bytes in a varying value that would end the line or the head are never skipped over.
#[test]
fn a_head_hidden_in_a_date_is_found() {
    let plain =
        "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2029 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n";
    let hidden = plain.replace("01 Jan 2029 00:00:00 GMT", "01\r\nTransfer-Encoding: x");
    assert_eq!(hidden.len(), plain.len(), "the trap has the shape of the learned head");
    let mut reader = ResponseReader::new(Limits::CLIENT);
    reader.read(plain.as_bytes(), Asked::Other).unwrap();
    assert_eq!(reader.read(hidden.as_bytes(), Asked::Other), Err(HttpError::AmbiguousLength));
}

/// Claim: a head that was refused is refused again on the next connection, and what was learned before it
/// still means what it meant.
#[test]
fn a_refused_head_is_not_learned() {
    let good = b"HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n";
    let bad = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut reader = ResponseReader::new(Limits::CLIENT);
    for _ in 0..3 {
        reader.reset();
        reader.read(good, Asked::Other).unwrap();
        assert_eq!((reader.location(), reader.reason()), ("/a", "Found"));
        assert_eq!(reader.read(bad, Asked::Other), Err(HttpError::AmbiguousLength));
    }
}

/// Claim: a body is counted in full and kept up to the bound.
#[test]
fn bodies_are_kept_up_to_the_bound() {
    let mut reader = ResponseReader::new(Limits { body_kept_max: 4, ..Limits::CLIENT });
    let text =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    let response = reader.read(text, Asked::Other).unwrap().response.unwrap();
    assert_eq!((response.body_bytes, reader.body()), (6, &b"abcd"[..]));
}

/// Claim: answers behind one another are told apart, HEAD among them.
#[test]
fn pipelined_answers() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx";
    let mut reader = ResponseReader::new(Limits::CLIENT);
    let first = reader.read(text, Asked::Head).unwrap();
    assert_eq!(first.response.map(|r| (r.status, r.body_bytes)), Some((200, 0)));
    let second = reader.read(&text[first.used..], Asked::Other).unwrap();
    assert_eq!(second.response.map(|r| (r.status, r.body_bytes)), Some((404, 1)));
    assert_eq!(reader.reason(), "Not Found");
    assert_eq!(first.used + second.used, text.len());
}

/// Claim: mutated dialogues never panic, and give the same findings on every cut and with or without the
/// learned head. (The same entry point is fuzzed with coverage; this keeps it honest in every test run.)
#[test]
fn mutations_agree_on_every_cut() {
    let seeds = [
        "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2029 00:00:00 GMT\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nX-Id: 1234\r\n\r\n",
        "HTTP/1.0 302 Found\r\nLocation: /a\r\n\r\nuntil the end",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).unwrap()
    };
    for _ in 0..100_000 {
        let mut input = vec![u8::try_from(next(256)).unwrap(), u8::try_from(next(256)).unwrap()];
        for _ in 0..=next(4) {
            input.extend_from_slice(seeds[next(seeds.len())].as_bytes());
        }
        for _ in 0..next(4) {
            let at = next(input.len());
            match next(3) {
                0 => input[at] = u8::try_from(next(256)).unwrap(),
                1 => drop(input.remove(at)),
                _ => input.insert(at, b"\r\n:0; aF"[next(8)]),
            }
        }
        fuzz_response(&input);
        fuzz_request(&input);
    }
}
