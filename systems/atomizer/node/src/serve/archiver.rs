//! An archiver for real.

use std::net::SocketAddr;
use std::path::PathBuf;

use clock::Clock;
use process::shell::{Bounds, Peer, Shell, Until, Words};
use process::store::{Store, StoreOptions, Sync};

use super::{BOUNDS, Common, Ending, end_events, events, key};
use crate::archiver::{Archiver, METRICS_LISTENER, disk};
use crate::protocol::{BLOCK_BYTES_MAX, Hash};

const USAGE: &str = "\
An archiver: it stores blocks.

  --data FOLDER          where it stores them (needed)
  --atomizer ADDRESS     where an atomizer sends blocks; once for each
  --number NUMBER        which of the archivers it is: 0, 1, … (0)
  --key FILE             what the atomizers were told with --archiver-key
  --listen ADDRESS       where its last blocks can be asked for (127.0.0.1:0)
  --metrics ADDRESS      where it says its metrics over HTTP (127.0.0.1:0)
  --sync WHAT            what is synced before a block counts as stored: data or none (data)
  --segment-bytes B      how long a file of blocks is (69206016)
  --events FILE          where it stamps when blocks are durable (see base/sampler)
  --follow-every N       of so many transactions one is followed by name in it (1024)
  --parent-pipe          end when standard input ends, too
";

/// Bytes of the last blocks that a start reads: the older ones stay where they are.
const RECENT_BYTES: usize = 32 << 20;

struct Command {
    data: Option<PathBuf>,
    atomizers: Vec<SocketAddr>,
    number: u8,
    key: Hash,
    common: Common,
    store: StoreOptions,
    events: Option<PathBuf>,
    followed: u64,
}

fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        data: None,
        atomizers: Vec::new(),
        number: 0,
        key: [0; 32],
        common: Common::new()?,
        store: StoreOptions { sync: Sync::Data, segment_bytes: BLOCK_BYTES_MAX + (2 << 20) },
        events: None,
        followed: events::FOLLOWED,
    };
    let mut words = Words::new(words);
    while let Some(name) = words.next_word() {
        match name.as_str() {
            "--help" => return Ok(None),
            name if command.common.takes(name, &mut words)? => {}
            "--events" => command.events = Some(words.text()?.into()),
            "--follow-every" => command.followed = words.number()?,
            "--data" => command.data = Some(words.text()?.into()),
            "--atomizer" => command.atomizers.push(words.address()?),
            "--number" => command.number = words.number()?,
            "--key" => command.key = key(words.text()?.as_ref())?,
            "--sync" => {
                command.store.sync = words.one_of(&[("data", Sync::Data), ("none", Sync::None)])?;
            }
            "--segment-bytes" => command.store.segment_bytes = words.number()?,
            _ => return Err(words.unknown()),
        }
    }
    Ok(Some(command))
}

pub(super) fn run(words: &[String]) -> Result<(), String> {
    let Some(command) = parse(words)? else {
        print!("{USAGE}");
        return Ok(());
    };
    let folder = command.data.as_ref().ok_or("an archiver stores blocks: --data FOLDER")?;
    let until = Until::told(command.common.parent_pipe).map_err(|error| error.to_string())?;
    let listeners = [("clients", command.common.listen), ("metrics", command.common.metrics)];
    let bounds = Bounds { unread_bytes_max: BLOCK_BYTES_MAX + (1 << 20), ..BOUNDS };
    let mut shell = Shell::bind(&listeners, bounds)
        .map_err(|error| error.to_string())?
        .saying_metrics_at(METRICS_LISTENER);
    shell = shell.dialling(command.atomizers.iter().map(|address| Peer::at(*address)).collect());
    let (store, stored) =
        Store::open_recent(folder, &[disk::LOG], &[], command.store, RECENT_BYTES)
            .map_err(|error| error.to_string())?;
    let node = Archiver::new(command.atomizers.len(), &stored)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .numbered(command.number, command.key);
    drop(stored);
    shell = shell.keeping(store);
    let mut node = Ending { node, trouble: |it| it.trouble().map(ToString::to_string) };
    let (clock, mut sampler) = (Clock::start(), None);
    if let Some(path) = &command.events {
        let (made, stamps) = events::begin(path, "archiver", clock, command.followed)?;
        (node.node, sampler) = (node.node.stamping(stamps), Some(made));
    }
    let height = node.node.durable().to_string();
    shell.announce(&[("height", &height)]).map_err(|error| error.to_string())?;
    let facts = shell.run(&mut node, clock, &until).map_err(|error| error.to_string())?;
    end_events(sampler)?;
    let node = node.node;
    let counts = node.counts();
    eprintln!(
        "ended by {}; height {}, {} blocks with {} transactions stored, {} were there already, {} asked for, {} malformed",
        facts.ended_by,
        node.durable(),
        counts.blocks,
        counts.transactions,
        counts.repeated,
        counts.asked,
        counts.refusals.total()
    );
    Ok(())
}
