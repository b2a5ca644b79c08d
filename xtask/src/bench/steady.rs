//! What a steady rate costs: Assay beside one thread that sleeps, sends and reads with no engine, in turn, so that a ratio is
//! of two runs that follow each other. A tool that can keep a rate stands beside them.

use std::fmt::Write as _;

use super::measure::{Cost, Server};
use super::peers::Said;
use super::{Bench, Contender, DRIVERS, SERVER_CPU, cell, middle, spread};

/// Heads the part.
pub const HEAD: &str = "## Cost of a steady rate\n\n";

/// Rates to a server that answers at once, beside the thread without an engine.
const RATES: [u32; 2] = [1_000, 10_000];
/// A rate to a server that takes some time: more than one request at a time, which that thread cannot do.
const SLOW_RATE: u32 = 20_000;
const SLOW: &str = "3ms";
/// More than are in service at that rate.
const SLOW_SERVERS: &str = "256";

/// One contender's rounds at a rate.
#[derive(Default)]
struct Rounds {
    cores: Vec<f64>,
    own_lag_p99_ms: Vec<f64>,
    p50_ms: Vec<f64>,
    p99_ms: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, cost: &Cost, said: &Said, seconds: u32) {
        self.cores.push(cost.cpu_ms / 1e3 / f64::from(seconds));
        self.own_lag_p99_ms.extend(said.own_lag_p99_ms);
        self.p50_ms.extend(said.p50_ms);
        self.p99_ms.extend(said.p99_ms);
    }
}

impl Bench {
    /// The table, without its head.
    pub(super) fn steady(&self) -> Result<String, String> {
        let mut text = String::from(
            "Processor time of the generator, in processors, while it keeps a rate; the server on the other processor. *No engine* is one thread that sleeps to each due time, sends, and blocks for the answer. A ratio is to that thread in the same round. Assay is counted until the drain ended.\n\n| rate | server | tool | processors (range) | ÷ no engine, same round (range) | p50 ms | p99 ms | own lag p99 ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        let (_server, url) = self.server()?;
        let rates: &[u32] = if self.size.rounds > 1 { &RATES } else { &RATES[..1] };
        for rate in rates {
            self.steady_rate(&mut text, &url, "at once", *rate)?;
        }
        let slow = ["serve", "echo", "--http", "127.0.0.1:0", "--service", SLOW];
        let slow = [&slow[..], &["--servers", SLOW_SERVERS]].concat();
        let (_slow, address) = Server::start(&self.assay, &slow, SERVER_CPU)?;
        self.steady_rate(&mut text, &format!("http://{address}/"), SLOW, SLOW_RATE)?;
        let _ = writeln!(text, "\nMedians of {} rounds.\n", self.size.rounds);
        Ok(text)
    }

    fn steady_rate(
        &self,
        text: &mut String,
        url: &str,
        server: &str,
        rate: u32,
    ) -> Result<(), String> {
        let mut task = self.task(url, self.size.seconds * 2, Some(rate));
        // As many as are outstanding at a slow server, and some more.
        task.connections = task.connections.max(if server == SLOW { 256 } else { 0 });
        let is_kept = |it: &Contender| {
            let is_paced = it.name.starts_with("assay, ") && it.name != DRIVERS[0].load;
            let is_steady = it.is_load_only && !is_paced;
            is_steady || it.program == self.pacer || it.name.starts_with("oha")
        };
        let contenders: Vec<_> = self.contenders(&task).into_iter().filter(is_kept).collect();
        let mut all: Vec<Rounds> = contenders.iter().map(|_| Rounds::default()).collect();
        for _ in 0..self.size.rounds {
            for (contender, rounds) in contenders.iter().zip(&mut all) {
                let (cost, said) = self.once(contender, &task)?;
                rounds.add(&cost, &said, task.seconds);
            }
        }
        let bare = contenders.iter().position(|contender| contender.program == self.pacer);
        for (contender, rounds) in contenders.iter().zip(&all) {
            let ratios: Vec<f64> = bare.map_or_else(Vec::new, |bare| {
                rounds.cores.iter().zip(&all[bare].cores).map(|(own, bare)| own / bare).collect()
            });
            let ratio = if ratios.is_empty() { "–".to_owned() } else { spread(&ratios, 2) };
            let _ = writeln!(
                text,
                "| {rate}/s | {server} | {} | {} | {ratio} | {} | {} | {} |",
                contender.name,
                spread(&rounds.cores, 2),
                cell(super::median(&rounds.p50_ms)),
                cell(super::median(&rounds.p99_ms)),
                middle(&rounds.own_lag_p99_ms, 3)
            );
        }
        Ok(())
    }
}
