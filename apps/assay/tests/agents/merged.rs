//! The figures of a run over agents are those of all its rows: of each agent's own record, read where the agent keeps it.

use std::collections::BTreeMap;
use std::io::BufReader;

use model::{Outcome, Row};
use record::{RunFolder, TrialFolder};

use super::{LIMIT, Spread, agents_of, experiment};
use crate::harness::{beside_others, number, trial};

/// All rows of a trial, in the order of their numbers.
fn rows_of(trial: &TrialFolder) -> Vec<Row> {
    let mut rows = Vec::new();
    let read = trial.for_each_batch(|batch| rows.extend_from_slice(batch));
    read.expect("its rows can be read");
    rows.sort_unstable_by_key(|row| row.tx);
    rows
}

/// The largest value of a bucket of HdrHistogram with three significant digits.
fn highest(value: i64) -> i64 {
    let value = u64::try_from(value).expect("no negative time");
    let octave = 53 - (value | 2_047).leading_zeros();
    i64::try_from((value >> octave << octave) + (1 << octave) - 1).expect("no age of the world")
}

/// Claim: the merged record holds the agents' own rows, all of them and nothing else; histogram (bucket for bucket, where
/// the report and the interval log show one), quantiles, extremes and counters are those that are computed from the
/// agents' rows.
#[test]
fn merged_figures_are_those_of_all_rows() {
    let _beside = beside_others();
    let Some(spread) = Spread::new() else { return };
    let (_server, place) = (spread.serve(), &spread.place);
    let agents = [spread.agent(), spread.agent(), spread.agent()];
    let poisson = "arrival = \"poisson\"\nrate = \"600/s\"";
    let said = spread.run(experiment(&spread.echo, poisson, 1, "2s"), 3).finish_within(LIMIT);
    let document = said.json();

    // Each agent keeps the record of its last part until its next one, or its end.
    let mut raw = Vec::new();
    let entries = std::fs::read_dir(place.path()).expect("a folder").flatten();
    for entry in entries.filter(|it| it.file_name().to_string_lossy().contains("assay-agent-")) {
        let record = RunFolder::open(entry.path()).expect("a folder of records");
        raw.extend(rows_of(&record.trial("part", 0).expect("the last part")));
    }
    raw.sort_unstable_by_key(|row| row.tx);
    assert!(raw.len() > 1_000, "{}", said.stderr);
    assert_eq!(
        agents_of(place).iter().map(|it| number(&it["rows"])).sum::<u64>(),
        raw.len() as u64
    );
    let run = RunFolder::open(place.run_folder()).expect("a run folder");
    let merged = rows_of(&run.trials().expect("it has trials")[0]);
    assert_eq!(merged.len(), raw.len());
    for (merged, raw) in merged.iter().zip(&raw) {
        // Indices of error texts are of one table for all.
        assert_eq!(*merged, Row { error: merged.error, ..*raw });
    }

    let (start, end) = (500_000_000, 2_500_000_000);
    let measured = || raw.iter().filter(|row| (start..end).contains(&row.due));
    let of = trial(&document);
    let stages = of["latency"].as_array().expect("stages");
    let stage = stages.iter().position(|it| it["stage"] == of["final_stage"]);
    let stage = stage.expect("the final stage is one of them");
    let mut times: Vec<i64> = measured().filter_map(|row| row.response_ns(stage)).collect();
    times.sort_unstable();
    let response = &of["latency"][stage]["response"];
    assert_eq!(number(&response["count"]), times.len() as u64);
    let (first, last) = (times[0], times[times.len() - 1]);
    assert_eq!(response["min_ns"].as_i64(), Some(first));
    assert_eq!(response["max_ns"].as_i64(), Some(last));
    let mut buckets: BTreeMap<i64, usize> = BTreeMap::new();
    times.iter().for_each(|time| *buckets.entry(highest(*time)).or_default() += 1);
    let at = |q: f64| {
        let rank = (q * times.len() as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0);
        let mut seen = 0.0;
        let found = buckets.iter().find(|(_, count)| {
            seen += **count as f64;
            seen >= rank
        });
        found.map_or(last, |(high, _)| (*high).clamp(first, last))
    };
    let quantiles = response["quantiles"].as_array().expect("quantiles");
    for it in quantiles.iter().filter(|it| !it["value_ns"].is_null()) {
        let q = it["q"].as_f64().expect("a fraction");
        assert_eq!(it["value_ns"].as_i64(), Some(at(q)), "{it}");
    }
    let curve = response["curve"].as_array().expect("a curve");
    assert!(curve.len() > 20);
    for point in curve {
        let value = point["value_ns"].as_i64().expect("a time");
        let q = point["q"].as_f64().expect("a fraction");
        assert_eq!(value, if q == 0.0 { first } else { at(q) }, "{point}");
    }

    let path = place.trial_folder(&document).join("latency.hlog");
    let file = std::fs::File::open(path).expect("it is sealed");
    let log = exchange::read_hlog("latency.hlog", Box::new(BufReader::new(file))).expect("a log");
    let name = of["latency"][stage]["stage"].as_str().expect("its name");
    let log = log.iter().find(|it| it.tag == name).expect("it has that stage");
    assert_eq!(log.count, times.len() as u64);
    assert!(log.lines.len() > 20);
    for line in &log.lines {
        let below = buckets.iter().filter(|(high, _)| **high as f64 / 1e6 <= line.value_ms);
        assert_eq!(below.map(|(_, count)| *count as u64).sum::<u64>(), line.count, "{line:?}");
    }

    let count = |outcome| measured().filter(|row| row.outcome == outcome).count() as u64;
    let counts = &of["counts"];
    assert_eq!(number(&counts["due"]), measured().count() as u64);
    assert_eq!(number(&counts["committed"]), count(Outcome::Committed));
    assert_eq!(number(&counts["unknown"]), count(Outcome::Unknown));
    assert_eq!(number(&counts["shed"]), count(Outcome::Shed));
    super::end(agents);
}
