//! `assay serve atomizer`: a node for real. The only places of this crate that touch the system are here.

mod archiver;
mod atomizer;
mod events;
mod shard;
mod watchtower;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use clock::Instant;
use process::shell::{Bounds, Words, key_file, listen_address};
use process::{Input, Node, Outputs};

use crate::protocol::Hash;

/// Clients never take the last places: other nodes, and whoever asks for metrics, are let in however many clients there are.
const BOUNDS: Bounds = Bounds { connections_reserved: 256, ..Bounds::DEFAULT };

const USAGE: &str = "\
The nodes of a published digital currency. See systems/atomizer/README.md for what is spoken.

  assay serve atomizer node …        puts transactions in order and makes blocks of them
  assay serve atomizer archiver …    stores blocks
  assay serve atomizer watchtower …  answers what became of transactions
  assay serve atomizer shard …       vouches for inputs, never twice for one

Each says its options with --help, and serves until SIGTERM or SIGINT.
";

/// Runs a node until it is told to end. `words` is what stands behind `assay serve atomizer`.
#[must_use]
pub fn serve(words: &[String]) -> ExitCode {
    let (first, rest) = match words.split_first() {
        Some((first, rest)) if !first.starts_with("--") => (first.as_str(), rest),
        Some((first, _)) if first == "--help" => ("--help", words),
        _ => ("node", words),
    };
    let ran = match first {
        "node" => atomizer::run(rest),
        "archiver" => archiver::run(rest),
        "watchtower" => watchtower::run(rest),
        "shard" => shard::run(rest),
        "--help" => {
            print!("{USAGE}");
            Ok(())
        }
        other => {
            Err(format!("there is no node `{other}`; write node, archiver, watchtower or shard"))
        }
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("assay serve atomizer: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A node that ends the program where it can do nothing more: its last line and its exit code say so.
struct Ending<N> {
    node: N,
    /// Why it can do nothing more.
    trouble: fn(&N) -> Option<String>,
}

impl<N: Node> Node for Ending<N> {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.node.step(now, input, out);
        if let Some(trouble) = (self.trouble)(&self.node) {
            eprintln!("assay serve atomizer: {trouble}");
            std::process::exit(1);
        }
    }
}

/// The options that an archiver, a shard and a watchtower have in common.
struct Common {
    listen: SocketAddr,
    metrics: SocketAddr,
    parent_pipe: bool,
}

impl Common {
    fn new() -> Result<Self, String> {
        let any = listen_address("0")?;
        Ok(Self { listen: any, metrics: any, parent_pipe: false })
    }

    /// Takes an option, if it is one of these.
    fn takes(&mut self, name: &str, words: &mut Words<'_>) -> Result<bool, String> {
        match name {
            "--parent-pipe" => self.parent_pipe = true,
            "--listen" => self.listen = words.address()?,
            "--metrics" => self.metrics = words.address()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A number that nobody outside knows.
fn draw() -> Result<u64, String> {
    process::store::draw().map_err(|error| error.to_string())
}

/// The archivers' key, in a file that only those who run atomizers and archivers can read.
fn key(path: &Path) -> Result<Hash, String> {
    key_file("the archivers' key", path)
}

/// What was stamped is all in its file after this.
fn end_events(sampler: Option<sampler::Sampler>) -> Result<(), String> {
    let Some(sampler) = sampler else { return Ok(()) };
    sampler.close().map_err(|error| format!("writing events: {error}"))?;
    Ok(())
}
