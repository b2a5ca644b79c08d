//! A watchtower for real.

use std::net::SocketAddr;

use clock::Clock;
use process::shell::{Bounds, Peer, Shell, Until, Words};

use super::{BOUNDS, Common, draw};
use crate::protocol::STATUS_BYTES_MAX;
use crate::spent::Secret;
use crate::watchtower::{METRICS_LISTENER, Options, Watchtower};

const USAGE: &str = "\
A watchtower: it answers what became of transactions.

  --atomizer ADDRESS     where an atomizer sends blocks; once for each
  --errors ADDRESS       where an atomizer sends what is discarded; as often, in the same order
  --listen ADDRESS       where it answers (127.0.0.1:0)
  --metrics ADDRESS      where it says its metrics over HTTP (127.0.0.1:0)
  --blocks-max COUNT     blocks that it keeps (100)
  --blocks-bytes-max B   bytes of blocks that it keeps (2147483648)
  --errors-max COUNT     errors that it keeps (1000000)
  --always-unspent       what a published benchmark does: it keeps a height and calls all outputs unspent
  --parent-pipe          end when standard input ends, too
";

struct Command {
    blocks: Vec<SocketAddr>,
    errors: Vec<SocketAddr>,
    common: Common,
    options: Options,
}

fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        blocks: Vec::new(),
        errors: Vec::new(),
        common: Common::new()?,
        options: Options {
            atomizers: 0,
            blocks_max: 100,
            blocks_bytes_max: 2 << 30,
            errors_max: 1_000_000,
            says_unspent: false,
            secret: Secret::new(draw()?),
        },
    };
    let mut words = Words::new(words);
    while let Some(name) = words.next_word() {
        match name.as_str() {
            "--help" => return Ok(None),
            name if command.common.takes(name, &mut words)? => {}
            "--atomizer" => command.blocks.push(words.address()?),
            "--errors" => command.errors.push(words.address()?),
            "--blocks-max" => command.options.blocks_max = words.number()?,
            "--blocks-bytes-max" => command.options.blocks_bytes_max = words.number()?,
            "--errors-max" => command.options.errors_max = words.number()?,
            "--always-unspent" => command.options.says_unspent = true,
            _ => return Err(words.unknown()),
        }
    }
    if command.blocks.len() != command.errors.len() {
        return Err("each atomizer has both: --atomizer ADDRESS --errors ADDRESS".to_owned());
    }
    command.options.atomizers = command.blocks.len();
    Ok(Some(command))
}

pub(super) fn run(words: &[String]) -> Result<(), String> {
    let Some(command) = parse(words)? else {
        print!("{USAGE}");
        return Ok(());
    };
    let until = Until::told(command.common.parent_pipe).map_err(|error| error.to_string())?;
    let listeners = [("clients", command.common.listen), ("metrics", command.common.metrics)];
    let bounds = Bounds { unread_bytes_max: STATUS_BYTES_MAX + (1 << 20), ..BOUNDS };
    let shell = Shell::bind(&listeners, bounds)
        .map_err(|error| error.to_string())?
        .saying_metrics_at(METRICS_LISTENER);
    let peers = command.blocks.iter().chain(&command.errors).map(|address| Peer::at(*address));
    let shell = shell.dialling(peers.collect());
    shell.announce(&[]).map_err(|error| error.to_string())?;
    let mut node = Watchtower::new(command.options);
    let facts = shell.run(&mut node, Clock::start(), &until).map_err(|error| error.to_string())?;
    let counts = node.counts();
    eprintln!(
        "ended by {}; height {}, {} transactions in {} blocks, {} errors, {} questions about {} outputs, {} malformed",
        facts.ended_by,
        node.best_height(),
        counts.transactions,
        counts.blocks,
        counts.errors,
        counts.questions,
        counts.outputs,
        counts.refusals.total()
    );
    Ok(())
}
