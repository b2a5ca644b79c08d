//! A run's metrics, pushed to a receiver of the OpenTelemetry protocol over HTTP once a second, and once more at the end:
//! `--otlp http://127.0.0.1:4318`. On a thread of its own: nothing that the load does waits for it. A push that fails is not
//! made again, because the next one says all that it said; that pushes fail is said once.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, WallTime};
use http_adapter::Receiver;

use super::{Metrics, Shown, otlp};
use crate::terminal::say;

/// The time between two pushes.
const EVERY: Duration = Duration::from_secs(1);

/// The thread that pushes; it ends with the last state of the last trial when this is dropped.
pub struct Push {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Push {
    /// Begins to push to a URL.
    ///
    /// # Errors
    /// When it is no URL that can be posted to.
    pub fn start(metrics: &Metrics, url: &str, clock: Clock) -> Result<Self, String> {
        let failed = |why: String| format!("--otlp {url}: {why}");
        let headers = headers().map_err(failed)?;
        let receiver = Receiver::new(&endpoint(url), headers, clock).map_err(failed)?;
        let (end, ended) = channel();
        let (metrics, url) = (metrics.clone(), url.to_owned());
        let work = move || {
            let mut pushing = Pushing { receiver, url, has_failed: false };
            let mut last: Option<Arc<Shown>> = None;
            loop {
                let is_over = ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
                let now = metrics.now();
                // The end of a trial that another one has followed.
                let before = last
                    .take()
                    .filter(|before| now.as_ref().is_none_or(|now| !Arc::ptr_eq(before, now)));
                before.iter().chain(&now).for_each(|shown| pushing.push(shown));
                last = now;
                if is_over {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("otlp".to_owned()).spawn(work);
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It has said what there was to say.
            let _ = thread.join();
        }
    }
}

struct Pushing {
    receiver: Receiver,
    url: String,
    has_failed: bool,
}

impl Pushing {
    fn push(&mut self, shown: &Shown) {
        let body = otlp::request(shown, WallTime::now().unix_ns());
        let pushed = self.receiver.post("application/x-protobuf", &body);
        if let Err(why) = pushed
            && !std::mem::replace(&mut self.has_failed, true)
        {
            let url = &self.url;
            say!("assay: --otlp {url}: {why}; the run goes on, and each second is tried anew");
        }
    }
}

/// Where metrics go below a receiver's base (opentelemetry.io, *OTLP exporter configuration*). A query stays after the path.
fn endpoint(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (base, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let base = base.trim_end_matches('/');
    let path = if base.ends_with("/v1/metrics") { "" } else { "/v1/metrics" };
    format!("{base}{path}{query}")
}

/// `OTEL_EXPORTER_OTLP_HEADERS`: names and values, such as `api-key=k,x=y`.
fn headers() -> Result<Vec<(String, String)>, String> {
    const VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(Vec::new()) };
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(format!("{VARIABLE}: expected NAME=VALUE pairs, separated by commas")),
    };
    pairs.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    /// Claim: the path of metrics stands after a base, once.
    #[test]
    fn endpoints() {
        for (url, expected) in [
            ("http://h:4318", "http://h:4318/v1/metrics"),
            ("http://h:4318/", "http://h:4318/v1/metrics"),
            ("http://h:9090/api/v1/otlp", "http://h:9090/api/v1/otlp/v1/metrics"),
            ("http://h/x/v1/metrics", "http://h/x/v1/metrics"),
            ("http://h:4318/?key=7/", "http://h:4318/v1/metrics?key=7/"),
            ("http://h:4318?key=7#here", "http://h:4318/v1/metrics?key=7"),
        ] {
            assert_eq!(endpoint(url), expected);
        }
    }
}
