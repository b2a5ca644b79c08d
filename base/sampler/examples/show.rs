//! What stands in a file of events: `cargo run --release -p sampler --example show -- FILE`

use sampler::Reader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("write: show FILE")?;
    let mut reader = Reader::open(std::io::BufReader::new(std::fs::File::open(path)?))?;
    while reader.next(|_| {})? {}
    let head = reader.head();
    println!(
        "{}, an event {} ps, a reading of the clock {} ps",
        head.node, head.event_ps, head.clock_ps
    );
    for (stage, totals) in head.stages.iter().zip(&reader.totals().stages) {
        let mean = totals.took_ns.checked_div(totals.events).unwrap_or(0);
        println!(
            "{:<20} {:>10} events of {:>10} transactions, {mean} ns each",
            stage.name, totals.events, totals.transactions
        );
    }
    println!("{}", reader.problem().unwrap_or_else(|| "all records are there".to_owned()));
    Ok(())
}
