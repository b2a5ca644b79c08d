//! One line of JSON for a request, on the standard error: every failure up to a bound, and of the rest one in so many. A
//! thread of its own writes; a request never waits for it.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use clock::WallTime;
use serde_json::json;

/// Lines that wait for the writer; what comes beyond is counted and left out.
const WAITING_MAX: usize = 1024;
/// From this status on an answer is a failure.
const FAILED: u16 = 400;
/// Of a path this much is written.
const PATH_MAX: usize = 200;

/// A line.
#[derive(Debug)]
pub struct Line {
    pub client: std::net::IpAddr,
    pub path: String,
    pub method: String,
    pub status: u16,
    pub own: Duration,
    pub node: Option<Duration>,
}

/// See the module.
pub struct Log {
    lines: SyncSender<Line>,
    /// One in so many of what went well; 0: none.
    one_in: u64,
    seen: AtomicU64,
    left_out: std::sync::Arc<AtomicU64>,
}

impl Log {
    /// Starts the writer; it ends when the log does.
    pub fn start(one_in: u64) -> Result<Self, String> {
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let left_out = std::sync::Arc::new(AtomicU64::new(0));
        let told = std::sync::Arc::clone(&left_out);
        let writer = std::thread::Builder::new().name("log".to_owned());
        writer
            .spawn(move || write(&waiting, &told))
            .map_err(|error| format!("starting a thread: {error}"))?;
        Ok(Self { lines, one_in, seen: AtomicU64::new(0), left_out })
    }

    /// Whether a request with this status is to be logged.
    pub fn wants(&self, status: u16) -> bool {
        if status >= FAILED {
            return true;
        }
        self.one_in > 0 && self.seen.fetch_add(1, Relaxed).is_multiple_of(self.one_in)
    }

    /// Hands a line to the writer.
    pub fn say(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

fn write(waiting: &Receiver<Line>, left_out: &AtomicU64) {
    let mut out = std::io::stderr();
    while let Ok(line) = waiting.recv() {
        let missing = left_out.swap(0, Relaxed);
        // The reader has gone; requests go on.
        let _ = writeln!(out, "{}", text(&line, &WallTime::now().rfc3339(), missing));
    }
}

fn text(line: &Line, at: &str, missing: u64) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let path: String = line.path.chars().take(PATH_MAX).collect();
    let mut fields = json!({
        "at": at, "client": line.client.to_string(), "method": line.method, "path": path, "status": line.status, "own_ms": ms(line.own),
    });
    if let Some(node) = line.node {
        fields["node_ms"] = ms(node).into();
    }
    if missing > 0 {
        fields["lines_left_out_before"] = missing.into();
    }
    fields.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of what went well one in so many is logged, of failures each; a path cannot break a line.
    #[test]
    fn sampled() {
        let log = Log::start(10).unwrap();
        assert_eq!((0..100).filter(|_| log.wants(200)).count(), 10);
        assert!((0..100).all(|_| log.wants(502) && log.wants(401)));
        let line = Line {
            client: std::net::Ipv4Addr::LOCALHOST.into(),
            path: "/a\n\"b".to_owned(),
            method: "GET".to_owned(),
            status: 502,
            own: Duration::from_micros(21),
            node: Some(Duration::from_millis(3)),
        };
        let text = text(&line, "2026-11-22T00:00:00Z", 7);
        assert!(!text.contains('\n') && text.contains(r#""lines_left_out_before":7"#), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["node_ms"], 3.0);
    }
}
