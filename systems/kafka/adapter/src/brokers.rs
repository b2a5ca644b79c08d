//! The brokers of a trial: what they are called, how each is configured and started, where it listens and keeps its files.
//! Each is a controller, too (KRaft): there is nothing beside them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::plan::CLIENT;
use sut::{SutError, Testbed};
use testbed::{NodeSpec, own_loopback};

use crate::control::Control;

/// How long brokers may take until the partition has a leader and all replicas, at their start and after faults, without
/// getting on: the controller forgets one that was killed only after its session, and recovery reads the log.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(90);

/// The name of the only broker in the testbed, for faults by name; several are this with their number.
const NODE: &str = "kafka";

/// The program, as the list of those that can be installed calls it: it runs a class of the server's jars.
const PROGRAM: &str = "kafka";
const CLASS: &str = "kafka.Kafka";

/// Ports of a broker that has an address of its own: for clients and other brokers, and for controllers.
const BROKER_PORT: u16 = 9092;
const CONTROLLER_PORT: u16 = 9093;

/// A broker's files, in the folder of its node.
const DATA: &str = "data";

/// The group of controllers, sixteen bytes in base64 that each finds in its folder.
const CLUSTER: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// Brokers as an experiment wants them.
#[derive(Clone, Debug)]
pub(crate) struct Brokers {
    pub(crate) count: u8,
    /// The trial's mark, of which the addresses are made.
    pub(crate) run_mark: u64,
    pub(crate) program: Option<PathBuf>,
    /// Mebibytes of heap that each may have.
    pub(crate) heap_mib: u64,
    /// By the broker's own names.
    pub(crate) settings: BTreeMap<String, String>,
}

/// A broker that is up.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Where clients connect.
    pub(crate) address: SocketAddr,
    /// Its number, where it was started here.
    pub(crate) number: Option<i32>,
}

/// Where a broker is to listen.
struct Plan {
    name: String,
    clients: SocketAddr,
    controllers: SocketAddr,
}

/// The number of a broker among the controllers, from its place: they count from 1.
fn number_of(place: usize) -> i32 {
    i32::try_from(place + 1).expect("few brokers")
}

impl Brokers {
    /// Starts all of them and waits until each takes clients. Gives where they are, the folder of the first, and the version
    /// as the jars say it.
    pub(crate) fn start(
        &self,
        bed: &mut Testbed,
    ) -> Result<(Vec<Place>, PathBuf, String), SutError> {
        let program = sut::program(self.program.as_deref(), PROGRAM)?;
        let names: Vec<String> = match self.count {
            1 => vec![NODE.to_owned()],
            count => (0..count).map(|number| format!("{NODE}{number}")).collect(),
        };
        let mut plans = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            let host = bed.network_address(&name)?;
            let host = IpAddr::V4(host.unwrap_or_else(|| own_loopback(self.run_mark, number)));
            let at = |port| SocketAddr::new(host, port);
            plans.push(Plan { name, clients: at(BROKER_PORT), controllers: at(CONTROLLER_PORT) });
        }
        let mut places = Vec::new();
        for (at, Plan { name, clients, .. }) in plans.iter().enumerate() {
            let node = self.node(at, &plans, &program, bed)?;
            bed.spawn(node)?;
            let dialled = bed.forward(CLIENT, name, *clients)?.unwrap_or(*clients);
            places.push(Place { address: dialled, number: Some(number_of(at)) });
        }
        let clock = bed.clock();
        for (plan, place) in plans.iter().zip(&places) {
            let is_up = || Control::open(place.address, clock).is_ok();
            bed.wait_ready(&plan.name, is_up, READY_WITHIN)?;
        }
        let folder = bed.node_folder(&plans[0].name)?;
        Ok((places, folder, version(&program)))
    }

    /// Writes all that a broker reads before it is there. Gives how it is started.
    fn node(
        &self,
        at: usize,
        plans: &[Plan],
        program: &Path,
        bed: &mut Testbed,
    ) -> Result<NodeSpec, SutError> {
        let name = &plans[at].name;
        // On a disk of its own, where the plan gives it one.
        let folder = bed.node_folder(name)?;
        let data = folder.join(DATA);
        let failed = |path: &Path, error: std::io::Error| {
            SutError::Deploy(format!("writing {}: {error}", path.display()))
        };
        {
            let _inside = bed.enter_disks()?;
            format(&folder, &data, number_of(at)).map_err(|error| failed(&data, error))?;
        }
        // Beside the disk, whose power may be cut: it is the trial's, not the broker's.
        let path = bed.folder().join(format!("{name}.properties"));
        let path = std::path::absolute(&path).map_err(|error| failed(&path, error))?;
        std::fs::write(&path, self.configuration(at, plans))
            .map_err(|error| failed(&path, error))?;
        let heap = format!("{}m", self.heap_mib);
        let arguments = [
            format!("-Xms{heap}"),
            format!("-Xmx{heap}"),
            // Its file in /tmp outlives a machine that is killed.
            "-XX:-UsePerfData".to_owned(),
            "-Djava.awt.headless=true".to_owned(),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".to_owned(),
            CLASS.to_owned(),
            path.display().to_string(),
        ];
        Ok(NodeSpec::new(name, program).args(arguments).cwd(folder).in_own_namespace())
    }

    fn configuration(&self, at: usize, plans: &[Plan]) -> String {
        let Plan { clients, controllers, .. } = &plans[at];
        let voters: Vec<String> = plans
            .iter()
            .enumerate()
            .map(|(at, plan)| format!("{}@{}", number_of(at), plan.controllers))
            .collect();
        let own = [
            ("process.roles", "broker,controller".to_owned()),
            ("node.id", number_of(at).to_string()),
            ("controller.quorum.voters", voters.join(",")),
            ("listeners", format!("PLAINTEXT://{clients},CONTROLLER://{controllers}")),
            ("advertised.listeners", format!("PLAINTEXT://{clients}")),
            ("controller.listener.names", "CONTROLLER".to_owned()),
            // From where it runs: the whole path of a trial has commas, which stand between several folders.
            ("log.dirs", DATA.to_owned()),
            // A trial's topic is made by the trial.
            ("auto.create.topics.enable", "false".to_owned()),
        ];
        let mut settings: BTreeMap<&str, &str> =
            own.iter().map(|(name, value)| (*name, value.as_str())).collect();
        settings.extend(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        settings.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = writeln!(text, "{name}={value}");
            text
        })
    }
}

/// Writes the file by which a broker knows its folder, as `kafka-storage format` does, durable before the first start.
/// Without more than that the group begins with the newest version of its metadata that the broker has.
fn format(folder: &Path, data: &Path, number: i32) -> std::io::Result<()> {
    std::fs::create_dir_all(data)?;
    let mut file = std::fs::File::create(data.join("meta.properties"))?;
    write!(file, "version=1\nnode.id={number}\ncluster.id={CLUSTER}\n")?;
    file.sync_all()?;
    std::fs::File::open(data)?.sync_all()?;
    std::fs::File::open(folder)?.sync_all()
}

/// The version of the server's jar beside the program.
fn version(program: &Path) -> String {
    let jars = program.with_file_name("jars");
    let names = std::fs::read_dir(jars).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let of =
        |name: &str| Some(name.strip_prefix("kafka-clients-")?.strip_suffix(".jar")?.to_owned());
    names.filter_map(|name| of(&name)).next().unwrap_or_else(|| "not known".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a broker is configured by its own names, what an experiment says stands in the place of what a trial would say,
    /// and all brokers know all controllers.
    #[test]
    fn configured() {
        let settings =
            [("log.flush.interval.messages", "1"), ("auto.create.topics.enable", "true")];
        let brokers = Brokers {
            count: 3,
            run_mark: 7,
            program: None,
            heap_mib: 256,
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        };
        let at = |number, port| SocketAddr::new(IpAddr::V4(own_loopback(7, number)), port);
        let plan = |number| Plan {
            name: format!("kafka{number}"),
            clients: at(number, BROKER_PORT),
            controllers: at(number, CONTROLLER_PORT),
        };
        let text = brokers.configuration(1, &[plan(0), plan(1), plan(2)]);
        for line in [
            "node.id=2",
            "log.dirs=data",
            "log.flush.interval.messages=1",
            "auto.create.topics.enable=true",
            "controller.quorum.voters=1@127.64.7.1:9093,2@127.64.7.2:9093,3@127.64.7.3:9093",
            "listeners=PLAINTEXT://127.64.7.2:9092,CONTROLLER://127.64.7.2:9093",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(!text.contains("auto.create.topics.enable=false"), "{text}");
    }
}
