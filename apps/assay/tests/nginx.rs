//! A server of others: nginx of the distribution, loaded by a URL, by vegeta targets on standard
//! input, and by an experiment with a matrix of six rates; in the published table, computed as vegeta does.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{
    self, Place, Said, Server, beside_others, expect_audit, expect_holds, number, program, trial,
};
use model::Row;
use record::RunFolder;
use serde_json::{Value, json};

const PAGE: &str = "hello from nginx\n";

/// nginx in a folder of its own, and its certificate if it speaks TLS.
struct Nginx {
    server: Server,
    place: Place,
}

impl Nginx {
    /// With a certificate of these constraints, if it is to speak TLS. `None`, said by name, if a program is
    /// not installed.
    fn start(test: &str, constraints: Option<&str>) -> Option<Self> {
        Self::start_with(test, constraints, "")
    }

    /// The same, with more words of `listen`.
    fn start_with(test: &str, constraints: Option<&str>, more: &str) -> Option<Self> {
        let Some(nginx) = program("nginx") else {
            harness::say(&format!("SKIPPED nginx tests: {test}: nginx is not installed"));
            return None;
        };
        let place = Place::new();
        if let Some(constraints) = constraints
            && !certificate(test, place.path(), constraints)
        {
            return None;
        }
        let with_tls = constraints.is_some();
        let address = Server::free_address();
        let here = place.path().display();
        let tls = if with_tls {
            format!("ssl_certificate {here}/cert.pem; ssl_certificate_key {here}/key.pem;")
        } else {
            String::new()
        };
        let ssl = if with_tls { " ssl" } else { "" };
        let config = format!(
            "daemon off; master_process off; pid {here}/pid; error_log {here}/error.log;
             events {{ worker_connections 512; }}
             http {{ access_log {here}/access.log; client_body_temp_path {here}/body;
               proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/fastcgi;
               uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi; default_type text/html;
               server {{ listen {address}{ssl}{more}; root {here}/pages; {tls}
                 location = /limited {{ return 429; }} location = /broken {{ return 500; }}
                 location = /busy {{ return 503; }} location = /moved {{ return 302 /; }} }} }}"
        );
        place.write("nginx.conf", config);
        place.write("pages/index.html", PAGE);
        place.write("pages/large.html", "x".repeat(20_000));
        let mut command = Command::new(nginx);
        command.arg("-c").arg(place.path().join("nginx.conf")).arg("-p").arg(place.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Some(Self { server: Server::start(&mut command, address), place })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    /// Requests for a path that nginx itself has seen.
    fn seen(&self, path: &str) -> usize {
        let log = std::fs::read_to_string(self.place.path().join("access.log")).unwrap();
        log.lines().filter(|line| line.contains(&format!("GET {path} HTTP"))).count()
    }
}

/// Makes `cert.pem` and `key.pem` of 127.0.0.1 and localhost; says by name what is missing.
pub fn certificate(test: &str, folder: &Path, constraints: &str) -> bool {
    let Some(openssl) = program("openssl") else {
        harness::say(&format!("SKIPPED {test}: openssl is not installed"));
        return false;
    };
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    let made = Command::new(openssl)
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", names])
        .args(["-addext", &format!("basicConstraints={constraints}")])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .expect("openssl starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    true
}

/// The arguments that every run here has.
const QUIETLY: [&str; 3] = ["--progress", "none", "--no-calibration"];

fn run(place: &Place, arguments: &[&str]) -> Said {
    let all: Vec<&str> = ["run"].iter().chain(arguments).chain(&QUIETLY).copied().collect();
    place.assay(&all)
}

fn report(place: &Place, format: &str) -> String {
    let run = place.run_folder().display().to_string();
    place.assay(&["report", &run, "--format", format]).stdout
}

/// The cells of a vegeta text report by row: what stands in brackets, and what stands after them.
fn cells(report: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut rows = BTreeMap::new();
    for line in report.lines() {
        let Some((head, rest)) = line.split_once('[') else { continue };
        let (names, values) = rest.split_once(']').expect("a bracket that closes");
        let values = values.trim().split(", ").map(str::to_owned).collect();
        rows.insert(head.trim().to_owned(), (names.to_owned(), values));
    }
    rows
}

/// A duration as Go prints it, in seconds.
fn go_seconds(text: &str) -> f64 {
    let (mut seconds, mut digits, mut rest) = (0.0, String::new(), text.chars().peekable());
    while let Some(c) = rest.next() {
        if c.is_ascii_digit() || c == '.' {
            digits.push(c);
            continue;
        }
        let mut unit = String::from(c);
        while let Some(next) = rest.next_if(|next| next.is_alphabetic()) {
            unit.push(next);
        }
        let factor = match unit.as_str() {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "µs" => 1e-6,
            "ns" => 1e-9,
            _ => panic!("`{unit}` in {text}"),
        };
        seconds += digits.parse::<f64>().expect("a number") * factor;
        digits.clear();
    }
    assert!(digits.is_empty(), "{text} ends with a number");
    seconds
}

/// The rows of a trial, by its place in the run, that belong to its measured window.
fn measured(place: &Place, at: usize) -> Vec<Row> {
    let run = RunFolder::open(place.run_folder()).unwrap();
    let trial = run.trials().unwrap().swap_remove(at);
    let facts = trial.facts().unwrap();
    let mut rows = Vec::new();
    trial.for_each_batch(|batch| rows.extend_from_slice(batch)).unwrap();
    rows.retain(|row| (facts.measure_start()..facts.measure_end()).contains(&row.due));
    rows
}

/// Claim: a URL at 50/s for 3 s gives 150 requests and vegeta's table of 2020: the same seven rows with the
/// same names, each value what vegeta computes from the rows that were recorded.
#[test]
fn a_url_gives_the_published_table() {
    let Some(nginx) = Nginx::start("a_url_gives_the_published_table", None) else { return };
    let _beside = beside_others();
    let place = Place::new();
    let said =
        run(&place, &[&nginx.url("/"), "--rate", "50/s", "--duration", "3s", "--timeout", "5s"]);
    said.expect_stdout("as a file");
    expect_holds(&said, &place.report().1);
    let report = report(&place, "vegeta-12.7");
    let table = cells(&report);
    let names = |row: &str| table[row].0.as_str();
    assert_eq!(names("Requests"), "total, rate, throughput");
    assert_eq!(names("Duration"), "total, attack, wait");
    assert_eq!(names("Latencies"), "mean, 50, 95, 99, max");
    assert_eq!((names("Bytes In"), names("Bytes Out")), ("total, mean", "total, mean"));
    assert_eq!((names("Success"), names("Status Codes")), ("ratio", "code:count"));
    assert!(report.ends_with("Error Set:\n"), "{report}");
    assert_eq!(table["Success"].1, ["100.00%"]);
    assert_eq!(table["Status Codes"].1, ["200:150"]);
    assert_eq!(table["Bytes In"].1, [format!("{}", 150 * PAGE.len()), "17.00".to_owned()]);
    assert_eq!(table["Bytes Out"].1, ["0", "0.00"]);
    as_vegeta_computes(&table, &measured(&place, 0));
    // The warm-up and the preflight are sent beside the 150 and stand in no row.
    assert!(nginx.seen("/") > 150, "{}", nginx.seen("/"));
    let file = place.run_folder().join("experiment.toml").display().to_string();
    place.assay(&["check", &file]).expect_code(0);
}

/// Compares requests, durations and latencies with what `lib/metrics.go` makes of the same rows.
fn as_vegeta_computes(table: &BTreeMap<String, (String, Vec<String>)>, rows: &[Row]) {
    let sent = |row: &Row| row.sent as f64 / 1e9;
    let first = rows.iter().map(sent).fold(f64::INFINITY, f64::min);
    let last = rows.iter().map(sent).fold(0.0, f64::max);
    let end = rows.iter().map(|row| row.end as f64 / 1e9).fold(0.0, f64::max);
    let (attack, wait, count) = (last - first, end - last, rows.len() as f64);
    let requests = &table["Requests"].1;
    assert_eq!(requests[0], rows.len().to_string());
    assert_eq!(requests[1], format!("{:.2}", count / attack));
    let successes = rows.iter().filter(|row| (200..400).contains(&row.code)).count() as f64;
    assert_eq!(requests[2], format!("{:.2}", successes / (attack + wait)));
    let near = |name: &str, shown: f64, computed: f64, within: f64| {
        let off = (shown - computed).abs();
        assert!(off <= within * computed.abs() + 2e-9, "{name}: {shown} s, computed {computed} s");
    };
    let durations: Vec<f64> = table["Duration"].1.iter().map(|text| go_seconds(text)).collect();
    for (index, computed) in [attack + wait, attack, wait].into_iter().enumerate() {
        near("Duration", durations[index], computed, 0.0);
    }
    let mut latencies: Vec<f64> =
        rows.iter().map(|row| (row.end - row.sent) as f64 / 1e9).collect();
    latencies.sort_unstable_by(f64::total_cmp);
    let rank = |q: f64| latencies[(q * count).ceil() as usize - 1];
    let shown: Vec<f64> = table["Latencies"].1.iter().map(|text| go_seconds(text)).collect();
    near("mean", shown[0], latencies.iter().sum::<f64>() / count, 1e-6);
    for (index, q) in [0.5, 0.95, 0.99].into_iter().enumerate() {
        // A histogram of three digits stands for vegeta's t-digest.
        near(&format!("quantile {q}"), shown[1 + index], rank(q), 1.1e-3);
    }
    near("max", shown[4], latencies[latencies.len() - 1], 0.0);
}

/// Claim: of vegeta targets on standard input, the one that cannot succeed is named before the load and makes
/// the run invalid; it stands in the table of targets, in the status codes and in the error set.
#[test]
fn a_target_that_cannot_succeed_is_named() {
    let Some(nginx) = Nginx::start("a_target_that_cannot_succeed_is_named", None) else { return };
    let _beside = beside_others();
    let place = Place::new();
    let targets = format!(
        "# three targets, one of them wrong\nGET {}\nX-Trial: 1\n\nGET {}\n\nGET {}\n",
        nginx.url("/"),
        nginx.url("/large.html"),
        nginx.url("/missing?full=1"),
    );
    let arguments = ["run", "-", "--rate", "60/s", "--duration", "2s", "--warmup", "0s"];
    let arguments: Vec<&str> = arguments.iter().chain(&QUIETLY).copied().collect();
    let said = place.assay_with_input(&arguments, &targets);
    said.expect_code(97)
        .expect_stdout(
            "the test request before the load failed for 1 of 3 kinds: GET /missing?full=1 (404 Not",
        )
        .expect_stdout("GET /large.html")
        .expect_stdout("404 Not Found");
    let (_, document) = place.report();
    expect_audit(&document, "preflight", "failed", "GET /missing?full=1 (404 Not Found)");
    let trial = trial(&document);
    let kinds: Vec<_> = trial["kinds"].as_array().unwrap().iter().map(kind).collect();
    let expected = [("GET /", 40, 40), ("GET /large.html", 40, 40), ("GET /missing?full=1", 40, 0)];
    assert_eq!(kinds, expected.map(|(name, due, committed)| (name.to_owned(), due, committed)));
    assert_eq!(trial["vegeta"]["status_codes"], json!({"200": 80, "404": 40}));
    assert_eq!(trial["vegeta"]["errors"], json!(["404 Not Found"]));
    assert_eq!(trial["counts"]["rejected_by_class"], json!({"bad_request": 40}));
    let report = report(&place, "vegeta");
    let table = cells(&report);
    assert_eq!(table["Success"].1, ["66.67%"]);
    assert_eq!(table["Status Codes"].1, ["200:80  404:40"]);
    assert_eq!(table["Latencies"].0, "min, mean, 50, 90, 95, 99, max");
    assert!(report.ends_with("Error Set:\n404 Not Found\n"), "{report}");
    // The targets are part of the experiment that the run folder keeps, so that it can be run again.
    let kept = std::fs::read_to_string(place.run_folder().join("experiment.toml")).unwrap();
    assert!(kept.contains("/missing?full=1"), "{kept}");
}

fn kind(kind: &Value) -> (String, u64, u64) {
    let name = kind["name"].as_str().unwrap().to_owned();
    (name, number(&kind["counts"]["due"]), number(&kind["counts"]["committed"]))
}

/// Claim: a matrix of six rates gives one table with a row a rate and the published table's columns, each cell
/// that setting's own number.
#[test]
fn six_rates_give_one_table() {
    let Some(nginx) = Nginx::start("six_rates_give_one_table", None) else { return };
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&format!(
        r#"
        name = "six-rates"
        system.kind = "http"
        load = {{ rate = "20/s", connections = 8, warmup = "100ms", duration = "1s", timeout = "5s" }}
        [system.deploy]
        url = "{}"
        [matrix]
        rate = {{ set = "load.rate", values = ["20/s", "25/s", "30/s", "35/s", "40/s", "50/s"] }}
        [[threshold]]
        expr = "success == 100%"
        [report]
        tables = [{{ rows = "rate", columns = ["requests", "rate", "throughput", "wait", "mean", "p50", "p95", "p99", "max", "bytes_in", "bytes_out", "success", "codes", "errors"] }}]
        "#,
        nginx.url("/")
    ));
    expect_holds(&said, &document);
    let tables = document["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 1);
    let columns: Vec<_> = tables[0]["columns"].as_array().unwrap().iter().collect();
    assert_eq!(columns.len(), 15, "{columns:?}");
    let rows = tables[0]["rows"].as_array().unwrap();
    let rates = [20.0, 25.0, 30.0, 35.0, 40.0, 50.0];
    assert_eq!(rows.len(), rates.len());
    for (at, (row, rate)) in rows.iter().zip(rates).enumerate() {
        let sent: Vec<i64> = measured(&place, at).iter().map(|row| row.sent).collect();
        let first_to_last = (sent.iter().max().unwrap() - sent.iter().min().unwrap()) as f64 / 1e9;
        let value = |index: usize| row[index]["value"].as_f64().unwrap();
        let text = |index: usize| row[index]["text"].as_str().unwrap();
        assert_eq!(text(0), format!("{rate}/s"));
        assert!((value(1) - rate).abs() < 1e-9, "requests in a second at {rate}/s: {row}");
        assert!((value(2) * first_to_last / rate - 1.0).abs() < 1e-9, "rate at {rate}/s: {row}");
        assert!(value(3) <= value(2) * 1.000_001, "throughput at {rate}/s: {row}");
        assert!((value(10) - rate * PAGE.len() as f64).abs() < 1e-9, "{row}");
        assert!((value(12) - 1.0).abs() < 1e-12, "success at {rate}/s: {row}");
        assert_eq!(text(13), format!("200:{rate}"));
        assert_eq!(text(14), "0");
    }
    let page = report(&place, "text");
    assert!(rates.iter().all(|rate| page.contains(&format!("200:{rate}"))), "{page}");
}

/// One second over HTTPS, with more keys of `[system.deploy]`.
fn over_tls(nginx: &Nginx, deploy: &str) -> String {
    format!(
        "[system]\nkind = \"http\"\n[system.deploy]\nurl = \"https://{}/\"\n{deploy}\n\
         [load]\nrate = \"50/s\"\nconnections = 4\nduration = \"1s\"\ntimeout = \"5s\"\n",
        nginx.server.address
    )
}

/// Claim: over HTTPS a certificate of one's own is trusted if it is named with `ca`, and refused clearly, with
/// code 1 and nothing sent, if it is not, or if it is of another name.
#[test]
fn https_with_a_certificate_of_ones_own() {
    let test = "https_with_a_certificate_of_ones_own";
    let Some(nginx) = Nginx::start(test, Some("critical,CA:FALSE")) else { return };
    let _beside = beside_others();
    let ca = nginx.place.path().join("cert.pem").display().to_string();
    let place = Place::new();
    let trusted = format!("ca = \"{ca}\"\nserver_name = \"localhost\"");
    let (said, document) = place.experiment(&over_tls(&nginx, &trusted));
    expect_holds(&said, &document);
    assert_eq!(trial(&document)["vegeta"]["status_codes"], json!({"200": 50}));
    let facts = std::fs::read_to_string(place.trial_folder(&document).join("trial.json")).unwrap();
    assert!(facts.contains("\"transport\": \"TLS"), "{facts}");

    let before = nginx.seen("/");
    let unknown = over_tls(&nginx, "server_name = \"localhost\"");
    let (said, _) = Place::new().experiment(&unknown);
    said.expect_code(1).expect_stderr("certificate").expect_stderr("ca");
    let other = format!("ca = \"{ca}\"\nserver_name = \"example.com\"");
    let (said, _) = Place::new().experiment(&over_tls(&nginx, &other));
    said.expect_code(1).expect_stderr("certificate").expect_stderr("example.com");
    assert_eq!(nginx.seen("/"), before, "nothing was asked for");
}

/// Claim: the certificate that `openssl req -x509` makes by itself, which is an authority and the server's own
/// at once, is taken with `ca`; without it only where nothing is verified, and the report then says so.
#[test]
fn https_with_the_certificate_that_openssl_makes() {
    let test = "https_with_the_certificate_that_openssl_makes";
    let Some(nginx) = Nginx::start(test, Some("critical,CA:TRUE")) else { return };
    let _beside = beside_others();
    let ca = nginx.place.path().join("cert.pem").display().to_string();
    let trusted = format!("ca = \"{ca}\"\nserver_name = \"localhost\"");
    let (said, document) = Place::new().experiment(&over_tls(&nginx, &trusted));
    expect_holds(&said, &document);
    assert_eq!(trial(&document)["vegeta"]["status_codes"], json!({"200": 50}));
    assert_eq!(document["fidelity"], json!([]));
    let (said, document) =
        Place::new().experiment(&over_tls(&nginx, "server_name = \"localhost\""));
    said.expect_code(1).expect_stderr("system.deploy.ca").expect_stderr("--insecure");
    assert_eq!(document, serde_json::Value::Null);
    let (said, document) = Place::new().experiment(&over_tls(&nginx, "insecure = true"));
    expect_holds(&said, &document);
    assert_eq!(trial(&document)["vegeta"]["status_codes"], json!({"200": 50}));
    let told = document["fidelity"][0].as_str().unwrap_or_default();
    assert!(told.contains("certificate was not verified"), "{told}");
}

/// Claim: 429 is a limiter, 503 an overload and 500 the server's failure, and none of them the client's; 302 is
/// an answer like any other and is not followed.
#[test]
fn statuses_are_what_they_mean() {
    let Some(nginx) = Nginx::start("statuses_are_what_they_mean", None) else { return };
    let _beside = beside_others();
    let place = Place::new();
    let paths = ["/limited", "/broken", "/busy", "/moved"];
    let targets: Vec<String> =
        paths.iter().map(|path| format!("GET {}\n", nginx.url(path))).collect();
    place.write("targets.txt", targets.join("\n"));
    let (said, document) = place.experiment(
        r#"
        system = { kind = "http" }
        load = { rate = "80/s", connections = 4, warmup = "0s", duration = "1s", timeout = "5s" }
        workload = { targets = "targets.txt", preflight = false }
        "#,
    );
    // What the server refuses is its own business, and no promise says otherwise.
    expect_holds(&said, &document);
    let counts = &trial(&document)["counts"];
    assert_eq!(number(&counts["committed"]), 20);
    let classes = json!({"limited": 20, "overloaded": 20, "server": 20});
    assert_eq!(counts["rejected_by_class"], classes);
    let codes = json!({"302": 20, "429": 20, "500": 20, "503": 20});
    assert_eq!(trial(&document)["vegeta"]["status_codes"], codes);
    assert_eq!((nginx.seen("/moved"), nginx.seen("/")), (20, 0), "the redirect was followed");
    let errors = &trial(&document)["vegeta"]["errors"];
    let expected = json!([
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Temporarily Unavailable"
    ]);
    assert_eq!(*errors, expected);
    expect_audit(&document, "client_failures", "ok", "no failure of the client itself");
}

/// Claim: no file of a run holds a secret that came with a header, a URL or the environment, and the request
/// carries it all the same.
#[test]
fn secrets_are_stored_nowhere() {
    let Some(nginx) = Nginx::start("secrets_are_stored_nowhere", None) else { return };
    let _beside = beside_others();
    let place = Place::new();
    let url = nginx.url("/");
    let mut arguments =
        vec!["run", &url, "--rate", "50/s", "--duration", "500ms", "--warmup", "0s"];
    arguments.extend(["-H", "Authorization: Bearer s3cret", "-H", "X-Api-Key: env:MY_KEY"]);
    arguments.extend(["-H", "Cookie: session=c00kie"]);
    arguments.extend(QUIETLY);
    let said = harness::finish(place.command(&arguments).env("MY_KEY", "k3y-of-mine"));
    expect_holds(&said, &place.report().1);
    let mut files = 0;
    for_each_file(&place.run_folder(), &mut |path, bytes| {
        files += 1;
        for secret in ["s3cret", "k3y-of-mine", "c00kie"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds {secret}", path.display());
        }
    });
    assert!(files > 5, "{files} files");
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(
        ["s3cret", "k3y-of-mine", "c00kie"].iter().all(|secret| !all.contains(secret)),
        "{all}"
    );
    let kept = std::fs::read_to_string(place.run_folder().join("experiment.toml")).unwrap();
    assert!(kept.contains("Authorization") && kept.contains("env:MY_KEY"), "{kept}");
}

fn for_each_file(folder: &Path, f: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_file(&path, f);
        } else {
            f(&path, &std::fs::read(&path).unwrap());
        }
    }
}

/// Claim: nginx is loaded over HTTP/2, by prior knowledge and by ALPN over TLS, with many requests on few connections: it has
/// seen each of them as HTTP/2, and the counts are its own.
#[test]
fn over_http2() {
    let _beside = beside_others();
    for constraints in [None, Some("CA:FALSE")] {
        let Some(nginx) = Nginx::start_with("HTTP/2", constraints, " http2") else { return };
        let scheme = if constraints.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}/index.html", nginx.server.address);
        let place = Place::new();
        let load =
            ["--clients", "64", "--connections", "4", "--duration", "30s", "--warmup", "0s", "-k"];
        let load = &load[..if constraints.is_some() { 9 } else { 8 }];
        let more = [
            "--http2",
            "--set",
            "load.transactions_max=3000",
            "--no-calibration",
            "--progress",
            "none",
        ];
        let said = place
            .assay(&["run", &url].iter().chain(load).chain(&more).copied().collect::<Vec<_>>());
        assert!([0, 97].contains(&said.code), "{}\n{}", said.stdout, said.stderr);
        let (_, document) = place.report();
        let counts = &trial(&document)["counts"];
        assert_eq!(counts["due"], 3_000, "{counts}");
        // A connection is given up after a thousand requests, and what was on its way then was not processed.
        let committed = counts["committed"].as_u64().unwrap();
        assert!(committed > 2_700, "{counts}");
        let log = std::fs::read_to_string(nginx.place.path().join("access.log")).unwrap();
        let seen = log.lines().filter(|line| line.contains("\"GET /index.html HTTP/2.0\" 200"));
        assert_eq!(seen.count() as u64, committed, "{counts}");
    }
}

/// Claim: a server that answers a request whose body it does not want, and ends the stream with a reset, has refused it, and
/// its connections stay.
#[test]
fn a_body_that_is_too_large_over_http2() {
    let more = " http2; client_max_body_size 1k";
    let Some(nginx) = Nginx::start_with("a refused body", None, more) else { return };
    let place = Place::new();
    place.write("body", "x".repeat(300_000));
    place.write("targets.txt", format!("POST {}\n@body\n", nginx.url("/")));
    let (_, document) = place.experiment(
        r#"
        system.kind = "http"
        load = { rate = "50/s", connections = 2, warmup = "0s", duration = "1s", timeout = "30s" }
        workload = { targets = "targets.txt", preflight = false }
        [system.deploy]
        http_version = "2"
        "#,
    );
    let trial = trial(&document);
    assert_eq!(trial["vegeta"]["status_codes"], json!({"413": 50}), "{document}");
    assert_eq!(number(&trial["health"]["protocol_errors"]), 0, "{document}");
}

/// Claim: a server that speaks no HTTP/2 is told so, by what it answers.
#[test]
fn no_http2() {
    let Some(nginx) = Nginx::start("no HTTP/2", None) else { return };
    let place = Place::new();
    let url = nginx.url("/index.html");
    let said = place.assay(&[
        "run",
        &url,
        "--http2",
        "--rate",
        "5/s",
        "--duration",
        "1s",
        "--no-calibration",
    ]);
    assert_ne!(said.code, 0);
    assert!(
        said.stderr.contains("the server answers in HTTP/1.1, and not in HTTP/2"),
        "{}",
        said.stderr
    );
}
