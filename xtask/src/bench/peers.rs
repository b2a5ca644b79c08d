//! How each load generator is called for the same task, and how its own report is read. Nothing is derived
//! that a tool does not print itself.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// What is asked of a tool.
#[derive(Clone, Debug)]
pub struct Task {
    /// The target.
    pub url: String,
    /// Connections (or workers, where the tool knows no connections).
    pub connections: u32,
    /// Seconds.
    pub seconds: u32,
    /// Requests a second; `None` is a closed loop as fast as it goes.
    pub rate: Option<u32>,
    /// Folder for files that the tool wants.
    pub folder: PathBuf,
}

/// What a tool said at its end. Latencies in milliseconds, `None` where it does not print one.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub requests: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// How late the tool itself sent, at p99; no peer says.
    pub own_lag_p99_ms: Option<f64>,
}

/// A load generator.
pub struct Peer {
    /// As it is called in tables.
    pub name: &'static str,
    /// The program to look for.
    pub program: &'static str,
    /// Its arguments for a task; `None` if it cannot do it.
    pub arguments: fn(&Task) -> Option<Vec<String>>,
    /// Reads its standard output (and files in the task's folder).
    pub read: fn(&str, &Path) -> Said,
}

/// Every peer that a table can have.
pub const PEERS: [Peer; 7] = [
    Peer { name: "wrk", program: "wrk", arguments: wrk, read: read_wrk },
    Peer { name: "h2load", program: "h2load", arguments: h2load, read: read_h2load },
    Peer { name: "oha", program: "oha", arguments: oha, read: read_oha },
    Peer { name: "oha, corrected", program: "oha", arguments: oha_corrected, read: read_oha },
    Peer { name: "fortio", program: "fortio", arguments: fortio, read: read_fortio },
    Peer { name: "hey", program: "hey", arguments: hey, read: read_hey },
    Peer { name: "k6", program: "k6", arguments: k6, read: read_k6 },
];

/// Assay itself, called as a user would.
pub fn assay(task: &Task) -> Vec<String> {
    let mut words = vec!["run".to_owned(), task.url.clone()];
    match task.rate {
        Some(rate) => words.extend(["--rate".to_owned(), format!("{rate}/s")]),
        None => words.extend(["--clients".to_owned(), task.connections.to_string()]),
    }
    words.extend(["--connections".to_owned(), task.connections.to_string()]);
    words.extend(["--duration".to_owned(), format!("{}s", task.seconds)]);
    for word in
        ["--threads", "1", "--warmup", "0s", "--json", "--progress", "none", "--no-calibration"]
    {
        words.push(word.to_owned());
    }
    words.push("--runs".to_owned());
    words.push(task.folder.join("runs").display().to_string());
    words
}

/// Reads `assay run --json`.
pub fn read_assay(text: &str) -> Said {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Said::default() };
    let trial = &document["settings"][0]["trials"][0];
    let response = &trial["latency"][0]["response"];
    let quantile_of = |distribution: &Value, name: &str| {
        let quantiles = distribution["quantiles"].as_array()?;
        let found = quantiles.iter().find(|q| q["name"] == name)?;
        found["value_ns"].as_f64().map(|ns| ns / 1e6)
    };
    let quantile = |name: &str| quantile_of(response, name);
    Said {
        requests: trial["counts"]["committed"].as_f64(),
        p50_ms: quantile("p50"),
        p95_ms: quantile("p95"),
        p99_ms: quantile("p99"),
        p999_ms: quantile("p99.9"),
        max_ms: response["max_ns"].as_f64().map(|ns| ns / 1e6),
        own_lag_p99_ms: quantile_of(&trial["own_lag"], "p99"),
    }
}

/// The most that pacing without an engine is asked for: two wake-ups fit between two requests.
const BARE_RATE_MAX: u32 = 10_000;

/// Pacing without an engine (`closed_loop bare`): what the others' costs can be held against.
pub fn bare(task: &Task) -> Option<Vec<String>> {
    // One request at a time: it would fall behind a faster rate.
    let rate = task.rate.filter(|rate| *rate <= BARE_RATE_MAX)?;
    let address = task.url.trim_start_matches("http://").trim_end_matches('/');
    Some(words(&format!("bare {address} --rate {rate} --seconds {}", task.seconds)))
}

/// Reads its line.
pub fn read_bare(text: &str, _: &Path) -> Said {
    let value = |name: &str| {
        let mut found = text.split_whitespace().filter_map(|word| word.split_once('='));
        found.find(|(known, _)| *known == name)?.1.parse().ok()
    };
    Said {
        requests: value("requests"),
        p50_ms: value("p50"),
        p95_ms: value("p95"),
        p99_ms: value("p99"),
        p999_ms: value("p999"),
        max_ms: value("max"),
        own_lag_p99_ms: value("lag_p99"),
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn wrk(task: &Task) -> Option<Vec<String>> {
    if task.rate.is_some() {
        return None;
    }
    Some(words(&format!("-t1 -c{} -d{}s --latency {}", task.connections, task.seconds, task.url)))
}

fn read_wrk(text: &str, _: &Path) -> Said {
    let percent = |name: &str| {
        let line = text.lines().find(|line| line.trim().starts_with(name))?;
        duration_ms(line.split_whitespace().nth(1)?)
    };
    let requests = text.lines().find(|line| line.contains(" requests in "));
    let maximum = text.lines().find(|line| line.trim().starts_with("Latency  "));
    Said {
        requests: requests.and_then(|line| line.split_whitespace().next()?.parse().ok()),
        p50_ms: percent("50%"),
        p99_ms: percent("99%"),
        max_ms: maximum.and_then(|line| duration_ms(line.split_whitespace().nth(3)?)),
        ..Said::default()
    }
}

fn h2load(task: &Task) -> Option<Vec<String>> {
    let mut line = format!("--h1 -t1 -c{} -D{}", task.connections, task.seconds);
    if let Some(rate) = task.rate {
        // The rate is each client's.
        line.push_str(&format!(" --rps={}", f64::from(rate) / f64::from(task.connections)));
    }
    Some(words(&format!("{line} {}", task.url)))
}

/// Reads `h2load`.
pub fn read_h2load(text: &str, _: &Path) -> Said {
    let requests = text.lines().find(|line| line.starts_with("requests:"));
    let times = text.lines().find(|line| line.starts_with("time for request:"));
    Said {
        requests: requests.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()),
        max_ms: times.and_then(|line| duration_ms(line.split_whitespace().nth(4)?)),
        ..Said::default()
    }
}

fn oha(task: &Task) -> Option<Vec<String>> {
    let rate = task.rate.map(|rate| format!("-q {rate} ")).unwrap_or_default();
    let (connections, seconds) = (task.connections, task.seconds);
    Some(words(&format!(
        "-z {seconds}s -c {connections} {rate}--no-tui --output-format json {}",
        task.url
    )))
}

fn oha_corrected(task: &Task) -> Option<Vec<String>> {
    task.rate?;
    let mut arguments = oha(task)?;
    arguments.insert(0, "--latency-correction".to_owned());
    Some(arguments)
}

fn read_oha(text: &str, _: &Path) -> Said {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Said::default() };
    let seconds = |value: &Value| value.as_f64().map(|s| s * 1e3);
    let percentiles = &document["latencyPercentiles"];
    let codes = document["statusCodeDistribution"].as_object();
    Said {
        requests: codes.map(|codes| codes.values().filter_map(Value::as_f64).sum()),
        p50_ms: seconds(&percentiles["p50"]),
        p95_ms: seconds(&percentiles["p95"]),
        p99_ms: seconds(&percentiles["p99"]),
        p999_ms: seconds(&percentiles["p99.9"]),
        max_ms: seconds(&document["summary"]["slowest"]),
        ..Said::default()
    }
}

fn fortio(task: &Task) -> Option<Vec<String>> {
    let rate = task.rate.unwrap_or(0);
    let (connections, seconds) = (task.connections, task.seconds);
    Some(words(&format!(
        "load -qps {rate} -c {connections} -t {seconds}s -r 0.00005 -p 50,95,99,99.9 -loglevel Error -json - {}",
        task.url
    )))
}

fn read_fortio(text: &str, _: &Path) -> Said {
    let start = text.find('{').unwrap_or(0);
    let Ok(document) = serde_json::from_str::<Value>(&text[start..]) else {
        return Said::default();
    };
    let histogram = &document["DurationHistogram"];
    let percent = |wanted: f64| {
        let list = histogram["Percentiles"].as_array()?;
        let found = list.iter().find(|p| p["Percentile"].as_f64() == Some(wanted))?;
        found["Value"].as_f64().map(|s| s * 1e3)
    };
    Said {
        requests: histogram["Count"].as_f64(),
        p50_ms: percent(50.0),
        p95_ms: percent(95.0),
        p99_ms: percent(99.0),
        p999_ms: percent(99.9),
        max_ms: histogram["Max"].as_f64().map(|s| s * 1e3),
        ..Said::default()
    }
}

fn hey(task: &Task) -> Option<Vec<String>> {
    let (connections, seconds) = (task.connections, task.seconds);
    // The rate is each worker's.
    let rate = task
        .rate
        .map(|rate| format!("-q {} ", f64::from(rate) / f64::from(connections)))
        .unwrap_or_default();
    Some(words(&format!("-z {seconds}s -c {connections} {rate}{}", task.url)))
}

fn read_hey(text: &str, _: &Path) -> Said {
    let after = |name: &str| {
        let line = text.lines().find(|line| line.trim().starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    let percent = |name: &str| {
        let line = text.lines().find(|l| l.trim().starts_with(name) && l.contains(" in "))?;
        line.split_whitespace().nth(2)?.parse::<f64>().ok().map(|s| s * 1e3)
    };
    let responses = text.lines().filter(|line| line.trim_end().ends_with(" responses"));
    let counts = responses.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    Said {
        requests: Some(counts.sum()),
        p50_ms: percent("50%"),
        p95_ms: percent("95%"),
        p99_ms: percent("99%"),
        max_ms: after("Slowest:").map(|s| s * 1e3),
        ..Said::default()
    }
}

fn k6(task: &Task) -> Option<Vec<String>> {
    let (url, seconds) = (&task.url, task.seconds);
    let scenario = match task.rate {
        None => {
            format!("executor: 'constant-vus', vus: {}, duration: '{seconds}s'", task.connections)
        }
        Some(rate) => format!(
            "executor: 'constant-arrival-rate', rate: {rate}, timeUnit: '1s', duration: '{seconds}s', preAllocatedVUs: {}, maxVUs: 2000",
            (rate / 10).clamp(100, 1000)
        ),
    };
    let script = format!(
        "import http from 'k6/http';\nexport const options = {{ discardResponseBodies: true, scenarios: {{ s: {{ {scenario} }} }} }};\nexport default function () {{ http.get('{url}'); }}\n"
    );
    std::fs::write(task.folder.join("k6.js"), script).ok()?;
    let folder = task.folder.display();
    Some(words(&format!(
        "run --no-usage-report -q --summary-trend-stats min,med,p(95),p(99),p(99.9),max --summary-export {folder}/k6.json {folder}/k6.js"
    )))
}

fn read_k6(_: &str, folder: &Path) -> Said {
    let text = std::fs::read_to_string(folder.join("k6.json")).unwrap_or_default();
    let Ok(document) = serde_json::from_str::<Value>(&text) else { return Said::default() };
    let trend = &document["metrics"]["http_req_duration"];
    Said {
        requests: document["metrics"]["http_reqs"]["count"].as_f64(),
        p50_ms: trend["med"].as_f64(),
        p95_ms: trend["p(95)"].as_f64(),
        p99_ms: trend["p(99)"].as_f64(),
        p999_ms: trend["p(99.9)"].as_f64(),
        max_ms: trend["max"].as_f64(),
        ..Said::default()
    }
}

/// `480.00us`, `1.21ms`, `1.00s` in milliseconds.
fn duration_ms(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    match &text[split..] {
        "us" => Some(number / 1e3),
        "ms" => Some(number),
        "s" => Some(number * 1e3),
        "m" => Some(number * 6e4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what the pacing without an engine says is read, and that it is asked only where there is a rate.
    #[test]
    fn the_bare_line() {
        let said = read_bare("requests=2000 p50=0.1 p999=2.5 lag_p99=0.04\n", Path::new("."));
        assert_eq!((said.requests, said.p50_ms, said.p99_ms), (Some(2000.0), Some(0.1), None));
        assert_eq!((said.p999_ms, said.own_lag_p99_ms), (Some(2.5), Some(0.04)));
        let task = |rate| Task {
            url: "http://127.0.0.1:80/".to_owned(),
            connections: 64,
            seconds: 4,
            rate,
            folder: PathBuf::new(),
        };
        assert_eq!(bare(&task(None)), None);
        let asked = bare(&task(Some(10))).map(|words| words.join(" "));
        assert_eq!(asked.as_deref(), Some("bare 127.0.0.1:80 --rate 10 --seconds 4"));
    }

    /// Claim: what wrk and hey print at their ends is read as they mean it.
    #[test]
    fn text_reports() {
        let text = "Running 2s test @ http://127.0.0.1:8080/\n  1 threads and 64 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   480.00us    1.00ms   9.50ms   88.00%\n    Req/Sec   104.00k     3.10k  113.00k    70.00%\n  Latency Distribution\n     50%  450.00us\n     75%  500.00us\n     90%  600.00us\n     99%    1.20ms\n  212345 requests in 2.00s, 20.25MB read\nRequests/sec: 106172.50\n";
        let said = read_wrk(text, Path::new("."));
        assert_eq!(said.requests, Some(212_345.0));
        assert_eq!((said.p50_ms, said.p99_ms, said.max_ms), (Some(0.45), Some(1.2), Some(9.5)));
        let text = "\nSummary:\n  Total:\t10.0020 secs\n  Slowest:\t1.0010 secs\n\nLatency distribution:\n  50% in 0.0005 secs\n  95% in 0.0012 secs\n  99% in 0.0070 secs\n\nStatus code distribution:\n  [200]\t9152 responses\n";
        let said = read_hey(text, Path::new("."));
        assert_eq!(said.requests, Some(9152.0));
        let rounded =
            [said.p50_ms, said.p99_ms, said.max_ms].map(|ms| ms.map(|ms| (ms * 1e3).round()));
        assert_eq!(rounded, [Some(500.0), Some(7000.0), Some(1_001_000.0)]);
    }
}
