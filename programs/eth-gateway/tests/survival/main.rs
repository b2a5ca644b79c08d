//! What the gateway goes through and what it says of it: a node that is killed, hangs, is slow, lies, drowns it or limits
//! it; clients that are many, slow or silent; tools that other people wrote. Every answer here is the one that the README documents.

mod access;
mod chain;
mod clients;
mod node;
mod programs;
mod sockets;
mod tools;

use std::process::{Command, Stdio};
use std::time::Duration;

use programs::{Answer, Program, ask, connect};

/// A balance that nothing has asked for before: nothing is kept of it.
fn balance(number: u32) -> String {
    format!("/balance/0x{number:040x}")
}

/// Claim: who reads the document or the help and has enough of it (`| head`) is no failure, and nothing is said of it.
#[test]
fn a_reader_that_goes() {
    for words in [&["openapi"][..], &["--help"], &["--version"], &["mock", "--help"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_eth-gateway"));
        let done = command.args(words).stdin(Stdio::null()).stdout(writer).output();
        let done = done.expect("the program was built for this test");
        assert!(done.status.success() && done.stderr.is_empty(), "{words:?}: {done:?}");
    }
}

/// Claim: while the node is dead requests are answered 502, and when it is back they are answered again.
#[test]
fn a_node_that_is_killed() {
    let node = Program::mock(&[]);
    let at = node.address;
    let gateway = Program::gateway(at, &["--latest-age", "0ms"]);
    assert_eq!(gateway.get(&balance(1)).status, 200);
    node.kill();
    assert_eq!(gateway.get(&balance(2)).says(), (502, "unreachable"));
    assert_eq!(gateway.get("/block/last").says(), (502, "unreachable"));
    let _again = Program::start(&["mock", "--listen", &at.to_string()]);
    assert_eq!(gateway.get(&balance(3)).status, 200);
}

/// Claim: a node that takes requests and never answers is a 504 after `upstream_timeout`, and no connection is lost to it
/// for good.
#[test]
fn a_node_that_hangs() {
    let node = Program::mock(&[]);
    let words = ["--upstream-timeout", "200ms", "--upstream-connections-max", "2"];
    let gateway = Program::gateway(node.address, &words);
    node.control("mock_fault", "hang");
    let asking = (0..8).map(|number| {
        let mut stream = connect(gateway.address);
        ask(&mut stream, &balance(number));
        stream
    });
    let mut asking: Vec<_> = asking.collect();
    for stream in &mut asking {
        let answer = Answer::read(stream);
        assert!([(504, "late"), (503, "busy")].contains(&answer.says()), "{answer:?}");
    }
    node.control("mock_fault", "none");
    assert_eq!(gateway.get(&balance(100)).status, 200);
}

/// Claim: a slow node within the bound is waited for, and the time is said to be its own.
#[test]
fn a_node_that_is_slow() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &[]);
    node.control("mock_fault", "slow");
    let answer = gateway.get("/gasprice");
    assert_eq!(answer.status, 200);
    let timing = &answer.headers["server-timing"];
    let time = |name: &str| -> f64 {
        let (_, rest) = timing.split_once(&format!("{name};dur=")).expect("a time");
        rest.split(',').next().and_then(|number| number.parse().ok()).expect("milliseconds")
    };
    assert!(time("node") > 10.0 * time("gateway"), "{timing}");
}

/// Claim: what is no answer is a 502 that says what it was, and the next good answer is given.
#[test]
fn a_node_that_answers_garbage() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--latest", "false"]);
    for (number, (fault, code)) in [
        ("garbage", "garbage"),
        ("html", "garbage"),
        ("reset", "unreachable"),
        ("error", "node_error"),
    ]
    .into_iter()
    .enumerate()
    {
        node.control("mock_fault", fault);
        let answer = gateway.get(&balance(u32::try_from(number).expect("small")));
        assert_eq!(answer.says(), (502, code), "{fault}: {answer:?}");
    }
    node.control("mock_fault", "none");
    assert_eq!(gateway.get(&balance(9)).status, 200);
}

/// Claim: answers of a gigabyte are given up at `upstream_bytes_max`, and eight of them at once take no more memory than
/// the bound for all answers.
#[test]
fn a_node_that_answers_a_gigabyte() {
    let node = Program::mock(&["--fault", "huge"]);
    let gateway = Program::gateway(node.address, &["--latest", "false", "--batch", "false"]);
    let asking = (0..8).map(|number| {
        let mut stream = connect(gateway.address);
        ask(&mut stream, &balance(number));
        stream
    });
    let mut asking: Vec<_> = asking.collect();
    for stream in &mut asking {
        let answer = Answer::read(stream);
        assert!([(502, "too_large"), (503, "busy")].contains(&answer.says()), "{answer:?}");
    }
    let peak = gateway.kilobytes("VmHWM");
    // 256 MiB for all answers, doubled while a buffer grows, and the program itself.
    assert!(peak < 640 << 10, "{peak} kB");
    node.control("mock_fault", "none");
    assert_eq!(gateway.get(&balance(9)).status, 200);
}

/// Claim: the limiter's refusal is a 429 with the node's back-off, never a 404; in the back-off the node is not asked, and
/// what is absent is still told from what is limited.
#[test]
fn a_node_that_limits() {
    let node = Program::mock(&["--allowed-rps", "4", "--window", "1s", "--backoff", "3s"]);
    let gateway = Program::gateway(node.address, &["--latest", "false", "--batch", "false"]);
    let absent = format!("/transaction/0x{:064x}", 1);
    assert_eq!(gateway.get(&absent).says(), (404, "absent"));
    let answers: Vec<Answer> = (0..20).map(|number| gateway.get(&balance(number))).collect();
    let limited = answers.iter().filter(|answer| answer.says() == (429, "limited"));
    let limited: Vec<&Answer> = limited.collect();
    assert!(limited.len() > 10 && answers[0].status == 200, "{answers:?}");
    let after: u64 = limited[0].headers["retry-after"].parse().expect("whole seconds");
    assert!((1..=4).contains(&after), "{after}");
    let calls = node.calls();
    assert_eq!(gateway.get(&absent).says(), (429, "limited"));
    assert_eq!(node.calls(), calls, "the node was asked in its back-off");
    assert!(gateway.metric("eth_gateway_node_failures_total{why=\"kept_back\"}") > 0.0);
}

/// Claim: a gateway that knows what is allowed keeps under it: under more load than that the node's limiter never refuses,
/// and what cannot wait is answered 429 early.
#[test]
fn what_is_allowed_is_kept_to() {
    let node = Program::mock(&["--allowed-rps", "50", "--window", "5s", "--backoff", "30s"]);
    let words = ["--allowed-rps", "40", "--queue-max", "100ms", "--latest", "false"];
    let gateway = Program::gateway(node.address, &words);
    let answers: Vec<u16> = (0..300).map(|number| gateway.get(&balance(number)).status).collect();
    assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    let mut at_once: Vec<_> = (0..200).map(|_| connect(gateway.address)).collect();
    for (number, stream) in (1000..).zip(&mut at_once) {
        ask(stream, &balance(number));
    }
    let statuses = at_once.iter_mut().map(|stream| Answer::read(stream).status);
    let kept_back = statuses.filter(|status| *status == 429).count();
    assert!(kept_back > 0, "all of 200 at once were sent on");
    assert!(gateway.metric("eth_gateway_node_failures_total{why=\"limited\"}") < 0.5);
}

/// Claim: equal requests at the same time are one call, different ones share posts; with everything off each request makes
/// its own.
#[test]
fn what_is_saved() {
    let at_once = |gateway: &Program, path: &dyn Fn(u32) -> String| {
        let asking = (0..40).map(|number| {
            let mut stream = connect(gateway.address);
            ask(&mut stream, &path(number));
            stream
        });
        let mut asking: Vec<_> = asking.collect();
        assert!(asking.iter_mut().all(|stream| Answer::read(stream).status == 200));
    };
    let node = Program::mock(&["--latency", "20ms"]);
    let gateway = Program::gateway(node.address, &[]);
    at_once(&gateway, &|_| "/block/last/full".to_owned());
    let calls = node.calls();
    assert!(calls <= 20, "{calls} calls for 40 equal requests");
    at_once(&gateway, &balance);
    let posts = gateway.metric("eth_gateway_node_posts_total");
    assert!(posts <= 30.0, "{posts} posts");
    let plain = Program::gateway(node.address, &["--plain"]);
    let before = node.calls();
    at_once(&plain, &|_| "/block/last/full".to_owned());
    assert_eq!(node.calls() - before, 80, "two calls each, as it was published");
    assert!((plain.metric("eth_gateway_node_posts_total") - 80.0).abs() < 0.5);
}

/// Claim: what is kept is not asked for again, and what belongs to the last block is asked for again with the next one.
#[test]
fn what_is_kept() {
    let node = Program::mock(&["--blocks", "200", "--block-time", "1s"]);
    let gateway = Program::gateway(node.address, &["--latest-age", "20ms"]);
    let old = gateway.get("/block/7");
    let asked = node.calls();
    assert_eq!(gateway.get("/block/7").body, old.body);
    assert_eq!(gateway.get("/v1/block/7").body, old.body);
    assert_eq!(node.calls(), asked);
    assert!(old.headers["cache-control"].contains("immutable"));
    let first = gateway.get("/block/last").body;
    let mut last = first.clone();
    for _ in 0..200 {
        if last != first {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        last = gateway.get("/block/last").body;
    }
    assert_ne!(last, first, "the last block is never another");
}

/// Claim: asked to end, the gateway answers what is in flight, takes nothing new, and ends well.
#[test]
fn an_end_in_order() {
    let node = Program::mock(&["--latency", "500ms"]);
    let mut gateway = Program::gateway(node.address, &[]);
    let mut stream = connect(gateway.address);
    ask(&mut stream, "/gasprice");
    let idle = connect(gateway.address);
    while gateway.metric("eth_gateway_node_posts_total") < 0.5 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(gateway.terminate());
    assert_eq!(Answer::read(&mut stream).status, 200);
    drop(idle);
    assert!(std::net::TcpStream::connect(gateway.address).is_err());
}
