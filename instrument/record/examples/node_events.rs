//! Measures what nodes' events cost the record: four stages of a load of 50,000 transactions a second, handed over as an
//! adapter does, kept, and read back. Prints the figures that docs quote. `EVENTS=100000` makes it small. It measures
//! nothing but this crate.

use std::time::Duration;

use clock::{CpuTime, WallTime};
use model::Seed;
use model::node_events::{NodeEvent, NodeSpan, NodeStage};
use record::RunFolder;

const PERIOD_NS: i64 = 20_000;

fn main() {
    let events: u64 = std::env::var("EVENTS").map_or(10_000_000, |n| n.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder for the run");
    let run = RunFolder::create(folder.path(), "size", WallTime::now()).expect("a run folder");
    let trial = run.trial("default", 0).expect("a trial folder");
    let stages =
        ["received", "started", "stored", "answered"].map(|name| NodeStage::new(name, "in words"));
    let started = WallTime::from_unix_ns(0);
    let mut writer = trial.node_events_writer(started, &stages).expect("room on the disk");
    println!("{events} events and as many spans, 4 stages, 50,000 transactions a second");
    let mut rng = Seed(1).rng();
    let before = CpuTime::of_this_thread();
    for tx in 0..events / 4 {
        let mut from = WallTime::from_unix_ns(tx.cast_signed() * PERIOD_NS);
        for stage in 0..4 {
            let took = Duration::from_nanos(50_000 + rng.below(200_000));
            let ns = i64::try_from(took.as_nanos()).expect("microseconds");
            let to = WallTime::from_unix_ns(from.unix_ns() + ns);
            writer.event(&NodeEvent { stage, node: "a", at: to, count: 1, took: Some(took) });
            writer.span(&NodeSpan { tx, stage, node: "a", from, to });
            from = to;
        }
    }
    let handed = CpuTime::of_this_thread().since(before);
    let before = CpuTime::of_this_thread();
    let facts = writer.close();
    let closed = CpuTime::of_this_thread().since(before);
    assert!(facts.is_whole, "{:?}", facts.problems);
    let before = CpuTime::of_this_thread();
    let (mut rows, mut count) = (0_u64, 0);
    trial
        .for_each_stage_second(|row| (rows, count) = (rows + 1, count + row.count))
        .expect("what was written");
    let read = CpuTime::of_this_thread().since(before);
    assert_eq!(count, events / 4 * 4);
    let each = |time: Duration| time.as_secs_f64() * 1e9 / (count.max(1) as f64);
    let bytes = |name: &str| {
        std::fs::metadata(trial.path().join(name)).map_or(0, |metadata| metadata.len())
    };
    println!("hand over        {:8.1} ns an event with its span, processor time", each(handed));
    println!("close            {:8.1} ms", closed.as_secs_f64() * 1e3);
    println!("read back        {:8.1} ms, {rows} rows", read.as_secs_f64() * 1e3);
    println!("stages.parquet   {:8} bytes", bytes("stages.parquet"));
    println!("traces.parquet   {:8} bytes, 1 in {}", bytes("traces.parquet"), facts.sampled_one_in);
}
