//! The engine where few connections carry many transactions: its cost beside that of moving the same bytes without it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::measure::{Server, run};
use super::{GENERATOR_CPU, SERVER_CPU, spread};

const CONNECTIONS: &str = "16";
const DEPTH: &str = "1024";

/// What was measured, one line each.
#[derive(Default)]
struct Line {
    name: &'static str,
    engine: Vec<f64>,
    bare: Vec<f64>,
    above: Vec<f64>,
    per_second: Vec<f64>,
}

/// Rounds of the engine and of the bare bytes in turn, without and with TLS, and with batches.
pub(super) fn table(root: &Path, rounds: usize, seconds: u32) -> Result<String, String> {
    let build = ["build", "--release", "-q", "--workspace", "--example", "multiplexed"];
    let status = Command::new("cargo").args(build).current_dir(root).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("the example `multiplexed` of `load` was not built".to_owned());
    }
    let program = root.join("target/release/examples/multiplexed");
    let folder = root.join("target/bench/multiplexed");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("making {}: {error}", folder.display()))?;
    let shown = folder.display().to_string();
    let tls = ["--tls", &shown];
    let (_plain, at) = Server::start(&program, &["serve", "0"], SERVER_CPU)?;
    let (_secure, at_tls) =
        Server::start(&program, &[&["serve", "0"], &tls[..]].concat(), SERVER_CPU)?;
    let ways: [(&str, &str, Vec<&str>); 3] = [
        ("without TLS", &at, vec![]),
        ("TLS", &at_tls, tls.to_vec()),
        ("TLS, batches of 256", &at_tls, [&tls[..], &["--batch", "256"]].concat()),
    ];
    let mut lines: Vec<Line> =
        ways.iter().map(|(name, ..)| Line { name, ..Line::default() }).collect();
    for _ in 0..rounds {
        for ((_, address, more), line) in ways.iter().zip(&mut lines) {
            let seconds = seconds.to_string();
            let common = [
                more,
                &["--connections", CONNECTIONS, "--depth", DEPTH, "--seconds", &seconds][..],
            ];
            let once = |first: &[&str]| {
                let words: Vec<String> =
                    [first, &common.concat()].concat().into_iter().map(str::to_owned).collect();
                run(&program, &words, GENERATOR_CPU, &folder, 60, None)
            };
            let (engine, bare) = (once(&[address])?.stdout, once(&["bare", address])?.stdout);
            let us = |text: &str| value(text, "us").ok_or(format!("`{}` has no cost", text.trim()));
            line.engine.push(us(&engine)?);
            line.bare.push(us(&bare)?);
            line.above.push(us(&engine)? - us(&bare)?);
            line.per_second.extend(value(&engine, "per_second").map(|rate| rate / 1e3));
        }
    }
    Ok(words(&lines, rounds))
}

fn words(lines: &[Line], rounds: usize) -> String {
    let mut text = format!(
        "## Cost of a transaction where few connections carry many\n\n{CONNECTIONS} connections with {DEPTH} transactions outstanding on each, requests of 64 bytes and answers of 16, closed loop, against a server that does nothing. Processor time is the engine thread's; *bare* moves the same bytes over as many connections with nothing of the engine, so the difference is what the engine costs above system calls and TLS.\n\n| way | engine CPU µs/transaction (range) | bare | difference | k transactions/s |\n| --- | --- | --- | --- | --- |\n"
    );
    for line in lines {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            line.name,
            spread(&line.engine, 3),
            spread(&line.bare, 3),
            spread(&line.above, 3),
            spread(&line.per_second, 0)
        );
    }
    let _ = writeln!(text, "\nMedians of {rounds} rounds, in turn.\n");
    text
}

/// The number in `name=…`.
fn value(text: &str, name: &str) -> Option<f64> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}
