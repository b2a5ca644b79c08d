//! What a server that speaks JSON over WebSocket (RFC 6455) may do to whoever listens, before a word of its own protocol is
//! said: lists for [`hostile_conformance`](super::hostile_conformance), to which an adapter adds what its words allow.

use super::Behaviour;
use super::Seen::{Broken, BrokenBehind, Failed, Fine};
use super::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};

/// Before the connection speaks WebSocket: nothing is submitted, whatever is said.
#[rustfmt::skip]
pub const HANDSHAKES: &[Behaviour<'static>] = &[
    Behaviour { name: "another protocol", does: "greets as an SSH server", greets: &[Say(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "no WebSocket", does: "answers as a web server does", greets: &[Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")], answers: &[], seen: Broken },
    Behaviour { name: "not there", does: "answers that there is no such thing", greets: &[Say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "somewhere else", does: "sends the client elsewhere", greets: &[Say(b"HTTP/1.1 302 Found\r\nLocation: /ws\r\n\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "no key", does: "switches without a proof", greets: &[Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "another key", does: "switches with another's proof", greets: &[Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "another upgrade", does: "switches to something else", greets: &[Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "an endless head", does: "sends a head without end", greets: &[Flood(b"HTTP/1.1 101 Switching Protocols\r\n", b"A: b\r\n")], answers: &[], seen: Broken },
    Behaviour { name: "an endless header", does: "sends a header without end", greets: &[Flood(b"HTTP/1.1 101 Switching Protocols\r\nX: ", b"xxxxxxxxxxxxxxxx")], answers: &[], seen: Broken },
    Behaviour { name: "half a head", does: "stops in the middle of the head", greets: &[Say(b"HTTP/1.1 101 Swi"), Hush], answers: &[], seen: Failed },
    Behaviour { name: "closed at once", does: "closes instead of switching", greets: &[Close], answers: &[], seen: Failed },
    Behaviour { name: "a masked frame at once", does: "masks its first frame", greets: &[Right, Say(b"\x81\x81\x01\x02\x03\x04x")], answers: &[], seen: Broken },
];

/// Around the right answer to a question.
#[rustfmt::skip]
pub const AROUND: &[Behaviour<'static>] = &[
    Behaviour { name: "two replies", does: "answers twice", greets: &[], answers: &[Right, Right], seen: BrokenBehind },
    Behaviour { name: "a second reply later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
    Behaviour { name: "garbage behind", does: "goes on with bytes of no protocol", greets: &[], answers: &[Right, Say(b"hello\r\n")], seen: BrokenBehind },
    Behaviour { name: "a ping first", does: "pings before it answers", greets: &[], answers: &[Say(b"\x89\x02hi"), Right, Say(b"\x8a\x02hi")], seen: Fine },
    Behaviour { name: "dripped pings", does: "pings byte by byte", greets: &[], answers: &[Drip(b"\x89\x02hi", 1), Right], seen: Fine },
];

/// Frames that no node sends; they mean the same to whoever listens.
#[rustfmt::skip]
pub const FRAMES: &[Behaviour<'static>] = &[
    Behaviour { name: "a masked frame", does: "masks a frame", greets: &[], answers: &[Say(b"\x81\x82\x01\x02\x03\x04xx")], seen: Broken },
    Behaviour { name: "reserved bits", does: "sets bits that nobody agreed on", greets: &[], answers: &[Say(b"\xc1\x02{}")], seen: Broken },
    Behaviour { name: "a reserved opcode", does: "sends a frame of no kind", greets: &[], answers: &[Say(b"\x83\x02{}")], seen: Broken },
    Behaviour { name: "a reserved control frame", does: "sends a control frame of no kind", greets: &[], answers: &[Say(b"\x8b\x00")], seen: Broken },
    Behaviour { name: "a ping in pieces", does: "cuts a ping into frames", greets: &[], answers: &[Say(b"\x09\x01a\x80\x01b")], seen: Broken },
    Behaviour { name: "a long ping", does: "pings with more than may be", greets: &[], answers: &[Say(b"\x89\x7e\x00\x7e")], seen: Broken },
    Behaviour { name: "a long length", does: "writes a small length at length", greets: &[], answers: &[Say(b"\x81\x7e\x00\x02{}")], seen: Broken },
    Behaviour { name: "2^63 bytes", does: "announces more than there can be", greets: &[], answers: &[Say(b"\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00"), Hush], seen: Broken },
    Behaviour { name: "1 GiB", does: "announces more than any message has", greets: &[], answers: &[Say(b"\x81\x7f\x00\x00\x00\x00\x40\x00\x00\x00"), Hush], seen: Broken },
    Behaviour { name: "a binary message", does: "sends bytes and no text", greets: &[], answers: &[Say(b"\x82\x02{}")], seen: Broken },
    Behaviour { name: "no text", does: "sends text that is none", greets: &[], answers: &[Say(b"\x81\x02\xff\xfe")], seen: Broken },
    Behaviour { name: "more of nothing", does: "continues what was not begun", greets: &[], answers: &[Say(b"\x80\x02{}")], seen: Broken },
    Behaviour { name: "two messages mixed", does: "begins a message within another", greets: &[], answers: &[Say(b"\x01\x01{\x81\x02{}")], seen: Broken },
    Behaviour { name: "a close of one byte", does: "closes with half a reason", greets: &[], answers: &[Say(b"\x88\x01x")], seen: Broken },
    Behaviour { name: "garbage", does: "sends bytes of no protocol", greets: &[], answers: &[Say(b"hello\r\n\r\n")], seen: Broken },
    Behaviour { name: "endless garbage", does: "sends garbage without end", greets: &[], answers: &[Flood(b"", b"garbage\r\n")], seen: Broken },
    Behaviour { name: "no JSON", does: "sends text of no meaning", greets: &[], answers: &[Say(b"\x81\x05hello")], seen: Broken },
    Behaviour { name: "an empty message", does: "sends a message of nothing", greets: &[], answers: &[Say(b"\x81\x00")], seen: Broken },
    Behaviour { name: "endless empty messages", does: "sends messages of nothing without end", greets: &[], answers: &[Flood(b"", b"\x81\x00")], seen: Broken },
    Behaviour { name: "an empty object", does: "sends JSON that says nothing", greets: &[], answers: &[Say(b"\x81\x02{}")], seen: Broken },
    Behaviour { name: "a number", does: "sends JSON of another shape", greets: &[], answers: &[Say(b"\x81\x017")], seen: Broken },
    Behaviour { name: "JSON without end", does: "opens lists without end", greets: &[], answers: &[Say(DEEP)], seen: Broken },
    Behaviour { name: "silence", does: "says nothing", greets: &[], answers: &[Hush], seen: Failed },
    Behaviour { name: "half a frame", does: "stops in the middle of a frame", greets: &[], answers: &[Say(b"\x81\x10{"), Hush], seen: Failed },
    Behaviour { name: "half a message", does: "stops in the middle of a message", greets: &[], answers: &[Say(b"\x01\x01{"), Hush], seen: Failed },
    Behaviour { name: "closed in a frame", does: "closes in the middle of a frame", greets: &[], answers: &[Say(b"\x81\x10{"), Close], seen: Failed },
    Behaviour { name: "closed", does: "closes the connection", greets: &[], answers: &[Close], seen: Failed },
    Behaviour { name: "a close frame", does: "says that it closes", greets: &[], answers: &[Say(b"\x88\x02\x03\xe9"), Close], seen: Failed },
    Behaviour { name: "a frame behind the close", does: "goes on behind its last word", greets: &[], answers: &[Say(b"\x88\x02\x03\xe9\x81\x02{}")], seen: Failed },
    Behaviour { name: "endless pings", does: "asks without end whether anybody is there", greets: &[], answers: &[Flood(b"", b"\x89\x04ping")], seen: Failed },
    Behaviour { name: "endless pongs", does: "says without end that it is there", greets: &[], answers: &[Flood(b"", b"\x8a\x00")], seen: Failed },
    Behaviour { name: "a message of nothing without end", does: "goes on with frames of nothing", greets: &[], answers: &[Flood(b"\x01\x00", b"\x00\x00")], seen: Failed },
];

/// 125 lists within each other, none of which is closed.
const DEEP: &[u8] = &{
    let mut frame = [b'['; 127];
    (frame[0], frame[1]) = (0x81, 125);
    frame
};
