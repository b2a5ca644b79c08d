//! Servers of HTTP/2 that do what they must not, and a load on each with each driver.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;

use serde_json::Value;
use sut::conformance::Seen;

use super::{locked, trial};

const DRIVERS: [&str; 2] = ["epoll", "io_uring"];
/// Runs side by side: they wait most of their time.
const SIDE_BY_SIDE: usize = 6;

/// Plays a behaviour to every connection: greets, and when a request with `asked` is there says the bytes and keeps the
/// connection.
fn play(greeting: &'static [u8], asked: &'static [u8], bytes: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let bytes = bytes.clone();
            std::thread::spawn(move || {
                let (mut received, mut piece) = (Vec::new(), [0; 4096]);
                if stream.write_all(greeting).is_err() {
                    return;
                }
                let mut has_said = false;
                while let Ok(read @ 1..) = stream.read(&mut piece) {
                    received.extend_from_slice(&piece[..read]);
                    let is_asked = received.windows(asked.len()).any(|part| part == asked);
                    if is_asked && !has_said {
                        has_said = true;
                        if stream.write_all(&bytes).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

/// Fails where a behaviour (its name, the bytes and the reaction that is expected) gets something committed that was not
/// earned, or nothing though it was; `load` gives the result document of a load on a server through a driver, and is told
/// whether an answer is earned.
pub fn each_with_both_drivers(
    behaviours: Vec<(&'static str, Vec<u8>, Seen)>,
    (greeting, asked): (&'static [u8], &'static [u8]),
    load: impl Fn(SocketAddr, &str, bool) -> Result<Value, String> + Sync,
) {
    let all: Vec<_> =
        behaviours.into_iter().flat_map(|it| DRIVERS.map(|driver| (it.clone(), driver))).collect();
    assert!(!all.is_empty(), "there are behaviours");
    let (left, wrong) = (Mutex::new(all), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                loop {
                    let Some(((does, bytes, seen), driver)) = locked(&left).pop() else { return };
                    let is_earned = matches!(seen, Seen::Fine | Seen::BrokenBehind);
                    let document = load(play(greeting, asked, bytes), driver, is_earned);
                    if let Err(words) = document.and_then(|document| judge(&document, is_earned)) {
                        locked(&wrong).push(format!("{does}, {driver}: {words}"));
                    }
                }
            });
        }
    });
    assert!(locked(&wrong).is_empty(), "{:#?}", locked(&wrong));
}

fn judge(document: &Value, is_earned: bool) -> Result<(), String> {
    let trial = trial(document);
    let committed = trial["counts"]["committed"].as_u64().ok_or("no count")?;
    match (is_earned, committed) {
        (false, 1..) => Err(format!("{committed} committed, none earned")),
        (true, 0) => Err(format!("none committed: {}", trial["errors"])),
        _ => Ok(()),
    }
}
