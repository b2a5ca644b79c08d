//! The members of a trial's cluster: what they are called, how each is started, where it listens and keeps its files; and
//! questions to one beside the load, over a connection of its own, blocking and bounded in time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clock::Clock;
use model::plan::CLIENT;
use serde_json::Value;
use sut::ask::Questioner;
use sut::{SutError, Testbed};
use testbed::{NodeSpec, own_loopback};
use wire::http1::{Asked, Limits};

use crate::gateway::post;

/// The name of the only member in the testbed, for faults by name; several are this with their number.
const NODE: &str = "etcd";

/// The program, as the list of those that can be installed calls it.
const PROGRAM: &str = "etcd";

/// Ports of a member that has an address of its own: for clients, and for other members.
const CLIENTS_PORT: u16 = 2379;
const MEMBERS_PORT: u16 = 2380;

/// How long a cluster may take until it serves, at its start and after faults.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer: a part of the keys, with their values.
const LIMITS: Limits = Limits::keeping(64 << 20);

/// Members as an experiment wants them.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub(crate) count: u8,
    /// The trial's mark, of which the addresses are made.
    pub(crate) run_mark: u64,
    pub(crate) program: Option<PathBuf>,
    /// Options of the server, by its own names, beside those that the testbed gives.
    pub(crate) arguments: Vec<String>,
}

impl Members {
    /// Starts all of them and waits until each serves.
    pub(crate) fn start(&self, bed: &mut Testbed) -> Result<(Vec<SocketAddr>, PathBuf), SutError> {
        let program = sut::program(self.program.as_deref(), PROGRAM)?;
        let names: Vec<String> = match self.count {
            1 => vec![NODE.to_owned()],
            count => (0..count).map(|number| format!("{NODE}{number}")).collect(),
        };
        let mut places = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let address = |host: Ipv4Addr, port| SocketAddr::new(IpAddr::V4(host), port);
            places.push(match bed.network_address(name)? {
                Some(own) => (address(own, CLIENTS_PORT), address(own, MEMBERS_PORT)),
                None => {
                    let own = own_loopback(self.run_mark, number);
                    (address(own, CLIENTS_PORT), address(own, MEMBERS_PORT))
                }
            });
        }
        let named = names.iter().zip(&places);
        let cluster: Vec<String> =
            named.map(|(name, (_, members))| format!("{name}=http://{members}")).collect();
        let mut addresses = Vec::new();
        for (name, (clients, members)) in names.iter().zip(&places) {
            // On a disk of its own, where the plan gives it one.
            let folder = bed.node_folder(name)?;
            let mut arguments = vec![
                format!("--name={name}"),
                format!("--data-dir={}", folder.join("data").display()),
                format!("--listen-client-urls=http://{clients}"),
                format!("--advertise-client-urls=http://{clients}"),
                format!("--listen-peer-urls=http://{members}"),
                format!("--initial-advertise-peer-urls=http://{members}"),
                format!("--initial-cluster={}", cluster.join(",")),
                "--initial-cluster-state=new".to_owned(),
                "--log-level=warn".to_owned(),
            ];
            arguments.extend(self.arguments.iter().map(|argument| format!("--{argument}")));
            bed.spawn(NodeSpec::new(name, &program).args(arguments).in_own_namespace())?;
            addresses.push(bed.forward(CLIENT, name, *clients)?.unwrap_or(*clients));
        }
        let clock = bed.clock();
        for (name, address) in names.iter().zip(&addresses) {
            let is_up = || ask(*address, "/v3/maintenance/status", "{}", clock).is_ok();
            bed.wait_ready(name, is_up, READY_WITHIN)?;
        }
        let folder = bed.node_folder(&names[0])?;
        Ok((addresses, folder))
    }
}

/// Asks a member one question.
pub(crate) fn ask(member: SocketAddr, path: &str, body: &str, clock: Clock) -> io::Result<Value> {
    let mut request = Vec::new();
    post(path, body.as_bytes(), &mut request);
    let mut questioner = Questioner::new(member, None, LIMITS, clock);
    let answer = questioner.ask(&request, Asked::Other, PATIENCE).map_err(io::Error::other)?;
    let value: Value = serde_json::from_slice(answer.body).map_err(io::Error::other)?;
    match answer.response.status {
        200 => Ok(value),
        status => {
            let said = value["message"].as_str().unwrap_or_default();
            Err(io::Error::other(format!("the member answers {status}: {said}")))
        }
    }
}
