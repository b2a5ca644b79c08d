//! Nodes that a test plays call by call, for what the mock node does not do; and what the gateway makes of them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::programs::{Answer, Program, ask, connect};

/// A result, or an error.
type Reply = Result<Value, Value>;

/// A node that answers what the test says, and remembers what it was asked.
struct Played {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Value>>>,
}

impl Played {
    /// It is of chain 1, and answers all other calls by `answer`.
    fn start(answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let posts = Arc::new(Mutex::new(Vec::new()));
        let (answer, came) = (Arc::new(answer), Arc::clone(&posts));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, came) = (Arc::clone(&answer), Arc::clone(&came));
                // It ends with its connection.
                std::thread::spawn(move || serve(stream, &*answer, &came));
            }
        });
        Self { address, posts }
    }

    /// The posts with a call of this method.
    fn posts_of(&self, method: &str) -> Vec<Value> {
        let posts = self.posts.lock().expect("no test has failed");
        let has = |post: &&Value| calls(post).iter().any(|call| call["method"] == method);
        posts.iter().filter(has).cloned().collect()
    }
}

fn calls(post: &Value) -> &[Value] {
    post.as_array().map_or(std::slice::from_ref(post), Vec::as_slice)
}

/// Serves one connection; none where it ends or is broken.
fn serve(
    stream: TcpStream,
    answer: &dyn Fn(&str, &Value) -> Reply,
    posts: &Mutex<Vec<Value>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let post: Value = serde_json::from_slice(&body).ok()?;
        posts.lock().ok()?.push(post.clone());
        let reply = |call: &Value| {
            let (id, method) = (&call["id"], call["method"].as_str().unwrap_or_default());
            let reply = match method {
                "eth_chainId" => Ok(json!("0x1")),
                method => answer(method, &call["params"]),
            };
            match reply {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            }
        };
        let reply = match &post {
            Value::Array(calls) => calls.iter().map(reply).collect(),
            call => reply(call),
        };
        let text = reply.to_string();
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()).ok()?;
    }
}

fn post(gateway: &Program, path: &str, body: &Value) -> Answer {
    let (mut stream, body) = (connect(gateway.address), body.to_string());
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    Answer::read(&mut stream)
}

fn already_known() -> Reply {
    Err(json!({ "code": -32000, "message": "already known" }))
}

/// Claim: where the limiter refuses one of the two calls that say which chain a node is of, nothing of what came is taken
/// for the answer to a request: that is 429, and right later.
#[test]
fn a_limiter_that_counts_by_the_call() {
    let limits = Arc::new(AtomicBool::new(true));
    let limited = Arc::clone(&limits);
    let node = Played::start(move |method, _| match method {
        "eth_getBlockByNumber" if limited.load(SeqCst) => {
            let rate = json!({ "rate": { "backoff_seconds": 0.05 } });
            Err(json!({ "code": 429, "message": "Too Many Requests", "data": rate }))
        }
        "eth_getBalance" => Ok(json!("0x7")),
        _ => Ok(Value::Null),
    });
    let gateway = Program::gateway(node.address, &["--latest", "false"]);
    let balance = super::balance(1);
    let refused = gateway.get(&balance);
    assert_eq!(refused.says(), (429, "limited"), "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"));
    limits.store(false, SeqCst);
    for _ in 0..500 {
        let answer = gateway.get(&balance);
        if answer.status == 200 {
            assert_eq!(answer.body, r#"{"balance":7}"#);
            return;
        }
        assert_eq!(answer.says(), (429, "limited"), "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it is never answered");
}

/// Claim: a transaction goes to the node by itself and once, also beside a block with which it would make an answer that is
/// too large.
#[test]
fn a_transaction_is_sent_once() {
    let hash = format!("0x{:064x}", 9);
    let (sent, is_sent) = (json!(hash), AtomicBool::new(false));
    let node = Played::start(move |method, params| match method {
        "eth_gasPrice" => {
            std::thread::sleep(Duration::from_secs(1));
            Ok(json!("0x1"))
        }
        "eth_getBlockByNumber" if params[0] == "0x7" => Ok(json!({ "filler": "x".repeat(600) })),
        "eth_sendRawTransaction" if is_sent.swap(true, SeqCst) => already_known(),
        "eth_sendRawTransaction" => Ok(sent.clone()),
        _ => Ok(Value::Null),
    });
    // Block and hash fit alone, and as one client's results, and not as one answer.
    let words = ["--latest", "false", "--batch-linger", "300ms", "--upstream-bytes-max", "720"];
    let gateway = Program::gateway(node.address, &words);
    // While the node has something to do other calls wait for each other.
    let mut first = connect(gateway.address);
    ask(&mut first, "/gasprice");
    while node.posts_of("eth_gasPrice").is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["0x7", false] },
        { "jsonrpc": "2.0", "id": 2, "method": "eth_sendRawTransaction", "params": ["0x01"] },
    ]);
    let answer = post(&gateway, "/rpc", &batch);
    let replies: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert!(replies[0]["result"]["filler"].is_string(), "{replies}");
    assert_eq!(replies[1]["result"], json!(hash), "{replies}");
    let posts = node.posts_of("eth_sendRawTransaction");
    assert!(matches!(&posts[..], [Value::Object(_)]), "{posts:?}");
    assert_eq!(Answer::read(&mut first).status, 200);
}

/// Claim: where the first of two nodes may have taken a transaction and did not say so, the second one's refusal is not
/// given as the answer: it may know it from the first. Where nothing was sent to the first, it is the answer.
#[test]
fn a_transaction_that_may_have_been_taken() {
    let late = Played::start(|method, _| {
        if method == "eth_sendRawTransaction" {
            std::thread::sleep(Duration::from_secs(3));
        }
        Ok(Value::Null)
    });
    let second = Played::start(|method, _| match method {
        "eth_sendRawTransaction" => already_known(),
        _ => Ok(Value::Null),
    });
    let raw = json!({ "raw": "0x01" });
    let alone = Program::gateway(second.address, &[]);
    assert_eq!(post(&alone, "/tx", &raw).says(), (422, "refused"));
    let both = format!("http://{}/,http://{}/", late.address, second.address);
    let words = ["--listen", "127.0.0.1:0", "--upstream", &both, "--upstream-timeout", "1s"];
    let answer = post(&Program::start(&words), "/tx", &raw);
    assert_eq!(answer.says(), (504, "late"), "{answer:?}");
    assert_eq!(late.posts_of("eth_sendRawTransaction").len(), 1);
    // To one that takes no connection, or is silent when it is asked for its chain, nothing was sent.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let addresses = [&silent, &closed].map(|it| it.local_addr().expect("it is bound"));
    drop(closed);
    for first in addresses {
        let both = format!("http://{first}/,http://{}/", second.address);
        let words = ["--listen", "127.0.0.1:0", "--upstream", &both, "--upstream-timeout", "1s"];
        // Followed, the first may be known to be down, and asked last.
        let words = [&words[..], &["--latest", "false"]].concat();
        let answer = post(&Program::start(&words), "/tx", &raw);
        assert_eq!(answer.says(), (422, "refused"), "{first}: {answer:?}");
    }
    assert!(second.posts_of("eth_sendRawTransaction").len() > 1, "the second was not asked");
}
