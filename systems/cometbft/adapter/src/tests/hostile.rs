//! What a node may do to a connection of submissions, and to an observer's: the handshake of WebSocket, its frames, and
//! the words inside of them, played to sessions.

use model::Seed;
use serde_json::Value as Json;
use sut::conformance::Seen::{Broken, BrokenBehind, Failed};
use sut::conformance::Step::{Hush, Right, Say};
use sut::conformance::hostile_websocket::{AROUND, FRAMES, HANDSHAKES};
use sut::conformance::{Behaviour, Peer, Subject, hostile_conformance};
use sut::{Role, Session, System as _, Workload};

use super::peer::{commit_node, peer, said, subscribed, sync_node};
use super::{system, text};

const NODE: &str = "127.0.0.1:26657";

/// The most unread bytes that a session may leave to the engine: the head of the handshake, or of a frame.
const UNREAD_MAX: usize = 16 << 10;

/// How a node answers a request.
type Answers = fn(&Json) -> String;

fn message(words: &str) -> Vec<u8> {
    let mut out = Vec::new();
    said(&mut out, words);
    out
}

/// Claim: of each behaviour a submitting session sees what must be seen, with each of the three methods, however it is cut,
/// and says so in few words.
#[test]
#[rustfmt::skip]
fn submissions() {
    let of_another = message(r#"{"jsonrpc":"2.0","id":77,"result":{"code":0,"data":"","log":"","codespace":"","hash":"9465"}}"#);
    let without_id = message(r#"{"jsonrpc":"2.0","result":{"code":0}}"#);
    let negative = message(r#"{"jsonrpc":"2.0","id":-1,"result":{"code":0}}"#);
    let empty = message(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    let neither = message(r#"{"jsonrpc":"2.0","id":0}"#);
    let unread = message(&format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32700,"message":"Parse error","data":"{}"}}}}"#, "why ".repeat(5_000)));
    let refused = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":-32603,"message":"Internal error","data":"{}"}}}}"#, "no ".repeat(5_000)));
    let checked = message(r#"{"jsonrpc":"2.0","id":0,"result":{"check_tx":{"code":5},"tx_result":{"code":0}}}"#);
    let list = [
        Behaviour { name: "another's reply", does: "answers for another's transaction", greets: &[], answers: &[Say(&of_another)], seen: Broken },
        Behaviour { name: "a reply to nobody", does: "answers without a number", greets: &[], answers: &[Say(&without_id)], seen: Broken },
        Behaviour { name: "a negative number", does: "answers for what has no number", greets: &[], answers: &[Say(&negative)], seen: Broken },
        Behaviour { name: "an empty result", does: "answers nothing", greets: &[], answers: &[Say(&empty)], seen: Broken },
        Behaviour { name: "neither", does: "answers neither a result nor an error", greets: &[], answers: &[Say(&neither)], seen: Broken },
        Behaviour { name: "a long complaint", does: "complains of a request at length", greets: &[], answers: &[Say(&unread)], seen: Broken },
        Behaviour { name: "a long refusal", does: "refuses at length", greets: &[], answers: &[Say(&refused)], seen: Failed },
        Behaviour { name: "refused by the check", does: "refuses in the words of another method", greets: &[], answers: &[Say(&checked)], seen: Failed },
        Behaviour { name: "a reply first", does: "answers before anybody asked", greets: &[Right, Say(&of_another)], answers: &[Hush], seen: Broken },
        Behaviour { name: "a refusal behind", does: "takes its answer back", greets: &[], answers: &[Right, Say(&refused)], seen: BrokenBehind },
    ];
    let methods: [(&str, Answers, u8); 3] = [("sync", sync_node, 0), ("async", sync_node, 0), ("commit", commit_node, 1)];
    for (method, answer, settled_stage) in methods {
        let system = system(&[("method", text(method))], &[("size", text("100B"))]).unwrap();
        let session = || -> Box<dyn Session> { system.session(Role::Submit, 3, NODE.parse().unwrap()) };
        let node = || -> Peer { peer(answer) };
        let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
        let subject = Subject::new(&session, &node, &source).ladder(2, settled_stage);
        let all = [HANDSHAKES, FRAMES, AROUND, &list].concat();
        hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
    }
}

/// Claim: an observer sees the same of frames, and what is no block.
#[test]
#[rustfmt::skip]
fn observers() {
    let refused = message(&format!(r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":-32603,"message":"Internal error","data":"{}"}}}}"#, "no ".repeat(5_000)));
    let no_block = message(r#"{"jsonrpc":"2.0","id":0,"result":{"data":{"value":{}}}}"#);
    let block = super::peer::new_block(5, None).replace(r#""height":"5""#, &format!(r#""height":"{}""#, "5x".repeat(5_000)));
    assert!(block.len() > 5_000);
    let long_height = message(&block);
    let list = [
        Behaviour { name: "a long height", does: "tells of a block at a height without end", greets: &[], answers: &[Say(&long_height)], seen: Broken },
        Behaviour { name: "refused", does: "does not tell of its blocks, at length", greets: &[], answers: &[Say(&refused)], seen: Broken },
        Behaviour { name: "no block", does: "tells of something else", greets: &[], answers: &[Say(&no_block)], seen: Broken },
    ];
    let system = system(&[], &[]).unwrap();
    let session = || -> Box<dyn Session> { system.session(Role::Observe, 7, NODE.parse().unwrap()) };
    let node = || -> Peer { peer(subscribed) };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    let subject = Subject::new(&session, &node, &source).ladder(2, 1).watching();
    let all = [HANDSHAKES, FRAMES, &list].concat();
    hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
}
