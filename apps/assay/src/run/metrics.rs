//! A run's metrics, served in OpenMetrics while it goes on (`--metrics 127.0.0.1:9464`), and pushed ([`push`]). One request at a
//! time; nothing but GET /metrics is answered, and nothing that the load does waits for it.

mod otlp;
pub mod push;

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use clock::WallTime;
use load::Phase;
use model::Outcome;

use super::progress::Title;
use super::watch::{BOUNDS_NS, KINDS_MAX, Watched};
use crate::served::{self, Answer};

/// The media type of what is served (OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The server, and the trial that it tells of.
#[derive(Clone, Default)]
pub struct Metrics {
    shown: Arc<Mutex<Option<Arc<Shown>>>>,
}

struct Shown {
    title: Title,
    kinds: Vec<String>,
    watched: Watched,
    /// When it began, nanoseconds of Unix time.
    began_ns: i64,
}

impl Metrics {
    /// Listens, and serves until the process ends. Gives the address, whose port is a free one where 0 was asked for.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn serve(&self, address: SocketAddr) -> Result<SocketAddr, String> {
        let this = self.clone();
        served::listen("--metrics", address, move |stream| {
            // A reader that is gone is no concern of the run.
            let _ = this.answer(stream);
        })
    }

    /// From now on this trial is told of.
    pub fn trial(&self, title: Title, kinds: Vec<String>, watched: Watched) {
        let began_ns = WallTime::now().unix_ns();
        let shown = Arc::new(Shown { title, kinds, watched, began_ns });
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }

    /// The present trial.
    fn now(&self) -> Option<Arc<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let Some(asked) = served::asked(&mut stream)? else { return Ok(()) };
        let is_it = asked.path == "/metrics";
        let (status, body) = match (asked.method.as_str(), is_it) {
            ("GET" | "HEAD", true) => ("200 OK", self.text()),
            ("GET" | "HEAD", false) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
            _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
        };
        let kind = if status.starts_with("200") { OPEN_METRICS } else { "text/plain" };
        served::answer(&mut stream, &asked, &Answer { status, kind, fields: "", body: &body })
    }

    /// The page, whatever the run is doing.
    fn text(&self) -> String {
        let text = self.now().map_or_else(String::new, |shown| shown.text());
        format!("{}# EOF\n", model::secret::scrub(&text))
    }
}

impl Shown {
    fn text(&self) -> String {
        let mut page = Page { labels: self.labels(), text: String::new() };
        for family in self.families() {
            page.family(&family);
        }
        page.text
    }

    /// The labels of every sample.
    fn labels(&self) -> [(&'static str, String); 3] {
        let Title { name, key, position, .. } = &self.title;
        [("experiment", name.clone()), ("setting", key.clone()), ("trial", position.to_string())]
    }

    /// The trial until now, as metrics.
    fn families(&self) -> Vec<Family> {
        let now = self.watched.live.snapshot();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let phase = |(phase, name): (Phase, &str)| Sample {
            labels: vec![("assay_phase", name.to_owned())],
            value: f64::from(u8::from(now.phase == phase)),
        };
        let phases = [
            (Phase::Opening, "connect"),
            (Phase::Warmup, "warmup"),
            (Phase::Measure, "measure"),
            (Phase::Drain, "drain"),
            (Phase::Done, "done"),
        ];
        let one = |name, kind, help, value| Family {
            name,
            help,
            of: Samples::Numbers(kind, vec![Sample { labels: Vec::new(), value }]),
        };
        let info = Sample { labels: vec![("version", version)], value: 1.0 };
        let lag = now.own_lag_p99_ns.map(seconds).into_iter();
        let lag = lag.map(|value| Sample { labels: Vec::new(), value }).collect();
        let mut families = vec![
            Family {
                name: "assay_trial",
                help: "The trial that is running",
                of: Samples::Numbers(Kind::Info, vec![info]),
            },
            one(
                "assay_elapsed_seconds",
                Kind::Gauge,
                "Time since the trial's start",
                now.elapsed.as_secs_f64(),
            ),
            Family {
                name: "assay_phase",
                help: "Where the trial is",
                of: Samples::Numbers(Kind::StateSet, phases.map(phase).into()),
            },
            one(
                "assay_due",
                Kind::Counter,
                "Transactions that have fallen due",
                count(now.offered),
            ),
            one("assay_sent", Kind::Counter, "Transactions that were sent", count(now.sent)),
            one(
                "assay_outstanding",
                Kind::Gauge,
                "Transactions that were sent and have not ended",
                count(now.outstanding),
            ),
            one(
                "assay_backlog",
                Kind::Gauge,
                "Transactions that are due and wait for a connection",
                count(now.backlog),
            ),
            Family {
                name: "assay_own_lag_p99_seconds",
                help: "The instrument's own lateness, last second",
                of: Samples::Numbers(Kind::Gauge, lag),
            },
        ];
        families.extend(self.ended());
        families
    }

    /// Ended transactions: their fates and their times.
    fn ended(&self) -> [Family; 2] {
        let ended = self.watched.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = |((kind, outcome), number): (&(u32, Outcome), &u64)| {
            let kind = self.kinds.get(*kind as usize).filter(|_| (*kind as usize) < KINDS_MAX);
            let kind = kind.map_or("others", String::as_str).to_owned();
            let (outcome, class) = words(*outcome);
            let labels =
                vec![("kind", kind), ("outcome", outcome.to_owned()), ("class", class.to_owned())];
            Sample { labels, value: count(*number) }
        };
        #[expect(clippy::cast_precision_loss, reason = "a sum of times, for people")]
        let sum = ended.sum_ns as f64 / 1e9;
        [
            Family {
                name: "assay_transactions",
                help: "Transactions that have ended, by kind and outcome",
                of: Samples::Numbers(Kind::Counter, ended.outcomes.iter().map(of_kind).collect()),
            },
            Family {
                name: "assay_response_seconds",
                help: "Response time from the due time, of what was committed",
                of: Samples::Histogram {
                    bounds: BOUNDS_NS.iter().map(|ns| seconds(*ns)).collect(),
                    buckets: ended.buckets.to_vec(),
                    count: ended.committed,
                    sum,
                },
            },
        ]
    }
}

/// A metric: its name without what a form puts after it.
struct Family {
    name: &'static str,
    help: &'static str,
    of: Samples,
}

enum Samples {
    Numbers(Kind, Vec<Sample>),
    /// The numbers of each bucket: up to each bound, and beyond the last.
    Histogram {
        bounds: Vec<f64>,
        buckets: Vec<u64>,
        count: u64,
        sum: f64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Info,
    StateSet,
    Counter,
    Gauge,
}

struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// Families of samples in OpenMetrics, each with the labels of the trial.
struct Page {
    labels: [(&'static str, String); 3],
    text: String,
}

impl Page {
    fn family(&mut self, family: &Family) {
        let Family { name, help, of } = family;
        let (kind, suffix) = match of {
            Samples::Histogram { .. } => ("histogram", ""),
            Samples::Numbers(Kind::Info, _) => ("info", "_info"),
            Samples::Numbers(Kind::StateSet, _) => ("stateset", ""),
            Samples::Numbers(Kind::Counter, _) => ("counter", "_total"),
            Samples::Numbers(Kind::Gauge, _) => ("gauge", ""),
        };
        let _ = writeln!(self.text, "# TYPE {name} {kind}\n# HELP {name} {help}.");
        match of {
            Samples::Numbers(_, samples) => {
                for Sample { labels, value } in samples {
                    self.sample(name, suffix, labels, *value);
                }
            }
            Samples::Histogram { bounds, buckets, count: number, sum } => {
                let mut all = 0;
                for (nth, number) in buckets.iter().enumerate() {
                    all += number;
                    let bound = bounds.get(nth).map_or("+Inf".to_owned(), f64::to_string);
                    self.sample(name, "_bucket", &[("le", bound)], count(all));
                }
                self.sample(name, "_count", &[], count(*number));
                self.sample(name, "_sum", &[], *sum);
            }
        }
    }

    fn sample(&mut self, name: &str, suffix: &str, more: &[(&'static str, String)], value: f64) {
        let all = self.labels.iter().chain(more);
        let labels: Vec<String> =
            all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(self.text, "{name}{suffix}{{{}}} {value}", labels.join(","));
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
    use std::io::{Read as _, Write as _};

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
