//! Putting something on the chain of a node that makes blocks of what comes in, and of one that is told to.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use clock::Clock;
use ethereum_adapter::Rpc;
use serde_json::{Value, json};
use wire::http1::{Limits, parse_request, write_response};

use crate::seeding::seed;

/// What a node has, and how it behaves.
#[derive(Debug, Default, PartialEq)]
struct Node {
    /// Nonces of what came and is in no block.
    pool: Vec<u64>,
    mined: u64,
    /// How many it overlooks until one more comes.
    overlooks: usize,
    /// Whether it can be told to make blocks.
    takes_orders: bool,
    /// Whether it makes them only when it is told to.
    waits: bool,
}

impl Node {
    /// Mines what continues the chain without a gap.
    fn make_block(&mut self) {
        while let Some(place) = self.pool.iter().position(|nonce| *nonce == self.mined) {
            self.pool.remove(place);
            self.mined += 1;
        }
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, i64> {
        match method {
            "eth_accounts" => Ok(json!([format!("0x{:040x}", 1)])),
            "eth_getTransactionCount" => Ok(json!(format!("0x{:x}", self.mined))),
            "eth_sendTransaction" => {
                let next = self.mined + self.pool.len() as u64;
                let nonce = params[0]["nonce"].as_str().map_or(next, |hex| {
                    u64::from_str_radix(hex.trim_start_matches("0x"), 16).unwrap()
                });
                assert!(nonce >= self.mined && !self.pool.contains(&nonce), "twice: {nonce}");
                self.pool.push(nonce);
                if !self.waits && self.pool.len() > self.overlooks {
                    self.overlooks = 0;
                    self.make_block();
                }
                Ok(json!(format!("0x{nonce:064x}")))
            }
            // As geth says of what it has not found while it may still find it.
            "eth_getTransactionReceipt" if self.mined == 0 => Err(-32000),
            "eth_getTransactionReceipt" => {
                Ok(json!({ "contractAddress": format!("0x{:040x}", 0xc0) }))
            }
            "evm_setAutomine" if self.takes_orders => {
                self.waits = params[0] == json!(false);
                Ok(json!(true))
            }
            "evm_mine" if self.takes_orders => {
                self.make_block();
                Ok(json!("0x0"))
            }
            _ => Err(-32601),
        }
    }

    fn reply(&mut self, question: &Value) -> Value {
        let id = &question["id"];
        match self.answer(question["method"].as_str().unwrap(), &question["params"]) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(code) => json!({
                "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "not now" },
            }),
        }
    }

    /// Serves one connection to its end, and gives what has become of the node.
    fn serve(mut self, stream: TcpStream) -> Self {
        serve(stream, |question| self.reply(question));
        self
    }
}

/// Serves one connection to its end.
pub(super) fn serve(mut stream: TcpStream, mut reply: impl FnMut(&Value) -> Value) {
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        while let Some(request) = parse_request(&received, &Limits::SERVER).unwrap() {
            let asked: Value = serde_json::from_slice(request.body).unwrap();
            let reply = match &asked {
                Value::Array(questions) => questions.iter().map(&mut reply).collect(),
                question => reply(question),
            };
            received.drain(..request.used);
            let mut out = Vec::new();
            write_response(&mut out, 200, &[], reply.to_string().as_bytes(), true);
            stream.write_all(&out).unwrap();
        }
        match stream.read(&mut piece) {
            Ok(count @ 1..) => received.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}

/// Seeds a chain, and gives what has become of its node.
fn seeded(node: Node, count: u64) -> (Result<(), String>, Node) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || node.serve(listener.accept().unwrap().0));
    let clock = Clock::start();
    let mut rpc = Rpc::new(address, clock);
    let done = seed(&mut rpc, count, clock);
    drop(rpc);
    (done, serving.join().unwrap())
}

/// Claim: the token and each transaction are mined, in blocks of what comes in and in blocks that the node is told to make,
/// which makes them of what comes in again afterwards.
#[test]
fn all_are_mined() {
    for takes_orders in [false, true] {
        let (done, node) = seeded(Node { takes_orders, ..Node::default() }, 120);
        assert_eq!(done, Ok(()));
        assert_eq!(node, Node { mined: 121, takes_orders, ..Node::default() });
    }
}

/// Claim: a node that overlooks the first transaction gets a payment more, and all are mined.
#[test]
fn what_is_overlooked_is_mined_with_the_next() {
    let (done, node) = seeded(Node { overlooks: 1, ..Node::default() }, 10);
    assert_eq!(done, Ok(()));
    assert_eq!(node, Node { mined: 12, ..Node::default() });
}
