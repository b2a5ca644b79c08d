//! A distribution by percentile: how it is stepped through, and how it is written. Values are milliseconds, as
//! HdrHistogram's tools print them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use stats::{Histogram, PercentileStep, percentile_steps};

/// One line: so many samples are at most so large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// Milliseconds.
    pub value_ms: f64,
    /// A fraction of one.
    pub quantile: f64,
    /// Samples up to the value.
    pub count: u64,
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// What it is of: a stage, an interval log's tag; empty if the file does not say.
    pub tag: String,
    /// Transactions that were due, where that is known: more than samples if some never ended.
    pub due: Option<u64>,
    /// Samples.
    pub count: u64,
    /// Milliseconds.
    pub mean_ms: f64,
    /// Milliseconds.
    pub deviation_ms: f64,
    /// Milliseconds.
    pub max_ms: f64,
    /// The lines, ascending.
    pub lines: Vec<Percentile>,
}

/// Steps for each halving of what lies above, as HdrHistogram's tools have it.
const TICKS_PER_HALF: u32 = 5;
const NS_PER_MS: f64 = 1e6;

/// The distribution of nanoseconds in a histogram, in milliseconds.
pub(crate) fn of_histogram(histogram: &Histogram, tag: &str, due: u64) -> Percentiles {
    let moments = histogram.moments();
    let max = moments.max().unwrap_or(0);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    if histogram.negative() > 0 {
        // They rank below all others and have no bucket; the smallest sample stands for them.
        counts.insert(moments.min().unwrap_or(0), histogram.negative());
    }
    for (high, count) in histogram.buckets() {
        *counts.entry(high.min(max)).or_default() += count;
    }
    let mean_ms = moments.mean().unwrap_or(0.0) / NS_PER_MS;
    let deviation_ms = moments.variance().unwrap_or(0.0).max(0.0).sqrt() / NS_PER_MS;
    Percentiles { due: Some(due), ..of_counts(tag, &counts, mean_ms, deviation_ms) }
}

/// The distribution of counts by the highest nanosecond of their slot.
#[expect(clippy::cast_precision_loss, reason = "for people and plots")]
pub(crate) fn of_counts(
    tag: &str,
    counts: &BTreeMap<i64, u64>,
    mean_ms: f64,
    deviation_ms: f64,
) -> Percentiles {
    let total = counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let ms = |ns: i64| ns as f64 / NS_PER_MS;
    let slots = counts.iter().map(|(high, count)| (*high, *count));
    let line = |step: PercentileStep| Percentile {
        value_ms: ms(step.value),
        quantile: step.q,
        count: step.count,
    };
    let mut lines: Vec<Percentile> =
        percentile_steps(slots, total, TICKS_PER_HALF).into_iter().map(line).collect();
    let max_ms =
        counts.iter().rev().find(|(_, count)| **count > 0).map_or(0.0, |(high, _)| ms(*high));
    if total > 0 && lines.last().is_none_or(|last| last.quantile < 1.0) {
        lines.push(Percentile { value_ms: max_ms, quantile: 1.0, count: total });
    }
    Percentiles {
        tag: tag.to_owned(),
        due: None,
        count: total,
        mean_ms,
        deviation_ms,
        max_ms,
        lines,
    }
}

/// HdrHistogram's percentile output. A comment says what it is of and in which unit.
#[must_use]
pub fn hgrm_text(percentiles: &Percentiles) -> String {
    let mut text = String::new();
    let Percentiles { tag, count, mean_ms, deviation_ms, max_ms, .. } = percentiles;
    let of = if tag.is_empty() { "Values".to_owned() } else { format!("Response times: {tag}") };
    let due = percentiles.due.map_or(String::new(), |due| format!(" of {due} that were due"));
    put(&mut text, format_args!("#[{}, in milliseconds; {count} samples{due}]\n", one_line(&of)));
    put(
        &mut text,
        format_args!(
            "{:>12} {:>14} {:>10} {:>14}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        ),
    );
    for Percentile { value_ms, quantile, count } in &percentiles.lines {
        put(&mut text, format_args!("{value_ms:>12.3} {quantile:.12} {count:>10}"));
        if *quantile < 1.0 {
            put(&mut text, format_args!(" {:>14.2}", 1.0 / (1.0 - quantile)));
        }
        text.push('\n');
    }
    put(
        &mut text,
        format_args!("#[Mean    = {mean_ms:>12.3}, StdDeviation   = {deviation_ms:>12.3}]\n"),
    );
    put(&mut text, format_args!("#[Max     = {max_ms:>12.3}, Total count    = {count:>12}]\n"));
    text
}

fn put(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("memory takes everything");
}

/// Without line breaks and brackets, which would end the comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == ']' { '_' } else { c }).collect()
}

/// Comma-separated: `tag,quantile,value_ms,count`.
#[must_use]
pub fn percentiles_csv(all: &[Percentiles]) -> String {
    let mut out = b"tag,quantile,value_ms,count\n".to_vec();
    for percentiles in all {
        for Percentile { value_ms, quantile, count } in &percentiles.lines {
            crate::delimited::put_field(&mut out, &percentiles.tag);
            out.extend_from_slice(format!(",{quantile},{value_ms},{count}\n").as_bytes());
        }
    }
    String::from_utf8(out).expect("it was put together from texts")
}

/// One JSON object a line, with the keys of the CSV form.
#[must_use]
pub fn percentiles_ndjson(all: &[Percentiles]) -> String {
    let mut text = String::new();
    for percentiles in all {
        for Percentile { value_ms, quantile, count } in &percentiles.lines {
            let tag = &percentiles.tag;
            let line =
                json!({ "tag": tag, "quantile": quantile, "value_ms": value_ms, "count": count });
            put(&mut text, format_args!("{line}\n"));
        }
    }
    text
}

/// One JSON document.
#[must_use]
pub fn percentiles_json(all: &[Percentiles]) -> String {
    let one = |percentiles: &Percentiles| {
        let line = |line: &Percentile| json!({ "quantile": line.quantile, "value_ms": line.value_ms, "count": line.count });
        json!({
            "tag": percentiles.tag,
            "count": percentiles.count,
            "mean_ms": percentiles.mean_ms,
            "deviation_ms": percentiles.deviation_ms,
            "max_ms": percentiles.max_ms,
            "percentiles": percentiles.lines.iter().map(line).collect::<Vec<_>>(),
        })
    };
    let all: Vec<_> = all.iter().map(one).collect();
    format!("{:#}\n", json!({ "schema": "assay.percentiles/1", "distributions": all }))
}
