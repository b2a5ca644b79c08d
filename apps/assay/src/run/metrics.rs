//! A run's metrics, served in OpenMetrics while it goes on: `--metrics 127.0.0.1:9464`. One request at a time, bounded in bytes and
//! time; nothing but GET /metrics is answered, and nothing that the load does waits for it.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use load::Phase;
use model::Outcome;

use super::progress::Title;
use super::watch::{BOUNDS_NS, KINDS_MAX, Watched};

/// A reader that takes longer than this is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request that is read.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The media type of what is served (OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The server, and the trial that it tells of.
#[derive(Clone, Default)]
pub struct Metrics {
    shown: Arc<Mutex<Option<Shown>>>,
}

struct Shown {
    title: Title,
    kinds: Vec<String>,
    watched: Watched,
}

impl Metrics {
    /// Listens, and serves until the process ends. Gives the address, whose port is a free one where 0 was asked for.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn serve(&self, address: SocketAddr) -> Result<SocketAddr, String> {
        let failed = |error| {
            format!("--metrics {address}: {error}; is another run there? port 0 takes a free one")
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let this = self.clone();
        std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A reader that is gone is no concern of the run.
                    let _ = this.answer(stream);
                }
            })
            .map_err(failed)?;
        Ok(bound)
    }

    /// From now on this trial is told of.
    pub fn trial(&self, title: Title, kinds: Vec<String>, watched: Watched) {
        let shown = Shown { title, kinds, watched };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut request, mut piece) = (Vec::new(), [0; 1024]);
        while !request.windows(4).any(|four| four == b"\r\n\r\n") {
            let count = stream.read(&mut piece)?;
            if count == 0 || request.len() + count > REQUEST_BYTES_MAX {
                return Ok(());
            }
            request.extend_from_slice(&piece[..count]);
        }
        let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let is_it = target.split('?').next() == Some("/metrics");
        let (status, body) = match (method, is_it) {
            ("GET" | "HEAD", true) => ("200 OK", self.text()),
            ("GET" | "HEAD", false) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
            _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
        };
        let kind = if status.starts_with("200") { OPEN_METRICS } else { "text/plain" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        if method == "HEAD" { Ok(()) } else { stream.write_all(body.as_bytes()) }
    }

    /// The page, whatever the run is doing.
    fn text(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let text = shown.as_ref().map_or_else(String::new, Shown::text);
        format!("{}# EOF\n", model::secret::scrub(&text))
    }
}

impl Shown {
    fn text(&self) -> String {
        let now = self.watched.live.snapshot();
        let labels = format!(
            "experiment=\"{}\",setting=\"{}\",trial=\"{}\"",
            escaped(&self.title.name),
            escaped(&self.title.key),
            self.title.position
        );
        let mut page = Page { labels, text: String::new() };
        page.family("assay_trial", "info", "The trial that is running");
        page.sample("assay_trial_info", &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), 1.0);
        page.family("assay_elapsed_seconds", "gauge", "Time since the trial's start");
        page.sample("assay_elapsed_seconds", "", now.elapsed.as_secs_f64());
        page.family("assay_phase", "stateset", "Where the trial is");
        for (phase, name) in [
            (Phase::Opening, "connect"),
            (Phase::Warmup, "warmup"),
            (Phase::Measure, "measure"),
            (Phase::Drain, "drain"),
            (Phase::Done, "done"),
        ] {
            let label = format!("assay_phase=\"{name}\"");
            page.sample("assay_phase", &label, f64::from(u8::from(now.phase == phase)));
        }
        page.family("assay_due", "counter", "Transactions that have fallen due");
        page.sample("assay_due_total", "", count(now.offered));
        page.family("assay_sent", "counter", "Transactions that were sent");
        page.sample("assay_sent_total", "", count(now.sent));
        page.family("assay_outstanding", "gauge", "Transactions that were sent and have not ended");
        page.sample("assay_outstanding", "", count(now.outstanding));
        page.family(
            "assay_backlog",
            "gauge",
            "Transactions that are due and wait for a connection",
        );
        page.sample("assay_backlog", "", count(now.backlog));
        page.family(
            "assay_own_lag_p99_seconds",
            "gauge",
            "The instrument's own lateness, last second",
        );
        if let Some(ns) = now.own_lag_p99_ns {
            page.sample("assay_own_lag_p99_seconds", "", seconds(ns));
        }
        let ended = self.watched.ended.lock().unwrap_or_else(PoisonError::into_inner);
        page.family(
            "assay_transactions",
            "counter",
            "Transactions that have ended, by kind and outcome",
        );
        for ((kind, outcome), number) in &ended.outcomes {
            let kind = self.kinds.get(*kind as usize).filter(|_| (*kind as usize) < KINDS_MAX);
            let (outcome, class) = words(*outcome);
            let labels = format!(
                "kind=\"{}\",outcome=\"{outcome}\",class=\"{class}\"",
                escaped(kind.map_or("others", String::as_str))
            );
            page.sample("assay_transactions_total", &labels, count(*number));
        }
        page.family(
            "assay_response_seconds",
            "histogram",
            "Response time from the due time, of what was committed",
        );
        let mut sum = 0;
        for (nth, number) in ended.buckets.iter().enumerate() {
            sum += number;
            let bound = BOUNDS_NS.get(nth).map_or("+Inf".to_owned(), |ns| seconds(*ns).to_string());
            page.sample("assay_response_seconds_bucket", &format!("le=\"{bound}\""), count(sum));
        }
        page.sample("assay_response_seconds_count", "", count(ended.committed));
        #[expect(clippy::cast_precision_loss, reason = "a sum of times, for people")]
        let sum_s = ended.sum_ns as f64 / 1e9;
        page.sample("assay_response_seconds_sum", "", sum_s);
        page.text
    }
}

/// Families of samples, each with the labels of the trial.
struct Page {
    labels: String,
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# TYPE {name} {kind}\n# HELP {name} {help}.");
    }

    fn sample(&mut self, name: &str, more: &str, value: f64) {
        let comma = if more.is_empty() { "" } else { "," };
        let _ = writeln!(self.text, "{name}{{{}{comma}{more}}} {value}", self.labels);
    }
}

const fn words(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Committed => ("committed", ""),
        Outcome::Rejected(class) => ("rejected", class.word()),
        Outcome::Unknown => ("unknown", ""),
        Outcome::Shed => ("shed", ""),
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
const fn count(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a time, for people")]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use model::{Class, FinalStages, Row};

    use super::*;

    /// Claim: the page has each family once, every sample with the trial's labels, a histogram whose buckets grow to its
    /// count, names that stand in quotes as they are, and its end.
    #[test]
    fn the_page() {
        let metrics = Metrics::default();
        assert_eq!(metrics.text(), "# EOF\n");
        let watched = Watched::new(Arc::default());
        let mut row = Row { due: 0, sent: 0, end: 3_000_000, kind: 1, ..Row::EMPTY };
        row.marks[0] = 3_000_000;
        let refused = Row { outcome: Outcome::Rejected(Class::Limited), ..row };
        watched.rows(&[row, row, refused, Row { kind: 100_000, ..row }], FinalStages::all(0));
        let title = Title {
            name: "a \"b\"".into(),
            key: "rate=5/s".into(),
            position: 2,
            ..Title::default()
        };
        metrics.trial(title, vec!["x".into(), "GET /".into()], watched);
        let text = metrics.text();
        let trial = "experiment=\"a \\\"b\\\"\",setting=\"rate=5/s\",trial=\"2\"";
        for line in [
            format!(
                "assay_transactions_total{{{trial},kind=\"GET /\",outcome=\"committed\",class=\"\"}} 2"
            ),
            format!(
                "assay_transactions_total{{{trial},kind=\"GET /\",outcome=\"rejected\",class=\"limited\"}} 1"
            ),
            format!(
                "assay_transactions_total{{{trial},kind=\"others\",outcome=\"committed\",class=\"\"}} 1"
            ),
            format!("assay_response_seconds_bucket{{{trial},le=\"0.002\"}} 0"),
            format!("assay_response_seconds_bucket{{{trial},le=\"0.005\"}} 3"),
            format!("assay_response_seconds_bucket{{{trial},le=\"+Inf\"}} 3"),
            format!("assay_response_seconds_sum{{{trial}}} 0.009"),
            "# TYPE assay_response_seconds histogram".to_owned(),
        ] {
            assert_eq!(text.lines().filter(|it| **it == line).count(), 1, "{line}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        assert!(samples.clone().all(|line| line.contains(trial)) && samples.count() > 20);
    }

    /// Claim: nothing but GET /metrics is answered with figures, and a reader that says nothing is left.
    #[test]
    fn who_asks_what() {
        let metrics = Metrics::default();
        let address = metrics.serve("127.0.0.1:0".parse().unwrap()).unwrap();
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            // A request that is too long is left unread, and its connection reset.
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        assert!(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("\r\n\r\n# EOF\n"));
        assert!(ask("HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("Connection: close\r\n\r\n"));
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert_eq!(ask("GET /metrics"), "");
        assert_eq!(ask(&"x".repeat(20_000)), "");
        assert!(metrics.serve(address).unwrap_err().contains("is another run there?"));
    }
}
