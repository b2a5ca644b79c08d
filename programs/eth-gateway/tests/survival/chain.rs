//! A chain that changes while the gateway serves it: another chain in the node's place, a second node, and anvil, which reorganises.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::programs::{Answer, Program, connect};
use super::tools::program;

/// A development node that can be told to reorganise.
struct Anvil {
    child: Child,
    address: SocketAddr,
}

impl Drop for Anvil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Anvil {
    fn start(words: &[&str]) -> Option<Self> {
        let Some(anvil) = program("anvil") else {
            eprintln!(
                "SKIPPED a chain that reorganises: anvil is not installed (assay doctor --install anvil)"
            );
            return None;
        };
        let mut child = Command::new(anvil)
            .args([&["--port", "0", "--host", "127.0.0.1"], words].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("anvil starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let address =
            lines.find_map(|line| line.ok()?.strip_prefix("Listening on ")?.trim().parse().ok());
        // It must be able to say more, which is not read.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, address: address.expect("it says where it listens") })
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        rpc(self.address, "/", method, params)["result"].clone()
    }

    /// Pays and waits for the block: the node gives the hash before it has made one.
    fn pay(&self, to: &str, wei: &str) -> String {
        let from = self.ask("eth_accounts", json!([]))[0].clone();
        let payment = json!([{ "from": from, "to": to, "value": wei }]);
        let hash = self.ask("eth_sendTransaction", payment);
        for _ in 0..1_000 {
            if !self.ask("eth_getTransactionReceipt", json!([hash])).is_null() {
                return hash.as_str().expect("a hash").to_owned();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{hash} is in no block");
    }

    fn hash_at(&self, height: u64) -> Value {
        self.ask("eth_getBlockByNumber", json!([format!("0x{height:x}"), false]))["hash"].clone()
    }

    fn height(&self) -> u64 {
        let text = self.ask("eth_blockNumber", json!([]));
        u64::from_str_radix(&text.as_str().expect("a number")[2..], 16).expect("a number")
    }
}

/// One call of JSON-RPC.
fn rpc(address: SocketAddr, path: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut stream = connect(address);
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    serde_json::from_str(&Answer::read(&mut stream).body).expect("JSON")
}

fn json_at(gateway: &Program, path: &str) -> Value {
    serde_json::from_str(&gateway.get(path).body).expect("JSON")
}

/// Claim: after a reorganisation of the last block, and of more than a hundred, nothing of the branch that is gone is said:
/// no block, balance, transaction or receipt; neither after the chain was set back and grew to the same height again.
#[test]
fn a_reorganisation() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    let gateway = Program::gateway(anvil.address, &[]);
    let dead = "0x000000000000000000000000000000000000dead";
    let says = |hash: &str, height: u64| {
        (
            gateway.get(&format!("/balance/{dead}")).body,
            gateway.get(&format!("/transaction/{hash}")).status,
            gateway.get(&format!("/transaction/{hash}/receipt")).status,
            json_at(&gateway, &format!("/block/{height}"))["hash"].clone(),
            json_at(&gateway, "/block/last")["hash"].clone(),
        )
    };
    let node_says = |hash: &str, height: u64| {
        let balance = anvil.ask("eth_getBalance", json!([dead, "latest"]));
        let balance = u128::from_str_radix(&balance.as_str().expect("wei")[2..], 16).expect("wei");
        let status =
            |method: &str| if anvil.ask(method, json!([hash])).is_null() { 404 } else { 200 };
        (
            format!("{{\"balance\":{balance}}}"),
            status("eth_getTransactionByHash"),
            status("eth_getTransactionReceipt"),
            anvil.hash_at(height),
            anvil.hash_at(anvil.height()),
        )
    };
    anvil.ask("anvil_mine", json!(["0x5"]));
    let hash = anvil.pay(dead, "0xde0b6b3a7640000");
    let height = anvil.height();
    for _ in 0..2 {
        assert_eq!(says(&hash, height), node_says(&hash, height));
    }
    anvil.ask("anvil_reorg", json!([1, []]));
    assert_eq!(anvil.height(), height);
    assert_eq!(says(&hash, height), node_says(&hash, height));
    assert_eq!(says(&hash, height).1, 404);
    let kept = anvil.ask("evm_snapshot", json!([]));
    let hash = anvil.pay(dead, "0x1");
    let height = anvil.height();
    assert_eq!(says(&hash, height).2, 200);
    anvil.ask("evm_revert", json!([kept]));
    anvil.ask("evm_mine", json!([]));
    assert_eq!(says(&hash, height), node_says(&hash, height));
    let hash = anvil.pay(dead, "0x2");
    let height = anvil.height();
    anvil.ask("anvil_mine", json!(["0x46"]));
    for _ in 0..2 {
        assert_eq!(says(&hash, height), node_says(&hash, height));
    }
    // Deeper than what this node calls final: its word was not kept, and nothing that stood on it is.
    anvil.ask("anvil_reorg", json!([72, []]));
    // A final block needs no look at the head, so the first request that needs one finds it out.
    gateway.get("/block/last");
    assert_eq!(says(&hash, height), node_says(&hash, height));
}

/// Claim: of 2,000 answers on a chain with a block a second and a reorganisation of three each three seconds none
/// contradicts what the node said both before and after.
#[test]
fn a_chain_that_keeps_reorganising() {
    let Some(anvil) = Anvil::start(&["--block-time", "1"]) else { return };
    let gateway = Program::gateway(anvil.address, &[]);
    anvil.ask("anvil_mine", json!(["0x14"]));
    let clock = clock::Clock::start();
    let (mut compared, mut wrong, mut reorganised) = (0, Vec::new(), Duration::ZERO);
    let answers: u32 =
        std::env::var("ETH_GATEWAY_ANSWERS").map_or(400, |text| text.parse().expect("a number"));
    while compared < answers {
        if clock.now().saturating_since(clock::Instant::ZERO)
            >= reorganised + Duration::from_secs(3)
        {
            anvil.ask("anvil_reorg", json!([3, []]));
            reorganised = clock.now().saturating_since(clock::Instant::ZERO);
        }
        let head = anvil.height();
        for height in head.saturating_sub(4)..=head {
            let before = anvil.hash_at(height);
            let said = json_at(&gateway, &format!("/block/{height}"))["hash"].clone();
            if before.is_null() || before != anvil.hash_at(height) {
                continue;
            }
            compared += 1;
            if said != before {
                wrong.push((height, said, before));
            }
        }
    }
    println!("{} of {compared} answers are wrong", wrong.len());
    assert!(wrong.is_empty(), "{} of {compared}: {wrong:?}", wrong.len());
}

/// Claim: a node that comes back with another chain is refused by its name, and what was kept of the first one is not mixed
/// with it.
#[test]
fn another_chain() {
    let node = Program::mock(&["--seed", "1"]);
    let at = node.address;
    let gateway = Program::gateway(at, &[]);
    let first = gateway.get("/block/7");
    node.kill();
    let _other = Program::start(&["mock", "--listen", &at.to_string(), "--seed", "2"]);
    let refused = gateway.get("/block/last");
    assert_eq!(refused.says(), (502, "other_chain"), "{refused:?}");
    assert_eq!(
        gateway.get("/balance/0x0000000000000000000000000000000000000001").says().1,
        "other_chain"
    );
    assert_eq!(gateway.get("/block/7").body, first.body);
    assert_eq!(gateway.get("/ready").says().0, 502);
}

/// Claim: while the first of two nodes is gone the second one answers.
#[test]
fn a_second_node() {
    let (first, second) = (Program::mock(&[]), Program::mock(&[]));
    let both = format!("http://{}/,http://{}/", first.address, second.address);
    let gateway = Program::start(&["--listen", "127.0.0.1:0", "--upstream", &both]);
    let balance = |number: u32| gateway.get(&format!("/balance/0x{number:040x}")).status;
    assert_eq!((balance(1), second.calls()), (200, 0));
    first.kill();
    assert_eq!((balance(2), balance(3)), (200, 200));
    assert!(second.calls() > 0 && gateway.metric("eth_gateway_failovers_total") > 0.5);
}

/// Claim: forty searches that take the node a second each leave balances at their own latency; and where answers of a batch
/// are too large together each of them is given.
#[test]
fn slow_searches_beside() {
    let node = Program::mock(&["--log-latency", "1s", "--blocks", "500"]);
    let gateway = Program::gateway(node.address, &["--latest-age", "10s"]);
    let topic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    gateway.get("/block/last");
    let searches: Vec<_> = (1..41)
        .map(|first| {
            let mut stream = connect(gateway.address);
            super::ask(&mut stream, &format!("/log/0x{first:x}/0x{:x}/{topic}", first + 4));
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    let (mut nodes, mut answered) = (Vec::new(), 0);
    for number in 0..20 {
        let answer = gateway.get(&format!("/balance/0x{number:040x}"));
        answered += u32::from(answer.status == 200);
        let timing = &answer.headers["server-timing"];
        let node = timing.split("node;dur=").nth(1).map_or(0.0, |ms| ms.parse().expect("ms"));
        nodes.push(node);
    }
    nodes.sort_by(f64::total_cmp);
    assert_eq!(answered, 20);
    // The searches would take it forty seconds one after the other, and one of them a second.
    assert!(nodes[10] < 500.0, "{nodes:?}");
    drop(searches);
}

/// Claim: JSON-RPC passes through with what is kept, in batches too, and methods of the node's owner do not; a client over
/// its allowance is told when to come again; an answer that the client has is not sent again.
#[test]
fn json_rpc_and_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.toml");
    std::fs::write(&keys, "[tester]\nkey = \"secret\"\nrps = 5\n").expect("room");
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &[]);
    let block = rpc(gateway.address, "/rpc", "eth_getBlockByNumber", json!(["0x7", false]));
    assert_eq!(block["id"], 1);
    assert_eq!(block["result"], json_at(&gateway, "/block/7"));
    let calls = node.calls();
    rpc(gateway.address, "/rpc", "eth_getBlockByNumber", json!(["0x7", false]));
    assert_eq!(node.calls(), calls, "it was kept");
    let of_owner = ["debug_traceTransaction", "personal_sign", "mock_fault"];
    for method in ["eth_sendTransaction", "eth_resend"].into_iter().chain(of_owner) {
        let refused = rpc(gateway.address, "/rpc", method, json!([]));
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
        // By the gateway, and not by a node that has no such method.
        let words = refused["error"]["message"].as_str().expect("words");
        assert!(words.ends_with("is not served here"), "{method}: {refused}");
    }
    assert_eq!(rpc(gateway.address, "/rpc", "net_version", json!([]))["error"]["code"], -32601);
    let limited = Program::gateway(node.address, &["--keys", keys.to_str().expect("UTF-8")]);
    assert_eq!(limited.get("/block/7").says(), (401, "no_key"));
    let with_key = |path: &str, more: &str| {
        let mut stream = connect(limited.address);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: gateway\r\nx-api-key: secret\r\n{more}connection: close\r\n\r\n"
        )
        .expect("it reads");
        Answer::read(&mut stream)
    };
    let first = with_key("/block/last", "");
    assert!(first.headers["cache-control"].starts_with("private"), "{first:?}");
    let known = format!("if-none-match: {}\r\n", first.headers["etag"]);
    let again = with_key("/block/last", &known);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let over = (0..50).map(|_| with_key("/block/7", "")).find(|answer| answer.status == 429);
    let over = over.expect("five a second are allowed");
    assert_eq!(over.says(), (429, "over"));
    assert!(over.headers.contains_key("retry-after"));
}
