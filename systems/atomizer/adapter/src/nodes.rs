//! The processes of a trial: what they are called, how they are started, where each listens and keeps its files.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::plan::CLIENT;
use sut::{Deployment, SutError, Testbed};
use testbed::free_port;

use crate::care::{Care, Tended};
use crate::metrics;
use crate::options::Atomizer;
use crate::places::{Place, Places, ShardPlace};
use crate::stages;
use crate::standing::wait_until_led;

/// Names in the testbed, for faults by name; several atomizers are this with their number.
const ATOMIZER: &str = "atomizer";
const ARCHIVER: &str = "archiver";
const WATCHTOWER: &str = "watchtower";
/// Several shards are this with their number, one is too: a fault names it so.
const SHARD: &str = "shard";

/// Where an atomizer keeps what it keeps, in its folder.
const DATA: &str = "data";

const READY_WITHIN: Duration = Duration::from_secs(30);
/// The first atomizer leads when a trial begins, so that a fault can name it: the others wait longer for a leader.
const FOLLOWER_PATIENCE: u64 = 2;
const ELECTION_TIMEOUT_MS: u64 = 1000;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

fn address(ready: &BTreeMap<String, String>, name: &str) -> Result<SocketAddr, SutError> {
    let address = ready.get(name).and_then(|address| address.parse().ok());
    address.ok_or_else(|| {
        SutError::Deploy(format!("a node does not say its address `{name}`: {ready:?}"))
    })
}

/// A host of a node: its own on the plan's links, else this one's.
fn host(bed: &mut Testbed, name: &str, port: u16) -> Result<SocketAddr, SutError> {
    Ok(match bed.network_address(name)? {
        Some(own) => SocketAddr::from((own, port)),
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)),
    })
}

/// Ports where nodes have addresses of their own.
const PEERS_PORT: u16 = 7000;

/// A started node listens where it did when it is started again.
fn keep_addresses(arguments: &mut [String], all: &[(&str, SocketAddr)]) {
    for (option, address) in all {
        if let Some(argument) = arguments.iter_mut().find(|it| it.starts_with(option)) {
            *argument = format!("{option}{address}");
        }
    }
}

/// Draws what archivers have to know: of this trial alone, and in a file that only this user can read.
fn archiver_key(bed: &Testbed) -> Result<PathBuf, SutError> {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = bed.folder().join("archiver.key");
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(bed.folder())?;
        let mut key = [0_u8; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(digits.as_bytes())
    };
    write().map_err(|error| {
        SutError::Deploy(format!("writing the archivers' key {}: {error}", path.display()))
    })?;
    Ok(path)
}

/// Starts all of them.
pub(crate) fn start_all(of: &Atomizer, bed: &mut Testbed) -> Result<Deployment, SutError> {
    let names: Vec<String> = match of.atomizers {
        1 => vec![ATOMIZER.to_owned()],
        count => (0..count).map(|number| format!("{ATOMIZER}{number}")).collect(),
    };
    let key = archiver_key(bed)?;
    let mut hosts = Vec::new();
    for name in &names {
        hosts.push(host(bed, name, PEERS_PORT)?);
    }
    let (mut atomizers, mut events, mut scrape) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..names.len() {
        let (place, metrics) = start_atomizer(of, number, &names, &hosts, &key, bed, &mut events)?;
        atomizers.push(place);
        scrape.push(metrics::atomizer(&names[number], metrics));
    }
    let folder = bed.node_folder(ARCHIVER)?;
    let archive = folder.join("archive");
    let mut arguments = words(&["serve", "atomizer", "archiver", "--parent-pipe"]);
    arguments.push(format!("--data={}", archive.display()));
    arguments.push(format!("--sync={}", of.archive_sync));
    arguments.push(format!("--key={}", key.display()));
    arguments.push("--listen=127.0.0.1:0".to_owned());
    arguments.push("--metrics=127.0.0.1:0".to_owned());
    for (name, place) in names.iter().zip(&atomizers) {
        let dialled = bed.forward(ARCHIVER, name, place.blocks)?.unwrap_or(place.blocks);
        arguments.push(format!("--atomizer={dialled}"));
    }
    stamp(of, ARCHIVER, &folder, &mut arguments, &mut events);
    bed.spawn_self(ARCHIVER, arguments)?;
    let ready = bed.ready_line(ARCHIVER, READY_WITHIN)?;
    let (archiver, said) = (address(&ready, "clients")?, address(&ready, "metrics")?);
    bed.at_restart(ARCHIVER, move |arguments| {
        keep_addresses(arguments, &[("--listen=", archiver), ("--metrics=", said)]);
    })?;
    scrape.push(metrics::archiver(ARCHIVER, said));
    let mut watchtower = None;
    if of.watchtower {
        watchtower = Some(start_watchtower(of, &names, &atomizers, bed)?);
    }
    let shards = start_shards(of, &names, &atomizers, archiver, bed, &mut scrape)?;
    let mut deployment = Deployment::new(bed.clock());
    deployment.endpoints =
        names.iter().cloned().zip(atomizers.iter().map(|it| it.clients)).collect();
    wait_until_led(&deployment.endpoints, bed.clock(), READY_WITHIN)?;
    let tended = |(name, place): (&String, &Place)| -> Result<Tended, SutError> {
        let folder = bed.node_folder(name)?;
        let data = (of.log != "memory").then(|| folder.join(DATA));
        Ok(Tended { name: name.clone(), address: place.clients, data })
    };
    let tended: Vec<Tended> = names.iter().zip(&atomizers).map(tended).collect::<Result<_, _>>()?;
    deployment.care = Some(Arc::new(Care(tended)));
    deployment.nodes = bed.nodes();
    deployment.scrape = scrape;
    deployment.folder = Some(archive.clone());
    deployment.facts = BTreeMap::from([
        ("atomizer.atomizers".to_owned(), names.len().to_string()),
        ("atomizer.log".to_owned(), of.log.to_owned()),
        ("atomizer.arguments".to_owned(), of.arguments.join(" ")),
        ("atomizer.shards".to_owned(), shards.len().to_string()),
        ("atomizer.index_bytes".to_owned(), of.known.recent_bytes().to_string()),
    ]);
    deployment.state =
        Some(Arc::new(Places { atomizers, shards, archiver, archive, watchtower, events }));
    Ok(deployment)
}

/// Has a node stamp its stages, if it is to.
fn stamp(
    of: &Atomizer,
    name: &str,
    folder: &std::path::Path,
    arguments: &mut Vec<String>,
    events: &mut Vec<(String, PathBuf)>,
) {
    if of.stamps {
        let path = folder.join(stages::FILE);
        arguments.push(format!("--events={}", path.display()));
        events.push((name.to_owned(), path));
    }
}

fn start_atomizer(
    of: &Atomizer,
    number: usize,
    names: &[String],
    hosts: &[SocketAddr],
    key: &Path,
    bed: &mut Testbed,
    events: &mut Vec<(String, PathBuf)>,
) -> Result<(Place, SocketAddr), SutError> {
    let (name, own) = (&names[number], hosts[number]);
    let folder = bed.node_folder(name)?;
    let mut arguments = words(&["serve", "atomizer", "node", "--parent-pipe"]);
    arguments.push(format!("--replica={number}"));
    for option in ["--listen", "--blocks", "--errors", "--metrics"] {
        arguments.push(format!("{option}={}:0", own.ip()));
    }
    arguments.push(format!("--peers={own}"));
    for (other, address) in hosts.iter().enumerate().filter(|(other, _)| *other != number) {
        let dialled = bed.forward(name, &names[other], *address)?.unwrap_or(*address);
        arguments.push(format!("--peer={other}={dialled}"));
    }
    arguments.push(format!("--archiver-key={}", key.display()));
    arguments.push(format!("--log={}", of.log));
    if of.log != "memory" {
        arguments.push(format!("--data={}", folder.join(DATA).display()));
    }
    if number > 0 && !of.arguments.iter().any(|it| it.starts_with("--election-timeout-ms")) {
        let patience = ELECTION_TIMEOUT_MS * FOLLOWER_PATIENCE;
        arguments.push(format!("--election-timeout-ms={patience}"));
    }
    arguments.extend(of.arguments.iter().cloned());
    stamp(of, name, &folder, &mut arguments, events);
    bed.spawn_self(name, arguments)?;
    let ready = bed.ready_line(name, READY_WITHIN)?;
    let at = |what: &str| address(&ready, what);
    let (clients, blocks, errors, metrics) =
        (at("clients")?, at("blocks")?, at("errors")?, at("metrics")?);
    bed.at_restart(name, move |arguments| {
        let all = [
            ("--listen=", clients),
            ("--blocks=", blocks),
            ("--errors=", errors),
            ("--metrics=", metrics),
        ];
        keep_addresses(arguments, &all);
    })?;
    let clients = bed.forward(CLIENT, name, clients)?.unwrap_or(clients);
    Ok((Place { clients, blocks, errors }, metrics))
}

fn start_watchtower(
    of: &Atomizer,
    names: &[String],
    atomizers: &[Place],
    bed: &mut Testbed,
) -> Result<SocketAddr, SutError> {
    let mut arguments = words(&["serve", "atomizer", "watchtower", "--parent-pipe"]);
    arguments.push("--listen=127.0.0.1:0".to_owned());
    for (name, place) in names.iter().zip(atomizers) {
        let blocks = bed.forward(WATCHTOWER, name, place.blocks)?.unwrap_or(place.blocks);
        let errors = bed.forward(WATCHTOWER, name, place.errors)?.unwrap_or(place.errors);
        arguments.extend([format!("--atomizer={blocks}"), format!("--errors={errors}")]);
    }
    if of.watchtower_stub {
        arguments.push("--always-unspent".to_owned());
    }
    bed.spawn_self(WATCHTOWER, arguments)?;
    let ready = bed.ready_line(WATCHTOWER, READY_WITHIN)?;
    let clients = address(&ready, "clients")?;
    bed.at_restart(WATCHTOWER, move |arguments| {
        keep_addresses(arguments, &[("--listen=", clients)]);
    })?;
    Ok(clients)
}

/// Starts shards, each of which knows all of them. They are beside the archiver, and not on the plan's links.
fn start_shards(
    of: &Atomizer,
    names: &[String],
    atomizers: &[Place],
    archiver: SocketAddr,
    bed: &mut Testbed,
    scrape: &mut Vec<sut::Scrape>,
) -> Result<Vec<ShardPlace>, SutError> {
    let shards: Vec<String> = (0..of.shards).map(|number| format!("{SHARD}{number}")).collect();
    let mut hosts = Vec::new();
    for _ in &shards {
        hosts.push(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
    }
    let mut places = Vec::new();
    for (number, name) in shards.iter().enumerate() {
        let own = hosts[number];
        let mut arguments = words(&["serve", "atomizer", "shard", "--parent-pipe"]);
        arguments.push(format!("--number={number}"));
        arguments.push(format!("--depth={}", of.depth));
        for option in ["--listen", "--errors", "--metrics"] {
            arguments.push(format!("{option}=127.0.0.1:0"));
        }
        arguments.push(format!("--shards={own}"));
        arguments.push(format!("--archiver={archiver}"));
        for (atomizer, place) in names.iter().zip(atomizers) {
            let dialled = bed.forward(name, atomizer, place.clients)?.unwrap_or(place.clients);
            arguments.push(format!("--atomizer={dialled}"));
        }
        arguments.extend(hosts.iter().map(|address| format!("--shard={address}")));
        let lies = of.lies.iter().filter(|(it, _)| usize::from(*it) == number);
        arguments.extend(lies.map(|(_, lie)| format!("--lie={lie}")));
        bed.spawn_self(name, arguments)?;
        let ready = bed.ready_line(name, READY_WITHIN)?;
        let at = |what: &str| address(&ready, what);
        let (clients, errors, metrics) = (at("clients")?, at("errors")?, at("metrics")?);
        bed.at_restart(name, move |arguments| {
            let all = [("--listen=", clients), ("--errors=", errors), ("--metrics=", metrics)];
            keep_addresses(arguments, &all);
        })?;
        scrape.push(metrics::shard(name, metrics));
        places.push(ShardPlace { clients, errors });
    }
    Ok(places)
}
