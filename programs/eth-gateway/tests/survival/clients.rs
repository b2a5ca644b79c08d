//! Clients that are many, slow or silent.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect as dial, socket, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::programs::{Answer, Program, ask, connect};

/// Connections from one address; a host gives one address some 28,000 ports, of which others hold some.
const FROM_ONE_ADDRESS: u32 = 5_000;

/// As many descriptors as wanted, or as the host allows.
fn descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit { current: Some(wanted), maximum: Some(most.max(wanted)) };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return wanted;
    }
    let within = Rlimit { current: Some(most), maximum: limit.maximum };
    setrlimit(Resource::Nofile, within).expect("up to the bound anybody may go");
    most
}

fn connect_from(number: u32, address: SocketAddr) -> TcpStream {
    let from = Ipv4Addr::new(
        127,
        0,
        1,
        u8::try_from(number / FROM_ONE_ADDRESS + 1).expect("few addresses"),
    );
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a descriptor");
    bind(&stream, &SocketAddrV4::new(from, 0)).expect("an address of loopback");
    dial(&stream, &address).expect("it listens");
    TcpStream::from(stream)
}

/// Claim: 20,000 connections that say nothing stand, cost no more than 32 kB each, and keep nobody from being served.
#[test]
fn twenty_thousand_idle_connections() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--head-timeout", "10m"]);
    assert_eq!(gateway.get("/block/7").status, 200);
    let before = gateway.kilobytes("VmRSS");
    let wanted = u64::min(descriptors(21_000).saturating_sub(1_000), 20_000);
    if wanted < 20_000 {
        eprintln!("this host allows only {wanted} connections");
    }
    let wanted = u32::try_from(wanted).expect("at most 20,000");
    let idle: Vec<TcpStream> =
        (0..wanted).map(|number| connect_from(number, gateway.address)).collect();
    // The kernel has connected them before the gateway has taken them in.
    while gateway.metric("eth_gateway_connections ") < f64::from(wanted) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let each = (gateway.kilobytes("VmRSS") - before) as f64 / f64::from(wanted);
    assert!(each < 32.0, "{each} kB a connection");
    assert_eq!(gateway.get("/block/7").status, 200);
    let mut one = idle.into_iter().next_back().expect("one of them");
    one.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
    ask(&mut one, "/block/7");
    assert_eq!(Answer::read(&mut one).status, 200);
}

/// Claim: clients that send their heads a byte at a time are cut off at `head_timeout`, and so are those that say nothing;
/// others are served meanwhile.
#[test]
fn slow_loris() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--head-timeout", "500ms"]);
    let mut slow: Vec<TcpStream> = (0..200).map(|_| connect(gateway.address)).collect();
    let mut is_cut = vec![false; slow.len()];
    let head = b"GET / HTTP/1.1\r\nhost: gateway\r\n";
    for round in 0..400 {
        for (stream, is_cut) in slow.iter_mut().zip(&mut is_cut) {
            let byte = head.get(round).unwrap_or(&b'x');
            *is_cut = *is_cut || stream.write_all(&[*byte]).is_err();
        }
        assert_eq!(gateway.get("/gasprice").status, 200);
        if is_cut.iter().all(|is_cut| *is_cut) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_cut.iter().all(|is_cut| *is_cut), "a slow client is still there");
    let mut silent = connect(gateway.address);
    assert_eq!(silent.read(&mut [0; 16]).expect("the gateway ends it in order"), 0);
}

/// Claim: a client whose head is too large is told so (431), also where it goes on sending after that.
#[test]
fn a_head_that_is_too_large() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &[]);
    for pause in [Duration::ZERO, Duration::from_millis(20)] {
        let mut stream = connect(gateway.address);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: gateway\r\nx-much: ").expect("it reads");
        for _ in 0..20 {
            stream.write_all(&[b'x'; 5 << 10]).expect("it is listened to until it has ended");
            std::thread::sleep(pause);
        }
        assert_eq!(Answer::read(&mut stream).status, 431, "{pause:?}");
    }
    assert_eq!(gateway.get("/block/7").status, 200);
}

/// Claim: a client that asks for much and reads nothing is cut off at `write_timeout`, and holds no memory after that.
#[test]
fn a_client_that_reads_nothing() {
    let node = Program::mock(&["--blocks", "2500"]);
    let gateway = Program::gateway(node.address, &["--write-timeout", "300ms"]);
    let topic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    let deaf: Vec<TcpStream> = (0..20)
        .map(|_| {
            let stream =
                socket(AddressFamily::INET, SocketType::STREAM, None).expect("a descriptor");
            // Else the kernel takes some megabytes for it.
            sockopt::set_socket_recv_buffer_size(&stream, 4096).expect("a small buffer");
            dial(&stream, &gateway.address).expect("it listens");
            let mut stream = TcpStream::from(stream);
            ask(&mut stream, &format!("/log/0x0/0x9c3/{topic}"));
            stream
        })
        .collect();
    // All but the one that asks for this number are gone after a while.
    for _ in 0..500 {
        if gateway.metric("eth_gateway_requests_total{route=\"logs\",status=\"200\"}") > 19.5
            && gateway.metric("eth_gateway_connections ") < 1.5
        {
            drop(deaf);
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} connections are still there", gateway.metric("eth_gateway_connections "));
}

/// Claim: a connection beyond `connections_max` is answered 503, and one that ends makes room.
#[test]
fn one_connection_too_many() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--connections-max", "3"]);
    let standing: Vec<TcpStream> = (0..3).map(|_| connect(gateway.address)).collect();
    let answer = Answer::read(&mut connect(gateway.address));
    assert_eq!((answer.status, answer.headers["retry-after"].as_str()), (503, "1"));
    drop(standing);
    let mut stream = connect(gateway.address);
    for _ in 0..500 {
        ask(&mut stream, "/");
        let mut first = [0; 12];
        if stream.read_exact(&mut first).is_ok() && &first[9..] == b"200" {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
        stream = connect(gateway.address);
    }
    panic!("no room was made");
}

/// Claim: a client without a key is refused before it has sent its body.
#[test]
fn a_body_that_need_not_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.toml");
    std::fs::write(&keys, "[tester]\nkey = \"secret\"\n").expect("room");
    let node = Program::mock(&[]);
    let words = ["--keys", keys.to_str().expect("UTF-8"), "--head-timeout", "20s"];
    let gateway = Program::gateway(node.address, &words);
    let mut stream = connect(gateway.address);
    stream
        .write_all(b"POST /rpc HTTP/1.1\r\nhost: gateway\r\ncontent-length: 100\r\nconnection: close\r\n\r\n")
        .expect("it reads");
    assert_eq!(Answer::read(&mut stream).says(), (401, "no_key"));
}

/// Claim: all bodies of requests have a bound together: of two hundred of a mebibyte of which the last byte never comes some
/// are refused; small ones are taken all the same, and when the others have gone large ones are, too.
#[test]
fn bodies_that_never_end() {
    let node = Program::mock(&[]);
    let gateway = Program::gateway(node.address, &["--head-timeout", "2m"]);
    let stalled = |count: usize, length: usize| -> Vec<TcpStream> {
        let head =
            format!("POST /rpc HTTP/1.1\r\nhost: gateway\r\ncontent-length: {length}\r\n\r\n");
        let body = vec![b' '; length - 1];
        let connect = || {
            let mut stream = connect(gateway.address);
            stream.write_all(head.as_bytes()).expect("it reads");
            // One that is refused need not take all of it.
            let _ = stream.write_all(&body);
            stream
        };
        std::iter::repeat_with(connect).take(count).collect()
    };
    descriptors(4_000);
    let mut endless = stalled(200, 1 << 20);
    let refused = || gateway.metric("eth_gateway_requests_total{route=\"rpc\",status=\"503\"}");
    for _ in 0..500 {
        if refused() > 0.5 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!((1.0..199.0).contains(&refused()), "{}", refused());
    // Those that were refused have left gaps.
    endless.extend(stalled(1_000, 64 << 10));
    endless.extend(stalled(300, 4 << 10));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}"#;
    let status = |call: &str| {
        let mut stream = connect(gateway.address);
        let length = call.len();
        write!(
            stream,
            "POST /rpc HTTP/1.1\r\nhost: gateway\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{call}"
        )
        .expect("it reads");
        Answer::read(&mut stream).status
    };
    assert!((0..20).all(|_| status(call) == 200), "a small call finds no room");
    drop(endless);
    let large = format!("{call}{}", " ".repeat(64 << 10));
    for _ in 0..500 {
        if status(&large) == 200 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no room was made");
}
