//! The replicas of a trial: what they are called, how they are started, where each listens and keeps its files.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kv_node::protocol::State;
use model::plan::CLIENT;
use sut::asker::Clock;
use sut::{Deployment, Scrape, SutError, Testbed, Tls};
use testbed::{NodeSpec, free_port};

use crate::care::{Care, Tended};
use crate::control::Control;
use crate::options::Kv;
use crate::{certificates, metrics};

/// The name of the only replica in the testbed, for faults by name; several are this with their number.
const NODE: &str = "kv";

/// What it keeps, in its folder.
const DATA: &str = "data";

/// The names of its addresses in its ready line.
const CLIENTS: &str = "clients";
const METRICS: &str = "metrics";

/// Where replicas listen for each other, each at an address of its own.
const PEERS_PORT: u16 = 7000;

/// How long a replica may take to start, and the group to agree on who leads.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);

/// How often a replica is asked how it stands while one waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The replica that keeps the ledger waits so many times as long for a leader as the others before it wants to lead: the
/// ledger is to be read from another one than the load spoke with.
const KEEPER_PATIENCE: u64 = 4;

/// The others wait twice as long as the first, which so leads when a trial begins: a fault can name the leader.
const FOLLOWER_PATIENCE: u64 = 2;

/// A replica that is up.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its name in the testbed; of one that was attached to, what to call it.
    pub(crate) name: String,
    /// Where clients connect.
    pub(crate) address: SocketAddr,
}

/// What the adapter remembers of a deployment.
pub(crate) struct Places {
    /// The replicas in the order of their numbers.
    pub(crate) replicas: Vec<Place>,
    /// Who led when the group was up.
    pub(crate) leader: usize,
    /// The position that was learned before anything was sent.
    pub(crate) since: u64,
    /// The number of the database.
    pub(crate) database: u64,
    /// How one connects.
    pub(crate) tls: Option<Tls>,
}

impl Places {
    /// The group of these replicas, once it is agreed who leads.
    pub(crate) fn agreed(
        replicas: Vec<Place>,
        tls: Option<Tls>,
        bed: &Testbed,
    ) -> Result<Self, SutError> {
        let clock = bed.clock();
        let deadline = clock.now().plus(READY_WITHIN);
        let mut places = Self { replicas, leader: 0, since: 0, database: 0, tls };
        loop {
            let states: Vec<io::Result<State>> =
                places.replicas.iter().map(|place| places.state(place, clock)).collect();
            let known = states.iter().flatten();
            // Of one that was attached to, the others may be reached only by their number.
            let leads = known.clone().find(|state| state.leader == state.replica);
            let alone = places.replicas.len() == 1;
            let is_agreed = known.clone().count() == places.replicas.len()
                && known.clone().all(|state| leads.is_some_and(|it| it.replica == state.leader));
            if let (true, Some(leader)) = (is_agreed, leads) {
                places.leader = if alone { 0 } else { usize::from(leader.replica) };
                places.database = leader.database;
                places.since = known.map(|state| state.position).max().unwrap_or(0);
                return Ok(places);
            }
            if clock.now() >= deadline || states.len() == 1 && states[0].is_err() {
                let said: Vec<String> = (places.replicas.iter().zip(&states))
                    .map(|(place, state)| match state {
                        Ok(state) => format!("`{}` follows {}", place.name, state.leader),
                        Err(error) => format!("`{}` at {}: {error}", place.name, place.address),
                    })
                    .collect();
                let said = said.join(", ");
                return Err(SutError::Deploy(format!(
                    "the replicas do not agree who leads: {said}"
                )));
            }
            clock.sleep_until(clock.now().plus(LOOK_EVERY));
        }
    }

    /// How a replica stands.
    fn state(&self, place: &Place, clock: Clock) -> io::Result<State> {
        let control = Control::open(place.address, self.tls.as_ref(), clock);
        control.and_then(|mut control| control.state())
    }

    /// A replica that keeps a ledger, has come as far as any that answers, and has all of it: a connection to it and its
    /// name; none keeps one: `None`.
    pub(crate) fn keeper(&self, of: &Deployment) -> Result<Option<(Control, String)>, SutError> {
        let deadline = of.clock.now().plus(READY_WITHIN);
        loop {
            let why = match self.look_for_keeper(of.clock) {
                Ok(found) => return Ok(found),
                Err(why) => why,
            };
            if of.clock.now() >= deadline || of.stop.load(Ordering::Relaxed) {
                return Err(SutError::Ledger(why));
            }
            of.clock.sleep_until(of.clock.now().plus(LOOK_EVERY));
        }
    }

    fn look_for_keeper(&self, clock: Clock) -> Result<Option<(Control, String)>, String> {
        let states: Vec<(&Place, io::Result<State>)> =
            self.replicas.iter().map(|place| (place, self.state(place, clock))).collect();
        let most = states.iter().flat_map(|(_, state)| state).map(|state| state.position).max();
        let mut trouble = None;
        for (place, state) in &states {
            let name = &place.name;
            let words = match state {
                Err(error) => format!("`{name}` at {} does not answer: {error}", place.address),
                Ok(state) if !state.keeps_ledger => continue,
                Ok(state) if Some(state.position) < most => {
                    let most = most.unwrap_or(0);
                    format!("`{name}` has come to {} of {most}", state.position)
                }
                Ok(state) => match self.whole(place, state, clock) {
                    Ok(control) => return Ok(Some((control, name.clone()))),
                    Err(why) => format!("asking `{name}` for its ledger: {why}"),
                },
            };
            trouble = Some(words);
        }
        match trouble {
            Some(words) => Err(words),
            None => Ok(None),
        }
    }

    fn whole(&self, place: &Place, state: &State, clock: Clock) -> io::Result<Control> {
        let mut control = Control::open(place.address, self.tls.as_ref(), clock)?;
        control.hello()?;
        let part = control.ledger(0)?;
        if part.whole_to < state.position {
            return Err(io::Error::other(format!(
                "it lacks what was executed behind position {}, of {}; it took a snapshot over",
                part.whole_to, state.position
            )));
        }
        Ok(control)
    }
}

/// A replica that runs already.
pub(crate) fn attached(address: SocketAddr) -> Vec<Place> {
    vec![Place { name: NODE.to_owned(), address }]
}

/// A deployment of these replicas.
pub(crate) fn deployment(bed: &Testbed, places: Places) -> Deployment {
    let named = places.replicas.iter().map(|place| (place.name.clone(), place.address));
    Deployment {
        endpoints: named.collect(),
        state: Some(Arc::new(places) as _),
        ..Deployment::new(bed.clock())
    }
}

/// Starts all replicas, and says where they are and what is to be asked of them.
pub(crate) fn start_all(kv: &Kv, bed: &mut Testbed) -> Result<Deployment, SutError> {
    let tls_folder = bed.folder().join("tls");
    let tls = if kv.tls {
        certificates::make(&tls_folder, kv.replicas).map_err(SutError::Deploy)?;
        Some(certificates::client(&tls_folder).map_err(SutError::Deploy)?)
    } else {
        None
    };
    let names: Vec<String> = match kv.replicas {
        1 => vec![NODE.to_owned()],
        count => (0..count).map(|number| format!("{NODE}{number}")).collect(),
    };
    let mut hosts = Vec::new();
    for name in &names {
        // On the plan's links the replica has an address of its own; else it is one of the host's loopback.
        hosts.push(match bed.network_address(name)? {
            Some(own) => SocketAddr::from((own, PEERS_PORT)),
            None => SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)),
        });
    }
    let (mut replicas, mut scrape) = (Vec::new(), Vec::new());
    for number in 0..names.len() {
        let tls_folder = kv.tls.then_some(tls_folder.as_path());
        let (place, said) = start(kv, number, &names, &hosts, tls_folder, bed)?;
        replicas.push(place);
        scrape.push(said);
    }
    let folder = Some(bed.node_folder(&names[0])?);
    let places = Places::agreed(replicas, tls, bed)?;
    let care = care(kv, &places, bed)?;
    let mut facts = BTreeMap::from([
        ("kv.replicas".to_owned(), names.len().to_string()),
        ("kv.tls".to_owned(), kv.tls.to_string()),
        ("kv.keeps".to_owned(), kv.keeps.to_string()),
        ("kv.arguments".to_owned(), kv.arguments.join(" ")),
        ("kv.leader".to_owned(), names[places.leader].clone()),
    ]);
    if let Some(program) = &kv.program {
        facts.insert("kv.program".to_owned(), program.display().to_string());
    }
    let started = deployment(bed, places);
    Ok(Deployment {
        facts,
        scrape,
        folder,
        nodes: bed.nodes(),
        care: Some(Arc::new(care)),
        ..started
    })
}

fn care(kv: &Kv, places: &Places, bed: &mut Testbed) -> Result<Care, SutError> {
    let mut tended = |place: &Place| -> Result<Tended, SutError> {
        let folder = bed.node_folder(&place.name)?;
        let data = kv.keeps.then(|| folder.join(DATA));
        Ok(Tended { name: place.name.clone(), address: place.address, data })
    };
    let replicas = places.replicas.iter().map(&mut tended).collect::<Result<_, _>>()?;
    Ok(Care { replicas, tls: places.tls.clone(), clock: bed.clock() })
}

fn start(
    kv: &Kv,
    number: usize,
    names: &[String],
    hosts: &[SocketAddr],
    tls: Option<&Path>,
    bed: &mut Testbed,
) -> Result<(Place, Scrape), SutError> {
    let (name, own) = (&names[number], hosts[number]);
    // On a disk of its own, where the plan gives it one.
    let folder = bed.node_folder(name)?;
    let mut arguments: Vec<String> = ["serve", "kv", "--parent-pipe"].map(str::to_owned).into();
    arguments.extend([
        format!("--replica={number}"),
        format!("--listen={}:0", own.ip()),
        format!("--metrics={}:0", own.ip()),
        format!("--peers={own}"),
    ]);
    for (other, address) in hosts.iter().enumerate().filter(|(other, _)| *other != number) {
        // Where the links are forwarders, a replica dials one.
        let dialled = bed.forward(name, &names[other], *address)?.unwrap_or(*address);
        arguments.push(format!("--peer={other}={dialled}"));
    }
    if kv.keeps {
        arguments.push(format!("--data={}", folder.join(DATA).display()));
    }
    arguments.extend(tls.map(|tls| format!("--tls={}", tls.display())));
    let is_keeper = number + 1 == names.len();
    if is_keeper && kv.ledger {
        // For whoever audits: not on the disk, whose power may be cut.
        let ledger = bed.folder().join(format!("{name}.ledger"));
        arguments.push(format!("--ledger={}", ledger.display()));
    }
    let patience = match number {
        0 => 1,
        _ if is_keeper => KEEPER_PATIENCE,
        _ => FOLLOWER_PATIENCE,
    };
    arguments.push(format!("--election-timeout-ms={}", kv.election_timeout_ms * patience));
    arguments.extend(kv.arguments.iter().cloned());
    match &kv.program {
        None => bed.spawn_self(name, arguments)?,
        Some(program) => bed.spawn(NodeSpec::new(name, program).args(arguments))?,
    };
    let ready = bed.ready_line(name, READY_WITHIN)?;
    let clients = address(&ready, CLIENTS)?;
    let metrics = address(&ready, METRICS)?;
    bed.at_restart(name, |arguments| start_again(arguments, clients, metrics))?;
    let scrape = metrics::scrape(name, metrics);
    let dialled = bed.forward(CLIENT, name, clients)?.unwrap_or(clients);
    Ok((Place { name: name.clone(), address: dialled }, scrape))
}

/// A replica that is started again listens where it did.
fn start_again(arguments: &mut [String], clients: SocketAddr, metrics: SocketAddr) {
    for (option, address) in [("--listen=", clients), ("--metrics=", metrics)] {
        if let Some(argument) = arguments.iter_mut().find(|it| it.starts_with(option)) {
            *argument = format!("{option}{address}");
        }
    }
}

fn address(ready: &BTreeMap<String, String>, name: &str) -> Result<SocketAddr, SutError> {
    let address = ready.get(name).and_then(|address| address.parse().ok());
    address.ok_or_else(|| {
        SutError::Deploy(format!("the replica does not say its address `{name}`: {ready:?}"))
    })
}
