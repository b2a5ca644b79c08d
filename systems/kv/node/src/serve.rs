//! `assay serve kv`: a replica for real. The only place of the node that touches the system.

use std::process::ExitCode;

use clock::Clock;
use process::shell::{Bounds, Shell, Until, listen_address};

use crate::database::Limits;
use crate::ledger::Ledger;
use crate::node::KvNode;

const USAGE: &str = "\
A key-value database with mini-transactions. See systems/kv/README.md for what is spoken.

  --listen ADDRESS    where clients connect (127.0.0.1:0)
  --metrics ADDRESS   where it says its metrics over HTTP
  --replica NUMBER    its number (0)
  --ledger FILE       where it writes down every transaction that it executes; it goes on there
  --bytes-max BYTES   from how much held on nothing that needs memory is executed (4294967296)
  --parent-pipe       end when standard input ends, too

Serves until SIGTERM or SIGINT.
";

/// Runs a replica until it is told to end. `words` is what stands behind `assay serve kv`.
#[must_use]
pub fn serve(words: &[String]) -> ExitCode {
    match run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("assay serve kv: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What the words say.
struct Command {
    listen: String,
    metrics: Option<String>,
    replica: u8,
    ledger: Option<String>,
    limits: Limits,
    parent_pipe: bool,
}

/// Reads the words; `None`: help was asked for.
fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        listen: "0".to_owned(),
        metrics: None,
        replica: 0,
        ledger: None,
        limits: Limits::default(),
        parent_pipe: false,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let mut value = || {
            let value = inline.clone().or_else(|| words.next().cloned());
            value.ok_or_else(|| format!("{name} needs a value; see --help"))
        };
        match name {
            "--help" => return Ok(None),
            "--parent-pipe" => command.parent_pipe = true,
            "--listen" => command.listen = value()?,
            "--metrics" => command.metrics = Some(value()?),
            "--ledger" => command.ledger = Some(value()?),
            "--replica" => command.replica = number(name, &value()?)?,
            "--bytes-max" => command.limits.bytes_max = number(name, &value()?)?,
            other => return Err(format!("there is no option `{other}`; see --help")),
        }
    }
    Ok(Some(command))
}

fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("{name} takes a number, and `{value}` is none that fits"))
}

fn run(words: &[String]) -> Result<(), String> {
    let Some(command) = parse(words)? else {
        print!("{USAGE}");
        return Ok(());
    };
    let mut until = vec![Until::signals().map_err(|error| error.to_string())?];
    if command.parent_pipe {
        until.push(Until::parent_pipe().map_err(|error| error.to_string())?);
    }
    let mut listeners = vec![("clients", listen_address(&command.listen)?)];
    if let Some(metrics) = &command.metrics {
        listeners.push(("metrics", listen_address(metrics)?));
    }
    let ledger = match &command.ledger {
        Some(path) => Ledger::in_file(path.as_ref())
            .map_err(|error| format!("opening the ledger {path}: {error}"))?,
        None => Ledger::nowhere(),
    };
    let shell = Shell::bind(&listeners, Bounds::default()).map_err(|error| error.to_string())?;
    shell.announce(&[]).map_err(|error| error.to_string())?;
    let mut node = KvNode::new(command.replica, command.limits, ledger);
    let facts = shell.run(&mut node, Clock::start(), &until).map_err(|error| error.to_string())?;
    let (database, counts) = (node.database().counts(), node.counts());
    eprintln!(
        "ended by {}; {} transactions in {} entries, {} repeated, {} reads, {} busy, {} malformed",
        facts.ended_by,
        database.position,
        counts.entries,
        database.repeated,
        counts.reads,
        counts.busy,
        counts.malformed
    );
    Ok(())
}
