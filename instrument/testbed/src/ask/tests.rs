//! The questioner against toy servers on loopback, well behaved and not.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wire::http1::{HttpError, write_request};

use super::*;

/// Long: a machine may be busy. Only what is bound to run out of time is given less.
const WAIT: Duration = Duration::from_secs(60);

const LIMITS: Limits = Limits::keeping(1000);

/// A server: `behave` is given each connection. Says where it is, and counts connections.
fn server(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            behave(stream);
        }
    });
    (address, connections)
}

fn questioner(address: SocketAddr) -> Questioner {
    Questioner::new(address, None, LIMITS, Clock::start())
}

fn get() -> Vec<u8> {
    let mut request = Vec::new();
    write_request(&mut request, "GET", "/a", &[("Host", b"there")], b"");
    request
}

/// Reads a head to its end; false when there is none.
fn head(stream: &mut TcpStream) -> bool {
    let (mut seen, mut byte) = (Vec::new(), [0; 1]);
    while !seen.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        seen.push(byte[0]);
    }
    true
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Claim: one connection carries one question after another, and one that the server has closed in between is
/// replaced without a question being lost.
#[test]
fn kept_and_replaced() {
    let (address, connections) = server(|mut stream| {
        for body in ["one", "two"] {
            assert!(head(&mut stream));
            stream.write_all(answer(body).as_bytes()).unwrap();
        }
        // Closed without a word: the client believes that it stays.
    });
    let mut questioner = questioner(address);
    for (body, opened) in [("one", 1), ("two", 1), ("one", 2), ("two", 2)] {
        if body == "one" {
            // What the server has done to the connection before it is here by now.
            while connections.load(Ordering::Relaxed) == opened {}
            std::thread::sleep(Duration::from_millis(50));
        }
        let answer = questioner.ask(&get(), Asked::Other, WAIT).unwrap();
        assert_eq!(answer.body, body.as_bytes());
        assert_eq!(connections.load(Ordering::Relaxed), opened);
    }
}

/// Claim: the bound on time holds for the whole answer: a server that sends a byte now and then, for ever, does not
/// outlast it, and the next question opens another connection.
#[test]
fn dripping_does_not_outlast() {
    let (address, connections) = server(|mut stream| {
        std::thread::spawn(move || {
            head(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
    let mut questioner = questioner(address);
    for opened in [1, 2] {
        let error = questioner.ask(&get(), Asked::Other, Duration::from_millis(200)).unwrap_err();
        assert!(matches!(error, AskError::TimedOut(_)), "{error}");
        assert_eq!(error.to_string(), "no answer within 0.2 s");
        assert_eq!(connections.load(Ordering::Relaxed), opened);
    }
}

/// Claim: a body beyond the bound is refused, with a length that says so and with one that does not.
#[test]
fn too_long_is_refused() {
    let pieces = "3e8\r\n".to_owned() + &"x".repeat(1000) + "\r\n1\r\ny\r\n0\r\n\r\n";
    let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{pieces}");
    for text in [answer(&"x".repeat(1001)), chunked] {
        let (address, _) = server(move |mut stream| {
            head(&mut stream);
            let _ = stream.write_all(text.as_bytes());
        });
        let error = questioner(address).ask(&get(), Asked::Other, WAIT).unwrap_err();
        assert!(matches!(error, AskError::Answer(HttpError::BodyTooLong(1000))), "{error}");
    }
}

/// Claim: a redirect is said and not followed.
#[test]
fn redirects_are_not_followed() {
    let (elsewhere, visited) = server(|_| {});
    let (address, _) = server(move |mut stream| {
        head(&mut stream);
        let text = format!(
            "HTTP/1.1 302 Found\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).unwrap();
    });
    let mut questioner = questioner(address);
    let answer = questioner.ask(&get(), Asked::Other, WAIT).unwrap();
    assert_eq!((answer.response.status, answer.reason), (302, "Found"));
    assert_eq!(answer.location, format!("http://{elsewhere}/"));
    assert_eq!(visited.load(Ordering::Relaxed), 0);
}

/// Claim: a server that refuses a question before it has read all of it is heard, and its connection not used again.
#[test]
fn refused_before_it_is_read() {
    let (address, connections) = server(|mut stream| {
        head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
        // Until the client gives up: what it still sends is never read.
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(5));
            drop(stream);
        });
    });
    let mut request = Vec::new();
    write_request(&mut request, "POST", "/", &[("Host", b"there")], &vec![0; 64 << 20]);
    let mut questioner = questioner(address);
    for opened in [1, 2] {
        let answer = questioner.ask(&request, Asked::Other, WAIT).unwrap();
        assert_eq!(answer.response.status, 413);
        assert_eq!(connections.load(Ordering::Relaxed), opened);
    }
}

/// Claim: nobody there, a connection closed without an answer, one closed in the middle of it and bytes that are none
/// are told apart.
#[test]
fn what_goes_wrong_is_told_apart() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = questioner(nobody).connect(WAIT).unwrap_err();
    assert!(refused.is_refused(), "{refused}");
    assert_eq!(refused.to_string(), "connection refused");
    for (text, expected) in [
        ("", "the server closed the connection without an answer"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            "the connection was closed in the middle of an answer",
        ),
        ("SSH-2.0-OpenSSH_9.9\r\n\r\n", "the answer does not begin with an HTTP/1.x status line"),
    ] {
        let (address, _) = server(move |mut stream| {
            head(&mut stream);
            stream.write_all(text.as_bytes()).unwrap();
        });
        let error = questioner(address).ask(&get(), Asked::Other, WAIT).unwrap_err();
        assert!(!error.is_refused() && error.to_string() == expected, "{error}");
    }
}

/// Claim: what a server says without being asked is never taken for the answer to the next question.
#[test]
fn words_out_of_turn_are_no_answer() {
    let (address, connections) = server(|mut stream| {
        std::thread::spawn(move || {
            let twice = answer("asked") + &answer("not asked");
            while head(&mut stream) && stream.write_all(twice.as_bytes()).is_ok() {}
        });
    });
    let mut questioner = questioner(address);
    for _ in 0..3 {
        let answer = questioner.ask(&get(), Asked::Other, WAIT).unwrap();
        assert_eq!(answer.body, b"asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(connections.load(Ordering::Relaxed), 3);
}
