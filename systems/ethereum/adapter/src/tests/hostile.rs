//! What a node may do to a connection of submissions, and to an observer's: the handshake of WebSocket, its frames, and
//! the words inside of them, played to sessions.

use model::Seed;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed};
use sut::conformance::Step::{Hush, Right, Say};
use sut::conformance::hostile_websocket::{AROUND, FRAMES, HANDSHAKES};
use sut::conformance::{Behaviour, Peer, Subject, hostile_conformance};
use sut::{Role, Session, System as _, Workload};

use super::peer::{accepted, head, peer, said, watched};
use super::system;

const NODE: &str = "127.0.0.1:8545";

/// The most unread bytes that a session may leave to the engine: the head of the handshake, or of a frame.
const UNREAD_MAX: usize = 16 << 10;

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
        Behaviour { name: "a refusal behind", does: "takes its answer back", greets: &[], answers: &[Right, Say(&refused)], seen: BrokenBehind },
    ];
    let system = system(&[], &[]).unwrap();
    let session = || -> Box<dyn Session> { system.session(Role::Submit, 3, NODE.parse().unwrap(), 0) };
    let node = || -> Peer { peer(accepted) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &node, &source).ladder(2, 0);
    let all = [HANDSHAKES, FRAMES, AROUND, &list].concat();
    hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
}

/// Claim: an observer sees the same of frames, and what is no block.
#[test]
#[rustfmt::skip]
fn observers() {
    let refused = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":-32601,"message":"{}"}}}}"#, "no ".repeat(5_000)));
    let no_head = message(r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{}}}"#);
    let long_height = message(&head(5, 5, 4).replace("\"0x5\"", &format!("\"0x{}\"", "5".repeat(5_000))));
    let highest = message(&head(u64::MAX, 5, 4));
    let no_hash = message(&head(5, 5, 4).replace("\"0x0505", "\"0x05"));
    let not_asked = message(r#"{"jsonrpc":"2.0","id":9,"result":[]}"#);
    let list = [
        Behaviour { name: "a long height", does: "tells of a block at a height without end", greets: &[], answers: &[Say(&long_height)], seen: Broken },
        Behaviour { name: "a highest height", does: "tells of a block at the highest number that there is", greets: &[], answers: &[Say(&highest)], seen: Broken },
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
