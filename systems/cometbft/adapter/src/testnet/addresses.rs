//! Where nodes listen: in the trial's own network if it has one, otherwise on 127.0.0.0/8, where every node gets
//! an address of its own and so the usual ports: nothing needs rights, namespaces or a list of free ports. And what
//! is dialled to reach them, where links are forwarders.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use model::Seed;
use model::plan::CLIENT;
use sut::{SutError, Testbed};

use crate::manifest::Manifest;

/// Ports on each node's address: its peers', its clients', its metrics'.
pub(crate) const P2P_PORT: u16 = 26656;
pub(crate) const RPC_PORT: u16 = 26657;
pub(crate) const METRICS_PORT: u16 = 26660;

/// Networks of addresses that are tried before giving up.
const SUBNETS_TRIED_MAX: u64 = 64;

/// Where the nodes of a manifest are, by their places in it.
pub(super) struct Places {
    /// What each listens on.
    pub(super) own: Vec<Ipv4Addr>,
    /// What the first dials to reach the second, which it knows from its files.
    pub(super) dialled: BTreeMap<(usize, usize), SocketAddr>,
    /// What clients dial.
    pub(super) clients: Vec<SocketAddr>,
}

/// An address for each node, and where the trial has links between nodes that are forwarders, the forwarders'.
pub(super) fn choose(
    manifest: &Manifest,
    run_mark: u64,
    bed: &mut Testbed,
) -> Result<Places, SutError> {
    let names: Vec<&str> = manifest.nodes.iter().map(|node| node.name.as_str()).collect();
    let own = own(&names, run_mark, bed)?;
    let mut places = Places { own, dialled: BTreeMap::new(), clients: Vec::new() };
    let mut is_forwarded = false;
    for (from, node) in manifest.nodes.iter().enumerate() {
        for known in node.seeds.iter().chain(&node.persistent_peers) {
            let Some(to) = names.iter().position(|name| name == known) else { continue };
            let target = SocketAddr::from((places.own[to], P2P_PORT));
            let forwarder = bed.forward(&node.name, known, target)?;
            is_forwarded |= forwarder.is_some();
            places.dialled.insert((from, to), forwarder.unwrap_or(target));
        }
        let target = SocketAddr::from((places.own[from], RPC_PORT));
        let forwarder = bed.forward(CLIENT, &node.name, target)?;
        places.clients.push(forwarder.unwrap_or(target));
    }
    if is_forwarded && manifest.uses_pex() {
        let words = "seeds tell nodes each other's own addresses, and what they dial then goes past the forwarders that are the links; use links.through = \"switch\", or a testnet without seeds";
        return Err(SutError::Deploy(words.to_owned()));
    }
    Ok(places)
}

/// An address for each name.
fn own(names: &[&str], run_mark: u64, bed: &mut Testbed) -> Result<Vec<Ipv4Addr>, SutError> {
    let mut given = Vec::new();
    for name in names {
        given.push(bed.network_address(name)?);
    }
    if let Some(all) = given.into_iter().collect() {
        return Ok(all);
    }
    let subnet = free_subnet(run_mark, names.len(), |place| TcpListener::bind(place).is_ok())?;
    Ok((0..names.len()).map(|index| address(subnet, index)).collect())
}

/// The `index`-th address of a network.
fn address(subnet: [u8; 3], index: usize) -> Ipv4Addr {
    let host = u8::try_from(index + 1).expect("the options allow fewer");
    Ipv4Addr::new(subnet[0], subnet[1], subnet[2], host)
}

/// A network of 127.0.0.0/8 on which every port that is needed was free a moment ago. Runs beside each other
/// have different marks, so they begin to look at different places.
pub(crate) fn free_subnet(
    run_mark: u64,
    count: usize,
    is_free: impl Fn((Ipv4Addr, u16)) -> bool,
) -> Result<[u8; 3], SutError> {
    let candidate = |attempt| {
        let [a, b, ..] = Seed(run_mark).split_index("subnet", attempt).0.to_le_bytes();
        // 127.0 and the ends of the range are other programs' favourites.
        [127, 1 + a % 254, b]
    };
    let all_free = |subnet: &[u8; 3]| {
        let ports = [P2P_PORT, RPC_PORT, METRICS_PORT];
        let mut places =
            (0..count).flat_map(|index| ports.map(|port| (address(*subnet, index), port)));
        places.all(&is_free)
    };
    (0..SUBNETS_TRIED_MAX).map(candidate).find(all_free).ok_or_else(|| {
        SutError::Deploy(format!(
            "looking for free addresses: ports {P2P_PORT}, {RPC_PORT} and {METRICS_PORT} could not be bound on {count} addresses of any of {SUBNETS_TRIED_MAX} networks of 127.0.0.0/8; does something listen on one of these ports on all addresses (0.0.0.0)? `ss -ltn` says so"
        ))
    })
}
