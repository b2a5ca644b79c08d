//! A shard for real.

use std::net::SocketAddr;

use clock::Clock;
use process::shell::{Bounds, Peer, Shell, Until, Words, listen_address};

use super::{BOUNDS, Common, Ending, draw};
use crate::protocol::BLOCK_BYTES_MAX;
use crate::shard::{Lie, METRICS_LISTENER, Options, Shard};
use crate::spent::Secret;

const USAGE: &str = "\
A shard: it vouches for inputs, never twice for one, at the height of the last block that the archiver has.

  --archiver ADDRESS     where the archiver is asked for blocks (needed)
  --atomizer ADDRESS     where an atomizer takes transactions; once for each, in the order of their numbers
  --number NUMBER        which of the shards it is: 0, 1, … (0)
  --shard ADDRESS        where a shard listens for shards; once for each, this one among them, in the order of their numbers
  --listen ADDRESS       where clients connect (127.0.0.1:0)
  --shards ADDRESS       where other shards connect (127.0.0.1:0)
  --errors ADDRESS       where it tells what it refused (127.0.0.1:0)
  --metrics ADDRESS      where it says its metrics over HTTP (127.0.0.1:0)
  --depth BLOCKS         what the atomizers were told (1)
  --spent-max COUNT      spent inputs that it remembers; with more it vouches for nothing (16777216)
  --lie HOW              a fault: it lies: vouches-twice or says-too-high
  --parent-pipe          end when standard input ends, too
";

struct Command {
    archiver: Option<SocketAddr>,
    atomizers: Vec<SocketAddr>,
    shards: Vec<SocketAddr>,
    common: Common,
    peers: SocketAddr,
    errors: SocketAddr,
    options: Options,
}

fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        archiver: None,
        atomizers: Vec::new(),
        shards: Vec::new(),
        common: Common::new()?,
        peers: listen_address("0")?,
        errors: listen_address("0")?,
        options: Options {
            number: 0,
            shards: 1,
            atomizers: 0,
            depth: 1,
            spent_max: 16 << 20,
            secret: Secret::new(draw()?),
            lie: None,
        },
    };
    let mut words = Words::new(words);
    while let Some(name) = words.next_word() {
        match name.as_str() {
            "--help" => return Ok(None),
            name if command.common.takes(name, &mut words)? => {}
            "--archiver" => command.archiver = Some(words.address()?),
            "--atomizer" => command.atomizers.push(words.address()?),
            "--shard" => command.shards.push(words.address()?),
            "--number" => command.options.number = words.number()?,
            "--shards" => command.peers = words.address()?,
            "--errors" => command.errors = words.address()?,
            "--depth" => command.options.depth = words.number()?,
            "--spent-max" => command.options.spent_max = words.number()?,
            "--lie" => command.options.lie = Some(words.one_of(&Lie::ALL)?),
            _ => return Err(words.unknown()),
        }
    }
    let shards = command.shards.len().max(1);
    command.options.shards = u8::try_from(shards).map_err(|_| "there are at most 255 shards")?;
    command.options.atomizers = command.atomizers.len();
    if command.options.number >= command.options.shards {
        return Err(format!(
            "shards have the numbers 0 to {}, got --number {}; name each with --shard ADDRESS, this one among them",
            command.options.shards - 1,
            command.options.number
        ));
    }
    Ok(Some(command))
}

pub(super) fn run(words: &[String]) -> Result<(), String> {
    let Some(command) = parse(words)? else {
        print!("{USAGE}");
        return Ok(());
    };
    let archiver = command.archiver.ok_or("a shard reads blocks: --archiver ADDRESS")?;
    let until = Until::told(command.common.parent_pipe).map_err(|error| error.to_string())?;
    let listeners = [
        ("clients", command.common.listen),
        ("shards", command.peers),
        ("errors", command.errors),
        ("metrics", command.common.metrics),
    ];
    let bounds = Bounds { unread_bytes_max: BLOCK_BYTES_MAX + (1 << 20), ..BOUNDS };
    let shell = Shell::bind(&listeners, bounds)
        .map_err(|error| error.to_string())?
        .saying_metrics_at(METRICS_LISTENER);
    let peers = std::iter::once(&archiver).chain(&command.atomizers).chain(&command.shards);
    let shell = shell.dialling(peers.map(|address| Peer::at(*address)).collect());
    shell.announce(&[]).map_err(|error| error.to_string())?;
    let trouble = |it: &Shard| {
        it.trouble().map(|trouble| format!("{trouble}; give the shard an archive that is whole"))
    };
    let mut node = Ending { node: Shard::new(command.options), trouble };
    let facts = shell.run(&mut node, Clock::start(), &until).map_err(|error| error.to_string())?;
    let node = node.node;
    let counts = node.counts();
    eprintln!(
        "ended by {}; height {}, {} transactions asked for, {} inputs vouched for, {} refused as spent, {} not taken, {} malformed",
        facts.ended_by,
        node.height(),
        counts.asked,
        counts.vouched,
        counts.spent,
        counts.not_taken,
        counts.refusals.total()
    );
    Ok(())
}
