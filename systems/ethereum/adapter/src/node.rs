//! Starting a node: anvil, or geth's chain for development. One process, HTTP and WebSocket on one port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use model::plan::CLIENT;
use serde_json::json;
use sut::{SutError, Testbed};
use testbed::{NodeSpec, free_port};

use crate::rpc::Rpc;

/// The node's name in the testbed, for faults by name.
pub(crate) const NODE: &str = "node";

/// Its own port, where it has an address of its own.
const PORT: u16 = 8545;

/// How long it may take until it answers: anvil takes 0.3 s, geth two.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Foundry's node for development.
    Anvil,
    /// go-ethereum, with its chain for development.
    Geth,
}

impl Which {
    /// The words that an experiment chooses by, and what the list of programs calls them.
    pub(crate) const WORDS: &'static [&'static str] = &["anvil", "geth"];

    pub(crate) fn of_word(word: Option<&str>) -> Self {
        if word == Some("geth") { Self::Geth } else { Self::Anvil }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Anvil => "anvil",
            Self::Geth => "geth",
        }
    }
}

/// A node as an experiment wants it.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Which program.
    pub which: Which,
    /// The program that the experiment names; absent: the installed one.
    pub program: Option<PathBuf>,
    /// A block so often; absent: one as soon as there is something to put into it.
    pub block_time: Option<Duration>,
    /// Of a block.
    pub gas_limit: u64,
    /// Words of the program's own, behind ours.
    pub arguments: Vec<String>,
}

impl Wish {
    /// Starts it and waits until it answers; gives where clients reach it.
    ///
    /// # Errors
    /// When the program is not there, or does not answer in time.
    pub fn start(&self, bed: &mut Testbed) -> Result<SocketAddr, SutError> {
        let word = self.which.word();
        let program = sut::program(self.program.as_deref(), word)?;
        let folder = bed.node_folder(NODE)?;
        let (host, port) = match bed.network_address(NODE)? {
            Some(own) => (own, PORT),
            None => (Ipv4Addr::LOCALHOST, free_port()?),
        };
        let address = SocketAddr::new(IpAddr::V4(host), port);
        let ours = match self.which {
            Which::Anvil => self.of_anvil(address),
            Which::Geth => self.of_geth(address, &folder.display().to_string()),
        };
        let spec = NodeSpec::new(NODE, program).cwd(folder.display().to_string());
        bed.spawn(spec.args(ours).args(self.arguments.iter().cloned()))?;
        let clock = bed.clock();
        let mut rpc = Rpc::new(address, clock);
        bed.wait_ready(NODE, || rpc.number("eth_chainId", json!([])).is_ok(), READY_WITHIN)?;
        // Where the links are forwarders, the instrument dials one.
        Ok(bed.forward(CLIENT, NODE, address)?.unwrap_or(address))
    }

    fn of_anvil(&self, address: SocketAddr) -> Vec<String> {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let gas_limit = self.gas_limit.to_string();
        let mut words: Vec<String> = [
            "--host",
            &host,
            "--port",
            &port,
            "--gas-limit",
            &gas_limit,
            // It prints each request and each block otherwise.
            "--quiet",
            // Accounts are given money when they are made.
            "--accounts",
            "1",
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(every) = self.block_time {
            words.extend(["--block-time".to_owned(), every.as_secs_f64().to_string()]);
        }
        words
    }

    /// `--dev` makes a chain of one signer, whose money we give away.
    fn of_geth(&self, address: SocketAddr, folder: &str) -> Vec<String> {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let (gas_limit, apis) = (self.gas_limit.to_string(), "eth,net,web3,txpool");
        let every = self.block_time.map_or(0, |every| every.as_secs()).to_string();
        [
            "--dev",
            "--dev.period",
            &every,
            "--dev.gaslimit",
            &gas_limit,
            "--datadir",
            folder,
            "--http",
            "--http.addr",
            &host,
            "--http.port",
            &port,
            "--http.api",
            apis,
            "--ws",
            "--ws.addr",
            &host,
            "--ws.port",
            &port,
            "--ws.api",
            apis,
            "--port",
            "0",
            "--nodiscover",
            "--ipcdisable",
            "--verbosity",
            "2",
            // It takes no transaction that could cost more than one ether otherwise.
            "--rpc.txfeecap",
            "0",
        ]
        .map(str::to_owned)
        .to_vec()
    }
}
