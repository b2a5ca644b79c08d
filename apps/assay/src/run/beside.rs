//! Any target's own side: processes and metrics of a server that Assay has not started, named on the command line. They are
//! looked up once before the run, and then sampled as those of nodes are.

use std::collections::BTreeMap;
use std::fs;
use std::net::ToSocketAddrs as _;

use clock::Clock;
use model::facts::NodeFacts;
use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// Processes, and pages of metrics, that are looked at.
const SOURCES_MAX: usize = 16;
/// Metrics of one page that are kept; the first in alphabetical order.
const METRICS_MAX: usize = 100;

/// Processes and pages that are sampled beside the load.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Processes, by name.
    pub nodes: Vec<NodeFacts>,
    /// Pages of metrics.
    pub scrape: Vec<Scrape>,
}

impl Beside {
    /// Looks everything up: `--pid` and `--scrape`, each given any number of times.
    ///
    /// # Errors
    /// When there is no such process or page.
    pub fn find(pids: &[String], urls: &[String], clock: Clock) -> Result<Self, String> {
        let mut all = Self::default();
        for wanted in pids {
            all.nodes.append(&mut processes(wanted)?);
        }
        for (nth, url) in urls.iter().enumerate() {
            all.scrape.push(page(url, nth, clock)?);
        }
        if all.nodes.len().max(all.scrape.len()) > SOURCES_MAX {
            return Err(format!(
                "--pid and --scrape look at {SOURCES_MAX} processes and pages at most"
            ));
        }
        Ok(all)
    }

    /// The processes after the load, with what became of them.
    pub fn after(&self) -> Vec<NodeFacts> {
        let is_there = |pid: u32| fs::metadata(format!("/proc/{pid}")).is_ok();
        let with_end = |node: &NodeFacts| {
            let ended = if is_there(node.pid) { "" } else { "it was not there at the end" };
            NodeFacts { ended: ended.to_owned(), ..node.clone() }
        };
        self.nodes.iter().map(with_end).collect()
    }
}

/// The process with a number, or all that have a name.
fn processes(wanted: &str) -> Result<Vec<NodeFacts>, String> {
    let node = |name: String, pid| NodeFacts { name, pid, ..NodeFacts::default() };
    if let Ok(pid) = wanted.parse::<u32>() {
        let name = name_of(pid).ok_or_else(|| format!("--pid {pid}: there is no such process"))?;
        return Ok(vec![node(source(&name), pid)]);
    }
    let entries =
        fs::read_dir("/proc").map_err(|error| format!("--pid {wanted}: /proc: {error}"))?;
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<u32> = pids
        .filter(|pid| *pid != std::process::id() && name_of(*pid).as_deref() == Some(wanted))
        .collect();
    found.sort_unstable();
    if found.is_empty() {
        return Err(format!("--pid {wanted}: no process has this name; ps -e shows their names"));
    }
    let name = |nth: usize| match found.len() {
        1 => source(wanted),
        _ => format!("{}-{}", source(wanted), nth + 1),
    };
    Ok(found.iter().enumerate().map(|(nth, pid)| node(name(nth), *pid)).collect())
}

/// The kernel's name of a process: the first fifteen bytes of its program's name.
fn name_of(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// A name that thresholds can write.
fn source(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "process".to_owned() } else { name.to_owned() }
}

/// A page of metrics, asked for once: which there are, and of what kind.
fn page(url: &str, nth: usize, clock: Clock) -> Result<Scrape, String> {
    let failed = |why: String| format!("--scrape {url}: {why}");
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (authority, path) = rest
        .split_once('/')
        .map_or((rest, "/metrics".to_owned()), |(authority, path)| (authority, format!("/{path}")));
    let with_port =
        if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
    let mut addresses = with_port.to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let address = addresses.next().ok_or_else(|| failed("the name has no address".to_owned()))?;
    let (bytes, _) =
        http_adapter::fetch(&format!("http://{authority}{path}"), clock).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let series = series(&text);
    if series.is_empty() {
        return Err(failed("there is no metric in Prometheus's text format".to_owned()));
    }
    let source =
        format!("target{}", if nth == 0 { String::new() } else { format!("-{}", nth + 1) });
    Ok(Scrape { path, ..Scrape::new(&source, address, series) })
}

/// The metrics of a page: gauges as they are, counters by their increase each second.
fn series(text: &str) -> Vec<ScrapeSeries> {
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut names: BTreeMap<&str, bool> = BTreeMap::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            kinds.extend(typed.split_once(' '));
            continue;
        }
        let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let end = line.find(|c| !is_of_a_name(c)).unwrap_or(0);
        let name = &line[..end];
        if name.is_empty() || line.starts_with('#') {
            continue;
        }
        let base =
            ["_total", "_sum", "_count", "_bucket"].iter().find_map(|end| name.strip_suffix(end));
        let kind = kinds.get(name).or_else(|| kinds.get(base?)).copied().unwrap_or("untyped");
        let is_part = kind == "histogram" || kind == "summary";
        if is_part && !name.ends_with("_sum") && !name.ends_with("_count") {
            continue;
        }
        names.insert(name, is_part || kind.trim() == "counter" || name.ends_with("_total"));
    }
    let kept = names.into_iter().take(METRICS_MAX);
    kept.map(|(name, grows)| {
        let plain: String =
            name.chars().map(|c| if c == ':' { '_' } else { c.to_ascii_lowercase() }).collect();
        let unit = if grows { SeriesUnit::PerSecond } else { SeriesUnit::of("its own unit") };
        let facts = SeriesFacts::of_node(&format!("target_{plain}"), name, unit);
        ScrapeSeries::new(name, facts, grows)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of a page counters are kept by their increase, gauges as they are, of a histogram its sum and its count.
    #[test]
    fn what_is_kept_of_a_page() {
        let text = "# HELP a x\n# TYPE a counter\na_total{b=\"c\"} 1\na_total{b=\"d\"} 2\n# TYPE Temp gauge\nTemp 3\n\
                    # TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 2\nh_count 1\nuntyped 4\n# EOF\n";
        let kept: Vec<String> = series(text)
            .iter()
            .map(|it| format!("{} {} {}", it.metric, it.series.name, it.per_second))
            .collect();
        assert_eq!(
            kept,
            [
                "Temp target_temp false",
                "a_total target_a_total true",
                "h_count target_h_count true",
                "h_sum target_h_sum true",
                "untyped target_untyped false",
            ]
        );
    }

    /// Claim: this process is found by its number and another by its name; what is not there is told so.
    #[test]
    fn processes_are_found() {
        let own = processes(&std::process::id().to_string()).unwrap();
        assert_eq!(own.len(), 1);
        assert!(Beside { nodes: own, ..Beside::default() }.after()[0].ended.is_empty());
        let gone = NodeFacts { name: "x".into(), pid: u32::MAX, ..NodeFacts::default() };
        assert!(!Beside { nodes: vec![gone], ..Beside::default() }.after()[0].ended.is_empty());
        assert!(processes("4294967295").unwrap_err().contains("there is no such process"));
        assert!(processes("no such program").unwrap_err().contains("no process has this name"));
        assert_eq!(
            [source("Web Server"), source("(sd-pam)"), source("")],
            ["web-server", "sd-pam", "process"]
        );
    }
}
