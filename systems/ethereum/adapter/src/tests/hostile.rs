//! What a node may do to a connection of submissions, and to an observer's: the handshake of WebSocket, its frames, and
//! the words inside of them, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed, Fine};
use sut::conformance::Step::{Close, Drip, Flood, Hush, Right, Say, Wait};
use sut::conformance::{Behaviour, Peer, Subject, hostile_conformance};
use sut::{Role, Session, System as _, Workload};

use super::peer::{accepted, head, peer, said, watched};
use super::system;

const NODE: &str = "127.0.0.1:8545";

/// The most unread bytes that a session may leave to the engine: the head of the handshake, or of a frame.
const UNREAD_MAX: usize = 16 << 10;

/// Before the connection speaks WebSocket: nothing is submitted, whatever is said.
#[rustfmt::skip]
const HANDSHAKES: &[Behaviour<'static>] = &[
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

/// Frames that no node sends; they mean the same to whoever listens.
#[rustfmt::skip]
const FRAMES: &[Behaviour<'static>] = &[
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

fn message(words: &str) -> Vec<u8> {
    let mut out = Vec::new();
    said(&mut out, words);
    out
}

/// Claim: of each behaviour a submitting session sees what must be seen, however it is cut, and says so in few words.
#[test]
#[rustfmt::skip]
fn submissions() {
    let hash = crate::hex::text(&[0xab; 32]);
    let of_another = message(&format!(r#"{{"jsonrpc":"2.0","id":77,"result":"{hash}"}}"#));
    let another_hash = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":"{hash}"}}"#));
    let no_hash = message(r#"{"jsonrpc":"2.0","id":0,"result":"0xab"}"#);
    let long = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":"0x{}"}}"#, "ab".repeat(5_000)));
    let number = message(r#"{"jsonrpc":"2.0","id":0,"result":7}"#);
    let without_id = message(&format!(r#"{{"jsonrpc":"2.0","result":"{hash}"}}"#));
    let negative = message(r#"{"jsonrpc":"2.0","id":-1,"result":"0x"}"#);
    let neither = message(r#"{"jsonrpc":"2.0","id":0}"#);
    let nothing = message(r#"{"jsonrpc":"2.0","id":0,"result":null}"#);
    let unread = message(&format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"{}"}}}}"#, "why ".repeat(5_000)));
    let refused = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":-32000,"message":"{}"}}}}"#, "no ".repeat(5_000)));
    let both = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":"{hash}","error":{{"code":-32000,"message":"no"}}}}"#));
    let strange_code = message(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-9223372036854775808,"message":"no"}}"#);
    let told = message(&head(5, 5, 4));
    let list = [
        Behaviour { name: "another's reply", does: "answers for another's transaction", greets: &[], answers: &[Say(&of_another)], seen: Broken },
        Behaviour { name: "another hash", does: "says that it took another transaction", greets: &[], answers: &[Say(&another_hash)], seen: Broken },
        Behaviour { name: "no hash", does: "answers a number for a hash", greets: &[], answers: &[Say(&no_hash)], seen: Broken },
        Behaviour { name: "a long hash", does: "answers a hash without end", greets: &[], answers: &[Say(&long)], seen: Broken },
        Behaviour { name: "no string", does: "answers a number where a hash is due", greets: &[], answers: &[Say(&number)], seen: Broken },
        Behaviour { name: "a reply to nobody", does: "answers without a number", greets: &[], answers: &[Say(&without_id)], seen: Broken },
        Behaviour { name: "a negative number", does: "answers for what has no number", greets: &[], answers: &[Say(&negative)], seen: Broken },
        Behaviour { name: "neither", does: "answers neither a result nor an error", greets: &[], answers: &[Say(&neither)], seen: Broken },
        Behaviour { name: "nothing", does: "answers nothing", greets: &[], answers: &[Say(&nothing)], seen: Broken },
        Behaviour { name: "both", does: "answers a result and an error", greets: &[], answers: &[Say(&both)], seen: Broken },
        Behaviour { name: "a long complaint", does: "complains of a request at length", greets: &[], answers: &[Say(&unread)], seen: Broken },
        Behaviour { name: "a head", does: "tells of a block to who did not ask", greets: &[], answers: &[Say(&told)], seen: Broken },
        Behaviour { name: "a long refusal", does: "refuses at length", greets: &[], answers: &[Say(&refused)], seen: Failed },
        Behaviour { name: "a strange code", does: "refuses with the lowest number that there is", greets: &[], answers: &[Say(&strange_code)], seen: Failed },
        Behaviour { name: "a reply first", does: "answers before anybody asked", greets: &[Right, Say(&of_another)], answers: &[Hush], seen: Broken },
        Behaviour { name: "two replies", does: "answers twice", greets: &[], answers: &[Right, Right], seen: BrokenBehind },
        Behaviour { name: "a second reply later", does: "answers again after a while", greets: &[], answers: &[Right, Wait(60), Right], seen: BrokenBehind },
        Behaviour { name: "a refusal behind", does: "takes its answer back", greets: &[], answers: &[Right, Say(&refused)], seen: BrokenBehind },
        Behaviour { name: "garbage behind", does: "goes on with bytes of no protocol", greets: &[], answers: &[Right, Say(b"hello\r\n")], seen: BrokenBehind },
        Behaviour { name: "a ping first", does: "pings before it answers", greets: &[], answers: &[Say(b"\x89\x02hi"), Right, Say(b"\x8a\x02hi")], seen: Fine },
        Behaviour { name: "dripped pings", does: "pings byte by byte", greets: &[], answers: &[Drip(b"\x89\x02hi", 1), Right], seen: Fine },
    ];
    let system = system(&[], &[]).unwrap();
    let session = || -> Box<dyn Session> { system.session(Role::Submit, 3, NODE.parse().unwrap(), 0) };
    let node = || -> Peer { peer(accepted) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &node, &source).ladder(2, 0);
    let all = [HANDSHAKES, FRAMES, &list].concat();
    hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
}

/// Claim: an observer sees the same of frames, and what is no block.
#[test]
#[rustfmt::skip]
fn observers() {
    let refused = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":-32601,"message":"{}"}}}}"#, "no ".repeat(5_000)));
    let no_head = message(r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{}}}"#);
    let long_height = message(&head(5, 5, 4).replace("\"0x5\"", &format!("\"0x{}\"", "5".repeat(5_000))));
    let no_hash = message(&head(5, 5, 4).replace("\"0x0505", "\"0x05"));
    let not_asked = message(r#"{"jsonrpc":"2.0","id":9,"result":[]}"#);
    let list = [
        Behaviour { name: "a long height", does: "tells of a block at a height without end", greets: &[], answers: &[Say(&long_height)], seen: Broken },
        Behaviour { name: "no hash", does: "tells of a block whose hash is none", greets: &[], answers: &[Say(&no_hash)], seen: Broken },
        Behaviour { name: "refused", does: "does not tell of its blocks, at length", greets: &[], answers: &[Say(&refused)], seen: Broken },
        Behaviour { name: "no head", does: "tells of something else", greets: &[], answers: &[Say(&no_head)], seen: Broken },
        Behaviour { name: "not asked", does: "answers what nobody asked", greets: &[], answers: &[Say(&not_asked)], seen: Broken },
    ];
    let system = system(&[], &[]).unwrap();
    let session = || -> Box<dyn Session> { system.session(Role::Observe, 7, NODE.parse().unwrap(), 0) };
    let node = || -> Peer { peer(watched) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &node, &source).ladder(2, 1).watching();
    let all = [HANDSHAKES, FRAMES, &list].concat();
    hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
}
