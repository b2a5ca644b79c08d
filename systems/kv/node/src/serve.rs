//! `assay serve kv`: a replica for real. The only place of the node that touches the system.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clock::{Clock, Instant};
use process::shell::{
    Bounds, Counters, Identity, Peer, Shell, Until, Words, key_file, listen_address,
};
use process::store::{LogThread, Store, StoreOptions, Sync};
use process::{Input, Node, Outputs, StoredLog};
use replicated::{Broken, CELL_NAMES, Config, NUMBERS_MAX, Settings};

use crate::database::Limits;
use crate::ledger::Ledger;
use crate::node::{CLIENTS_LISTENER, ENTRY_BYTES, KvNode, METRICS_LISTENER, PEERS_LISTENER};
use crate::protocol::{KEY_BYTES, REQUEST_BYTES_MAX};

const USAGE: &str = "\
A replicated key-value database with mini-transactions. See systems/kv/README.md for what is spoken.

  --listen ADDRESS    where clients connect (127.0.0.1:0)
  --metrics ADDRESS   where it says its metrics over HTTP
  --replica NUMBER    its number (0)
  --data FOLDER       where it keeps its log and its snapshots; without it nothing is kept, and it is alone
  --peers ADDRESS     where other replicas connect (127.0.0.1:0)
  --peer N=ADDRESS    another replica's number and where it listens for replicas; once for each
  --tls FOLDER        encrypts everything but metrics: ca.pem, and of replica N replicaN.pem and replicaN.key in the folder; both
                      sides show theirs, and only certificates with the name replica-N are taken for replica N
  --operator-key FILE what operators show who give and take votes: 64 hexadecimal digits; without it nobody can
  --ledger FILE       where it writes down every transaction that it executes; it goes on there
  --bytes-max BYTES   from how much held on nothing that needs memory is executed (4294967296)
  --window COUNT      entries that a leader has proposed and that are not decided, at most (4)
  --sync WHAT         what is synced before an entry counts as kept: data, segment (a published system did that) or none (data)
  --log-thread WHICH  which thread writes the log: one of its own, or the one that does all else: own or node (own)
  --segment-bytes B   how long a piece of the log is (67108864)
  --snapshot-after-bytes B  a snapshot is made after so many bytes of entries (268435456)
  --heartbeat-ms MS   how often a leader says that it is there (50)
  --election-timeout-ms MS  after how long without a leader a replica wants to lead (1000)
  --wait-for-all      an entry is decided only once all replicas keep it (a published system did that)
  --resend-values     what is decided is sent once more in full (a published system did that)
  --connections-max N at most so many connections, and no more than the host gives descriptors for (65536)
  --handshake-ms MS   how long a connection may take to be made sure of (10000)
  --parent-pipe       end when standard input ends, too

Serves until SIGTERM or SIGINT.
";

/// What replicas of this database say that they are of. Which group of them is drawn when one is founded.
const SERVICE: u64 = u64::from_le_bytes(*b"kv store");

/// The name that the certificate of a replica has: clients have none of these.
fn tls_name(number: u8) -> String {
    format!("replica-{number}")
}

/// What waits for another replica at most, before messages to it are dropped.
const UNSENT_BYTES_MAX: usize = 128 << 20;

/// The shortest segment: the longest request and what may stand before it in an entry, and some.
pub const SEGMENT_BYTES_MIN: usize = 8 << 20;
const _: () = assert!(SEGMENT_BYTES_MIN > REQUEST_BYTES_MAX + 2 * ENTRY_BYTES);

/// Connections that clients never take: of other replicas, and of whoever asks for metrics.
const OTHERS_MAX: usize = 256;

/// Runs a replica until it is told to end. `words` is what stands behind `assay serve kv`.
#[must_use]
pub fn serve(words: &[String]) -> ExitCode {
    end(run(words, None))
}

/// The same, broken on purpose, for tests of what finds that; no option of the program asks for it.
#[doc(hidden)]
#[must_use]
pub fn serve_broken(words: &[String], broken: &str) -> ExitCode {
    end(run(words, Some(broken)))
}

fn end(ended: Result<(), String>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("assay serve kv: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What the words say.
struct Command {
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
    peers: SocketAddr,
    peer: Vec<(u8, SocketAddr)>,
    replica: u8,
    data: Option<PathBuf>,
    tls: Option<PathBuf>,
    ledger: Option<String>,
    operator_key: Option<PathBuf>,
    limits: Limits,
    window: u64,
    store: StoreOptions,
    log_thread: LogThread,
    snapshot_after_bytes: u64,
    heartbeat_ms: u64,
    election_ms: u64,
    wait_for_all: bool,
    resend_values: bool,
    connections_max: usize,
    handshake_ms: u64,
    parent_pipe: bool,
    broken: Broken,
}

const SYNCS: [(&str, Sync); 3] =
    [("data", Sync::Data), ("segment", Sync::Whole), ("none", Sync::None)];
const LOG_THREADS: [(&str, LogThread); 2] = [("own", LogThread::Own), ("node", LogThread::Node)];

/// Reads the words; `None`: help was asked for.
fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        listen: listen_address("0")?,
        metrics: None,
        peers: listen_address("0")?,
        peer: Vec::new(),
        replica: 0,
        data: None,
        tls: None,
        ledger: None,
        operator_key: None,
        limits: Limits::default(),
        window: 4,
        store: StoreOptions::default(),
        log_thread: LogThread::Own,
        snapshot_after_bytes: 256 << 20,
        heartbeat_ms: 50,
        election_ms: 1000,
        wait_for_all: false,
        resend_values: false,
        connections_max: Bounds::default().connections_max,
        handshake_ms: 10_000,
        parent_pipe: false,
        broken: Broken::Nothing,
    };
    let mut words = Words::new(words);
    while let Some(name) = words.next_word() {
        match name.as_str() {
            "--help" => return Ok(None),
            "--parent-pipe" => command.parent_pipe = true,
            "--listen" => command.listen = words.address()?,
            "--metrics" => command.metrics = Some(words.address()?),
            "--ledger" => command.ledger = Some(words.text()?),
            "--operator-key" => command.operator_key = Some(words.text()?.into()),
            "--replica" => command.replica = words.number()?,
            "--peers" => command.peers = words.address()?,
            "--peer" => command.peer.push(words.numbered_address()?),
            "--data" => command.data = Some(words.text()?.into()),
            "--tls" => command.tls = Some(words.text()?.into()),
            "--window" => command.window = words.number()?,
            "--sync" => command.store.sync = words.one_of(&SYNCS)?,
            "--log-thread" => command.log_thread = words.one_of(&LOG_THREADS)?,
            "--segment-bytes" => command.store.segment_bytes = segment(words.number()?)?,
            "--snapshot-after-bytes" => command.snapshot_after_bytes = words.number()?,
            "--heartbeat-ms" => command.heartbeat_ms = words.number()?,
            "--election-timeout-ms" => command.election_ms = words.number()?,
            "--wait-for-all" => command.wait_for_all = true,
            "--resend-values" => command.resend_values = true,
            "--connections-max" => command.connections_max = words.number()?,
            "--handshake-ms" => command.handshake_ms = words.number()?,
            "--bytes-max" => command.limits.bytes_max = words.number()?,
            _ => return Err(words.unknown()),
        }
    }
    Ok(Some(command))
}

/// The operators' key, in a file that only those who run replicas can read.
///
/// # Errors
/// When there is no such file, or it holds something else.
pub fn operator_key(path: &Path) -> Result<[u8; KEY_BYTES], String> {
    key_file("the operators' key", path)
}

/// A segment holds at least one entry, however long.
fn segment(bytes: usize) -> Result<usize, String> {
    if bytes >= SEGMENT_BYTES_MIN {
        return Ok(bytes);
    }
    Err(format!(
        "--segment-bytes takes at least {SEGMENT_BYTES_MIN}, and {bytes} is less: the longest entry would not fit"
    ))
}

/// Who this replica is among the others.
fn config(command: &Command) -> Result<(Config, Settings), String> {
    let others = command.peer.iter().map(|(number, _)| *number);
    let (mut config, settings) = Settings::of_only_group(
        command.replica,
        others,
        SERVICE,
        PEERS_LISTENER,
        UNSENT_BYTES_MAX,
    )?;
    if command.window == 0 || command.heartbeat_ms == 0 {
        return Err("--window and --heartbeat-ms: expected 1 at least, got 0".to_owned());
    }
    if command.election_ms <= command.heartbeat_ms {
        return Err(format!(
            "--election-timeout-ms: expected more than --heartbeat-ms, {}, got {}: no leader would stay",
            command.heartbeat_ms, command.election_ms
        ));
    }
    config.window_max = command.window;
    config.snapshot_after_bytes = command.snapshot_after_bytes;
    config.heartbeat_every = Duration::from_millis(command.heartbeat_ms);
    config.election_timeout = Duration::from_millis(command.election_ms);
    config.wait_for_all = command.wait_for_all;
    config.resend_values = command.resend_values;
    config.broken = command.broken;
    Ok((config, settings))
}

/// Breaks what the name says.
fn break_it(command: &mut Command, name: &str) -> Result<(), String> {
    command.broken = match name {
        "acknowledges" => Broken::AcknowledgesBeforeSync,
        "reads" => Broken::ReadsWithoutRound,
        "order" => Broken::DeliversOutOfOrder,
        "results" => {
            command.limits.forgets_results = true;
            Broken::Nothing
        }
        _ => return Err(format!("nothing that can be broken is called `{name}`")),
    };
    eprintln!("this replica is broken on purpose: {name}");
    Ok(())
}

fn run(words: &[String], broken: Option<&str>) -> Result<(), String> {
    let Some(mut command) = parse(words)? else {
        print!("{USAGE}");
        return Ok(());
    };
    if let Some(name) = broken {
        break_it(&mut command, name)?;
    }
    if command.data.is_none() && !command.peer.is_empty() {
        return Err("a replica of several must keep its log: --data FOLDER".to_owned());
    }
    let until = Until::told(command.parent_pipe).map_err(|error| error.to_string())?;
    let mut listeners = vec![("clients", command.listen), ("peers", command.peers)];
    listeners.extend(command.metrics.map(|metrics| ("metrics", metrics)));
    let ledger = match &command.ledger {
        Some(path) => Ledger::in_file(path.as_ref())
            .map_err(|error| format!("opening the ledger {path}: {error}"))?,
        None => Ledger::nowhere(),
    };
    let identity = match &command.tls {
        None => None,
        Some(folder) => {
            let file = |name: &str| folder.join(name);
            let own = |kind: &str| file(&format!("replica{}.{kind}", command.replica));
            let read = Identity::read(&own("pem"), &own("key"), &file("ca.pem"));
            Some(read.map_err(|error| error.to_string())?)
        }
    };
    // Bound before anything is read from the disk, so that a port that is taken is said at once.
    let bounds = Bounds {
        connections_max: command.connections_max,
        connections_reserved: OTHERS_MAX.min(command.connections_max / 2),
        handshake_max: Duration::from_millis(command.handshake_ms),
        unsent_bytes_max: 2 * UNSENT_BYTES_MAX,
        ..Bounds::default()
    };
    let mut shell = Shell::bind(&listeners, bounds).map_err(|error| error.to_string())?;
    if command.metrics.is_some() {
        shell = shell.saying_metrics_at(METRICS_LISTENER);
    }
    enough_descriptors(shell.connections_max(), bounds)?;
    let mut peers = Vec::new();
    for (number, address) in &command.peer {
        let peer = Peer::at(*address);
        peers.push(match &identity {
            None => peer,
            Some(identity) => {
                peer.encrypted(&tls_name(*number), identity).map_err(|error| error.to_string())?
            }
        });
    }
    shell = shell.dialling(peers);
    if let Some(identity) = &identity {
        let names: Vec<String> = (0..NUMBERS_MAX).map(tls_name).collect();
        shell = shell
            .encrypting(CLIENTS_LISTENER, identity)
            .encrypting_for(PEERS_LISTENER, identity, &names)
            .map_err(|error| error.to_string())?;
    }
    let key = command.operator_key.as_deref().map(operator_key).transpose()?;
    let (node, store) = open(&command, ledger)?;
    let node = node.with_operators(key);
    let mut node = Telling { node, full_since: None, leads: false, has_vote: true, refusals: 0 };
    let counters = store.as_ref().map(Store::counters);
    if let Some(store) = store {
        shell = shell.keeping(store);
    }
    shell.announce(&[]).map_err(|error| error.to_string())?;
    let facts = shell.run(&mut node, Clock::start(), &until).map_err(|error| error.to_string())?;
    let node = node.node;
    let (database, counts) = (node.database().counts(), node.counts());
    say(&format!(
        "ended by {}; {} transactions in {} entries, {} repeated, {} reads, {} busy, {} malformed",
        facts.ended_by,
        database.position,
        counts.entries,
        database.repeated,
        counts.reads,
        counts.busy,
        counts.malformed
    ));
    let Counters { accepted, refused, displaced, late, .. } = facts.counters;
    say(&format!(
        "connections: {accepted} accepted, {refused} refused as too many, {displaced} closed for others before they stood, \
         {late} that did not come to stand in time, {} that did not take their answers",
        counts.cut_off
    ));
    for (reason, count) in &facts.tls_failures {
        say(&format!("not trusted: {reason}: {count}"));
    }
    if let Some(counters) = counters {
        let store = counters.read();
        say(&format!(
            "log: {} records in {} writes, {} syncs",
            store.records, store.batches, store.syncs
        ));
    }
    Ok(())
}

/// One line on standard error in one write: replicas that share it do not write into each other's lines.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The replica, which says on standard error what whoever runs it has to know at once.
struct Telling {
    node: KvNode,
    full_since: Option<Instant>,
    leads: bool,
    has_vote: bool,
    /// How many refused connections and messages of replicas were told.
    refusals: u64,
}

/// The first few refusals are told one by one, then each time that there are twice as many: whoever is refused may come again
/// and again.
const REFUSALS_TOLD: u64 = 8;

impl Telling {
    /// What of its group has changed.
    fn tell_of_group(&mut self) {
        let Some(group) = self.node.order().group() else { return };
        let has_vote = group.has_vote();
        if has_vote != self.has_vote {
            self.has_vote = has_vote;
            say(if has_vote {
                "has a vote"
            } else {
                "has no vote: its folder was empty; it founds a group with the others if theirs are, or gets a vote when it has caught up"
            });
        }
        let (_, refused, why) = group.troubles();
        let is_told = refused < REFUSALS_TOLD || refused >= 2 * self.refusals;
        if let Some(why) = why.filter(|_| refused > self.refusals && is_told) {
            self.refusals = refused;
            say(&format!("refused of another replica, {refused} times by now; last: {why}"));
        }
    }
}

impl Node for Telling {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.node.step(now, input, out);
        self.tell_of_group();
        let leads = self.node.order().leads();
        if leads != self.leads {
            self.leads = leads;
            let position = self.node.database().position();
            say(&format!(
                "leads {}, at position {position}",
                if leads { "now" } else { "no longer" }
            ));
        }
        match (self.node.is_disk_full(), self.full_since) {
            (true, None) => {
                self.full_since = Some(now);
                say(
                    "the disk is full: nothing more is kept or acknowledged here until there is room; free some, and it goes on",
                );
            }
            (false, Some(since)) => {
                self.full_since = None;
                let ms = now.saturating_since(since).as_millis();
                say(&format!("the disk has room again, after {ms} ms: what waited is kept"));
            }
            _ => {}
        }
    }
}

/// Fewer connections of clients than this are too few to begin with, unless fewer were asked for.
const CLIENTS_MIN: usize = 64;

/// Whether the host gives descriptors for more than what is kept for others.
fn enough_descriptors(given: usize, asked: Bounds) -> Result<(), String> {
    let clients = given.saturating_sub(asked.connections_reserved);
    if given >= asked.connections_max || clients >= CLIENTS_MIN {
        return Ok(());
    }
    Err(format!(
        "the host gives this process descriptors for {given} connections, of which {} are kept for replicas and metrics, so {clients} \
         are left for clients; raise the limit (`ulimit -n`) by {} at least, or ask for fewer with --connections-max",
        asked.connections_reserved,
        CLIENTS_MIN - clients + asked.connections_reserved.saturating_sub(given)
    ))
}

/// The replica, as its disk left it.
fn open(command: &Command, ledger: Ledger) -> Result<(KvNode, Option<Store>), String> {
    let Some(folder) = &command.data else {
        return Ok((KvNode::new(command.replica, command.limits, ledger), None));
    };
    let (store, stored) = Store::open(folder, &["log"], &CELL_NAMES, command.store)
        .map_err(|error| error.to_string())?;
    let torn: usize = stored.logs.iter().map(StoredLog::torn_bytes).sum();
    if torn > 0 {
        say(&format!(
            "the log ended in {torn} bytes that are no whole record, and they were cut: a write that was under way when the replica ended \
             (of one that had been idle for a second nothing that was acknowledged is among them)"
        ));
    }
    let (config, settings) = config(command)?;
    let node = KvNode::of_group(config, &settings, &stored, command.limits, ledger)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok((node, Some(store.written_by(command.log_thread))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a replica that the host gives hardly a descriptor for clients does not start, and says by how many the limit is too
    /// low; one that was asked for few connections and gets them does.
    #[test]
    fn too_few_descriptors() {
        let asked = |connections_max, connections_reserved| Bounds {
            connections_max,
            connections_reserved,
            ..Bounds::default()
        };
        assert_eq!(enough_descriptors(65_536, asked(65_536, 256)), Ok(()));
        assert_eq!(enough_descriptors(320, asked(65_536, 256)), Ok(()));
        assert_eq!(enough_descriptors(10, asked(10, 5)), Ok(()));
        for (given, by) in [(172, "by 148"), (319, "by 1 ")] {
            let why = enough_descriptors(given, asked(65_536, 256)).unwrap_err();
            assert!(why.contains(by) && why.contains("--connections-max"), "{why}");
        }
    }
}
