//! The test requests before the load: what they find ends a run that could tell nothing, and is said of one that goes on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::{Place, Server, beside_others, number, trial};

/// A server that answers by the path, and counts.
struct Answering {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Answering {
    /// Answers `status` to a path.
    fn start(status: fn(&str) -> &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    let mut answers = stream.try_clone().expect("a socket has two sides");
                    let mut path = String::new();
                    for line in BufReader::new(stream).lines().map_while(Result::ok) {
                        if let Some(asked) = line.strip_prefix("GET ") {
                            path = asked.split(' ').next().unwrap_or_default().to_owned();
                        }
                        if !line.is_empty() {
                            continue;
                        }
                        counter.fetch_add(1, Ordering::SeqCst);
                        let head =
                            format!("HTTP/1.1 {}\r\ncontent-length: 4\r\n\r\n", status(&path));
                        if answers.write_all(format!("{head}body").as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, asked }
    }

    fn run(&self, place: &Place, more: &[&str]) -> crate::harness::Said {
        let url = format!("http://{}/", self.address);
        let quietly = ["run", &url, "--no-calibration", "--progress=none", "--warmup=0s"];
        let load = ["--rate=50/s", "--duration=400ms", "--timeout=2s"];
        let words: Vec<&str> = quietly.iter().chain(&load).chain(more).copied().collect();
        place.assay(&words)
    }
}

/// Claim: where every test request fails, the run ends before the load with 99 and the answer, and its report stands in
/// the folder; `--no-preflight` sends the load all the same.
#[test]
fn nothing_that_can_succeed() {
    let _beside = beside_others();
    for (answer, times) in [("500 Internal Server Error", 3), ("401 Unauthorized", 1)] {
        let server = Answering::start(match times {
            3 => |_| "500 Internal Server Error",
            _ => |_| "401 Unauthorized",
        });
        let place = Place::new();
        let said = server.run(&place, &["--threshold=success == 100%", "--threshold=p99 < 1s"]);
        let line = format!("the test request before the load failed: GET / → {answer}");
        said.expect_code(99).expect_stdout("FAIL");
        let words = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let after = "nothing was sent after that; --no-preflight sends the load all the same";
        assert!(words.contains(&line) && words.contains(after), "{words}");
        assert_eq!(server.asked.load(Ordering::SeqCst), times, "nothing more was sent");
        let (again, document) = place.report();
        again.expect_code(99);
        assert_eq!(number(&trial(&document)["counts"]["due"]), 0);
        let page = std::fs::read_to_string(place.run_folder().join("report.html")).expect("a page");
        assert!(!page.contains("no request failed"), "nothing was sent");
        assert!(
            words.contains("Next: look in the system's own log for the test request"),
            "{words}"
        );
        let all_the_same = server.run(&place, &["--no-preflight", "--threshold=success == 100%"]);
        all_the_same.expect_code(99).expect_stdout("success == 100%");
        let sent = server.asked.load(Ordering::SeqCst) - times;
        assert_eq!(sent, 20, "the load of 50/s for 400 ms, and no test request");
    }
}

/// Claim: where one of two targets fails, the load runs, and which one is said before it.
#[test]
fn one_that_cannot() {
    let _beside = beside_others();
    let server = Answering::start(|path| if path == "/no" { "404 Not Found" } else { "200 OK" });
    let place = Place::new();
    let [good, bad] = ["", "no"].map(|path| format!("http://{}/{path}\n", server.address));
    place.write("targets.txt", format!("{good}{bad}"));
    let said = server.run(&place, &["--targets=targets.txt"]);
    said.expect_stderr("preflight: GET /no → 404 Not Found; the load runs");
    let (_, document) = place.report();
    assert_eq!(number(&trial(&document)["counts"]["due"]), 20, "{}", said.stdout);
}

/// Claim: a server that is gone before the first request is no run: one sentence, no folder, and nothing said to be kept.
#[test]
fn nobody_answers() {
    let free = Server::free_address();
    let place = Place::new();
    let url = format!("http://{free}/");
    let said = place.assay(&["run", &url, "--no-calibration", "--progress=none"]);
    said.expect_code(1).expect_stderr("refused");
    assert!(!said.stderr.contains("is kept"), "{}", said.stderr);
    assert_eq!(place.runs(), Vec::<std::path::PathBuf>::new(), "{}", said.stderr);
}

/// Claim: a rate beyond what this machine sends to a target that does nothing is said to be that, before the load.
#[test]
fn an_absurd_rate() {
    let _beside = beside_others();
    let server = Answering::start(|_| "200 OK");
    let place = Place::new();
    let url = format!("http://{}/", server.address);
    let bounded = ["--duration=1s", "--warmup=0s", "--set=load.transactions_max=20"];
    let words = ["run", &url, "--rate=900000000/s", "--progress=none"];
    let said = place.assay(&words.into_iter().chain(bounded).collect::<Vec<_>>());
    said.expect_stderr("900,000,000/s is more than this machine can do: it sends ");
}
