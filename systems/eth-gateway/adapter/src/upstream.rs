//! The node behind the gateway: one that is played, with a limiter; anvil or geth with a chain made here; or one that runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use ethereum_adapter::{NodeKind, NodeWish, Rpc};
use serde_json::json;
use sut::{SutError, Testbed};
use testbed::free_port;

use crate::seeding;

/// The program that is the gateway, and plays a node.
pub(crate) const PROGRAM: &str = "eth-gateway";

/// How long it may take until it serves.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);

/// Of a block of a chain for development.
const GAS_LIMIT: u64 = 30_000_000;

/// Which node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// Played by the gateway's program, with these words after ours.
    Played(Vec<String>),
    Started(NodeKind),
    /// Runs already, at this URL.
    At(String),
}

/// Starts it, if it does not run, and gives it a chain; gives its URL.
pub(crate) fn start(
    upstream: &Upstream,
    transactions: u64,
    bed: &mut Testbed,
) -> Result<String, SutError> {
    match upstream {
        Upstream::At(url) => Ok(url.clone()),
        Upstream::Played(words) => {
            let listen = format!("127.0.0.1:{}", free_port()?);
            let mut all = vec!["mock".to_owned(), "--listen".to_owned(), listen];
            all.extend(words.iter().cloned());
            bed.spawn_program("node", PROGRAM, all)?;
            ready(bed, "node").map(url)
        }
        Upstream::Started(kind) => {
            let wish = NodeWish {
                which: *kind,
                program: None,
                block_time: None,
                gas_limit: GAS_LIMIT,
                arguments: Vec::new(),
            };
            let address = wish.start(bed)?;
            let mut rpc = Rpc::new(address, bed.clock());
            seeding::seed(&mut rpc, transactions, bed.clock()).map_err(|why| {
                SutError::Deploy(format!("putting something on the node's chain: {why}"))
            })?;
            Ok(url(address))
        }
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/")
}

/// Has the limiter of a node that is played forget what was asked before the load.
pub(crate) fn forget(node: &str, clock: Clock) -> Result<(), SutError> {
    let authority = node.trim_start_matches("http://").trim_end_matches('/');
    let failed = |why: String| SutError::Deploy(format!("resetting the node's limiter: {why}"));
    let address = authority.parse().map_err(|_| failed(format!("`{node}` is not an address")))?;
    let mut rpc = Rpc::new(address, clock);
    rpc.ask::<bool>("mock_reset", json!([])).map(drop).map_err(failed)
}

/// Waits until a program of ours says where it serves.
pub(crate) fn ready(bed: &mut Testbed, name: &str) -> Result<SocketAddr, SutError> {
    let said: BTreeMap<String, String> = bed.ready_line(name, READY_WITHIN)?;
    let address = said.get("http").and_then(|text| text.parse().ok());
    address
        .ok_or_else(|| SutError::Deploy(format!("`{name}` does not say where it serves: {said:?}")))
}
