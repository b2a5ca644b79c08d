//! What a server may do to a client: one list of behaviours, with what must be seen of each. It is data; the adapter's own
//! tests play it to sessions, and the end-to-end tests to the built binary with each driver.

/// One step of a behaviour.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Says this.
    Say(&'static [u8]),
    /// Says this byte by byte, with so many milliseconds between.
    Drip(&'static [u8], u64),
    /// Says the first, and then the second without end.
    Flood(&'static [u8], &'static [u8]),
    /// Waits for so many milliseconds.
    Wait(u64),
    /// Keeps the connection and says nothing more.
    Hush,
    /// Closes it in good order.
    Close,
    /// Resets it.
    Reset,
}

/// What must be seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Bytes that are not of the protocol, or that nobody asked for.
    Broken,
    /// Requests that have no good answer.
    Failed,
    /// Nothing: it is strange, and right.
    Fine,
}

/// A behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    pub name: &'static str,
    /// What the server does, in a sentence without its subject.
    pub does: &'static str,
    /// When a connection is there.
    pub greets: &'static [Step],
    /// When a request is there.
    pub answers: &'static [Step],
    pub seen: Seen,
}

use Seen::{Broken, Failed, Fine};
use Step::{Close, Drip, Flood, Hush, Reset, Say, Wait};

/// All of them.
#[rustfmt::skip]
pub const BEHAVIOURS: &[Behaviour] = &[
    Behaviour { name: "garbage", does: "answers bytes of no protocol", greets: &[], answers: &[Say(b"hello\r\n\r\n")], seen: Broken },
    Behaviour { name: "binary", does: "answers bytes that are no text", greets: &[], answers: &[Say(b"\x00\xff\xfe\x01\r\n\r\n")], seen: Broken },
    Behaviour { name: "another protocol", does: "answers as an SSH server", greets: &[], answers: &[Say(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")], seen: Broken },
    Behaviour { name: "HTTP/2", does: "answers with the frames of HTTP/2", greets: &[], answers: &[Say(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00d\n\n")], seen: Broken },
    Behaviour { name: "HTTP/0.9", does: "answers a body without a head", greets: &[], answers: &[Say(b"<html>\r\nok</html>\r\n\r\n"), Close], seen: Broken },
    Behaviour { name: "no version", does: "leaves the version out of its status line", greets: &[], answers: &[Say(b"200 OK\r\nContent-Length: 0\r\n\r\n")], seen: Broken },
    Behaviour { name: "status of two digits", does: "has a status that is none", greets: &[], answers: &[Say(b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n")], seen: Broken },
    Behaviour { name: "status 099", does: "has a status below 100", greets: &[], answers: &[Say(b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n")], seen: Broken },
    Behaviour { name: "empty line first", does: "begins with an empty line", greets: &[], answers: &[Say(b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "bare line feeds", does: "ends its lines without a carriage return", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")], seen: Broken },
    Behaviour { name: "space before the colon", does: "has a space in a header name", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "folded header", does: "folds a header line", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "header without a colon", does: "has a header line that is none", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "control bytes in a header", does: "has a control byte in a value", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "length and chunks", does: "announces a length and chunks", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")], seen: Broken },
    Behaviour { name: "two lengths", does: "announces two lengths", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok")], seen: Broken },
    Behaviour { name: "negative length", does: "announces a negative length", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "length in hexadecimal", does: "announces a length that is no number", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "length of 20 digits", does: "announces more bytes than there are", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok")], seen: Broken },
    Behaviour { name: "length of 5 GiB", does: "announces a body beyond the bound", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\nok")], seen: Broken },
    Behaviour { name: "unknown coding", does: "announces a coding that cannot be read", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok")], seen: Broken },
    Behaviour { name: "chunks in HTTP/1.0", does: "announces chunks where there are none", greets: &[], answers: &[Say(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")], seen: Broken },
    Behaviour { name: "chunk size of letters", does: "has a chunk without a size", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n")], seen: Broken },
    Behaviour { name: "chunk size of 17 digits", does: "has a chunk size that overflows", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nok\r\n0\r\n\r\n")], seen: Broken },
    Behaviour { name: "chunk too long", does: "has a chunk longer than its size", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n")], seen: Broken },
    Behaviour { name: "chunk without its end", does: "has no line end behind a chunk", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok0\r\n\r\n")], seen: Broken },
    Behaviour { name: "trailer of nonsense", does: "has a trailer that is none", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nnonsense\r\n\r\n")], seen: Broken },
    Behaviour { name: "switched protocols", does: "switches to a protocol that nobody asked for", greets: &[], answers: &[Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")], seen: Broken },
    Behaviour { name: "body announced with a 204", does: "announces a body where there is none", greets: &[], answers: &[Say(b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "body behind a 204", does: "sends a body where there is none", greets: &[], answers: &[Say(b"HTTP/1.1 204 No Content\r\n\r\nok")], seen: Broken },
    Behaviour { name: "body behind a 304", does: "sends a body behind a 304", greets: &[], answers: &[Say(b"HTTP/1.1 304 Not Modified\r\n\r\nok")], seen: Broken },
    Behaviour { name: "body longer than its length", does: "sends more than it announced", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokokok")], seen: Broken },
    Behaviour { name: "one byte more", does: "sends one byte more than it announced", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!")], seen: Broken },
    Behaviour { name: "a line more", does: "sends a line end behind its body", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n")], seen: Broken },
    Behaviour { name: "two answers", does: "answers twice at once", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "ten answers", does: "answers ten times at once", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "a second answer later", does: "answers again after a while", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), Wait(60), Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "an answer behind the last", does: "answers again on a connection that it closes", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), Close], seen: Broken },
    Behaviour { name: "an answer before the request", does: "answers before anybody asked", greets: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "a greeting", does: "greets as a mail server does", greets: &[Say(b"220 mail ESMTP\r\n")], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "seventeen interim answers", does: "never comes from its interim answers to the answer", greets: &[], answers: &[Say(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "two hundred headers", does: "has more header lines than are read", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "an endless header", does: "sends a header without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nX: ", b"xxxxxxxxxxxxxxxx")], seen: Broken },
    Behaviour { name: "endless header lines", does: "sends header lines without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n")], seen: Broken },
    Behaviour { name: "an endless status line", does: "sends a status line without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 ", b"xxxxxxxxxxxxxxxx")], seen: Broken },
    Behaviour { name: "endless interim answers", does: "sends interim answers without end", greets: &[], answers: &[Flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n")], seen: Broken },
    Behaviour { name: "an endless chunk line", does: "sends a chunk extension without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"xxxxxxxxxxxxxxxx")], seen: Broken },
    Behaviour { name: "endless trailers", does: "sends trailers without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n")], seen: Broken },
    Behaviour { name: "endless answers", does: "answers without end", greets: &[], answers: &[Flood(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Broken },
    Behaviour { name: "endless garbage", does: "sends garbage without end", greets: &[], answers: &[Flood(b"", b"garbage\r\n")], seen: Broken },
    Behaviour { name: "an endless body behind its end", does: "sends a body without end behind one that was announced", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"okokokokokokokok")], seen: Broken },
    Behaviour { name: "silence", does: "takes the request and says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half a head", does: "stops in the middle of the head", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Le"), Hush], seen: Failed },
    Behaviour { name: "half a body", does: "stops in the middle of the body", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"), Hush], seen: Failed },
    Behaviour { name: "half a chunk", does: "stops in the middle of a chunk", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok"), Hush], seen: Failed },
    Behaviour { name: "no last chunk", does: "never sends the last chunk", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), Hush], seen: Failed },
    Behaviour { name: "an interim answer alone", does: "sends an interim answer and no answer", greets: &[], answers: &[Say(b"HTTP/1.1 100 Continue\r\n\r\n"), Hush], seen: Failed },
    Behaviour { name: "closed without an answer", does: "closes instead of answering", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "closed in the head", does: "closes in the middle of the head", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nConte"), Close], seen: Failed },
    Behaviour { name: "closed in the body", does: "closes in the middle of the body", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"), Close], seen: Failed },
    Behaviour { name: "closed in a chunk", does: "closes in the middle of a chunk", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok"), Close], seen: Failed },
    Behaviour { name: "reset without an answer", does: "resets instead of answering", greets: &[], answers: &[Reset], seen: Failed },
    Behaviour { name: "reset in the body", does: "resets in the middle of the body", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"), Wait(20), Reset], seen: Failed },
    Behaviour { name: "a head byte by byte without end", does: "drips a head so slowly that it never comes", greets: &[], answers: &[Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 40)], seen: Failed },
    Behaviour { name: "an endless body in chunks", does: "sends chunks without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nokok\r\n")], seen: Failed },
    Behaviour { name: "an endless body in tiny chunks", does: "sends chunks of a byte without end", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\no\r\n")], seen: Failed },
    Behaviour { name: "an endless body until the close", does: "sends a body that only the end of the connection ends", greets: &[], answers: &[Flood(b"HTTP/1.1 200 OK\r\n\r\n", b"okokokokokokokok")], seen: Failed },
    Behaviour { name: "500", does: "answers 500", greets: &[], answers: &[Say(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")], seen: Failed },
    Behaviour { name: "503 and closed", does: "answers 503 and closes", greets: &[], answers: &[Say(b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), Close], seen: Failed },
    Behaviour { name: "byte by byte", does: "drips a good answer", greets: &[], answers: &[Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1)], seen: Fine },
    Behaviour { name: "interim answers first", does: "sends interim answers before the answer", greets: &[], answers: &[Say(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], seen: Fine },
    Behaviour { name: "chunks with extensions", does: "has extensions and trailers", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nDigest: x\r\n\r\n")], seen: Fine },
    Behaviour { name: "closed behind each answer", does: "closes behind its answer, and says so", greets: &[], answers: &[Say(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), Close], seen: Fine },
    Behaviour { name: "HTTP/1.0", does: "answers as HTTP/1.0 does, until the close", greets: &[], answers: &[Say(b"HTTP/1.0 200 OK\r\n\r\nok"), Close], seen: Fine },
    Behaviour { name: "no reason", does: "leaves the reason phrase out", greets: &[], answers: &[Say(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok")], seen: Fine },
];
