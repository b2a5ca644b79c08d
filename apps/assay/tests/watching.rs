//! A run that is watched while it goes on, and one that ends before its time: what is served is what the record holds, and why
//! a load was ended stands before everything else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::harness::{Place, Running, Server, await_that, beside_others, say, trial, until};

/// A server that answers with 200 so many times, and from then on with 500.
fn fails_after(good: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let count = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || serve(stream, &count, good));
        }
    });
    address
}

fn serve(mut stream: TcpStream, count: &AtomicU64, good: u64) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            let status = if count.fetch_add(1, SeqCst) < good { "200 OK" } else { "500 Broken" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// The body of GET /metrics; nothing while the port is closed.
fn metrics(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .write_all(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n",
        )
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    Some(body.to_owned())
}

/// The sum of a metric's samples whose labels hold some text.
fn sum(page: &str, name: &str, label: &str) -> u64 {
    let samples =
        page.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(label));
    let value = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
    let sum = samples.filter_map(value).sum::<f64>() as u64;
    sum
}

fn experiment(address: SocketAddr, duration: &str, more: &str) -> String {
    format!(
        "name = \"watched\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{address}/\"\n[load]\n\
         rate = \"100/s\"\nduration = \"{duration}\"\nwarmup = \"0s\"\ntimeout = \"5s\"\nconnections = 8\n{more}"
    )
}

/// Claim: while a run goes on its metrics can be read, they grow, and at the end they are what its record holds; a real
/// Prometheus, where one is installed, reads them, too.
#[test]
fn metrics_are_those_of_the_record() {
    let _beside = beside_others();
    let place = Place::new();
    let address = Server::free_address();
    let file = place.write("watched.toml", experiment(fails_after(151), "4s", ""));
    let file = file.to_str().expect("a path").to_owned();
    let at = address.to_string();
    let arguments = ["run", &file, "--metrics", &at, "--no-calibration", "--progress", "none"];
    let prometheus = Prometheus::start(&place, address);
    let running = Running::start(&mut place.command(&arguments));
    let mut last = String::new();
    await_that(Duration::from_secs(30), "metrics of the load", || {
        metrics(address)
            .is_some_and(|page| sum(&page, "assay_transactions_total", "committed") > 20)
    });
    if let Some(prometheus) = &prometheus {
        await_that(Duration::from_secs(20), "prometheus has the metrics", || prometheus.has_them());
    }
    // To the end of the load: the page is served as long as the process is there.
    until(Duration::from_secs(60), || match metrics(address) {
        Some(page) => {
            last = page;
            (sum(&last, "assay_phase", "\"done\"") == 1).then_some(())
        }
        None => Some(()),
    });
    let said = running.finish();
    assert!([0, 97].contains(&said.code), "{}\n{}", said.stdout, said.stderr);
    let (_, document) = place.report();
    let counts = &trial(&document)["counts"];
    let of = |label: &str| sum(&last, "assay_transactions_total", label);
    assert!(last.contains("experiment=\"watched\",setting=\"default\",trial=\"1\""), "{last}");
    assert_eq!(counts["committed"], 150, "one more was the preflight's");
    if of("outcome") == 400 {
        assert_eq!((of("outcome=\"committed\""), of("class=\"server\"")), (150, 250));
        assert_eq!(sum(&last, "assay_response_seconds_bucket", "+Inf"), 150);
        assert_eq!(sum(&last, "assay_sent_total", ""), 400);
    } else {
        // The process ended between two looks; what was seen is a part of it.
        assert!(of("outcome") < 400 && of("outcome=\"committed\"") <= 150, "{last}");
    }
}

/// A Prometheus of the distribution's that scrapes an address; none where it is not installed.
struct Prometheus {
    server: Server,
}

impl Prometheus {
    fn start(place: &Place, target: SocketAddr) -> Option<Self> {
        let found = Command::new("prometheus")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            say("prometheus is not installed: the metrics are read by the test alone");
            return None;
        }
        let config = format!(
            "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nscrape_configs:\n  - job_name: assay\n    \
             static_configs:\n      - targets: [\"{target}\"]\n"
        );
        let config = place.write("prometheus.yml", config);
        let address = Server::free_address();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", place.path().join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Some(Self { server: Server::start(&mut command, address) })
    }

    /// Whether a query for what was committed has a value above zero.
    fn has_them(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.server.address) else { return false };
        let query = "GET /api/v1/query?query=sum(assay_transactions_total%7Boutcome%3D%22committed%22%7D)%20%3E%200 \
                     HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        let asked =
            stream.write_all(query.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        asked.is_ok() && answer.contains("\"resultType\":\"vector\",\"result\":[{")
    }
}

/// The value of a query of VictoriaMetrics; nothing while it has none.
fn queried(server: SocketAddr, query: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(server).ok()?;
    let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let request =
        format!("GET /api/v1/query?query={query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let value = answer.split_once("\"value\":[")?.1.split_once(",\"")?.1.split_once('"')?.0;
    value.parse().ok()
}

/// Claim: a receiver or an address that cannot be one is refused as a wrong command line, in one sentence, before anything is
/// sent or written, and without a password that it holds.
#[test]
fn wrong_places_for_metrics() {
    let target = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    target.set_nonblocking(true).expect("a socket");
    let url = format!("http://{}/", target.local_addr().expect("an address"));
    let place = Place::new();
    for (option, value, words) in [
        (
            "--otlp",
            "127.0.0.1:4318",
            "`127.0.0.1:4318` is not a URL; did you mean `http://127.0.0.1:4318`?",
        ),
        ("--otlp", "", "the URL is empty"),
        (
            "--otlp",
            "/v1/metrics",
            "`/v1/metrics` names no server; expected a URL such as http://127.0.0.1:4318",
        ),
        (
            "--otlp",
            "grpc://127.0.0.1:4317",
            "expected a URL of http:// or https://, got one of `grpc://`",
        ),
        ("--otlp", "http://:4318", "the host is missing"),
        ("--otlp", "http://127.0.0.1:70000", "`70000` is not a port; ports are 1 to 65535"),
        ("--otlp", "http://ann:s3cret-word@127.0.0.1:4318", "holds a user name and a password"),
        ("--otlp", "http://a b", "holds ' '"),
        ("--metrics", "9464", "expected an address and a port such as 127.0.0.1:9464, got `9464`"),
        (
            "--metrics",
            "http://127.0.0.1:9464",
            "such as 127.0.0.1:9464, got `http://127.0.0.1:9464`",
        ),
        ("--metrics", "127.0.0.1:70000", "got `127.0.0.1:70000`"),
    ] {
        let said = place.assay(&["run", &url, "--duration", "1s", option, value]);
        said.expect_code(2).expect_stderr(words);
        let told: Vec<&str> = said.stderr.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(told.len(), 2, "one sentence, and where help is: {}", said.stderr);
        assert!(!said.stderr.contains("s3cret-word") && said.stdout.is_empty(), "{}", said.stderr);
    }
    assert!(target.accept().is_err(), "nothing is sent");
    assert_eq!(std::fs::read_dir(place.path()).expect("a folder").count(), 0, "nothing is written");
}

/// Claim: with `--otlp` a receiver of others has, after the run, what its record holds, by outcome and by time; a receiver that
/// is not there is said once, and the run is none the worse.
#[test]
fn metrics_are_pushed() {
    let _beside = beside_others();
    let place = Place::new();
    let file = place.write("pushed.toml", experiment(fails_after(151), "3s", ""));
    let run = |url: &str| {
        let file = file.to_str().expect("a path");
        let quietly = ["--no-calibration", "--progress", "none"];
        place.assay(&[&["run", file, "--otlp", url][..], &quietly].concat())
    };
    let nowhere = format!("http://{}", Server::free_address());
    let said = run(&nowhere);
    assert!([0, 97].contains(&said.code), "{}\n{}", said.stdout, said.stderr);
    let complaint = format!("assay: --otlp {nowhere}: ");
    assert_eq!(said.stderr.matches(&complaint).count(), 1, "{}", said.stderr);
    let (_, document) = place.report();
    assert_eq!(trial(&document)["counts"]["committed"], 150);

    let Some(program) = testbed::install::find("victoria-metrics") else {
        say(
            "SKIPPED metrics_are_pushed, in part: it takes victoria-metrics; assay doctor --install victoria-metrics gets it",
        );
        return;
    };
    let address = Server::free_address();
    let mut command = Command::new(program);
    command
        .arg(format!("-httpListenAddr={address}"))
        .arg(format!("-storageDataPath={}", place.path().join("metrics").display()))
        .arg("-search.latencyOffset=0s")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let receiver = Server::start(&mut command, address);
    // A server that has answered no request yet.
    place.write("pushed.toml", experiment(fails_after(151), "3s", ""));
    let said = run(&format!("http://{address}/opentelemetry"));
    assert!(!said.stderr.contains("--otlp"), "{}", said.stderr);
    for (query, expected) in [
        ("sum(last_over_time(assay_transactions{outcome=\"committed\"}[10m]))", 150),
        ("sum(last_over_time(assay_transactions{class=\"server\",kind=\"GET /\"}[10m]))", 150),
        ("sum(last_over_time(assay_sent{experiment=\"watched\",trial=\"1\"}[10m]))", 300),
        ("sum(last_over_time(assay_response_seconds_count[10m]))", 150),
        ("sum(last_over_time(assay_response_seconds_bucket{le=\"+Inf\"}[10m]))", 150),
        ("sum(last_over_time(assay_phase{assay_phase=\"done\"}[10m]))", 1),
    ] {
        await_that(Duration::from_secs(40), query, || {
            queried(receiver.address, query) == Some(expected)
        });
    }
}

/// Claim: a threshold that stays broken ends its trial long before the end, the report says so first, and the exit code is
/// the verdict's.
#[test]
fn a_broken_threshold_ends_the_trial() {
    let _beside = beside_others();
    let place = Place::new();
    let more = "[[threshold]]\nexpr = \"success >= 99%\"\nabort = \"2s\"\n[[threshold]]\nexpr = \"p99 < 10s\"\nabort = \"1m\"\n";
    let text = experiment(fails_after(100), "5m", more);
    let (said, document) = place.experiment(&text);
    said.expect_code(99);
    said.expect_stderr("the load was ended early: `success >= 99%` was broken for 2s");
    let shown = place.assay(&["report"]).stdout;
    let first = shown.lines().take(4).collect::<Vec<_>>().join("\n");
    assert!(first.contains("ended early"), "{first}");
    let due = trial(&document)["counts"]["due"].as_u64().expect("a count");
    assert!((200..15_000).contains(&due), "{due} of 30,000");
    assert_eq!(document["interrupted"], false, "nobody has interrupted it");
}

/// Claim: a load of which nothing is ever committed ends by itself, unless it is told to go on; and what `abort` cannot judge
/// is refused with the line.
#[test]
fn a_hopeless_load_ends() {
    let _beside = beside_others();
    let place = Place::new();
    let text = experiment(fails_after(0), "5m", "") + "[workload]\npreflight = false\n";
    let (said, document) = place.experiment(&text);
    said.expect_code(99).expect_stderr("transactions was committed in 10s");
    let shown = place.assay(&["report"]).stdout;
    let first = shown.lines().take(4).collect::<Vec<_>>().join("\n");
    assert!(first.contains("ended early: none of "), "{first}");
    assert_eq!(trial(&document)["counts"]["committed"], 0);
    for (abort, words) in [
        (
            "expr = \"goodput > 5/s\"\nabort = \"5s\"",
            "`goodput > 5/s` cannot be judged while the load runs",
        ),
        ("expr = \"p99 < 5s\"\nabort = \"100ms\"", "`abort` must lie between 1s and 10m"),
    ] {
        let text = experiment(
            "127.0.0.1:9".parse().expect("an address"),
            "1s",
            &format!("[[threshold]]\n{abort}\n"),
        );
        let file = place.write("wrong.toml", text);
        let refused = place.assay(&["check", file.to_str().expect("a path")]);
        refused.expect_code(2).expect_stderr(words);
    }
}
