//! A testnet on this host: files by the program's own `testnet` command, changed where an experiment or the host
//! wants it, and a node for each home. Every node has an address of 127.0.0.0/8 of its own and the usual ports,
//! so nothing needs rights, namespaces or a list of free ports.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Clock;
use model::Seed;
use sut::{SutError, Testbed};
use testbed::NodeSpec;

use crate::config_file::{Setting, changed, value_of};
use crate::program::Program;
use crate::rpc::Rpc;

/// The most validators: the addresses of a /24 that are hosts', and what one machine has carried.
pub(crate) const VALIDATORS_MAX: u64 = 200;

/// Ports on each node's address: its peers', its clients', its metrics'.
const P2P_PORT: u16 = 26656;
const RPC_PORT: u16 = 26657;
const METRICS_PORT: u16 = 26660;

/// Networks of addresses that are tried before giving up.
const SUBNETS_TRIED_MAX: u64 = 64;

/// In a larger network a full mesh drowns in gossip; each node then knows those 1, 2, 4 and 8 places on.
const MESH_MAX: usize = 16;

/// A network has begun when every node has seen a second block: then it follows the others.
const HEIGHT_MIN: u64 = 2;

/// How often a starting node is asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What is to be started.
pub(crate) struct Wish<'a> {
    pub(crate) program: &'a Program,
    pub(crate) validators: usize,
    pub(crate) settings: &'a [Setting],
    pub(crate) run_mark: u64,
    pub(crate) ready_within: Duration,
}

/// Makes the files, starts the nodes, and waits until all their heights grow. Gives where clients reach them,
/// in order.
pub(crate) fn start(wish: &Wish<'_>, bed: &mut Testbed) -> Result<Vec<SocketAddr>, SutError> {
    let subnet = free_subnet(wish.run_mark, wish.validators)?;
    let folder = bed.folder().join("testnet");
    generate(wish, subnet, &folder, bed.clock())?;
    let mut clients = Vec::new();
    for index in 0..wish.validators {
        let home = home(&folder, index);
        let spec = NodeSpec::new(name(index), &wish.program.path)
            .args(["start", "--home"])
            .args([home.to_string_lossy()]);
        bed.spawn(spec)?;
        clients.push(SocketAddr::new(IpAddr::V4(address(subnet, index)), RPC_PORT));
    }
    wait(wish, bed, &clients)?;
    Ok(clients)
}

/// A node's name in the testbed, for faults by name.
fn name(index: usize) -> String {
    format!("node{index}")
}

fn home(folder: &Path, index: usize) -> PathBuf {
    folder.join(name(index))
}

/// The `index`-th address of a network.
fn address(subnet: [u8; 3], index: usize) -> Ipv4Addr {
    let host = u8::try_from(index + 1).expect("the options allow fewer");
    Ipv4Addr::new(subnet[0], subnet[1], subnet[2], host)
}

/// A network of 127.0.0.0/8 on which every port that is needed was free a moment ago. Runs beside each other
/// have different marks, so they begin to look at different places.
fn free_subnet(run_mark: u64, validators: usize) -> Result<[u8; 3], SutError> {
    let candidate = |attempt| {
        let [a, b, ..] = Seed(run_mark).split_index("subnet", attempt).0.to_le_bytes();
        // 127.0 and the ends of the range are other programs' favourites.
        [127, 1 + a % 254, b]
    };
    let is_free = |subnet: &[u8; 3]| {
        let ports = [P2P_PORT, RPC_PORT, METRICS_PORT];
        let mut all =
            (0..validators).flat_map(|index| ports.map(|port| (address(*subnet, index), port)));
        all.all(|place| TcpListener::bind(place).is_ok())
    };
    (0..SUBNETS_TRIED_MAX).map(candidate).find(is_free).ok_or_else(|| {
        SutError::Deploy(format!(
            "looking for free addresses: ports {P2P_PORT}, {RPC_PORT} and {METRICS_PORT} could not be bound on {validators} addresses of any of {SUBNETS_TRIED_MAX} networks of 127.0.0.0/8; is another testnet still running?"
        ))
    })
}

fn generate(wish: &Wish<'_>, subnet: [u8; 3], folder: &Path, clock: Clock) -> Result<(), SutError> {
    let failed = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
        SutError::Deploy(format!("{what} {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed("making", folder, &error))?;
    let (count, first) = (wish.validators.to_string(), address(subnet, 0).to_string());
    let into = folder.to_string_lossy();
    let arguments = ["testnet", "--v", &count, "--o", &into, "--starting-ip-address", &first];
    wish.program.run(&arguments, clock)?;
    for index in 0..wish.validators {
        let path = home(folder, index).join("config/config.toml");
        let file =
            std::fs::read_to_string(&path).map_err(|error| failed("reading", &path, &error))?;
        let peers = value_of(&file, "p2p", "persistent_peers").unwrap_or_default().to_owned();
        let settings = settings(&peers, address(subnet, index), index, wish);
        let file = changed(&file, &settings).map_err(|missing| {
            let version = &wish.program.version;
            let why =
                format!("cometbft {version} has no setting `{missing}`; see system.deploy.config");
            failed("changing", &path, &why)
        })?;
        std::fs::write(&path, file).map_err(|error| failed("writing", &path, &error))?;
    }
    Ok(())
}

/// What differs from the program's own defaults; the experiment has the last word.
fn settings(peers: &str, own: Ipv4Addr, index: usize, wish: &Wish<'_>) -> Vec<Setting> {
    let listen = |port: u16| format!("tcp://{own}:{port}");
    let mut list = vec![
        Setting::text("", "proxy_app", "kvstore"),
        Setting::text("", "log_level", "error"),
        Setting::text("", "moniker", &name(index)),
        Setting::text("rpc", "laddr", &listen(RPC_PORT)),
        Setting::text("p2p", "laddr", &listen(P2P_PORT)),
        Setting::text("p2p", "persistent_peers", &known_peers(peers, index)),
        Setting::raw("p2p", "addr_book_strict", "false"),
        Setting::raw("p2p", "allow_duplicate_ip", "true"),
        Setting::raw("p2p", "pex", "false"),
        Setting::raw("instrumentation", "prometheus", "true"),
        Setting::text(
            "instrumentation",
            "prometheus_listen_addr",
            &format!("{own}:{METRICS_PORT}"),
        ),
    ];
    list.extend(wish.settings.iter().cloned());
    list
}

/// Of all peers, those that the `index`-th node is to know: the others in a small network, four in a large one.
pub(crate) fn known_peers(all: &str, index: usize) -> String {
    let all: Vec<&str> = all.split(',').filter(|peer| !peer.is_empty()).collect();
    let count = all.len();
    let known: Vec<&str> = if count > MESH_MAX {
        [1, 2, 4, 8].map(|step| all[(index + step) % count]).to_vec()
    } else {
        let others = all.iter().enumerate().filter(|(other, _)| *other != index);
        others.map(|(_, peer)| *peer).collect()
    };
    known.join(",")
}

fn wait(wish: &Wish<'_>, bed: &mut Testbed, clients: &[SocketAddr]) -> Result<(), SutError> {
    let clock = bed.clock();
    let deadline = clock.now().plus(wish.ready_within);
    for (index, address) in clients.iter().enumerate() {
        let mut rpc = Rpc::new(*address);
        let mut asked = clock.now();
        let is_high = || {
            if clock.now() < asked {
                return false;
            }
            asked = clock.now().plus(ASK_EVERY);
            // Not there yet is what is being waited for; a node that has ended is noticed by the testbed.
            rpc.height().is_ok_and(|height| height >= HEIGHT_MIN)
        };
        let left = deadline.saturating_since(clock.now());
        bed.wait_ready(&name(index), is_high, left)?;
    }
    Ok(())
}
