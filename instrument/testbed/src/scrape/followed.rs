//! One node's series: what its answers said, and what became of its counters between two of them.
//!
//! It must never bridge a gap: a counter that went back, or a process that is another, begins again without a rate.

use clock::Instant;

use super::Scrape;

/// When a process began, in Unix seconds: what clients of Prometheus serve in most languages.
const STARTED: &str = "process_start_time_seconds";

/// A series that is kept.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    /// Which of the wanted metrics.
    metric: usize,
    per_second: bool,
    last: Option<(Instant, f64)>,
    pub(super) points: Vec<(Instant, f64)>,
}

/// What is kept of one node.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) source: String,
    /// Metrics to look for, sorted, each once.
    wanted: Vec<String>,
    pub(super) lines: Vec<Line>,
    started: Option<f64>,
}

impl Followed {
    pub(super) fn new(of: &Scrape) -> Self {
        let mut wanted: Vec<String> = of.series.iter().map(|it| it.metric.clone()).collect();
        wanted.push(STARTED.to_owned());
        wanted.sort();
        wanted.dedup();
        let line = |series: &super::ScrapeSeries| Line {
            name: series.series.name.clone(),
            metric: wanted.binary_search(&series.metric).expect("put in above"),
            per_second: series.per_second,
            last: None,
            points: Vec::new(),
        };
        let lines = of.series.iter().map(line).collect();
        Self { source: of.source.clone(), wanted, lines, started: None }
    }

    /// Takes an answer. Gives how many samples it made.
    pub(super) fn take(&mut self, at: Instant, text: &[u8]) -> usize {
        let values = super::parse::values(text, &self.wanted);
        let started = self.wanted.binary_search_by(|it| it.as_str().cmp(STARTED));
        let started = values[started.expect("put in when it was made")];
        if started != self.started {
            self.started = started;
            self.lines.iter_mut().for_each(|line| line.last = None);
        }
        let mut made = 0;
        for line in &mut self.lines {
            let value = values[line.metric];
            let point = match (line.per_second, value, line.last) {
                (false, value, _) => value,
                (true, Some(value), Some((before, last))) if value >= last => {
                    let seconds = at.saturating_since(before).as_secs_f64();
                    (seconds > 0.0).then(|| (value - last) / seconds)
                }
                _ => None,
            };
            if line.per_second {
                line.last = value.map(|value| (at, value));
            }
            if let Some(point) = point {
                line.points.push((at, point));
                made += 1;
            }
        }
        made
    }

    /// Merges neighbours: of rates the mean, of readings the later, which was true at its time. Gives how many
    /// samples are left.
    pub(super) fn thin(&mut self) -> usize {
        let mut left = 0;
        for line in &mut self.lines {
            let per_second = line.per_second;
            let merged = line.points.chunks(2).map(|pair| {
                let (at, later) = pair[pair.len() - 1];
                (at, if per_second { f64::midpoint(pair[0].1, later) } else { later })
            });
            line.points = merged.collect();
            left += line.points.len();
        }
        left
    }
}
