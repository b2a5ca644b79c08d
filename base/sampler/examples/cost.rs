//! What an event costs, and whether any is lost: one event a loop with the clock read, then events at a rate for a while.
//!
//! `cargo run --release -p sampler --example cost [EVENTS_PER_SECOND [SECONDS]]`

use std::hint::black_box;
use std::time::Duration;

use clock::{Clock, CpuTime};
use sampler::{Options, Reader, Sampler, Stage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let rate: u64 = words.next().map_or(Ok(3_000_000), |word| word.parse())?;
    let seconds: u64 = words.next().map_or(Ok(10), |word| word.parse())?;
    let clock = Clock::start();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("events");
    let stages = [Stage::new("work", "worked")];
    let sampler = Sampler::create(&path, "cost", &stages, clock, Options::default())?;
    let head = sampler.head();
    let ns = |ps: u64| ps as f64 / 1e3;
    println!("a reading of the clock        {:6.1} ns", ns(head.clock_ps));
    println!("an event of given times       {:6.1} ns", ns(head.event_ps));
    let mut ring = sampler.ring();
    // Less than the ring holds, so that what is measured is the stamping and not the disk.
    const TIMES: u64 = 100_000;
    for (name, readings) in [("an event, one reading", 1), ("an event, two readings", 2)] {
        let mut best = f64::INFINITY;
        for _ in 0..10 {
            let begun = clock.now();
            let mut from = begun;
            for _ in 0..TIMES {
                if readings == 2 {
                    from = ring.now();
                }
                from = ring.done(0, black_box(from), 1);
            }
            best = best.min(clock.now().ns_since(begun) as f64 / TIMES as f64);
            std::thread::sleep(Duration::from_millis(50));
        }
        let beyond = best - f64::from(readings) * ns(head.clock_ps);
        println!("{name:<29} {best:6.1} ns, {beyond:.1} ns beyond the clock");
    }
    let begun = clock.now();
    let (cpu, own) = (CpuTime::of_this_process(), CpuTime::of_this_thread());
    let mut made = 0;
    for millisecond in 1..=seconds * 1_000 {
        while made < rate * millisecond / 1_000 {
            let from = ring.now();
            ring.done(0, from, 1);
            made += 1;
        }
        clock.sleep_until(begun.plus(Duration::from_millis(millisecond)));
    }
    let took = clock.now().ns_since(begun) as f64 / 1e9;
    let all = CpuTime::of_this_process().since(cpu).as_nanos() as f64;
    let own = CpuTime::of_this_thread().since(own).as_nanos() as f64;
    drop(ring);
    let totals = sampler.close()?;
    let mut reader = Reader::open(std::io::BufReader::new(std::fs::File::open(&path)?))?;
    let mut read = 0_u64;
    while reader.next(|_| read += 1)? {}
    let per = |ns: f64| ns / made as f64;
    println!(
        "{made} events in {took:.1} s, {:.2} million a second: {} lost, {} waits for room; {:.1} ns of processor each \
         with both readings, {:.1} more for taking out and writing; {:.1} bytes each",
        made as f64 / took / 1e6,
        totals.lost,
        totals.waits,
        per(own),
        per(all - own),
        std::fs::metadata(&path)?.len() as f64 / read as f64,
    );
    println!(
        "the file: {}",
        reader.problem().unwrap_or_else(|| format!("{read} records, as counted"))
    );
    Ok(())
}
